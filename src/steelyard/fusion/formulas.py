"""The formulas of fusion: where the lists have a document in, one number for it out.

r is a document's rank in a list, s its normalised score there, w the list's weight, N how many lists
have the document. Sums run over the lists that have it, unless said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.fusion.pool import Pool


def rrf(pool: Pool, weights: Floats, *, k: float = 60) -> Floats:
    """Sum of w / (k + r)."""
    return _summed(weights, _of_ranks(pool, lambda r: 1 / (k + r)))


def combsum(pool: Pool, weights: Floats) -> Floats:
    """Sum of w s."""
    return _summed(weights, np.where(pool.found, pool.value, 0.0))


def combmnz(pool: Pool, weights: Floats) -> Floats:
    """N times the sum of s."""
    return _lists_with(pool) * combsum(pool, weights)


def combanz(pool: Pool, weights: Floats) -> Floats:
    """The mean of s over the N lists that have the document."""
    return combsum(pool, weights) / _lists_with(pool)


def combmax(pool: Pool, weights: Floats) -> Floats:
    """The highest s."""
    highest: Floats = np.fmax.reduce(pool.value, axis=0)
    return highest


def combmin(pool: Pool, weights: Floats) -> Floats:
    """The lowest s."""
    lowest: Floats = np.fmin.reduce(pool.value, axis=0)
    return lowest


def combmed(pool: Pool, weights: Floats) -> Floats:
    """The median of s: the middle one, or the mean of the middle two."""
    ascending = np.sort(pool.value, axis=0)
    count = pool.found.sum(axis=0)
    every = np.arange(pool.size)
    middle: Floats = (ascending[(count - 1) // 2, every] + ascending[count // 2, every]) / 2
    return middle


def borda(pool: Pool, weights: Floats) -> Floats:
    """Sum of w (c - r + 1), where the lists have c different documents together.

    The points that a list does not give, it shares out among the documents that it does not have:
    (c - n + 1) / 2 each, where it has n.
    """
    candidates = np.repeat(pool.candidates, pool.candidates)
    shared = np.repeat((pool.candidates - pool.lengths + 1) / 2, pool.candidates, axis=1)
    points = np.where(pool.found, candidates - pool.rank + 1, shared)
    return _summed(weights, points)


def isr(pool: Pool, weights: Floats) -> Floats:
    """N times the sum of w / r²."""
    return _lists_with(pool) * _inverse_squares(pool, weights)


def logn_isr(pool: Pool, weights: Floats, *, sigma: float = 0.01) -> Floats:
    """log(N + sigma) times the sum of w / r²."""
    found: Floats = np.log(_lists_with(pool) + sigma) * _inverse_squares(pool, weights)
    return found


def rbc(pool: Pool, weights: Floats, *, phi: float = 0.8) -> Floats:
    """Sum of w (1 - phi) phi^(r - 1)."""
    return _summed(weights, _of_ranks(pool, lambda r: (1 - phi) * np.power(phi, r - 1)))


def condorcet(pool: Pool, weights: Floats) -> Floats:
    """How many candidates the document beats, a draw counting a half: x beats y when more lists put it higher."""
    place = np.where(pool.found, pool.rank, np.iinfo(np.int32).max).astype(np.int32)
    alike = bool(np.all(weights == weights[0]))
    kind: Any = np.int32 if alike else np.float64
    strength = [kind(1)] * pool.lists if alike else list(weights)
    slack = 0.0 if alike else 1e-9 * float(weights.sum())
    points = np.empty(pool.size)
    for start, count in zip(pool.starts.tolist(), pool.candidates.tolist(), strict=True):
        here = place[:, start : start + count]
        votes = np.zeros((count, count), dtype=kind)
        for ranks, weight in zip(here, strength, strict=True):
            votes += weight * (ranks[:, None] < ranks[None, :])
        lead = votes - votes.T
        wins = np.count_nonzero(lead > slack, axis=1)
        losses = np.count_nonzero(lead < -slack, axis=1)
        points[start : start + count] = (wins - losses + count - 1) / 2
    return points


def _lists_with(pool: Pool) -> Floats:
    counted: Floats = np.sum(pool.found, axis=0, dtype=np.float64)
    return counted


def _inverse_squares(pool: Pool, weights: Floats) -> Floats:
    return _summed(weights, _of_ranks(pool, lambda r: 1 / r**2))


def _of_ranks(pool: Pool, worth: Callable[[Floats], Floats]) -> Floats:
    """What each list's rank of each candidate is worth; 0 where the list does not have it."""
    deepest = int(pool.rank.max(initial=0))
    table = np.concatenate([[0.0], worth(np.arange(1.0, deepest + 1))])
    return table[pool.rank]


def _summed(weights: Floats, parts: Floats) -> Floats:
    """The weighted sum over lists, smallest part first: the order of the runs does not change its last bit."""
    weighted = weights[:, None] * parts
    total: Floats = np.zeros(parts.shape[1])
    for part in np.sort(weighted, axis=0) if len(parts) > 2 else weighted:
        total += part
    return total
