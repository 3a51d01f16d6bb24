"""Document graphs: which document leads to which, from the corpus's own links or from nearest neighbours."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from steelyard.retrievers.base import (
    Documents,
    Ranked,
    RetrieverError,
    best,
    checked_corpus,
    checked_index,
    checked_queries,
    number,
    top_k,
    unknown,
    whole,
)
from steelyard.retrievers.dense import Dense, Embedder

if TYPE_CHECKING:
    from typing_extensions import Self


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


_GRAPH_INDEX_BLOCK_CELLS = 2_000_000


class GraphPlan:
    """Which embedding and which graph: checked settings, and the index they make of a corpus."""

    def __init__(
        self, embedding: str | Embedder | Dense, graph: str, neighbours: int, both_ways: bool, who: str
    ) -> None:
        self.dense = embedding if isinstance(embedding, Dense) else Dense(model=embedding)
        self.source: GraphSource = checked_source(graph, who)
        self.neighbours = whole(who, "neighbours", neighbours, 1)
        self.both_ways = bool(both_ways)
        self._who = who

    def index(self, corpus: Mapping[str, str]) -> GraphIndex:
        """The corpus embedded, and its graph."""
        documents = checked_corpus(corpus, self._who)
        self.dense.index(corpus)
        graph = document_graph(
            documents.ids,
            corpus,
            self.dense.vectors,
            self.source,
            self.neighbours,
            self.both_ways,
            self._who,
        )
        return GraphIndex(documents, self.dense, graph)

    def settings(self) -> dict[str, Any]:
        """Everything of the plan that decides answers."""
        return {
            "embedding": self.dense.settings(),
            "graph": self.source,
            "neighbours": self.neighbours,
            "both_ways": self.both_ways,
        }


@dataclass(frozen=True)
class GraphIndex:
    """Documents, the embedding that took them in, and the graph over their places."""

    documents: Documents
    dense: Dense
    graph: DocumentGraph

    def __len__(self) -> int:
        return len(self.documents)

    def size_in_bytes(self) -> int:
        """The embedding's memory and the edges'."""
        return self.dense.size_in_bytes() + self.graph.nbytes

    def similarities(self, queries: Sequence[str]) -> Floats:
        """Cosines of queries and documents, rounded as Dense has them: queries x documents.

        Each query is multiplied alone, since a product of matrices rounds differently with its size, and a
        walk must not change with the questions asked beside it.
        """
        rows = [self.dense.vectors @ vector for vector in self.dense.embed(queries)]
        return np.round(np.array(rows, dtype=np.float64).reshape(len(rows), len(self)), 6) + 0.0

    def blocks(self, queries: list[str], cells: int) -> Iterator[list[str]]:
        """The queries in blocks that keep memory bounded, where one takes `cells` numbers beside its cosines."""
        size = max(1, _GRAPH_INDEX_BLOCK_CELLS // max(cells, len(self)))
        for first in range(0, len(queries), size):
            yield queries[first : first + size]


def query_draws(seed: int, query: str, shape: tuple[int, ...]) -> Floats:
    """Numbers from 0 to 1 that depend on the seed and the query's text alone, whatever is asked beside it."""
    digest = hashlib.sha256(f"{seed}\0{query}".encode("utf-8", "surrogatepass")).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little"))).random(shape)


def draw(scores: Floats, allowed: Bools, temperature: float, draws: Floats) -> Integers:
    """One choice a row, drawn in proportion to exp(temperature x score) among the allowed; -1 where none is.

    `draws` has a number from 0 to 1 for each row. Rows do not influence each other.

    >>> scores = np.log([[1.0, 2.0, 1.0]] * 4)
    >>> draw(scores, np.ones((4, 3), dtype=bool), 1.0, np.array([0.2, 0.3, 0.7, 0.8])).tolist()
    [0, 1, 1, 2]
    """
    masked = np.where(allowed, temperature * scores, -np.inf)
    best = masked.max(axis=-1, keepdims=True)
    weights = np.exp(masked - np.where(np.isfinite(best), best, 0.0))
    reached = np.cumsum(weights, axis=-1)
    total = reached[..., -1]
    # A draw that rounds up to the whole must not run past the last cell that has weight.
    goal = np.minimum(draws * total, np.nextafter(total, 0.0))
    passed = np.count_nonzero(reached <= goal[..., None], axis=-1)
    return np.where(total > 0, passed, -1)


def visits(
    graph: DocumentGraph,
    rewards: Floats,
    seeds: Integers,
    draws: Floats,
    temperature: float,
    restart: float,
) -> Integers:
    """How often walks pass each document: queries x documents.

    `rewards` is queries x documents, `seeds` queries x start documents, and `draws` two numbers for every
    query, position of a walk and walk: queries x (steps + 1) x walks x 2. A walk starts at a seed, then goes
    on to a neighbour; with chance `restart`, and at a document that leads nowhere, it starts again. Starts
    and steps alike are drawn in proportion to exp(temperature x reward).
    """
    queries, positions, walks, _ = draws.shape
    documents = rewards.shape[1]
    asked = np.repeat(np.arange(queries), walks)
    seed_rewards = np.take_along_axis(rewards, seeds, axis=1)[asked]
    every_seed = np.ones(seed_rewards.shape, dtype=bool)
    counts = np.zeros(queries * documents, dtype=np.int64)
    at = np.full(queries * walks, -1, dtype=np.int64)
    for position in range(positions):
        stop, choice = draws[:, position, :, 0].ravel(), draws[:, position, :, 1].ravel()
        going = np.flatnonzero((at >= 0) & (stop >= restart))
        rows, real = graph.table(at[going])
        step = draw(rewards[asked[going][:, None], rows], real, temperature, choice[going])
        at[:] = -1
        at[going] = np.where(step >= 0, rows[np.arange(len(going)), step], -1)
        fresh = np.flatnonzero(at < 0)
        start = draw(seed_rewards[fresh], every_seed[fresh], temperature, choice[fresh])
        at[fresh] = seeds[asked[fresh], start]
        counts += np.bincount(asked * documents + at, minlength=len(counts))
    return counts.reshape(queries, documents)


class GraphFlow:
    """Flow-guided walks over a document graph.

    Walks start at the documents most similar to the query. The next step is drawn among the documents that
    the present one leads to, in proportion to exp(temperature x reward), the reward being a document's
    similarity to the query. Documents rank by how often the walks pass.

    walks, steps: how many walks a query has, and how many steps each takes.
    temperature: 0 steps evenly; the higher, the more surely to the best neighbour.
    seeds: how many documents walks may start at.
    restart: the chance, at each step, to start again; a document that leads nowhere always does.
    graph: `links` of the corpus, nearest `neighbours` by embedding, or `auto`: links where there are any.
    neighbours: how many a document has, in a graph of nearest neighbours.
    both_ways: a link also leads back.
    embedding: what similarity is measured with: a model's name or a callable as Dense has them, or a Dense.
    seed: another seed, other walks. A query's walks depend on the seed and its text, not on what else is asked.
    name: the label of its row in a table.

    A document's score is its visits and, below one visit, (1 + similarity) / 4: equal visits rank by similarity,
    and so do documents that no walk passed, at the end. An empty query, or one of unknown words, is equally
    similar to all: its walks start at the first documents and step evenly.

    >>> meanings = {"a": [1, 0], "b": [0.6, 0.8], "c": [0, 1]}
    >>> flow = GraphFlow(embedding=Dense(model=meanings), neighbours=1, seeds=1, walks=10, steps=4, restart=0)
    >>> [doc for doc, score in flow.index({"d1": "a", "d2": "b", "d3": "c"}).retrieve(["a"], k=3)[0]]
    ['d2', 'd3', 'd1']
    """

    def __init__(
        self,
        walks: int = 100,
        steps: int = 10,
        temperature: float = 10.0,
        seeds: int = 10,
        restart: float = 0.15,
        graph: str = "auto",
        neighbours: int = 10,
        both_ways: bool = False,
        embedding: str | Embedder | Dense = "lsa",
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        self.label = name or "graph-flow"
        self.walks = whole(self.label, "walks", walks, 1)
        self.steps = whole(self.label, "steps", steps)
        self.temperature = number(self.label, "temperature", temperature)
        self.seeds = whole(self.label, "seeds", seeds, 1)
        self.restart = number(self.label, "restart", restart, 0.0, 1.0)
        self.seed = whole(self.label, "seed", seed)
        self._plan = GraphPlan(embedding, graph, neighbours, both_ways, self.label)
        self._index: GraphIndex | None = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Embeds a corpus and makes its graph; a second call forgets the first."""
        self._index = self._plan.index(corpus)
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, score) pairs."""
        index = checked_index(self._index, self.label)
        listed = checked_queries(queries, k, self.label)
        answers: list[Ranked] = []
        longest = int(index.graph.degrees.max(initial=1))
        for block in index.blocks(listed, self.walks * max(longest, self.seeds, 2 * (self.steps + 1))):
            rewards = index.similarities(block)
            scores = self._visits(index, block, rewards) + (1 + rewards) / 4
            answers += [best(index.documents.ids, row, k) for row in scores]
        return answers

    def settings(self) -> dict[str, Any]:
        """Everything that decides its answers."""
        return {
            "retriever": "graph-flow",
            "walks": self.walks,
            "steps": self.steps,
            "temperature": self.temperature,
            "seeds": self.seeds,
            "restart": self.restart,
            **self._plan.settings(),
            "seed": self.seed,
        }

    def size_in_bytes(self) -> int:
        """The embeddings and the graph."""
        return 0 if self._index is None else self._index.size_in_bytes()

    def _visits(self, index: GraphIndex, queries: list[str], rewards: Any) -> Any:
        shape = (self.steps + 1, self.walks, 2)
        draws = np.stack([query_draws(self.seed, query, shape) for query in queries])
        seeds = np.stack([top_k(row, self.seeds) for row in rewards])
        return visits(index.graph, rewards, seeds, draws, self.temperature, self.restart)
