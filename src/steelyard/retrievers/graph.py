"""Document graphs: the links of a corpus, or its nearest neighbours by embedding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from steelyard.retrievers.base import Floats, Integers, top_k

EXACT_UP_TO = 20_000  # With more vectors than this the neighbours are approximate.
_CELLS = 4_000_000  # Cells of a block of similarities.

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
    neighbours = np.empty((documents, k), dtype=np.int64)
    rows = max(1, _CELLS // documents)
    for first in range(0, documents, rows):
        similarity = vectors[first : first + rows] @ vectors.T
        here = np.arange(len(similarity))
        similarity[here, first + here] = -np.inf
        neighbours[first : first + rows] = [top_k(row, k) for row in similarity]
    return neighbours


def approximate(vectors: Floats, k: int) -> Integers:
    """The neighbours by comparison within the leaves of several trees, then with neighbours of neighbours.

    A tree divides the vectors in two at the median of their projections on the difference of two of them, and each half
    again, until a leaf has at most _LEAF vectors (and at least k + 1). The same vectors give the same neighbours.
    """
    rng = np.random.default_rng(0)
    neighbours = np.full((len(vectors), k), -1, dtype=np.int64)
    similarity = np.full((len(vectors), k), -np.inf, dtype=vectors.dtype)
    for _ in range(_TREES):
        for leaf in _leaves(vectors, rng, max(_LEAF, 2 * k + 2)):
            products = vectors[leaf] @ vectors[leaf].T
            np.fill_diagonal(products, -np.inf)
            best = np.argpartition(products, -k, axis=1)[:, -k:]
            _keep_best(neighbours, similarity, leaf, leaf[best], np.take_along_axis(products, best, axis=1))
    width = min(k, _NEAREST)
    rows = max(1, 8 * _CELLS // (width * width * vectors.shape[1]))
    for _ in range(_ROUNDS):
        near = np.take_along_axis(neighbours, np.argsort(-similarity, axis=1)[:, :width], axis=1)
        for first in range(0, len(vectors), rows):
            here = np.arange(first, min(first + rows, len(vectors)))
            further = near[near[here]].reshape(len(here), -1)
            products = np.matmul(vectors[further], vectors[here][:, :, None])[:, :, 0]
            products[further == here[:, None]] = -np.inf
            _keep_best(neighbours, similarity, here, further, products)
    return neighbours


def _leaves(vectors: Floats, rng: np.random.Generator, size: int) -> Iterator[Integers]:
    waiting = [np.arange(len(vectors))]
    while waiting:
        members = waiting.pop()
        if len(members) <= size:
            yield members
            continue
        one, other = rng.choice(members, 2, replace=False)
        order = np.argpartition(vectors[members] @ (vectors[one] - vectors[other]), len(members) // 2)
        waiting += [members[order[: len(members) // 2]], members[order[len(members) // 2 :]]]


def _keep_best(neighbours: Integers, similarity: Floats, rows: Integers, ids: Integers, values: Floats) -> None:
    """Replace the neighbours of some rows by the best of them and of more candidates; each is kept once."""
    k = neighbours.shape[1]
    ids = np.concatenate([neighbours[rows], ids], axis=1)
    values = np.concatenate([similarity[rows], values], axis=1)
    by_id = np.argsort(ids, axis=1, kind="stable")
    ids, values = np.take_along_axis(ids, by_id, axis=1), np.take_along_axis(values, by_id, axis=1)
    values[:, 1:][ids[:, 1:] == ids[:, :-1]] = -np.inf
    best = np.argpartition(values, -k, axis=1)[:, -k:]
    neighbours[rows] = np.take_along_axis(ids, best, axis=1)
    similarity[rows] = np.take_along_axis(values, best, axis=1)


Bools: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DocumentGraph:
    """Directed edges between documents, by their positions in the corpus.

    The neighbours of document i are `targets[starts[i]:starts[i + 1]]`, in ascending order.

    >>> graph = from_links(["a", "b", "c"], {"a": ["b", "c"], "c": ["a"]})
    >>> [graph.neighbours(position).tolist() for position in range(3)]
    [[1, 2], [], [0]]
    """

    starts: Integers
    targets: Integers

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def degrees(self) -> Integers:
        """The number of neighbours of each document."""
        return np.diff(self.starts)

    def neighbours(self, position: int) -> Integers:
        """The neighbours of a document."""
        return self.targets[self.starts[position] : self.starts[position + 1]]

    def table(self, positions: Integers) -> tuple[Integers, Bools]:
        """The neighbours of several documents, one row each, padded to the longest; and which cells are not padding."""
        degrees = self.starts[positions + 1] - self.starts[positions]
        column = np.arange(max(1, int(degrees.max(initial=0))))
        real = column < degrees[:, None]
        cells = np.where(real, self.starts[positions][:, None] + column, 0)
        return (self.targets[cells] if len(self.targets) else np.zeros(cells.shape, dtype=np.int64)), real

    def among(self, positions: Integers) -> Bools:
        """The edges between some documents, as a square matrix: from row to column."""
        edges = np.zeros((len(positions), len(positions)), dtype=bool)
        rows, real = self.table(positions)
        order = np.argsort(positions)
        at = np.minimum(np.searchsorted(positions[order], rows), len(positions) - 1)
        inside = real & (positions[order][at] == rows)
        edges[np.nonzero(inside)[0], order[at[inside]]] = True
        return edges


def from_links(ids: Sequence[str], links: Mapping[str, Sequence[str]], both_ways: bool = False) -> DocumentGraph:
    """The graph of the links of a corpus, without links to the same document, to unknown documents and repeats.

    both_ways: a link is an edge in both directions.
    """
    position = {doc: number for number, doc in enumerate(ids)}
    pairs = [
        (number, position[target])
        for number, doc in enumerate(ids)
        for target in links.get(doc, ())
        if target in position and target != doc
    ]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return _of_edges(np.concatenate([edges, edges[:, ::-1]]) if both_ways else edges, len(ids))


def from_neighbours(vectors: Floats, k: int) -> DocumentGraph:
    """The graph of the k most similar other documents, from vectors of length 1; see `neighbours.nearest`."""
    documents = len(vectors)
    most = min(k, documents - 1)
    if most < 1:
        return _of_edges(np.zeros((0, 2), dtype=np.int64), documents)
    origin = np.repeat(np.arange(documents), most)
    return _of_edges(np.stack([origin, nearest(vectors, most).ravel()], axis=1), documents)


def _of_edges(edges: Integers, documents: int) -> DocumentGraph:
    numbers = np.unique(edges[:, 0] * documents + edges[:, 1])
    counts = np.bincount(numbers // documents, minlength=documents)
    return DocumentGraph(np.concatenate([[0], np.cumsum(counts)]), numbers % documents)
