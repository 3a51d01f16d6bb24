"""ragas rows: `retrieved_context_ids` is the run, `reference_context_ids` the judgments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.formats.lists import qrels_of_lists, query_ids, run_of_lists
from steelyard.formats.names import run_name
from steelyard.formats.roles import check_roles
from steelyard.formats.rows import columns_of, required, row_count
from steelyard.formats.source import Source

if TYPE_CHECKING:
    from steelyard.judgments import Qrels
    from steelyard.runs import Run

FOUND, TRUTH = "retrieved_context_ids", "reference_context_ids"


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The contexts retrieved, in the order of their lists."""
    check_roles(columns, ("query_id",), "a ragas table")
    table = columns_of(source)
    found = required(table, FOUND, source, "the ids that were retrieved")
    queries, notes = query_ids(table, columns.get("query_id"), row_count(table))
    run = run_of_lists(queries, found, None, run_name(source.path))
    run.notes = (*notes, *run.notes)
    return run


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The contexts that answer each question."""
    check_roles(columns, ("query_id",), "a ragas table")
    table = columns_of(source)
    truth = required(table, TRUTH, source, "the ids that answer each question")
    queries, notes = query_ids(table, columns.get("query_id"), row_count(table))
    qrels = qrels_of_lists(queries, truth)
    qrels.notes = (*notes, *qrels.notes)
    return qrels
