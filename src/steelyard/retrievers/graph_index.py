"""What retrievers that walk a document graph index: documents, their embeddings, and the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.retrievers.base import Documents, checked_corpus
from steelyard.retrievers.checks import whole
from steelyard.retrievers.dense import Dense, Embedder
from steelyard.retrievers.graph import DocumentGraph, Floats, GraphSource, checked_source, document_graph

_BLOCK_CELLS = 2_000_000


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
        size = max(1, _BLOCK_CELLS // max(cells, len(self)))
        for first in range(0, len(queries), size):
            yield queries[first : first + size]
