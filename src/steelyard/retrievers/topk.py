"""The best k of many scores, exactly: higher scores first, equal scores in document order."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from steelyard.retrievers.base import Ranked

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Integers: TypeAlias = npt.NDArray[np.signedinteger[Any]]

_BLOCK = 64


def top_k(scores: Floats, k: int) -> Integers:
    """The places of the k highest scores, best first; fewer where there are not as many.

    >>> top_k(np.array([1.0, 3.0, 2.0, 3.0]), 3).tolist()
    [1, 3, 2]
    """
    if k >= len(scores):
        return np.argsort(-scores, kind="stable")
    bound = _bound(scores, k)
    places = np.flatnonzero(scores > bound)
    if len(places) < k:
        places = np.concatenate([places, np.flatnonzero(scores == bound)[: k - len(places)]])
    order = np.argsort(-scores[places], kind="stable")[:k]
    return places[order]


def _bound(scores: Floats, k: int) -> float:
    """A score that at least k reach, and few more: the k-th best of the blocks' best, cheaper than the k-th best."""
    whole = len(scores) - len(scores) % _BLOCK
    if 4 * k * _BLOCK >= whole:
        return float(np.partition(scores, len(scores) - k)[len(scores) - k])
    best = scores[:whole].reshape(-1, _BLOCK).max(axis=1)
    return float(np.partition(best, len(best) - k)[len(best) - k])


def ranked(ids: list[str], places: Integers, scores: Floats) -> Ranked:
    """Places and their scores as (document id, score) pairs."""
    return [(ids[place], score) for place, score in zip(places.tolist(), scores.tolist(), strict=True)]


def best(ids: list[str], scores: Floats, k: int) -> Ranked:
    """The k documents with the highest scores, best first.

    >>> best(["d1", "d2", "d3"], np.array([0.5, 2.0, 1.0]), 2)
    [('d2', 2.0), ('d3', 1.0)]
    """
    places = top_k(scores, k)
    return ranked(ids, places, scores[places])
