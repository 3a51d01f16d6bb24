"""Nearest neighbours of every vector: exact by all pairs, or approximate by random projection trees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.retrievers.base import Floats, Integers, top_k

EXACT_UP_TO = 20_000
"""With more vectors than this the neighbours are approximate."""

_CELLS = 4_000_000
"""Cells of a block of similarities."""

_TREES, _LEAF, _ROUNDS, _NEAREST = 12, 256, 2, 16
"""The number of trees, the most vectors of a leaf, and rounds over neighbours of neighbours, of how many each."""


def nearest(vectors: Floats, k: int) -> Integers:
    """The k most similar other vectors of each vector of length 1, one row each; k is below their number.

    Up to EXACT_UP_TO vectors all pairs are compared, in n^2 steps, and ties are in order. Above, the neighbours are
    approximate, in n log n steps: some of the k may be missed for more distant ones.
    """
    return exact(vectors, k) if len(vectors) <= EXACT_UP_TO else approximate(vectors, k)


def exact(vectors: Floats, k: int) -> Integers:
    """The neighbours by comparison of all pairs."""
    documents = len(vectors)
    found = np.empty((documents, k), dtype=np.int64)
    rows = max(1, _CELLS // documents)
    for first in range(0, documents, rows):
        similarity = vectors[first : first + rows] @ vectors.T
        here = np.arange(len(similarity))
        similarity[here, first + here] = -np.inf
        found[first : first + rows] = [top_k(row, k) for row in similarity]
    return found


def approximate(vectors: Floats, k: int) -> Integers:
    """The neighbours by comparison within the leaves of several trees, then with neighbours of neighbours.

    A tree divides the vectors in two at the median of their projections on the difference of two of them, and each half
    again, until a leaf has at most _LEAF vectors (and at least k + 1). The same vectors give the same neighbours.
    """
    rng = np.random.default_rng(0)
    found = np.full((len(vectors), k), -1, dtype=np.int64)
    similarity = np.full((len(vectors), k), -np.inf, dtype=vectors.dtype)
    for _ in range(_TREES):
        for leaf in _leaves(vectors, rng, max(_LEAF, 2 * k + 2)):
            own = vectors[leaf] @ vectors[leaf].T
            np.fill_diagonal(own, -np.inf)
            best = np.argpartition(own, -k, axis=1)[:, -k:]
            _keep_best(found, similarity, leaf, leaf[best], np.take_along_axis(own, best, axis=1))
    width = min(k, _NEAREST)
    rows = max(1, 8 * _CELLS // (width * width * vectors.shape[1]))
    for _ in range(_ROUNDS):
        near = np.take_along_axis(found, np.argsort(-similarity, axis=1)[:, :width], axis=1)
        for first in range(0, len(vectors), rows):
            here = np.arange(first, min(first + rows, len(vectors)))
            further = near[near[here]].reshape(len(here), -1)
            own = np.matmul(vectors[further], vectors[here][:, :, None])[:, :, 0]
            own[further == here[:, None]] = -np.inf
            _keep_best(found, similarity, here, further, own)
    return found


def _leaves(vectors: Floats, rng: np.random.Generator, size: int) -> Iterator[Integers]:
    """The vectors of each leaf of one tree."""
    waiting = [np.arange(len(vectors))]
    while waiting:
        members = waiting.pop()
        if len(members) <= size:
            yield members
            continue
        one, other = rng.choice(members, 2, replace=False)
        side = vectors[members] @ (vectors[one] - vectors[other])
        order = np.argpartition(side, len(members) // 2)
        waiting += [members[order[: len(members) // 2]], members[order[len(members) // 2 :]]]


def _keep_best(found: Integers, similarity: Floats, rows: Integers, ids: Integers, values: Floats) -> None:
    """Replace the neighbours of some rows by the best of them and of more candidates; each is kept once."""
    k = found.shape[1]
    ids = np.concatenate([found[rows], ids], axis=1)
    values = np.concatenate([similarity[rows], values], axis=1)
    by_id = np.argsort(ids, axis=1, kind="stable")
    ids, values = np.take_along_axis(ids, by_id, axis=1), np.take_along_axis(values, by_id, axis=1)
    values[:, 1:][ids[:, 1:] == ids[:, :-1]] = -np.inf
    best = np.argpartition(values, -k, axis=1)[:, -k:]
    found[rows] = np.take_along_axis(ids, best, axis=1)
    similarity[rows] = np.take_along_axis(values, best, axis=1)
