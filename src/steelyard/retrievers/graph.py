"""Document graphs, the common part of the retrievers on them, and GraphFlow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from steelyard.retrievers import base
from steelyard.retrievers.base import CheckedCorpus, Floats, Integers, Ranked, Self, Staged, best, top_k
from steelyard.retrievers.dense import Dense
from steelyard.retrievers.embeddings import Embedder
from steelyard.retrievers.settings import Declared, setting

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
GraphSource: TypeAlias = Literal["auto", "links", "neighbours"]

_BLOCK_CELLS = 2_000_000  # Cells of a block of queries.


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

    @property
    def nbytes(self) -> int:
        """The memory used by the edges."""
        return self.starts.nbytes + self.targets.nbytes

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


class GraphRetriever(Declared):
    """The common part of retrievers on a document graph. A subclass has the scores in `_scores`."""

    stage: ClassVar[str]
    """The name of what it does to the documents that are most similar to the query."""
    candidates = 0
    """The number of most similar documents that it starts from, if that is fixed."""

    graph: GraphSource = setting(
        "links of the corpus, nearest neighbours by embedding, or `auto`: links if the corpus has any", default="auto"
    )
    neighbours: int = setting(
        "neighbours per document in a graph of nearest neighbours, which is approximate above 20,000 documents",
        default=10,
        low=1,
    )
    both_ways: bool = setting("a link is an edge in both directions", default=False)
    embedding: str | Embedder | Dense = setting(
        "the embedding for similarity: a model name or a callable as for Dense, or a Dense", default="lsa", key=None
    )
    seed: int = setting(
        "seed of the walks; those of a query depend only on the seed and its text, not on other queries", default=0
    )

    def _set_up(self) -> None:
        self._dense = self.embedding if isinstance(self.embedding, Dense) else Dense(model=self.embedding)
        self._index: tuple[CheckedCorpus, DocumentGraph] | None = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Embed a corpus and build its graph; a second call replaces the first index."""
        documents = base.checked_corpus(corpus, self.label)
        vectors = self._dense.index(corpus).vectors
        links = getattr(corpus, "links", None)
        if self.graph == "links" and not links:
            problem = "the corpus has no links; use one that has, or set graph to 'neighbours'"
            raise self._error(f"{problem}.")
        if self.graph == "neighbours" or not links:
            self._index = documents, from_neighbours(vectors, self.neighbours)
        else:
            self._index = documents, from_links(documents.ids, links, self.both_ways)
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, score) pairs."""
        documents, graph = base.checked_index(self._index, self.label)
        listed = base.checked_queries(queries, k, self.label)
        size = max(1, _BLOCK_CELLS // max(self._cells(graph), len(documents)))
        lists: list[Ranked] = []
        for first in range(0, len(listed), size):
            block = listed[first : first + size]
            # Each query is multiplied separately, since a matrix product rounds differently with its size, and a walk
            # must not depend on the other queries. The cosines are rounded as in Dense.
            rows = [self._dense.vectors @ vector for vector in self._dense.embed(block)]
            similarities = np.round(np.array(rows, dtype=np.float64), 6) + 0.0
            for similar, row in zip(similarities, self._scores(graph, block, similarities), strict=True):
                received = best(documents.ids, similar, max(k, self.candidates))
                lists.append(Staged(best(documents.ids, row, k), self.stage, [("retrieve", received)]))
        return lists

    def size_in_bytes(self) -> int:
        """The embeddings and the graph."""
        return 0 if self._index is None else self._dense.size_in_bytes() + self._index[1].nbytes

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"embedding": self._dense.settings()}

    def _cells(self, graph: DocumentGraph) -> int:
        """The numbers that a query needs in memory besides its cosines, for the size of a block of queries."""
        raise NotImplementedError

    def _scores(self, graph: DocumentGraph, queries: list[str], similarities: Floats) -> Floats:
        """The score of every document, and so are the similarities: queries x documents."""
        raise NotImplementedError


def query_draws(seed: int, query: str, shape: tuple[int, ...]) -> Floats:
    """Random numbers from 0 to 1 that depend only on the seed and the text of the query."""
    digest = hashlib.sha256(f"{seed}\0{query}".encode("utf-8", "surrogatepass")).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little"))).random(shape)


def draw(scores: Floats, allowed: Bools, temperature: float, draws: Floats) -> Integers:
    """One choice per row, with probability proportional to exp(temperature x score) among the allowed; -1 if none is.

    `draws` has a number from 0 to 1 for each row. Rows are independent.

    >>> scores = np.log([[1.0, 2.0, 1.0]] * 4)
    >>> draw(scores, np.ones((4, 3), dtype=bool), 1.0, np.array([0.2, 0.3, 0.7, 0.8])).tolist()
    [0, 1, 1, 2]
    """
    masked = np.where(allowed, temperature * scores, -np.inf)
    best = masked.max(axis=-1, keepdims=True)
    reached = np.cumsum(np.exp(masked - np.where(np.isfinite(best), best, 0.0)), axis=-1)
    total = reached[..., -1]
    # A draw that rounds up to the total must not pass the last cell with a weight.
    goal = np.minimum(draws * total, np.nextafter(total, 0.0))
    return np.where(total > 0, np.count_nonzero(reached <= goal[..., None], axis=-1), -1)


def visits(
    graph: DocumentGraph, rewards: Floats, seeds: Integers, draws: Floats, temperature: float, restart: float
) -> Integers:
    """The number of visits of each document by random walks: queries x documents.

    `rewards` is queries x documents, `seeds` queries x start documents, and `draws` has two numbers for every
    query, position of a walk and walk: queries x (steps + 1) x walks x 2. A walk starts at a seed and continues
    to a neighbour; with probability `restart`, and at a document without neighbours, it starts again. Starts and
    steps have probabilities proportional to exp(temperature x reward).
    """
    queries, positions, walks, _ = draws.shape
    documents = rewards.shape[1]
    query = np.repeat(np.arange(queries), walks)
    seed_rewards = np.take_along_axis(rewards, seeds, axis=1)[query]
    every_seed = np.ones(seed_rewards.shape, dtype=bool)
    counts = np.zeros(queries * documents, dtype=np.int64)
    at = np.full(queries * walks, -1, dtype=np.int64)
    for position in range(positions):
        stop, choice = draws[:, position, :, 0].ravel(), draws[:, position, :, 1].ravel()
        going = np.flatnonzero((at >= 0) & (stop >= restart))
        rows, real = graph.table(at[going])
        step = draw(rewards[query[going][:, None], rows], real, temperature, choice[going])
        at[:] = -1
        at[going] = np.where(step >= 0, rows[np.arange(len(going)), step], -1)
        fresh = np.flatnonzero(at < 0)
        at[fresh] = seeds[query[fresh], draw(seed_rewards[fresh], every_seed[fresh], temperature, choice[fresh])]
        counts += np.bincount(query * documents + at, minlength=len(counts))
    return counts.reshape(queries, documents)


class GraphFlow(GraphRetriever):
    """Random walks over a document graph, guided by similarity to the query.

    Walks start at the documents most similar to the query. The next document is one of the neighbours, with
    probability proportional to exp(temperature x reward), where the reward is the similarity to the query.
    Documents are ranked by number of visits.

    A document's score is its number of visits plus (1 + similarity) / 4, which is below 1: equal visits are ranked by
    similarity, and so are documents without a visit. An empty query, or one of unknown words, is equally similar to
    all documents: its walks start at the first documents and choose neighbours with equal probability.

    >>> meanings = {"a": [1, 0], "b": [0.6, 0.8], "c": [0, 1]}
    >>> flow = GraphFlow(embedding=Dense(model=meanings), neighbours=1, seeds=1, walks=10, steps=4, restart=0)
    >>> [doc for doc, score in flow.index({"d1": "a", "d2": "b", "d3": "c"}).retrieve(["a"], k=3)[0]]
    ['d2', 'd3', 'd1']
    """

    retriever = "graph-flow"
    stage = "walk"

    walks: int = setting("walks per query", default=100, low=1)
    steps: int = setting("steps per walk", default=10)
    temperature: float = setting(
        "0 makes all neighbours equally likely; a higher value prefers the best one", default=10.0
    )
    seeds: int = setting("the number of documents that walks may start at", default=10, low=1)
    restart: float = setting(
        "the probability of starting again at each step; a document without neighbours always restarts",
        default=0.15,
        high=1.0,
    )

    def _cells(self, graph: DocumentGraph) -> int:
        return self.walks * max(int(graph.degrees.max(initial=1)), self.seeds, 2 * (self.steps + 1))

    def _scores(self, graph: DocumentGraph, queries: list[str], rewards: Floats) -> Floats:
        draws = np.stack([query_draws(self.seed, query, (self.steps + 1, self.walks, 2)) for query in queries])
        seeds = np.stack([top_k(row, self.seeds) for row in rewards])
        scores: Floats = visits(graph, rewards, seeds, draws, self.temperature, self.restart) + (1 + rewards) / 4
        return scores
