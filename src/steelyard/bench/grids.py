"""Settings given as lists: every combination of them, each with a few words on what it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from steelyard.errors import InputError

NAME = "name"


@dataclass(frozen=True)
class Point:
    """One combination: the settings it stands for, and what tells it from the others; "" where it is the only one."""

    settings: dict[str, Any]
    said: str

    def label(self, given: str) -> str:
        """A label with what tells this point from the others.

        >>> Point({"k1": 0.9}, "k1=0.9").label("bm25-okapi")
        'bm25-okapi k1=0.9'
        """
        return f"{given} {self.said}".rstrip()


def points_of(settings: Mapping[str, Any], whole: Collection[str] = ()) -> list[Point]:
    """Every combination of the settings that were given as lists; those in `whole` are lists by nature.

    Of mappings in a list, what differs between them is said.

    >>> [point.said for point in points_of({"k1": [0.9, 1.2], "b": 0.4})]
    ['k1=0.9', 'k1=1.2']
    >>> [point.said for point in points_of({"arguments": [{"n": 3, "at": "x"}, {"n": 4, "at": "x"}]})]
    ['n=3', 'n=4']
    """
    lists = {key: value for key, value in settings.items() if isinstance(value, list) and key not in whole}
    for key, values in lists.items():
        if not values:
            raise InputError(f"`{key}` is an empty list; expected a value, or a list of values to try.")
    combinations = [dict(zip(lists, chosen, strict=True)) for chosen in product(*lists.values())]
    alone = len(combinations) == 1 and NAME in settings
    return [Point({**settings, **chosen}, "" if alone else _said(chosen, lists)) for chosen in combinations]


def _said(chosen: Mapping[str, Any], lists: Mapping[str, Sequence[Any]]) -> str:
    parts = []
    for key, value in chosen.items():
        if isinstance(value, Mapping):
            parts += [f"{inner}={held}" for inner, held in value.items() if _differs(inner, lists[key])]
        elif key != NAME:
            parts.append(f"{key}={value}")
    return " ".join(parts)


def _differs(key: Any, among: Sequence[Any]) -> bool:
    """Whether the mappings of a list have other values under a key."""
    held = [repr(each.get(key)) if isinstance(each, Mapping) else "" for each in among]
    return len(among) == 1 or len(set(held)) > 1
