"""The weights of a composite score: given, from a file, or the default seven."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.errors import InputError, MeasureError

DEFAULT = {
    "recall": 0.05,
    "precision": 0.05,
    "f1": 0.4,
    "mrr": 0.05,
    "hit_rate": 0.3,
    "ndcg": 0.05,
    "confusion": 0.1,
}
"""Mostly F1 and the first hit; a tenth for not returning documents that mislead."""

DEFAULT_CUTOFF = 10
"""Where the default composite looks when the comparison has no cutoffs of its own."""


def weights_of(source: Mapping[str, float] | str | Path) -> dict[str, float]:
    """The weights that were asked for, checked: none below 0, not all 0.

    >>> weights_of({"nDCG@10": 1, "RR@10": 3})
    {'nDCG@10': 1.0, 'RR@10': 3.0}
    """
    if isinstance(source, Mapping):
        return _checked(source, "the composite")
    if str(source) == "default":
        return dict(DEFAULT)
    return _checked(_read(Path(source)), str(source))


def _checked(weights: Mapping[str, Any], where: str) -> dict[str, float]:
    checked: dict[str, float] = {}
    for name, weight in weights.items():
        try:
            value = float(weight)
        except (TypeError, ValueError):
            raise MeasureError(f"{where}: the weight of {name} is {weight!r}; expected a number.") from None
        if not 0 <= value < float("inf"):
            raise MeasureError(
                f"{where}: the weight of {name} is {weight}; expected 0 or more. Where less is better, the measure is turned round by itself."
            )
        checked[str(name)] = value
    if not checked or sum(checked.values()) == 0:
        raise MeasureError(f"{where}: the weights are all 0; give at least one measure a weight above 0.")
    return checked


def _read(path: Path) -> Mapping[str, Any]:
    """A table of weights from a YAML or JSON file."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: the weights cannot be read ({error}); expected a YAML or JSON file of measure: weight."
        ) from None
    try:
        if path.suffix == ".json":
            found = json.loads(text)
        else:
            import yaml

            found = yaml.safe_load(text)
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); expected a table of measure and weight.") from None
    except Exception as error:
        if type(error).__module__.split(".")[0] != "yaml":
            raise
        raise InputError(f"{path}: not YAML ({error}); expected a table of measure: weight.") from None
    if isinstance(found, Mapping) and isinstance(found.get("weights"), Mapping):
        found = found["weights"]
    if not isinstance(found, Mapping):
        raise InputError(f"{path}: expected a table of measure and weight, as in `nDCG@10: 0.5`.")
    return found
