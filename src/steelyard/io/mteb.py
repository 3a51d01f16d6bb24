"""MTEB predictions: `{query: {document: score}}`, bare or under a task's subset and split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError, did_you_mean
from steelyard.io.columns import check_roles
from steelyard.io.files import Source, run_name
from steelyard.io.lists import run_of_lists

if TYPE_CHECKING:
    from steelyard.run import Run


META = "mteb_model_meta"
_LEVELS = {1: ("split",), 2: ("subset", "split"), 3: ("task", "subset", "split")}


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The predictions; where there are several, `subset=...` and `split=...` (and `task=...`) choose."""
    check_roles(columns, _LEVELS[3], "a file of MTEB predictions")
    content = source.json
    if not isinstance(content, dict):
        raise InputError(f"{source.path} holds no JSON object; expected MTEB predictions.")
    meta = content.get(META)
    predictions: Any = {name: value for name, value in content.items() if name != META}
    chosen: list[str] = []
    for level in _LEVELS.get(depth(predictions) - 2, ()):
        name = _choose(predictions, level, columns, source)
        chosen.append(f"{level} {name!r}")
        predictions = predictions[name]
    if depth(predictions) != 2:
        raise InputError(
            f"{source.path} is no file of MTEB predictions; expected {{query: {{document: score}}}}, "
            "bare or under subset and split."
        )
    model = meta.get("model_name") if isinstance(meta, dict) else None
    name = model if isinstance(model, str) and model else run_name(source.path)
    run = run_of_lists(list(predictions), list(predictions.values()), None, name)
    if chosen:
        run.notes += (f"read {', '.join(chosen)}",)
    return run


def depth(content: Any) -> int:
    """How many objects deep the numbers lie: 2 for query and document; 0 where there are none.

    >>> depth({"q1": {"d1": 0.5}}), depth({"default": {"test": {"q1": {"d1": 0.5}}}}), depth({"q1": ["d1"]})
    (2, 4, 0)
    """
    levels = [depth(value) for value in content.values()] if isinstance(content, dict) else []
    below = max(levels, default=0)
    if below:
        return below + 1
    numbers = isinstance(content, dict) and content and all(_number(value) for value in content.values())
    return 1 if numbers else 0


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _choose(predictions: Mapping[str, Any], level: str, columns: Mapping[str, str], source: Source) -> str:
    names = list(predictions)
    wanted = columns.get(level)
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names and wanted is not None:
        return wanted
    asked = (
        f"there is no {level} {wanted!r};"
        if wanted is not None
        else f"{len(names)} of {level} are in one file;"
    )
    near = did_you_mean(wanted, names) if wanted is not None else ""
    raise InputError(f"{source.path}: {asked} name one of {', '.join(names)} ({level}=...).{near}")
