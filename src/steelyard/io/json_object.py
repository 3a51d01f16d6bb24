"""JSON: `{query: {document: score}}`, `{query: [ids]}`, `{query: [[ids], [ids]]}` for targets, or a list of records.

Judgments may also list a query's documents under targets, relevant, not_relevant and distractors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError
from steelyard.io.columns import check_roles
from steelyard.io.files import Source, run_name
from steelyard.io.lists import qrels_of_lists, run_of_lists
from steelyard.io.records import qrels_of_records, run_of_records
from steelyard.qrels import Qrels
from steelyard.wording import counted, worded

if TYPE_CHECKING:
    from steelyard.run import Run


_EXPECTED = 'Expected {"query": {"document": number}}, {"query": ["document", ...]} or a list of records.'


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run the JSON holds."""
    content = source.json
    if isinstance(content, list):
        return run_of_records(content, source, columns)
    check_roles(columns, (), "a JSON object of queries")
    listed = object_of_queries(content, source)
    return run_of_lists(list(listed), list(listed.values()), None, run_name(source.path))


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments the JSON holds."""
    content = source.json
    if isinstance(content, list):
        return qrels_of_records(content, str(source.path), columns)
    check_roles(columns, (), "a JSON object of queries")
    judged = object_of_queries(content, source)
    return qrels_of_lists(list(judged), list(judged.values()))


def run_bytes(run: Run) -> bytes:
    """An object of scores; of lists where the run has an order of its own, with scores where it has them."""
    return _lines({query: mapped(run, query, rows) for query, rows in rows_by_query(run).items()})


def qrels_bytes(qrels: Qrels) -> bytes:
    """An object of grades; a list of records, one a judgment, where targets are named."""
    judged = qrels.judged
    if not qrels.has_targets:
        grades = [int(grade) if grade.is_integer() else grade for grade in qrels.grades.tolist()]
        places = zip(judged.query_ids, judged.starts[:-1].tolist(), judged.starts[1:].tolist(), strict=True)
        return _lines(
            {query: dict(zip(judged.doc_ids[a:b], grades[a:b], strict=True)) for query, a, b in places}
        )
    records = [
        {name: value for name, value in record.items() if value is not None}
        for record in qrels.frame.iter_rows(named=True)
    ]
    return (
        "[\n" + ",\n".join(json.dumps(record, ensure_ascii=False) for record in records) + "\n]\n"
    ).encode()


def rows_by_query(run: Run) -> dict[str, list[tuple[str, float | None]]]:
    """Each query's (document, score) rows: best first where the order is the run's own, as they came where not."""
    frame = run.frame if run.ordered else run.table
    rows: dict[str, list[tuple[str, float | None]]] = {query: [] for query in run.queries}
    for query, doc, score in frame.select("query_id", "doc_id", "score").iter_rows():
        rows[query].append((doc, score))
    return rows


def mapped(run: Run, query: str, rows: list[tuple[str, float | None]]) -> Any:
    """One query's rows as JSON holds them."""
    if not run.ordered:
        return one_score_each(query, rows)
    scored = any(score is not None for _, score in rows)
    return [[doc, score] for doc, score in rows] if scored else [doc for doc, _ in rows]


def one_score_each(query: str, rows: list[tuple[str, float | None]]) -> dict[str, float | None]:
    """An object of document to score; a document that comes twice is refused."""
    scores = dict(rows)
    if len(scores) < len(rows):
        docs = [doc for doc, _ in rows]
        twice = next(doc for doc in docs if docs.count(doc) > 1)
        raise InputError(
            f"query {query!r}: document {twice!r} comes twice, and a JSON object holds one score a document. "
            "Write 'trec-run', 'csv' or 'parquet', or take the repeats out."
        )
    return scores


def object_of_queries(content: Any, source: Source) -> dict[str, Any]:
    """The JSON object, once it is known to hold an object or a list for every query."""
    if not isinstance(content, dict):
        raise InputError(f"{source.path} holds a JSON {type(content).__name__}. {_EXPECTED}")
    if not content:
        raise InputError(f"{source.path} holds an empty JSON object. {_EXPECTED}")
    wrong = [query for query, value in content.items() if not isinstance(value, (dict, list))]
    if wrong:
        value = content[wrong[0]]
        raise InputError(
            f"{source.path}: {len(wrong):,} of {counted(len(content), 'query', 'queries')} "
            f"{worded(len(wrong), 'holds', 'hold')} neither an object nor a list "
            f"(query {wrong[0]!r}: {str(value)[:40]!r}). {_EXPECTED}"
        )
    return content


def _lines(queries: Mapping[str, Any]) -> bytes:
    """One query a line, so that a diff of two files reads."""
    items = [
        f"{json.dumps(query, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        for query, value in queries.items()
    ]
    return ("{\n" + ",\n".join(items) + "\n}\n").encode()
