"""The lists of two runs joined by document. A run is prepared once and joined with every other run by hashes.

Every match of two hashes is confirmed by the ids; where one is not, or two documents of a list share a hash, the
frames themselves are joined, which gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.frames import row_hashes
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.comparison.unjudged import PairedLists
from steelyard.errors import MeasureError
from steelyard.lazy import polars as pl
from steelyard.measures.bounds import Bounds, Case, bounds_of
from steelyard.measures.gradings import ABSENT, Unjudged, grade_levels, unjudged
from steelyard.measures.grammar import Measure
from steelyard.qrels import Qrels

Words: TypeAlias = NDArray[np.uint64]
_Number = TypeVar("_Number", bound=np.generic)

MOST_RANKS = 100
"""Ranks of each list that the estimate reads; unjudged documents below count as not relevant."""


@dataclass(frozen=True, eq=False, repr=False)
class SharedUnjudged:
    """The unjudged documents that are in the lists of both runs: the query and the rank in each list."""

    query: Ints
    rank_a: Ints
    rank_b: Ints


@dataclass(frozen=True, eq=False)
class JoinedLists:
    """The documents of two runs, and the unjudged ones that both have."""

    pair: PairedLists
    shared: SharedUnjudged


@dataclass(frozen=True, eq=False)
class RunLists:
    """The documents of a run for judged queries, each once, by query and rank; `grade` is NaN where it is unjudged.

    `by_hash` are the rows in the order of their hashes, `hashes` the hashes in that order. `distinct`: no two are
    equal.
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
        ids = qrels.judged.query_ids
        numbers = pl.DataFrame(
            {"query_id": ids, "query": np.arange(len(ids))}, schema={"query_id": pl.String, "query": pl.Int64}
        )
        joined = rows.drop_nulls("doc_id").join(numbers, on="query_id", maintain_order="left")
        frame = joined.select("query", "doc_id", pl.col("rank").cast(pl.Int64))
        if not _in_order(frame["query"].to_numpy(), frame["rank"].to_numpy()):
            frame = frame.sort("query", "rank")
        hashes = row_hashes(frame["doc_id"], frame["query"].to_numpy())
        by_hash = np.argsort(hashes)
        if _any_equal(hashes[by_hash]):
            kept = ~_repeated(frame, hashes, by_hash)
            frame, hashes = frame.filter(pl.Series(kept)), hashes[kept]
            by_hash = np.argsort(hashes)
        judged = pl.DataFrame(
            {"query": qrels.doc_query, "doc_id": qrels.judged.doc_ids, "grade": qrels.grades},
            schema={"query": pl.Int64, "doc_id": pl.String, "grade": pl.Float64},
        )
        grade = frame.join(judged, on=["query", "doc_id"], how="left", maintain_order="left")["grade"]
        return cls(
            frame,
            frame["query"].to_numpy(),
            frame["rank"].to_numpy(),
            grade.fill_null(float("nan")).to_numpy(),
            by_hash,
            hashes[by_hash],
            not _any_equal(hashes[by_hash]),
        )

    def unjudged_to(self, depth: int) -> tuple[Words, Ints]:
        """The unjudged documents down to a rank: their hashes in order, and their rows."""
        if depth not in self._unjudged:
            chosen = (np.isnan(self.grade) & (self.rank <= depth))[self.by_hash]
            self._unjudged[depth] = self.hashes[chosen], self.by_hash[chosen]
        return self._unjudged[depth]


def _repeated(frame: pl.DataFrame, hashes: Words, by_hash: Ints) -> Bools:
    """The rows whose document is in an earlier row of the query. Only rows with equal hashes are compared."""
    ascending = hashes[by_hash]
    equal = ascending[1:] == ascending[:-1]
    rows = np.sort(by_hash[np.append(equal, False) | np.insert(equal, 0, False)])
    first = frame[rows].select(pl.struct("query", "doc_id").is_first_distinct()).to_series().to_numpy()
    again: Bools = np.zeros(len(hashes), dtype=bool)
    again[rows] = ~first
    return again


def count_unjudged(one: RunLists, two: RunLists, depth: int, size: int) -> int:
    """The number of unjudged documents that are in the first `depth` of either list."""
    (hashes, rows), (others, other_rows) = one.unjudged_to(depth), two.unjudged_to(depth)
    if one.distinct and two.distinct:
        if not len(hashes) or not len(others):
            return len(hashes) + len(others)
        at = np.minimum(np.searchsorted(others, hashes), len(others) - 1)
        same = others[at] == hashes
        if _confirmed(one, rows[same], two, other_rows[at[same]]):
            return len(hashes) + len(others) - int(np.sum(same))
    pair = join_frames(one, two, size).pair
    return int(np.sum(pair.unjudged & pair.within(depth)))


def join_lists(one: RunLists, two: RunLists, size: int) -> JoinedLists:
    """The documents of two runs by query: those of the second alone by their rank, then those of the first by theirs.

    size: the number of queries.
    """
    matched = _matched(one, two)
    if matched is None:
        return join_frames(one, two, size)
    rank_b = np.full(len(one.query), np.inf)
    rank_b[matched[0]] = two.rank[matched[1]]
    alone: Bools = np.ones(len(two.query), dtype=bool)
    alone[matched[1]] = False
    both: Bools = np.isfinite(rank_b) & np.isnan(one.grade)
    shared = SharedUnjudged(one.query[both], one.rank[both], rank_b[both].astype(np.int64))
    first = (one.rank <= MOST_RANKS) | (rank_b <= MOST_RANKS)
    rest = np.flatnonzero(alone & (two.rank <= MOST_RANKS))
    query, other = one.query[first], two.query[rest]
    # Both parts are sorted by query: the place of a row follows from the number of rows of the other part before it.
    counts, others = np.bincount(query, minlength=size), np.bincount(other, minlength=size)
    place = np.arange(len(query)) + np.cumsum(others)[query]
    place_other = np.arange(len(other)) + (np.cumsum(counts) - counts)[other]
    total = len(query) + len(other)
    pair = PairedLists(
        query=_merged(total, place, query, place_other, other),
        ranks=np.array(
            [
                _merged(total, place, one.rank[first].astype(float), place_other, np.full(len(rest), np.inf)),
                _merged(total, place, rank_b[first], place_other, two.rank[rest].astype(float)),
            ]
        ),
        grade=_merged(total, place, one.grade[first], place_other, two.grade[rest]),
        lengths=np.array([np.bincount(each.query, minlength=size) for each in (one, two)]).astype(np.int64),
    )
    return JoinedLists(pair, shared)


def join_frames(one: RunLists, two: RunLists, size: int) -> JoinedLists:
    """The same by a join of the frames."""
    frames = [each.frame.with_columns(grade=pl.Series(each.grade).fill_nan(None)) for each in (one, two)]
    both = frames[0].join(frames[1], on=["query", "doc_id"], how="full", coalesce=True, suffix="_b")
    both = both.with_columns(grade=pl.coalesce("grade", "grade_b")).sort("query", "rank", "rank_b")
    both_unjudged = both.filter(
        pl.col("grade").is_null() & pl.col("rank").is_not_null() & pl.col("rank_b").is_not_null()
    )
    shared = SharedUnjudged(*(both_unjudged[name].to_numpy() for name in ("query", "rank", "rank_b")))
    first = both.filter((pl.col("rank") <= MOST_RANKS) | (pl.col("rank_b") <= MOST_RANKS))
    ranks = [first[name].cast(float).fill_null(float("inf")).to_numpy() for name in ("rank", "rank_b")]
    pair = PairedLists(
        query=first["query"].to_numpy().astype(np.int64),
        ranks=np.array(ranks),
        grade=first["grade"].fill_null(float("nan")).to_numpy(),
        lengths=np.array([np.bincount(each.query, minlength=size) for each in (one, two)]).astype(np.int64),
    )
    return JoinedLists(pair, shared)


def _matched(one: RunLists, two: RunLists) -> tuple[Ints, Ints] | None:
    """The rows of both runs with the same query and document; None where hashes do not tell."""
    if not (one.distinct and two.distinct):
        return None
    if not len(two.hashes):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    at = np.minimum(np.searchsorted(two.hashes, one.hashes), len(two.hashes) - 1)
    same = two.hashes[at] == one.hashes
    left, right = one.by_hash[same], two.by_hash[at[same]]
    return (left, right) if _confirmed(one, left, two, right) else None


def _confirmed(one: RunLists, rows: Ints, two: RunLists, others: Ints) -> bool:
    """Whether rows of two runs have the same queries and documents."""
    if not np.array_equal(one.query[rows], two.query[others]):
        return False
    return bool((one.frame["doc_id"].gather(rows) == two.frame["doc_id"].gather(others)).all())


def _merged(
    size: int, place: Ints, values: NDArray[_Number], other: Ints, others: NDArray[_Number]
) -> NDArray[_Number]:
    """The values of two parts at their places."""
    made: NDArray[Any] = np.empty(size, dtype=values.dtype)
    made[place], made[other] = values, others
    return made


def _in_order(query: Ints, rank: Ints) -> bool:
    step = np.diff(query)
    return bool(np.all((step > 0) | ((step == 0) & (np.diff(rank) > 0))))


def _any_equal(ascending: Words) -> bool:
    return bool(np.any(ascending[1:] == ascending[:-1]))


def pair_bounds(measure: Measure, a: Alignment, b: Alignment, shared: SharedUnjudged) -> Bounds:
    """The bounds of the difference a - b of a measure for each query of two runs with the same qrels.

    They are over the gradings of the unjudged documents that are in either list.
    """
    return bounds_of(Case(measure, [a, b], _unjudged_in_either(a, b, shared), grade_levels(a)))


def _unjudged_in_either(a: Alignment, b: Alignment, shared: SharedUnjudged) -> Unjudged:
    """The unjudged documents that are in one list or in both, with their rank in each."""
    in_a, in_b = unjudged(a), unjudged(b)
    place_a = _places(in_a, shared.query, shared.rank_a)
    place_b = _places(in_b, shared.query, shared.rank_b)
    rank_b = np.full(len(in_a.query), ABSENT)
    rank_b[place_a] = shared.rank_b
    only_b = np.ones(len(in_b.query), dtype=bool)
    only_b[place_b] = False
    query = np.concatenate([in_a.query, in_b.query[only_b]])
    order = np.argsort(query, kind="stable")
    ranks_a = np.concatenate([in_a.ranks[0], np.full(int(only_b.sum()), ABSENT)])
    ranks_b = np.concatenate([rank_b, in_b.ranks[0][only_b]])
    return Unjudged(query[order], (ranks_a[order], ranks_b[order]), a.size)


def _places(docs: Unjudged, query: Ints, rank: Ints) -> Ints:
    """The numbers of the unjudged documents at some ranks; it is an error where there is none."""
    step = int(max(docs.ranks[0].max(initial=0), rank.max(initial=0))) + 1
    keys, wanted = docs.query * step + docs.ranks[0], query * step + rank
    place = np.searchsorted(keys, wanted)
    if np.any(np.append(keys, -1)[np.minimum(place, len(keys))] != wanted):
        raise MeasureError("a shared document has a rank at which its list has no unjudged document.")
    return place
