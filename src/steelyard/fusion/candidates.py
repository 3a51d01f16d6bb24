"""Pool: the candidates of many queries side by side, one row a document, one column a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.errors import InputError
from steelyard.run import Run
from steelyard.wording import counted, worded


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


@dataclass(frozen=True)
class PooledRuns:
    """The pool of several runs, and whose it is.

    `queries` are those of the pool; `documents` has the document id of every candidate; `empty` names
    the queries that some run was asked and none has a document for.
    """

    queries: list[str]
    documents: pl.Series
    pool: Pool
    empty: list[str]
    notes: tuple[str, ...]


def pool_runs(runs: Sequence[Run], scores: bool) -> PooledRuns:
    """The runs joined. `scores` says whether their scores will be read, so that a run without any is refused.

    A document that a list repeats counts at its best place, and the places below close up.
    """
    tables = [run.table.select("query_id", "doc_id", "score") for run in runs]
    if scores:
        _have_scores(runs, tables)
    stacked = pl.concat(tables)
    asked = list(dict.fromkeys(query for run in runs for query in run.queries))
    if not stacked.height:
        nothing = Pool(np.zeros(0, np.int64), np.zeros((len(runs), 0), np.int64), np.zeros((len(runs), 0)))
        return PooledRuns([], stacked["doc_id"], nothing, asked, ())
    queries = stacked["query_id"].unique(maintain_order=True)
    query = stacked["query_id"].cast(pl.Enum(queries)).to_physical().to_numpy().astype(np.int64)
    by_id = stacked.select(pl.col("doc_id").rank("dense").over("query_id"))["doc_id"].to_numpy()
    candidates = np.zeros(len(queries), dtype=np.int64)
    np.maximum.at(candidates, query, by_id)
    starts = np.cumsum(candidates) - candidates
    candidate = starts[query] + candidates[query] - by_id
    row_of = np.zeros(int(candidates.sum()), dtype=np.int64)
    row_of[candidate] = np.arange(len(candidate))
    pool, notes = _filled(runs, tables, starts, query, candidate, len(row_of))
    listed = set(queries.to_list())
    return PooledRuns(
        queries=queries.to_list(),
        documents=stacked["doc_id"].gather(row_of),
        pool=pool,
        empty=[asked_one for asked_one in asked if asked_one not in listed],
        notes=(*notes, *_missing_notes(runs, asked)),
    )


def _filled(
    runs: Sequence[Run], tables: Sequence[pl.DataFrame], starts: Ints, query: Ints, candidate: Ints, size: int
) -> tuple[Pool, list[str]]:
    """Ranks and scores put in their places, run by run, and notes on repeats and odd orders."""
    rank = np.zeros((len(runs), size), dtype=np.int64)
    value = np.full((len(runs), size), np.nan)
    pool = Pool(starts, rank, value)
    notes: list[str] = []
    begin = 0
    for column, (run, table) in enumerate(zip(runs, tables, strict=True)):
        here = slice(begin, begin + table.height)
        begin = here.stop
        score = table["score"].fill_null(np.nan).to_numpy()
        rows = candidate[here]
        if run.ordered:
            order = _in_own_order(query[here], rows)
            value[column, rows[order]] = score[order]
            placed = rows[order]
            if _rises(pool, placed, value[column]):
                notes.append(
                    f"{label(runs, column)} has scores that rise down a list: its own order gives the ranks"
                )
        else:
            np.fmax.at(value[column], rows, score)
            placed = pool.best_first(value[column])
        rank[column, placed] = pool.places(placed)
        if len(placed) < table.height:
            notes.append(
                f"{label(runs, column)} repeats {counted(table.height - len(placed), 'document')}: the best "
                "place of each counts"
            )
    return pool, notes


def _in_own_order(query: Ints, rows: Ints) -> Ints:
    """The rows of a run query by query, as they came, without repeats."""
    order = np.argsort(query, kind="stable")
    first = np.zeros(len(order), dtype=bool)
    first[np.unique(rows[order], return_index=True)[1]] = True
    kept: Ints = order[first]
    return kept


def _rises(pool: Pool, placed: Ints, value: Floats) -> bool:
    same: Bools = np.diff(pool.query[placed]) == 0
    return bool(np.any(same & (np.diff(value[placed]) > 0)))


def _have_scores(runs: Sequence[Run], tables: Sequence[pl.DataFrame]) -> None:
    for column, table in enumerate(tables):
        if table["score"].null_count():
            raise InputError(
                f"{label(runs, column)} has ranked ids without scores, and this method adds up scores. Use a method that "
                "reads ranks (rrf, borda, isr, rbc, condorcet), or norm='rank', which scores a document by its rank."
            )


def _missing_notes(runs: Sequence[Run], asked: Sequence[str]) -> list[str]:
    notes = []
    for column, run in enumerate(runs):
        lacking = len(asked) - len(run.queries)
        if lacking:
            of = f"{lacking:,} of {counted(len(asked), 'query', 'queries')}"
            notes.append(
                f"{label(runs, column)} lacks {of}: fused from the runs that have "
                f"{worded(lacking, 'it', 'them')}"
            )
    return notes


def label(runs: Sequence[Run], column: int) -> str:
    """A run as a message names it: by its name, and by its place where it shares the name."""
    name = runs[column].name
    shared = sum(run.name == name for run in runs) > 1
    return f"run {column + 1} ({name!r})" if shared else f"run {name!r}"
