"""The lists of two runs joined by document. A run is prepared once and joined with every other run by hashes.

Every match of two hashes is confirmed by the ids; where one is not, or two documents of a list share a hash, the
frames are joined by the ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.alignment.scans import row_hashes
from steelyard.comparison.unjudged import PairedLists
from steelyard.errors import MeasureError
from steelyard.lazy import polars as pl
from steelyard.measures.bounds import Bounds, Case, bounds_of
from steelyard.measures.gradings import ABSENT, Unjudged, grade_levels, unjudged
from steelyard.measures.grammar import Measure
from steelyard.qrels import Qrels

Words: TypeAlias = NDArray[np.uint64]
_Number = TypeVar("_Number", bound=np.generic)

MOST_RANKS = 100  # Ranks of each list that the estimate reads; unjudged documents below count as not relevant.


class SharedUnjudged(NamedTuple):
    """The unjudged documents that are in the lists of both runs: the query and the rank in each list."""

    query: Ints
    rank_a: Ints
    rank_b: Ints


class JoinedLists(NamedTuple):
    """The documents of two runs, and the unjudged ones that both have."""

    pair: PairedLists
    shared: SharedUnjudged


@dataclass(frozen=True, eq=False)
class RunLists:
    """The documents of a run for judged queries, each once, by query and rank; `grade` is NaN where it is unjudged.

    `by_hash` are the rows in the order of their hashes, `hashes` the hashes in that order; `distinct`: all differ.
    """

    frame: pl.DataFrame
    query: Ints
    rank: Ints
    grade: Floats
    by_hash: Ints
    hashes: Words
    distinct: bool
    _unjudged: dict[int, tuple[Words, Ints]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, rows: pl.DataFrame, qrels: Qrels) -> RunLists:
        """The lists of ranked rows: query_id, doc_id and rank."""
        ids = pl.Series("query_id", qrels.judged.query_ids, dtype=pl.String)
        numbers = ids.to_frame().with_row_index("query").cast({"query": pl.Int64})
        joined = rows.drop_nulls("doc_id").join(numbers, on="query_id", maintain_order="left")
        frame = joined.select("query", "doc_id", pl.col("rank").cast(pl.Int64))
        step, down = np.diff(frame["query"].to_numpy()), np.diff(frame["rank"].to_numpy()) > 0
        if not np.all((step > 0) | ((step == 0) & down)):
            frame = frame.sort("query", "rank")
        hashes = row_hashes(frame["doc_id"], frame["query"].to_numpy())
        by_hash = np.argsort(hashes)
        equal = np.diff(hashes[by_hash]) == 0
        if equal.any():
            # Documents that are in an earlier row of the query go. Only rows with equal hashes are compared.
            rows_again = np.sort(by_hash[np.append(equal, False) | np.insert(equal, 0, False)])
            first = frame[rows_again].select(pl.struct("query", "doc_id").is_first_distinct()).to_series()
            kept: Bools = np.ones(len(hashes), dtype=bool)
            kept[rows_again] = first.to_numpy()
            frame, hashes = frame.filter(pl.Series(kept)), hashes[kept]
            by_hash = np.argsort(hashes)
        judged = pl.DataFrame(
            {"query": qrels.doc_query, "doc_id": qrels.judged.doc_ids, "grade": qrels.grades},
            schema={"query": pl.Int64, "doc_id": pl.String, "grade": pl.Float64},
        )
        grade = frame.join(judged, on=["query", "doc_id"], how="left", maintain_order="left")["grade"]
        columns = frame["query"].to_numpy(), frame["rank"].to_numpy(), grade.fill_null(float("nan")).to_numpy()
        return cls(frame, *columns, by_hash, hashes[by_hash], bool(np.diff(hashes[by_hash]).all()))

    def unjudged_to(self, depth: int) -> tuple[Words, Ints]:
        """The unjudged documents down to a rank: their hashes in order, and their rows."""
        if depth not in self._unjudged:
            chosen = (np.isnan(self.grade) & (self.rank <= depth))[self.by_hash]
            self._unjudged[depth] = self.hashes[chosen], self.by_hash[chosen]
        return self._unjudged[depth]


def count_unjudged(one: RunLists, two: RunLists, depth: int) -> int:
    """The number of unjudged documents that are in the first `depth` of either list."""
    first, second = one.unjudged_to(depth), two.unjudged_to(depth)
    return len(first[1]) + len(second[1]) - len(_same_documents(one, first, two, second)[0])


def join_lists(one: RunLists, two: RunLists, size: int) -> JoinedLists:
    """The documents of two runs by query: those of the second alone by rank, then those of the first by theirs."""
    matched, others = _same_documents(one, (one.hashes, one.by_hash), two, (two.hashes, two.by_hash))
    rank_b = np.full(len(one.query), np.inf)
    rank_b[matched] = two.rank[others]
    alone: Bools = np.ones(len(two.query), dtype=bool)
    alone[others] = False
    both: Bools = np.isfinite(rank_b) & np.isnan(one.grade)
    shared = SharedUnjudged(one.query[both], one.rank[both], rank_b[both].astype(np.int64))
    first = (one.rank <= MOST_RANKS) | (rank_b <= MOST_RANKS)
    rest = np.flatnonzero(alone & (two.rank <= MOST_RANKS))
    query, other = one.query[first], two.query[rest]
    # Both parts are sorted by query: the place of a row follows from the number of rows of the other part before it.
    counts, other_counts = np.bincount(query, minlength=size), np.bincount(other, minlength=size)
    place = np.arange(len(query)) + np.cumsum(other_counts)[query]
    place_other = np.arange(len(other)) + (np.cumsum(counts) - counts)[other]

    def merged(values: NDArray[_Number], others: NDArray[_Number]) -> NDArray[_Number]:
        """The values of the two parts at their places."""
        column: NDArray[Any] = np.empty(len(query) + len(other), dtype=values.dtype)
        column[place], column[place_other] = values, others
        return column

    in_one = merged(one.rank[first].astype(float), np.full(len(rest), np.inf))
    in_two = merged(rank_b[first], two.rank[rest].astype(float))
    grade = merged(one.grade[first], two.grade[rest])
    lengths = np.array([np.bincount(lists.query, minlength=size) for lists in (one, two)])
    return JoinedLists(PairedLists(merged(query, other), np.array([in_one, in_two]), grade, lengths), shared)


def _same_documents(
    one: RunLists, some: tuple[Words, Ints], two: RunLists, others: tuple[Words, Ints]
) -> tuple[Ints, Ints]:
    """The rows of both runs with the same document, out of some rows of each, with their hashes in order."""
    (hashes, rows), (other_hashes, other_rows) = some, others
    if one.distinct and two.distinct:
        _, at, other_at = np.intersect1d(hashes, other_hashes, assume_unique=True, return_indices=True)
        ids = one.frame[rows[at]], two.frame[other_rows[other_at]]
        if all((ids[0][name] == ids[1][name]).all() for name in ("query", "doc_id")):
            return rows[at], other_rows[other_at]
    pairs = one.frame.with_row_index("row").join(two.frame.with_row_index("other"), on=["query", "doc_id"])
    matched, other_matched = (pairs[name].to_numpy().astype(np.int64) for name in ("row", "other"))
    kept = np.isin(matched, rows) & np.isin(other_matched, other_rows)
    return matched[kept], other_matched[kept]


def pair_bounds(measure: Measure, a: Alignment, b: Alignment, shared: SharedUnjudged) -> Bounds:
    """For each query, the bounds of the difference a - b over all gradings of the unjudged documents of either list."""
    in_a, in_b = unjudged(a), unjudged(b)
    rank_b = np.full(len(in_a.query), ABSENT)
    rank_b[_places(in_a, shared.query, shared.rank_a)] = shared.rank_b
    only_b = np.ones(len(in_b.query), dtype=bool)
    only_b[_places(in_b, shared.query, shared.rank_b)] = False
    query = np.concatenate([in_a.query, in_b.query[only_b]])
    order = np.argsort(query, kind="stable")
    ranks_a = np.concatenate([in_a.ranks[0], np.full(int(only_b.sum()), ABSENT)])
    ranks_b = np.concatenate([rank_b, in_b.ranks[0][only_b]])
    either = Unjudged(query[order], (ranks_a[order], ranks_b[order]), a.size)
    return bounds_of(Case(measure, [a, b], either, grade_levels(a)))


def _places(docs: Unjudged, query: Ints, rank: Ints) -> Ints:
    """The numbers of the unjudged documents at some ranks; it is an error where there is none."""
    step = int(max(docs.ranks[0].max(initial=0), rank.max(initial=0))) + 1
    keys, wanted = docs.query * step + docs.ranks[0], query * step + rank
    place = np.searchsorted(keys, wanted)
    if np.any(np.append(keys, -1)[np.minimum(place, len(keys))] != wanted):
        raise MeasureError("a shared document has a rank at which its list has no unjudged document.")
    return place
