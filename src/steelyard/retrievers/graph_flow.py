"""GraphFlow: documents ranked by how often walks that follow the reward pass them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.retrievers.base import Ranked, checked_index, checked_queries
from steelyard.retrievers.checks import number, whole
from steelyard.retrievers.dense import Dense, Embedder
from steelyard.retrievers.graph_index import GraphIndex, GraphPlan
from steelyard.retrievers.graph_walks import query_draws, visits
from steelyard.retrievers.topk import best, top_k

if TYPE_CHECKING:
    from typing_extensions import Self


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
