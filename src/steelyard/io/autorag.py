"""AutoRAG: judgments from a qa table (`retrieval_gt`), runs from a result table (`retrieved_ids`, `retrieve_scores`).

`retrieval_gt` is a list of lists: each inner list is a target, satisfied by any of its documents.
One list is one target, and one id is one target of one document, as AutoRAG itself takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.io.files import Source, run_name
from steelyard.io.lists import list_of, qrels_of_lists, run_of_lists
from steelyard.io.records import listed_rows

if TYPE_CHECKING:
    from steelyard.qrels import Qrels
    from steelyard.run import Run


TRUTH, FOUND, SCORES = "retrieval_gt", "retrieved_ids", "retrieve_scores"


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments of a qa table."""
    rows = listed_rows(source, columns, TRUTH, "the ids that answer each question", "an AutoRAG qa table")
    qrels = qrels_of_lists(rows.queries, [targets(value) for value in rows.lists])
    notes = rows.notes
    if any(
        isinstance(value, (str, list)) and value and not isinstance(value[0], list)
        for value in map(_spelled, rows.lists)
    ):
        notes += ("a retrieval_gt that is one list, or one id, was taken as one target, as AutoRAG does",)
    qrels.notes = (*notes, *qrels.notes)
    return qrels


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of a result table, in the order of its lists."""
    rows = listed_rows(source, columns, FOUND, "the ids that were retrieved", "an AutoRAG result table")
    run = run_of_lists(rows.queries, rows.lists, rows.table.get(SCORES), run_name(source.path))
    run.notes = (*rows.notes, *run.notes)
    return run


def targets(value: Any) -> list[list[Any]]:
    """A retrieval_gt as a list of lists; empty lists name no document and are left out.

    >>> targets("a"), targets(["a", "b"]), targets([["a", "b"], ["c"]]), targets([[]])
    ([['a']], [['a', 'b']], [['a', 'b'], ['c']], [])
    """
    found = _spelled(value)
    if isinstance(found, list) and any(isinstance(item, list) for item in found):
        return [group for group in found if group != []]
    return [found] if found else []


def _spelled(value: Any) -> Any:
    return list_of(value) if value is not None else []
