"""Movers: the queries whose value changed most between two runs, and the judged documents that changed rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from steelyard.alignment import ranking
from steelyard.alignment.hits import Ordering
from steelyard.comparison.scores import ScoreTable
from steelyard.lazy import polars as pl
from steelyard.qrels import Qrels
from steelyard.run import Run

_NOT_RETRIEVED = 10**9  # The rank of a document that a run did not retrieve.


def ranked_rows(run: Run, ordering: Ordering) -> pl.DataFrame:
    """The rows of a run in the order that is measured: query_id, doc_id, rank, score."""
    if ordering.ties in ("docid-desc", "expected") and ordering.duplicates != "collapse" and not ordering.single:
        return run.frame
    return ranking.ranked_rows(run.table, run.ordered, ordering)


@dataclass(frozen=True)
class DocumentMove:
    """A judged document and its rank in both runs; None where it was not retrieved."""

    doc_id: str
    grade: float
    before: int | None
    after: int | None


@dataclass(frozen=True)
class Mover:
    """A query whose value changed, and the judged documents that changed rank, those that matter most first."""

    query_id: str
    before: float
    after: float
    documents: tuple[DocumentMove, ...]

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class RunMovers:
    """A run compared with another on a measure: how many queries it lost and won, and those with the largest change."""

    run: str
    baseline: str
    measure: str
    queries_lost: int
    queries_won: int
    lost: tuple[Mover, ...]
    won: tuple[Mover, ...]


Moves: TypeAlias = Callable[[Sequence[str]], Mapping[str, Sequence[DocumentMove]]]
"""`document_moves` of two runs: from queries to the documents that moved."""


def movers(
    table: ScoreTable, measure: str, run: int, baseline: int, moves: Moves | None, most: int = 10
) -> list[Mover]:
    """The queries with the largest change from baseline to run on a measure, in either direction."""
    values = table.of(measure)
    gap = np.nan_to_num(values[run] - values[baseline], nan=0.0)
    order = np.argsort(-np.abs(gap), kind="stable")
    return _movers(table, measure, (run, baseline), moves, order[gap[order] != 0][:most].tolist())


def movers_by_run(table: ScoreTable, baseline: str, moves: Callable[[str], Moves | None], most: int) -> list[RunMovers]:
    """For every other run, the queries with the largest losses and wins against the baseline, on the first measure."""
    column = table.columns[0]
    values = table.of(column.key)
    base = table.runs.index(baseline)
    by_run = []
    for run, name in enumerate(table.runs):
        if run == base:
            continue
        gain = column.worth(np.nan_to_num(values[run] - values[base], nan=0.0))
        order = np.argsort(-np.abs(gain), kind="stable")
        lost, won = order[gain[order] < 0], order[gain[order] > 0]
        chosen = [*lost[:most].tolist(), *won[:most].tolist()]
        queries = tuple(_movers(table, column.key, (run, base), moves(name), chosen))
        cut = len(lost[:most])
        of_run = (name, baseline, column.key, len(lost), len(won))
        by_run.append(RunMovers(*of_run, lost=queries[:cut], won=queries[cut:]))
    return by_run


def _movers(
    table: ScoreTable, measure: str, runs: tuple[int, int], moves: Moves | None, places: Sequence[int]
) -> list[Mover]:
    """The queries at some places, with the documents that changed rank where the lists are known."""
    after, before = (table.of(measure)[run] for run in runs)
    queries = [table.queries[place] for place in places]
    moved = {} if moves is None else moves(queries)
    return [
        Mover(query, float(before[place]), float(after[place]), tuple(moved.get(query, ())))
        for query, place in zip(queries, places, strict=True)
    ]


def document_moves(
    run: Run, baseline: Run, ordering: Ordering, qrels: Qrels, queries: Sequence[str]
) -> dict[str, list[DocumentMove]]:
    """The judged documents of each query whose rank differs from that in the baseline, those that matter most first."""
    after, before = (_ranks(side, ordering, queries) for side in (run, baseline))
    judged, grades = qrels.judged, qrels.grades
    place = {query: number for number, query in enumerate(judged.query_ids)}
    moves: dict[str, list[DocumentMove]] = {}
    for query in queries:
        start, end = judged.starts[place[query] : place[query] + 2].tolist()
        of_query = zip(judged.doc_ids[start:end], grades[start:end].tolist(), strict=True)
        docs = [DocumentMove(doc, grade, before.get((query, doc)), after.get((query, doc))) for doc, grade in of_query]
        moves[query] = sorted((move for move in docs if move.before != move.after), key=_weight, reverse=True)
    return moves


def _weight(move: DocumentMove) -> tuple[float, int]:
    """How much a move changes a measure: the gain of the document by the change of its discount; then the ranks."""
    before, after = (rank or _NOT_RETRIEVED for rank in (move.before, move.after))
    change = abs(1 / math.log2(1 + before) - 1 / math.log2(1 + after))
    return max(move.grade, 0.0) * change, abs(before - after)


def _ranks(run: Run, ordering: Ordering, queries: Sequence[str]) -> dict[tuple[str, str], int]:
    rows = ranked_rows(run, ordering).filter(pl.col("query_id").is_in(list(queries)))
    first = rows.unique(["query_id", "doc_id"], keep="first").select("query_id", "doc_id", "rank")
    return {(query, doc): rank for query, doc, rank in first.iter_rows()}
