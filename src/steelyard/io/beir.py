"""BEIR judgments: `query-id corpus-id score` with that header and tabs between; a fourth column, target, is ours."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.io.columns import BEIR_HEADER
from steelyard.io.files import Source
from steelyard.io.limits import holds_every_query, whole_grades
from steelyard.io.tables import qrels_of, qrels_table, read_table, table_bytes
from steelyard.qrels import Qrels


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments; negative scores are distractors."""
    return qrels_of(read_table(source, "\t"), columns)


def qrels_bytes(qrels: Qrels) -> bytes:
    """The judgments, with a target column where they name targets."""
    whole_grades(qrels, "beir")
    frame = qrels_table(qrels).drop_nulls("doc_id")
    holds_every_query(qrels.queries, frame["query_id"].unique().to_list(), "beir")
    return table_bytes(
        frame.rename(dict(zip(("query_id", "doc_id", "grade"), BEIR_HEADER, strict=True))), "\t"
    )
