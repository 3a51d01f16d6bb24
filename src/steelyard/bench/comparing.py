"""The comparison that a bench's settings ask for: made when it runs, and again when its folder is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.bench.chunkings import compare_chunkings
from steelyard.comparison.compare import compare
from steelyard.comparison.plan import Plan
from steelyard.comparison.result import Comparison
from steelyard.judgments import Qrels
from steelyard.policies import Policies
from steelyard.runs import Run

POLICIES = tuple(name for name in vars(Policies()) if name != "single")
"""The policies that a bench may choose."""

_TESTED = ("baseline", "test", "correction", "seed")
_MEASURED = ("at", "dialect", *POLICIES)


def compared(
    settings: Mapping[str, Any],
    composite: Any,
    judgments: Qrels | Mapping[str, Qrels],
    runs: Mapping[str, Run],
    chunking_of: Mapping[str, str],
    columns: Mapping[str, Mapping[str, Any]],
) -> Comparison:
    """The runs compared as the settings say, by their names in bench.yaml; what is None or absent has its default.

    `judgments` are those of every chunking, by its label, where `chunking_of` names each run's. `columns`
    are the queries' own. A run whose documents are called otherwise than those of the corpus is no error here:
    it must not cost the others their result.
    """
    chosen = {name: value for name, value in settings.items() if value is not None}
    tested = {name: chosen[name] for name in _TESTED if name in chosen}
    by = chosen.get("by")
    options: dict[str, Any] = {
        "composite": composite,
        "by": by,
        "queries": columns if by in columns else None,
        "strangers": "note",
        **{name: chosen[name] for name in _MEASURED if name in chosen},
    }
    measures = chosen.get("measures") or None
    if isinstance(judgments, Mapping):
        return compare_chunkings(judgments, runs, chunking_of, measures, Plan(**tested), **options)
    return compare(judgments, runs, measures, **tested, **options)
