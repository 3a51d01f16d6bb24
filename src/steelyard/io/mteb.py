"""MTEB predictions: `{query: {document: score}}`, alone or under a task's subset and split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError, did_you_mean
from steelyard.io.columns import check_roles
from steelyard.io.files import run_name
from steelyard.io.lists import run_of_lists
from steelyard.io.text import Source
from steelyard.notes import note

if TYPE_CHECKING:
    from steelyard.run import Run


META = "mteb_model_meta"
_LEVELS = {1: ("split",), 2: ("subset", "split"), 3: ("task", "subset", "split")}


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The predictions; where there are several, `subset=...` and `split=...` (and `task=...`) select."""
    check_roles(columns, _LEVELS[3], "a file of MTEB predictions")
    content = source.json
    if not isinstance(content, dict):
        raise InputError("not a JSON object; expected MTEB predictions.")
    meta = content.get(META)
    predictions: Any = {name: value for name, value in content.items() if name != META}
    chosen: dict[str, str] = {}
    for level in _LEVELS.get(depth(predictions) - 2, ()):
        chosen[level] = _choose(list(predictions), level, columns.get(level))
        predictions = predictions[chosen[level]]
    if depth(predictions) != 2:
        raise InputError(
            "not a file of MTEB predictions; expected {query: {document: score}}, alone or under subset and split."
        )
    model = meta.get("model_name") if isinstance(meta, dict) else None
    name = model if isinstance(model, str) and model else run_name(source.path)
    run = run_of_lists(list(predictions), list(predictions.values()), None, name)
    if chosen:
        run.notes += (note("mteb-selected", **chosen),)
    return run


def depth(content: Any) -> int:
    """How many objects deep the numbers are: 2 for query and document; 0 where there are none.

    >>> depth({"q1": {"d1": 0.5}}), depth({"default": {"test": {"q1": {"d1": 0.5}}}}), depth({"q1": ["d1"]})
    (2, 4, 0)
    """
    if not isinstance(content, dict) or not content:
        return 0
    if set(map(type, content.values())) <= {int, float}:
        return 1
    below = max(map(depth, content.values()))
    return below + 1 if below else 0


def _choose(names: list[str], level: str, named: str | None) -> str:
    if named is None and len(names) == 1:
        return names[0]
    if named is not None and named in names:
        return named
    problem = f"{len(names)} {level}s in one file" if named is None else f"no {level} {named!r}"
    near = did_you_mean(named, names) if named is not None else ""
    raise InputError(f"{problem}; name one of {', '.join(names)} ({level}=...).{near}")
