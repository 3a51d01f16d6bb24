"""ranx files: `{query: {document: number}}` as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.io import json_object
from steelyard.io.files import Source
from steelyard.io.limits import keeps_order, no_targets, whole_grades

if TYPE_CHECKING:
    from steelyard.qrels import Qrels
    from steelyard.run import Run


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run; ordered by its scores."""
    return json_object.read_run(source, columns)


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments."""
    return json_object.read_qrels(source, columns)


def run_bytes(run: Run) -> bytes:
    """An object of scores, best first. A run without scores gets scores that keep its order."""
    return json.dumps(scores_of(run), ensure_ascii=False).encode()


def qrels_bytes(qrels: Qrels) -> bytes:
    """An object of whole grades."""
    return json.dumps(grades_of(qrels), ensure_ascii=False).encode()


def scores_of(run: Run) -> dict[str, dict[str, float | None]]:
    """The scores of every query's documents, best first."""
    import polars as pl

    frame = run.frame
    if frame["score"].null_count():
        frame = frame.with_columns(score=(pl.len().over("query_id") - pl.col("rank") + 1).cast(pl.Float64))
    elif run.ordered:
        keeps_order(frame, "ranx")
    rows: dict[str, list[tuple[str, float | None]]] = {query: [] for query in run.queries}
    for query, doc, score in frame.select("query_id", "doc_id", "score").iter_rows():
        rows[query].append((doc, score))
    return {query: json_object.one_score_each(query, documents) for query, documents in rows.items()}


def grades_of(qrels: Qrels) -> dict[str, dict[str, int]]:
    """The whole grades of every query's documents."""
    no_targets(qrels, "ranx")
    whole_grades(qrels, "ranx")
    judged: dict[str, dict[str, int]] = {query: {} for query in qrels.queries}
    for query, doc, grade in (
        qrels.frame.drop_nulls("doc_id").select("query_id", "doc_id", "grade").iter_rows()
    ):
        judged[query][doc] = int(grade)
    return judged
