"""Document graphs: which document leads to which, from the corpus's own links or from nearest neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.checks import unknown
from steelyard.retrievers.topk import top_k

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Integers: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
GraphSource: TypeAlias = Literal["auto", "links", "neighbours"]

_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True)
class DocumentGraph:
    """Directed edges between documents, by their places in the corpus.

    Document i leads to `targets[starts[i]:starts[i + 1]]`, in ascending order.

    >>> graph = from_links(["a", "b", "c"], {"a": ["b", "c"], "c": ["a"]})
    >>> [graph.neighbours(place).tolist() for place in range(3)]
    [[1, 2], [], [0]]
    """

    starts: Integers
    targets: Integers

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def degrees(self) -> Integers:
        """How many documents each one leads to."""
        return np.diff(self.starts)

    @property
    def nbytes(self) -> int:
        """The memory that the edges take."""
        return self.starts.nbytes + self.targets.nbytes

    def neighbours(self, place: int) -> Integers:
        """The documents that one leads to."""
        return self.targets[self.starts[place] : self.starts[place + 1]]

    def table(self, places: Integers) -> tuple[Integers, Bools]:
        """The neighbours of several documents, a row each, filled up to the longest; and which cells are real."""
        degrees = self.starts[places + 1] - self.starts[places]
        column = np.arange(max(1, int(degrees.max(initial=0))))
        real = column < degrees[:, None]
        cells = np.where(real, self.starts[places][:, None] + column, 0)
        rows = self.targets[cells] if len(self.targets) else np.zeros(cells.shape, dtype=np.int64)
        return rows, real

    def among(self, places: Integers) -> Bools:
        """The edges between some documents, as a square table: row leads to column."""
        edges = np.zeros((len(places), len(places)), dtype=bool)
        rows, real = self.table(places)
        order = np.argsort(places)
        at = np.minimum(np.searchsorted(places[order], rows), len(places) - 1)
        inside = real & (places[order][at] == rows)
        edges[np.nonzero(inside)[0], order[at[inside]]] = True
        return edges


def from_links(
    ids: Sequence[str], links: Mapping[str, Sequence[str]], both_ways: bool = False
) -> DocumentGraph:
    """The graph of the corpus's own links. Links to oneself, to unknown documents and repeats are left out.

    both_ways: a link also leads back.
    """
    place = {doc: number for number, doc in enumerate(ids)}
    pairs = [
        (number, place[target])
        for number, doc in enumerate(ids)
        for target in links.get(doc, ())
        if target in place and target != doc
    ]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return _of_edges(np.concatenate([edges, edges[:, ::-1]]) if both_ways else edges, len(ids))


def from_neighbours(vectors: Floats, k: int) -> DocumentGraph:
    """Each document leads to the k others whose vectors (of length 1) are most similar, equal ones in order."""
    documents = len(vectors)
    most = min(k, documents - 1)
    if most < 1:
        return _of_edges(np.zeros((0, 2), dtype=np.int64), documents)
    found = np.empty((documents, most), dtype=np.int64)
    rows = max(1, _BLOCK_CELLS // documents)
    for first in range(0, documents, rows):
        similarity = vectors[first : first + rows] @ vectors.T
        here = np.arange(len(similarity))
        similarity[here, first + here] = -np.inf
        found[first : first + rows] = [top_k(row, most) for row in similarity]
    origin = np.repeat(np.arange(documents), most)
    return _of_edges(np.stack([origin, found.ravel()], axis=1), documents)


def document_graph(
    ids: Sequence[str],
    corpus: Mapping[str, str],
    vectors: Floats,
    source: GraphSource,
    neighbours: int,
    both_ways: bool,
    who: str,
) -> DocumentGraph:
    """The graph that a retriever was set to walk: `auto` takes the corpus's links where it has any."""
    links = getattr(corpus, "links", None)
    if source == "links" and not links:
        raise RetrieverError(
            f"{who}: the corpus has no links to walk along; give one that has, or set graph to 'neighbours'."
        )
    if source == "neighbours" or not links:
        return from_neighbours(vectors, neighbours)
    return from_links(ids, links, both_ways)


def checked_source(source: str, who: str) -> GraphSource:
    """The name of where a graph comes from."""
    for known in get_args(GraphSource):
        if source == known:
            return known  # type: ignore[no-any-return]
    raise unknown(who, "graph", source, get_args(GraphSource))


def _of_edges(edges: Integers, documents: int) -> DocumentGraph:
    edges = np.unique(edges, axis=0)
    counts = np.bincount(edges[:, 0], minlength=documents)
    return DocumentGraph(np.concatenate([[0], np.cumsum(counts)]), np.ascontiguousarray(edges[:, 1]))
