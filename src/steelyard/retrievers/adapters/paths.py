"""Paths into an answer: `metadata.source`, `hits.hits[*]._id`, through keys, places and attributes alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard.errors import did_you_mean
from steelyard.ids import kind_of
from steelyard.retrievers.base import RetrieverError

_STEP = re.compile(r"""\.?([^.\[\]]+)|\[(\*|-?\d+)\]|\[['"](.+?)['"]\]""")
_SHOWN = 12
EVERY = "*"


class MissingError(LookupError):
    """A step that leads nowhere; the text says which, and what there was instead."""


def steps_of(path: str, who: str) -> list[str | int]:
    """The steps of a path; `[*]` is every item of a list.

    >>> steps_of("$.hits.hits[*]._id", "http"), steps_of("rows[0]['a.b']", "http")
    (['hits', 'hits', '*', '_id'], ['rows', 0, 'a.b'])
    """
    rest = path.strip().removeprefix("$")
    steps: list[str | int] = []
    while rest:
        found = _STEP.match(rest)
        if found is None:
            raise RetrieverError(
                f"{who}: the path {path!r} stops making sense at {rest!r}; "
                "expected keys and places, as in hits[*].id or metadata.source."
            )
        key, place, quoted = found.groups()
        steps.append(
            EVERY
            if place == EVERY
            else int(place)
            if place is not None
            else quoted
            if quoted is not None
            else key
        )
        rest = rest[found.end() :]
    return steps


def step_into(value: Any, step: str | int) -> Any:
    """What one step leads to: a key of a mapping, a place in a list, or an attribute."""
    if isinstance(value, Mapping):
        if step in value:
            return value[step]
        raise MissingError(f"no {step!r}.{did_you_mean(str(step), map(str, value))} It has {keys_of(value)}")
    if isinstance(step, int):
        if isinstance(value, Sequence) and not isinstance(value, str) and -len(value) <= step < len(value):
            return value[step]
        raise MissingError(f"no place {step}: it is {keys_of(value)}")
    if not step.startswith("__") and hasattr(value, step):
        return getattr(value, step)
    raise MissingError(f"no {step!r}.{did_you_mean(step, _names(value))} It has {keys_of(value)}")


def walk(value: Any, steps: Sequence[str | int]) -> Any:
    """Where the steps lead.

    >>> walk({"metadata": {"source": "d7"}}, ["metadata", "source"])
    'd7'
    """
    for step in steps:
        value = step_into(value, step)
    return value


def every(value: Any, steps: Sequence[str | int]) -> Iterator[Any]:
    """All that the steps lead to, where `*` stands for every item of a list; nothing is passed over.

    >>> list(every({"hits": [{"id": 1}, {"id": 2}]}, ["hits", "*", "id"]))
    [1, 2]
    """
    if EVERY not in steps:
        yield walk(value, steps)
        return
    here = list(steps).index(EVERY)
    items = walk(value, steps[:here])
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise MissingError(f"[*] needs a list, and there is {kind_of(items)}")
    for place, item in enumerate(items, 1):
        try:
            yield from every(item, steps[here + 1 :])
        except MissingError as missing:
            raise MissingError(f"item {place}: {missing}") from None


def keys_of(value: Any) -> str:
    """What can be asked of a value, for a message; a mapping inside shows its own keys.

    >>> keys_of({"text": "...", "metadata": {"source": "a", "page": 2}})
    'text, metadata (source, page)'
    """
    if not isinstance(value, Mapping):
        names = _names(value)
        if not names:
            return f"no keys: it is {kind_of(value)}"
        value = {name: getattr(value, name, None) for name in names}
    if not value:
        return "no keys"
    shown = []
    for key in list(value)[:_SHOWN]:
        inner = value[key]
        within = (
            f" ({', '.join(map(str, list(inner)[:_SHOWN]))})" if isinstance(inner, Mapping) and inner else ""
        )
        shown.append(f"{key}{within}")
    return ", ".join(shown) + (", ..." if len(value) > _SHOWN else "")


def _names(value: Any) -> list[str]:
    if isinstance(value, (str, int, float, list, tuple)) or value is None:
        return []
    held = getattr(value, "__dict__", None)
    return [name for name in held if not name.startswith("_")] if held else []
