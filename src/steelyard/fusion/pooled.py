"""Whole runs side by side: joined once on query and document, whatever is then made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.errors import InputError
from steelyard.fusion.pool import Pool
from steelyard.runs import Run
from steelyard.wording import counted, worded


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
