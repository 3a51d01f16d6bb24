"""Where retrieved chunks and the gold spans of a query are in their documents, for the span measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.lazy import polars as pl

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

RANGE_COLUMNS = {"query_id": str, "chunk_id": str, "doc_id": str, "start": int, "end": int}


@dataclass(frozen=True, eq=False, repr=False)
class Ranges:
    """Ranges of documents, end exclusive, in characters or tokens.

    `spans` are the gold spans: query_id, doc_id, start, end; `chunks` has chunk_id in place of query_id.
    """

    spans: pl.DataFrame
    chunks: pl.DataFrame

    @classmethod
    def of_frame(cls, frame: pl.DataFrame) -> Ranges:
        """Ranges from the frame that `frame` gives."""
        gold = frame["query_id"].is_not_null()
        return cls(frame.filter(gold).drop("chunk_id"), frame.filter(~gold).drop("query_id"))

    @property
    def frame(self) -> pl.DataFrame:
        """All ranges in one frame: query_id or chunk_id, doc_id, start, end."""
        return pl.concat([self.spans, self.chunks], how="diagonal").select(*RANGE_COLUMNS)

    @cached_property
    def _numbered(self) -> tuple[pl.DataFrame, Ints, Ints]:
        """The place of each chunk among the chunks; the chunks and the spans as rows of document, start and end."""
        docs = pl.concat([self.spans["doc_id"], self.chunks["doc_id"]]).unique(maintain_order=True)
        numbers = pl.DataFrame({"doc_id": docs, "doc": np.arange(len(docs))})
        rows = pl.DataFrame({"doc_id": self.chunks["chunk_id"], "row": np.arange(self.chunks.height)})
        chunks, spans = (
            part.join(numbers, on="doc_id", how="left", maintain_order="left").select("doc", "start", "end").to_numpy()
            for part in (self.chunks, self.spans)
        )
        return rows, chunks.T, spans.T

    def retrieved(self, queries: Sequence[str], listed: pl.DataFrame, through: Ints | None) -> RetrievedRanges:
        """The ranges that a run retrieved: `listed` has the number of the query, the chunk and its rank."""
        rows, chunks, spans = self._numbered
        place = listed.join(rows, on="doc_id", how="left", maintain_order="left")["row"]
        has_place = place.is_not_null().to_numpy()
        number = {query: at for at, query in enumerate(queries)}
        gold_query = np.array([number.get(query, -1) for query in self.spans["query_id"].to_list()], dtype=np.int64)
        return RetrievedRanges(
            size=len(queries),
            query=listed["query"].to_numpy()[has_place],
            rank=listed["rank"].to_numpy()[has_place],
            chunk=chunks[:, place.drop_nulls().to_numpy()],
            through=None if through is None else through[has_place],
            gold_query=gold_query[gold_query >= 0],
            gold=spans[:, gold_query >= 0],
            unknown=int(np.sum(~has_place)),
        )


@dataclass(frozen=True, eq=False, repr=False)
class RetrievedRanges:
    """The ranges of the chunks that were retrieved for each query, with their ranks, and its gold spans.

    `through`: the tokens of the list down to each chunk. `unknown`: retrieved chunks without a known range; no text.
    """

    size: int
    query: Ints
    rank: Ints
    chunk: Ints
    through: Ints | None
    gold_query: Ints
    gold: Ints
    unknown: int

    @cached_property
    def gold_length(self) -> Floats:
        """The length of each query's gold spans; what several cover counts once."""
        return covered(self.gold_query, self.gold, self.size)

    @cached_property
    def gold_lengths_added(self) -> Floats:
        """The lengths of each query's gold spans, added up."""
        return _lengths(self.gold_query, self.gold, self.size)

    def retrieved_length(self, inside: Bools) -> Floats:
        """The lengths of each query's chosen chunks, added up."""
        return _lengths(self.query[inside], self.chunk[:, inside], self.size)

    def shared_length(self, inside: Bools) -> Floats:
        """How much of each query's gold spans the chosen chunks cover."""
        query, chunk = self.query[inside], self.chunk[:, inside]
        everything = np.concatenate([self.gold_query, query]), np.concatenate([self.gold, chunk], axis=1)
        return self.gold_length + covered(query, chunk, self.size) - covered(*everything, self.size)

    def cut(self, depth: int) -> RetrievedRanges:
        """The ranges of the first `depth` chunks."""
        kept = self.rank <= depth
        through = None if self.through is None else self.through[kept]
        return replace(self, query=self.query[kept], rank=self.rank[kept], chunk=self.chunk[:, kept], through=through)


def _lengths(query: Ints, ranges: Ints, size: int) -> Floats:
    return np.bincount(query, weights=ranges[2] - ranges[1], minlength=size).astype(np.float64)


def covered(query: Ints, ranges: Ints, size: int) -> Floats:
    """How much of the documents each query's ranges cover; what several cover counts once.

    >>> covered(np.array([0, 0]), np.array([[7, 7], [0, 4], [6, 9]]), 1)
    array([9.])
    """
    doc, start, end = ranges
    order = np.lexsort((start, doc, query))
    query, doc, start, end = query[order], doc[order], start[order], end[order]
    # Every document of every query gets a stretch of one long line, so that one running maximum serves them all.
    stride = int(end.max(initial=0)) + 1
    offset = (query * (int(doc.max(initial=0)) + 1) + doc) * stride
    reach = np.maximum.accumulate(np.concatenate([[0], offset + end]))[:-1]
    new = np.maximum(0, offset + end - np.maximum(offset + start, reach)) if len(query) else offset
    return np.bincount(query, weights=new, minlength=size).astype(np.float64)
