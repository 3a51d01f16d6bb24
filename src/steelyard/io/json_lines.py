"""JSON lines: one object a line, for a query (`query_id` and `results` or `judgments`) or for a document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.io.files import Source
from steelyard.io.json_object import mapped, rows_by_query
from steelyard.io.records import qrels_of_records, run_of_records

if TYPE_CHECKING:
    from steelyard.qrels import Qrels
    from steelyard.run import Run


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of the lines."""
    return run_of_records(source.jsonl, source, columns)


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments of the lines."""
    return qrels_of_records(source.jsonl, str(source.path), columns)


def run_bytes(run: Run) -> bytes:
    """A line a query: ranked `results` where the order is the run's own, an object of scores where not."""
    lines: list[dict[str, Any]] = []
    for query, rows in rows_by_query(run).items():
        results = mapped(run, query, rows)
        if run.ordered and any(score is not None for _, score in rows):
            results = [{"doc_id": doc, "score": score} for doc, score in rows]
        line = {"query_id": query, "results": results}
        if run.seconds is not None and query in run.seconds:
            line["seconds"] = run.seconds[query]
        lines.append(line)
    return _lines(lines)


def qrels_bytes(qrels: Qrels) -> bytes:
    """A line a query, its judgments as records."""
    judged: dict[str, list[dict[str, Any]]] = {query: [] for query in qrels.queries}
    for query, doc, grade, target in qrels.frame.drop_nulls("doc_id").iter_rows():
        record = {"doc_id": doc, "grade": grade}
        if qrels.has_targets and target is not None:
            record["target"] = target
        judged[query].append(record)
    return _lines([{"query_id": query, "judgments": records} for query, records in judged.items()])


def _lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
