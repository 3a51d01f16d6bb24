"""Checks of a retriever's settings, with errors that name the setting and what it may be."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from steelyard.errors import did_you_mean
from steelyard.retrievers.base import RetrieverError


def whole(who: str, what: str, value: Any, low: int = 0) -> int:
    """A whole number, not below `low`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise RetrieverError(f"{who}: {what} is {value!r}; expected a whole number, {low} or more.")
    return value


def number(who: str, what: str, value: Any, low: float = 0.0, high: float = math.inf) -> float:
    """A finite number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise RetrieverError(f"{who}: {what} is {value!r}; expected a number.")
    if not low <= value <= high:
        span = f"from {low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"
        raise RetrieverError(f"{who}: {what} is {value!r}; expected a number {span}.")
    return float(value)


def unknown(who: str, what: str, value: Any, known: Iterable[str]) -> RetrieverError:
    """The error for a name that is none of those known.

    >>> print(unknown("graph-flow", "graph", "link", ["auto", "links"]))
    graph-flow: no graph 'link'. Did you mean links? Known: auto, links.
    """
    names = list(known)
    hint = did_you_mean(str(value), names)
    return RetrieverError(f"{who}: no {what} {value!r}.{hint} Known: {', '.join(names)}.")
