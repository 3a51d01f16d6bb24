"""Pool: the candidates of many queries side by side, one row a document, one column a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from steelyard.alignment.hits import Bools, Floats, Ints


@dataclass(frozen=True)
class Pool:
    """Every document that some list of its query has, and where each list has it.

    Candidates of a query stand together, by document id, largest first, so that a stable sort by score
    breaks ties as `evaluate` does; query i begins at candidate starts[i] and every query has one at
    least. `rank` (lists x candidates) is the document's place in the list, 1 first, 0 where the list
    does not have it; `value` its score there, NaN where there is none.
    """

    starts: Ints
    rank: Ints
    value: Floats

    @property
    def lists(self) -> int:
        """How many lists are fused."""
        return len(self.rank)

    @property
    def size(self) -> int:
        """How many candidates there are, over all queries."""
        return int(self.rank.shape[1])

    @cached_property
    def found(self) -> Bools:
        """Lists x candidates: whether the list has the document."""
        return self.rank > 0

    @cached_property
    def candidates(self) -> Ints:
        """Per query: how many different documents its lists have together."""
        return np.diff(self.starts, append=self.size)

    @cached_property
    def lengths(self) -> Ints:
        """Lists x queries: how many documents the list has."""
        counted: Ints = np.add.reduceat(self.found, self.starts, axis=1, dtype=np.int64)
        return counted

    @cached_property
    def query(self) -> Ints:
        """Per candidate: the number of its query."""
        return np.repeat(np.arange(len(self.starts)), self.candidates)

    def only(self, lists: Bools) -> tuple[Pool, Bools]:
        """The pool of some of the lists, and which candidates are still in it."""
        kept: Bools = np.any(self.found[lists], axis=0)
        left: Ints = np.add.reduceat(kept, self.starts, dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(left[left > 0])[:-1]])
        return Pool(starts, self.rank[lists][:, kept], self.value[lists][:, kept]), kept

    def of_queries(self, chosen: Bools) -> tuple[Pool, Bools]:
        """The pool of some of the queries, and which candidates are still in it."""
        kept: Bools = np.repeat(chosen, self.candidates)
        left = self.candidates[chosen]
        return Pool(np.cumsum(left) - left, self.rank[:, kept], self.value[:, kept]), kept

    def best_first(self, score: Floats) -> Ints:
        """The candidates, query by query, each query's best first; a candidate with NaN takes no part.

        Queries of about the same size are sorted side by side, which is quicker than one long sort.
        """
        order = np.empty(self.size, dtype=np.int64)
        magnitude = np.frexp(self.candidates.astype(np.float64))[1]
        for alike in np.unique(magnitude):
            queries = np.flatnonzero(magnitude == alike)
            count = self.candidates[queries][:, None]
            place = np.arange(count.max())
            row = self.starts[queries][:, None] + place
            inside = place < count
            keys = np.where(inside, -score[np.minimum(row, self.size - 1)], np.nan)
            ranked = self.starts[queries][:, None] + np.argsort(keys, axis=1, kind="stable")
            order[row[inside]] = ranked[inside]
        kept: Ints = order[~np.isnan(score[order])]
        return kept

    def places(self, order: Ints) -> Ints:
        """The rank of each candidate of `order` (queries together, best first) within its query."""
        counted = np.bincount(self.query[order], minlength=len(self.starts))
        before = np.cumsum(counted) - counted
        places: Ints = np.arange(len(order)) - np.repeat(before, counted) + 1
        return places


def pool_of_lists(lists: Sequence[Sequence[tuple[str, float]]]) -> tuple[list[str], Pool]:
    """The documents of one query and their pool, from lists of (document id, score), best first.

    A document that a list repeats counts at its first place; the places below close up.

    >>> documents, pool = pool_of_lists([[("a", 2.0), ("b", 1.0)], [("b", 0.5)]])
    >>> documents, pool.rank.tolist()
    (['b', 'a'], [[2, 1], [1, 0]])
    """
    firsts = [_first_places(listed) for listed in lists]
    documents = sorted({doc for first in firsts for doc in first}, reverse=True)
    rank = np.zeros((len(lists), len(documents)), dtype=np.int64)
    value = np.full((len(lists), len(documents)), np.nan)
    number = {doc: place for place, doc in enumerate(documents)}
    for column, first in enumerate(firsts):
        places = [number[doc] for doc in first]
        rank[column, places] = np.arange(1, len(places) + 1)
        value[column, places] = list(first.values())
    return documents, Pool(np.zeros(1, dtype=np.int64), rank, value)


def _first_places(listed: Sequence[tuple[str, float]]) -> dict[str, float]:
    first: dict[str, float] = {}
    for doc, score in listed:
        first.setdefault(doc, score)
    return first
