"""Movers: the queries that changed most between two runs, with the documents that moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.comparison.board import Board
from steelyard.judgments import Qrels
from steelyard.runs import Run


@dataclass(frozen=True)
class DocumentMove:
    """A judged document and its rank in both runs; None where it did not come back."""

    doc_id: str
    grade: float
    before: int | None
    after: int | None


@dataclass(frozen=True)
class Mover:
    """A query whose value changed, and the judged documents that moved, the farthest first."""

    query_id: str
    before: float
    after: float
    documents: tuple[DocumentMove, ...]

    @property
    def difference(self) -> float:
        """After minus before."""
        return self.after - self.before


def movers(
    board: Board,
    measure: str,
    run: int,
    baseline: int,
    held: tuple[Run, Run] | None,
    qrels: Qrels | None,
    most: int = 10,
) -> list[Mover]:
    """The queries that moved most from baseline to run on a measure, either way."""
    values = board.of(measure)
    gap = np.nan_to_num(values[run] - values[baseline], nan=0.0)
    order = np.argsort(-np.abs(gap), kind="stable")
    chosen = [place for place in order.tolist() if gap[place] != 0][:most]
    queries = [board.queries[place] for place in chosen]
    moves = _moves(qrels, held, queries) if qrels is not None and held is not None else {}
    return [
        Mover(
            board.queries[p],
            float(values[baseline, p]),
            float(values[run, p]),
            tuple(moves.get(board.queries[p], ())),
        )
        for p in chosen
    ]


def _moves(qrels: Qrels, held: tuple[Run, Run], queries: Sequence[str]) -> dict[str, list[DocumentMove]]:
    after, before = (_ranks(run, queries) for run in held)
    place = {query: number for number, query in enumerate(qrels.judged.query_ids)}
    found: dict[str, list[DocumentMove]] = {}
    for query in queries:
        start, end = qrels.judged.starts[place[query] : place[query] + 2].tolist()
        moved = [
            DocumentMove(doc, grade, before.get((query, doc)), after.get((query, doc)))
            for doc, grade in zip(
                qrels.judged.doc_ids[start:end], qrels.grades[start:end].tolist(), strict=True
            )
        ]
        changed = [move for move in moved if move.before != move.after]
        found[query] = sorted(changed, key=lambda move: -abs((move.before or 10**9) - (move.after or 10**9)))
    return found


def _ranks(run: Run, queries: Sequence[str]) -> dict[tuple[str, str], int]:
    import polars as pl

    rows = run.frame.filter(pl.col("query_id").is_in(list(queries))).select("query_id", "doc_id", "rank")
    ranks: dict[tuple[str, str], int] = {}
    for query, doc, rank in rows.iter_rows():
        ranks.setdefault((query, doc), rank)
    return ranks
