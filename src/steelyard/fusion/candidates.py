"""The candidates of a fusion: every document of the lists of a query, with its rank and score in each list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from steelyard.alignment.alignment import Alignment, join
from steelyard.alignment.hits import Bools, Floats, Hits, Ints, Ordering, Repeats
from steelyard.alignment.ranking import best_first, group_starts, ranked_rows
from steelyard.alignment.scans import scores_of
from steelyard.errors import InputError
from steelyard.native import kernel
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.run import Run


@dataclass(frozen=True)
class CandidatePool:
    """The candidates of many queries: every document of a list of its query, with its rank and score in each list.

    The candidates of a query are consecutive, in descending order of document id, so that a stable sort by score breaks
    ties as `evaluate` does. Query i starts at candidate starts[i], and has at least one. `rank` (lists x candidates) is
    the document's rank in the list, 1 first, 0 if it is not there; `value` is its score, NaN if there is none.
    """

    starts: Ints
    rank: Ints
    value: Floats

    @property
    def lists(self) -> int:
        return len(self.rank)

    @property
    def size(self) -> int:
        """The number of candidates of all queries."""
        return int(self.rank.shape[1])

    @cached_property
    def found(self) -> Bools:
        """Lists x candidates: whether the list contains the document."""
        return self.rank > 0

    @cached_property
    def candidates(self) -> Ints:
        """Per query: the number of different documents in its lists."""
        return np.diff(self.starts, append=self.size)

    @cached_property
    def lengths(self) -> Ints:
        """Lists x queries: the number of documents in the list."""
        return np.add.reduceat(self.found, self.starts, axis=1, dtype=np.int64)

    @cached_property
    def query(self) -> Ints:
        """Per candidate: the number of its query."""
        return np.repeat(np.arange(len(self.starts)), self.candidates)

    def part(self, kept: Bools, lists: Any = slice(None)) -> CandidatePool:
        """The pool of some of the candidates, and of some of the lists."""
        left = np.add.reduceat(kept, self.starts, dtype=np.int64)
        left = left[left > 0]
        return CandidatePool(np.cumsum(left) - left, self.rank[lists][:, kept], self.value[lists][:, kept])

    def best_first(self, score: Floats) -> Ints:
        """The candidates by query, in descending order of score; candidates with a score of NaN are left out."""
        if (native := kernel()) is None:
            order = best_first(self.query, score)
            return order[~np.isnan(score[order])]
        order = np.empty(self.size, dtype=np.int64)
        return order[: native.best_first(self.starts, np.ascontiguousarray(score, dtype=np.float64), order)]

    def counts(self, order: Ints) -> Ints:
        """Per query: how many of its candidates are in `order`."""
        if len(order) == self.size:
            return self.candidates
        return np.bincount(self.query[order], minlength=len(self.starts))

    def ranks(self, order: Ints) -> Ints:
        """The rank of each candidate of `order` (by query, best first) within its query."""
        counts = self.counts(order)
        ranks: Ints = np.arange(1, len(order) + 1)
        ranks -= np.repeat(np.cumsum(counts) - counts, counts)
        return ranks


def pool_of_lists(lists: Sequence[Sequence[tuple[str, float]]]) -> tuple[list[str], CandidatePool]:
    """The documents of one query and their pool, from lists of (document id, score), best first.

    A repeated document counts at its first rank, and the ranks below it move up. Distances are negated: the scores of a
    list in which some increase with the rank and none decreases.

    >>> documents, pool = pool_of_lists([[("a", 2.0), ("b", 1.0)], [("b", 0.5)]])
    >>> documents, pool.rank.tolist()
    (['b', 'a'], [[2, 1], [1, 0]])
    """
    firsts: list[dict[str, float]] = [{} for _ in lists]
    for first, listed in zip(firsts, lists, strict=True):
        for doc, score in listed:
            first.setdefault(doc, score)
    documents = sorted({doc for first in firsts for doc in first}, reverse=True)
    rank = np.zeros((len(lists), len(documents)), dtype=np.int64)
    value = np.full((len(lists), len(documents)), np.nan)
    number = {doc: position for position, doc in enumerate(documents)}
    for column, first in enumerate(firsts):
        positions = [number[doc] for doc in first]
        rank[column, positions] = np.arange(1, len(positions) + 1)
        value[column, positions] = values = list(first.values())
        if values != sorted(values, reverse=True):
            negate_distances(value[column], rank[column], np.zeros(len(documents), dtype=np.int64))
    return documents, CandidatePool(np.zeros(1, dtype=np.int64), rank, value)


@dataclass(frozen=True)
class PooledRuns:
    """The pool of several runs: its `queries`, the documents of the rows of all runs (`docs`), a row of every candidate
    (`rows`), and the queries for which no run has a document (`empty`)."""

    queries: list[str]
    docs: pl.Series
    rows: Ints
    pool: CandidatePool
    empty: list[str]
    notes: tuple[Note, ...]

    def documents(self, candidates: Ints | Bools) -> pl.Series:
        """The document ids of some candidates."""
        return self.docs.gather(self.rows[candidates])


def pool_runs(runs: Sequence[Run], scores: bool) -> PooledRuns:
    """The pool of several runs. With `scores`, a run without scores is an error, and distances are negated.

    A repeated document counts at its best rank, and the ranks below it move up.
    """
    tables = [run.table.select("query_id", "doc_id", "score") for run in runs]
    for column, table in enumerate(tables):
        if scores and table["score"].null_count():
            raise InputError(
                f"{label(runs, column)} has ranked ids without scores, and this method needs scores. Use a method on "
                "ranks (rrf, borda, isr, rbc, condorcet), or norm='rank', which scores a document by its rank."
            )
    return _pool_native(runs, tables, scores) or _pool(runs, tables, scores)


def _pool_native(runs: Sequence[Run], tables: Sequence[pl.DataFrame], scores: bool) -> PooledRuns | None:
    """The pool by the kernel; None without it, and where the rows of a query of a run are not together."""
    native = kernel()
    total = sum(table.height for table in tables)
    if native is None or not total:
        return None
    rank = np.zeros((len(runs), total), dtype=np.int64)
    value, rows = np.empty((len(runs), total)), np.empty(total, dtype=np.int64)
    pairs = zip(runs, tables, strict=True)
    columns = [(table["query_id"], table["doc_id"], scores_of(table), run.ordered) for run, table in pairs]
    pooled = native.pool_frames(columns, rank, value, rows)
    if pooled is None:
        return None
    queries, starts, size, answered, repeats, increases = pooled
    pool = CandidatePool(np.frombuffer(starts, np.int64), rank[:, :size], value[:, :size])
    notes = []
    for column, repeated in enumerate(np.frombuffer(repeats, np.int64).tolist()):
        if increases[column]:
            notes.append(_increasing(pool, column, runs, scores))
        if repeated:
            notes.append(note("fused-repeats", run=label(runs, column), count=repeated))
    in_pool = set(queries)
    empty = list(dict.fromkeys(query for run in runs for query in run.empty if query not in in_pool))
    counts = np.frombuffer(answered, np.int64).tolist()
    counts = [count + len(run.empty) for count, run in zip(counts, runs, strict=True)]
    notes += _missing_notes(runs, counts, len(queries) + len(empty))
    return PooledRuns(queries, pl.concat([table["doc_id"] for table in tables]), rows[:size], pool, empty, tuple(notes))


def _pool(runs: Sequence[Run], tables: Sequence[pl.DataFrame], scores: bool) -> PooledRuns:
    """The pool without the kernel."""
    collapsed = Ordering(duplicates="collapse")
    lists = [ranked_rows(table, run.ordered, collapsed) for run, table in zip(runs, tables, strict=True)]
    rows = pl.concat(lists)
    queries = rows["query_id"].unique(maintain_order=True)
    query = rows["query_id"].cast(pl.Enum(queries)).to_physical().to_numpy().astype(np.int64)
    by_id = rows.select(pl.col("doc_id").rank("dense").over("query_id"))["doc_id"].to_numpy()
    candidates = np.zeros(len(queries), dtype=np.int64)
    np.maximum.at(candidates, query, by_id)
    starts = np.cumsum(candidates) - candidates
    candidate = starts[query] + candidates[query] - by_id
    row_of = np.zeros(int(candidates.sum()), dtype=np.int64)
    row_of[candidate] = np.arange(len(candidate))
    shape, column = (len(runs), len(row_of)), np.repeat(np.arange(len(runs)), [ranked.height for ranked in lists])
    pool = CandidatePool(starts, np.zeros(shape, np.int64), np.full(shape, np.nan))
    pool.rank[column, candidate], pool.value[column, candidate] = rows["rank"].to_numpy(), scores_of(rows)
    notes: list[Note] = []
    for place, (table, ranked) in enumerate(zip(tables, lists, strict=True)):
        if (ranked.select(pl.col("score").diff().over("query_id"))["score"] > 0).any():
            notes.append(_increasing(pool, place, runs, scores))
        if ranked.height < table.height:
            notes.append(note("fused-repeats", run=label(runs, place), count=table.height - ranked.height))
    every_query = list(dict.fromkeys(query_id for run in runs for query_id in run.queries))
    answered = set(queries.to_list())
    empty = [query_id for query_id in every_query if query_id not in answered]
    notes += _missing_notes(runs, [len(run.queries) for run in runs], len(every_query)) if answered else []
    return PooledRuns(queries.to_list(), rows["doc_id"], row_of, pool, empty, tuple(notes))


def _increasing(pool: CandidatePool, column: int, runs: Sequence[Run], scores: bool) -> Note:
    """The note on a run whose scores increase with the rank; for a method on scores, its distances are negated."""
    if scores:
        negate_distances(pool.value[column], pool.rank[column], pool.query)
    return note("fused-distances" if scores else "fused-increasing-scores", run=label(runs, column))


def negate_distances(value: Floats, rank: Ints, query: Ints) -> None:
    """Negate the scores of every list in which some increase with the rank and none decreases."""
    placed = np.lexsort((rank, query))
    placed = placed[rank[placed] > 0]
    change = np.diff(value[placed]) * (np.diff(query[placed]) == 0)
    rising = np.setdiff1d(query[placed[1:]][change > 0], query[placed[1:]][change < 0])
    value[placed[np.isin(query[placed], rising)]] *= -1


def _missing_notes(runs: Sequence[Run], answered: Sequence[int], queries: int) -> list[Note]:
    return [
        note("fused-missing-queries", run=label(runs, column), count=queries - count, queries=queries)
        for column, count in enumerate(answered)
        if count < queries
    ]


def label(runs: Sequence[Run], column: int) -> str:
    """A run in a message: its name, and its number if several runs have that name."""
    name = runs[column].name
    return f"run {column + 1} ({name!r})" if sum(run.name == name for run in runs) > 1 else f"run {name!r}"


@dataclass(frozen=True)
class JudgedPool:
    """The part of a pool whose queries are in the qrels: per candidate the index of its `query` there and of its
    judgment (`doc`, or -1); per query of the qrels, whether a run has it (`answered`)."""

    qrels: Qrels
    pool: CandidatePool
    query: Ints
    doc: Ints
    answered: Bools

    def alignment(self, score: Floats) -> Alignment:
        """The alignment of the fused run with these scores, ranked as in `evaluate`."""
        order = self.pool.best_first(score)
        rank, query = self.pool.ranks(order), self.query[order]
        starts = group_starts(query, score[order])
        hit = np.flatnonzero(self.doc[order] >= 0)
        hit = hit[np.argsort(query[hit], kind="stable")]
        group = np.searchsorted(starts, hit, side="right") - 1
        top = np.full(len(self.answered), np.nan)
        top[query[rank == 1]] = score[order[rank == 1]]
        nothing = np.zeros(0, dtype=np.int64)
        hits = Hits(
            retrieved=np.bincount(query, minlength=len(self.answered)),
            answered=self.answered,
            top_score=top,
            query=query[hit],
            doc=self.doc[order[hit]],
            rank=rank[hit],
            tie_first=rank[starts[group]],
            tie_size=np.diff(starts, append=len(order))[group],
            repeats=Repeats(nothing, nothing),
        )
        return join(self.qrels, hits)


def judged_pool(qrels: Qrels, pooled: PooledRuns) -> JudgedPool:
    """The part of pooled runs whose queries are in the qrels."""
    judged = qrels.judged
    number = {query: position for position, query in enumerate(judged.query_ids)}
    position = np.array([number.get(query, -1) for query in pooled.queries], dtype=np.int64)
    kept: Bools = np.repeat(position >= 0, pooled.pool.candidates)
    pool = pooled.pool.part(kept)
    query = position[position >= 0][pool.query]
    listed = pl.DataFrame({"query": query, "doc_id": pooled.documents(kept)})
    query_of = np.repeat(np.arange(len(judged.query_ids)), np.diff(judged.starts))
    docs = pl.Series(list(judged.doc_ids), dtype=pl.String)
    numbered = pl.DataFrame({"query": query_of, "doc_id": docs, "doc": np.arange(len(docs))})
    doc = listed.join(numbered, on=["query", "doc_id"], how="left", maintain_order="left")["doc"]
    answered = np.zeros(len(judged.query_ids), dtype=np.bool_)
    answered[position[position >= 0]] = True
    answered[[number[empty] for empty in pooled.empty if empty in number]] = True
    return JudgedPool(qrels, pool, query, doc.fill_null(-1).to_numpy(), answered)
