"""ragas rows: `retrieved_context_ids` is the run, `reference_context_ids` the judgments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.io.files import Source, run_name
from steelyard.io.lists import qrels_of_lists, run_of_lists
from steelyard.io.records import listed_rows

if TYPE_CHECKING:
    from steelyard.qrels import Qrels
    from steelyard.run import Run


FOUND, TRUTH = "retrieved_context_ids", "reference_context_ids"


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The contexts retrieved, in the order of their lists."""
    rows = listed_rows(source, columns, FOUND, "the ids that were retrieved", "a ragas table")
    run = run_of_lists(rows.queries, rows.lists, None, run_name(source.path))
    run.notes = (*rows.notes, *run.notes)
    return run


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The contexts that answer each question."""
    rows = listed_rows(source, columns, TRUTH, "the ids that answer each question", "a ragas table")
    qrels = qrels_of_lists(rows.queries, rows.lists)
    qrels.notes = (*rows.notes, *qrels.notes)
    return qrels
