"""JSON: an object of queries, a list of records, or JSON lines.

A run is `{query: {document: score}}`, `{query: [ids]}` or `{query: [[id, score], ...]}`; qrels are
`{query: {document: grade}}`, `{query: [ids]}`, `{query: [[ids], [ids]]}` for targets, or lists under
targets, relevant, not_relevant and distractors. Records, in a list or one per line, are for a
query (`query_id` and `results` or `judgments`) or for a document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.alignment.ranges import RANGE_COLUMNS, Ranges
from steelyard.checks import is_number
from steelyard.errors import InputError
from steelyard.io.columns import RUN_ROLES, check_roles, is_record, kind_of_records
from steelyard.io.files import run_name
from steelyard.io.formats import Detected, Format, Shape, name_them
from steelyard.io.frames import frame_of_lines, qrels_of_table, run_of_table
from steelyard.io.lists import qrels_of_lists, run_of_lists
from steelyard.io.text import Source
from steelyard.lazy import polars as pl
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted, worded

_CHUNK = {"chunk_id", "start", "end"}  # What a line has that says where a chunk is, beside its document.
_EXPECTED = 'Expected {"query": {"document": number}}, {"query": ["document", ...]} or a list of records.'


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of an object or a list of records."""
    if isinstance(source.json, list):
        return run_of_table(source.json, columns, run_name(source.path))
    check_roles(columns, (), "a JSON object of queries")
    listed = object_of_queries(source.json)
    return run_of_lists(list(listed), list(listed.values()), None, run_name(source.path))


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The qrels of an object or a list of records."""
    if isinstance(source.json, list):
        return qrels_of_table(source.json, columns)
    check_roles(columns, (), "a JSON object of queries")
    judged = object_of_queries(source.json)
    return qrels_of_lists(list(judged), list(judged.values()))


def read_lines_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of JSON lines."""
    frame = frame_of_lines(source, columns, RUN_ROLES)
    return run_of_table(source.jsonl if frame is None else frame, columns, run_name(source.path))


def read_lines_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The qrels of JSON lines."""
    chunks = [record for record in source.jsonl if record.keys() >= _CHUNK]
    qrels = qrels_of_table([record for record in source.jsonl if not record.keys() >= _CHUNK], columns)
    if chunks:
        try:
            spans = [{**span, "query_id": r["query_id"]} for r in source.jsonl for span in r.get("spans", ())]
            qrels.ranges = Ranges.of_frame(pl.DataFrame([*spans, *chunks], schema=RANGE_COLUMNS))
        except (KeyError, TypeError, pl.exceptions.PolarsError):
            problem = "the gold spans or the lines of chunks are not as Steelyard writes them"
            raise InputError(f"{problem}; make the file again (steelyard evidence).") from None
    stated = (record.get("relevant_from") for record in source.jsonl)
    levels = [float(level) for level in stated if level is not None and is_number(level)]
    qrels.relevant_from = max(levels, default=None)
    return qrels


def run_bytes(run: Run) -> bytes:
    """An object of scores; of lists where the run has an order of its own, with scores where it has any."""
    return _object({query: _results(run, query, rows) for query, rows in rows_by_query(run).items()})


def qrels_bytes(qrels: Qrels) -> bytes:
    """An object of grades; a list of records, one per judgment, where there are targets."""
    if not qrels.has_targets:
        return _object(grades_by_query(qrels))
    rows = qrels.frame.iter_rows(named=True)
    records = [{name: value for name, value in row.items() if value is not None} for row in rows]
    return ("[\n" + ",\n".join(map(_dumps, records)) + "\n]\n").encode()


def grades_by_query(qrels: Qrels) -> dict[str, dict[str, float]]:
    """Query to document to grade, whole grades as ints."""
    judged = qrels.judged
    grades = [int(grade) if grade.is_integer() else grade for grade in qrels.grades.tolist()]
    places = zip(judged.query_ids, judged.starts[:-1].tolist(), judged.starts[1:].tolist(), strict=True)
    return {query: dict(zip(judged.doc_ids[a:b], grades[a:b], strict=True)) for query, a, b in places}


def lines_run_bytes(run: Run) -> bytes:
    """One line per query: ranked `results` where the run has an order of its own, an object of scores where not."""
    lines: list[dict[str, Any]] = []
    for query, rows in rows_by_query(run).items():
        results = _results(run, query, rows)
        if run.ordered and any(score is not None for _, score in rows):
            results = [{"doc_id": doc, "score": score} for doc, score in rows]
        line = {"query_id": query, "results": results}
        if run.seconds is not None and query in run.seconds:
            line["seconds"] = run.seconds[query]
        lines.append(line)
    return json_lines(lines)


def lines_qrels_bytes(qrels: Qrels) -> bytes:
    """One line per query: its judgments as records, the lowest relevant grade if it is known, and its gold spans.

    Qrels made from spans have one more line per chunk: where it is in its document.
    """
    scale = {} if qrels.relevant_from is None else {"relevant_from": qrels.relevant_from}
    judged: dict[str, list[dict[str, Any]]] = {query: [] for query in qrels.queries}
    for query, doc, grade, target in qrels.frame.drop_nulls("doc_id").iter_rows():
        record = {"doc_id": doc, "grade": grade}
        if qrels.has_targets and target is not None:
            record["target"] = target
        judged[query].append(record)
    lines = [{"query_id": query, "judgments": records, **scale} for query, records in judged.items()]
    if qrels.ranges is None:
        return json_lines(lines)
    spans = qrels.ranges.spans.rows_by_key("query_id", named=True)
    lines = [{**line, "spans": spans.get(line["query_id"], [])} for line in lines]
    return json_lines([*lines, *qrels.ranges.chunks.to_dicts()])


def json_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    """One JSON object per line; values that JSON has no type for are written as text."""
    return "".join(f"{_dumps(record)}\n" for record in records).encode()


def one_score_each(query: str, rows: list[tuple[str, float | None]]) -> dict[str, float | None]:
    """An object of document to score; a document that occurs twice is refused."""
    scores = dict(rows)
    if len(scores) < len(rows):
        docs = [doc for doc, _ in rows]
        twice = next(doc for doc in docs if docs.count(doc) > 1)
        problem = f"query {query!r}: document {twice!r} occurs twice, and a JSON object holds one score per document"
        raise InputError(f"{problem}. Write 'trec-run', 'csv' or 'parquet', or remove the repeats.")
    return scores


def object_of_queries(content: Any) -> dict[str, Any]:
    """The JSON object; an error if it does not have an object or a list for every query."""
    if not isinstance(content, dict) or not content:
        problem = "an empty JSON object" if content == {} else f"a JSON {type(content).__name__}"
        raise InputError(f"{problem}. {_EXPECTED}")
    wrong = [query for query, value in content.items() if not isinstance(value, (dict, list))]
    if wrong:
        some = f"{len(wrong):,} of {counted(len(content), 'query', 'queries')} {worded(len(wrong), 'has', 'have')}"
        first = f"query {wrong[0]!r}: {str(content[wrong[0]])[:40]!r}"
        raise InputError(f"{some} neither an object nor a list ({first}). {_EXPECTED}")
    return content


def rows_by_query(run: Run, frame: pl.DataFrame | None = None) -> dict[str, list[tuple[str, float | None]]]:
    """Each query's (document, score) rows, of `frame` or the run's: best first if it has its own order, or as read."""
    if frame is None:
        frame = run.frame if run.ordered else run.table
    rows: dict[str, list[tuple[str, float | None]]] = {query: [] for query in run.queries}
    for query, doc, score in frame.select("query_id", "doc_id", "score").iter_rows():
        rows[query].append((doc, score))
    return rows


def _results(run: Run, query: str, rows: list[tuple[str, float | None]]) -> Any:
    if not run.ordered:
        return one_score_each(query, rows)
    scored = any(score is not None for _, score in rows)
    return [[doc, score] for doc, score in rows] if scored else [doc for doc, _ in rows]


def _object(queries: Mapping[str, Any]) -> bytes:
    """An object with one query per line, so that diffs are readable."""
    lines = [f"{_dumps(query)}: {_dumps(value)}" for query, value in queries.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _detect_records(shape: Shape, format: str) -> Detected:
    kind = kind_of_records(shape.names)
    if kind is None:
        problem = f"the records hold no query and documents; their names are {', '.join(shape.names) or 'none'}"
        raise InputError(f"{problem}. Call them query_id and doc_id, or {name_them()}")
    return Detected(kind, format, "qrels" if kind == "qrels" else "run")


def _detect(shape: Shape) -> Detected | None:
    """{query: ...}: objects of whole numbers, and lists of lists or of grades, are likely qrels, others a run."""
    if shape.form != "object":
        return _detect_records(shape, "json") if shape.form == "json" else None
    qrels = Detected("qrels", "json", "qrels")
    values = [value for value in object_of_queries(shape.source.json).values() if value]
    if any(isinstance(value, dict) and list in set(map(type, value.values())) for value in values):
        return qrels
    items = [item for value in values if isinstance(value, list) for item in value]
    if any(isinstance(item, list) for item in items):
        pairs = all(isinstance(item, list) and len(item) == 2 and isinstance(item[1], (int, float)) for item in items)
        return Detected("either", "json", "run") if pairs else qrels
    if any(isinstance(item, Mapping) for item in items):
        if not any(isinstance(item, Mapping) and is_record(item) for item in items):
            return qrels
        first = list(items[0]) if isinstance(items[0], Mapping) else []
        return qrels if kind_of_records(["query_id", *first]) == "qrels" else Detected("either", "json", "run")
    if items:
        return Detected("either", "json", "run", note("lists-of-ids"))
    kinds = {kind for value in values if isinstance(value, dict) for kind in map(type, value.values())}
    if kinds <= {int, bool}:
        return Detected("either", "json", "qrels")
    return Detected("either", "json", "run", note("fractions-as-in-a-run"))


FORMATS = (
    Format(
        name="json",
        description="{query: {document: number}}, {query: [ids]} or a list of records",
        detect=_detect,
        reads={"run": read_run, "qrels": read_qrels},
        writes={"run": run_bytes, "qrels": qrels_bytes},
        suffixes={"run": (".json",), "qrels": (".json",)},
    ),
    Format(
        name="jsonl",
        description="one JSON object per line, for a query or for a document",
        detect=lambda shape: _detect_records(shape, "jsonl") if shape.form == "jsonl" else None,
        reads={"run": read_lines_run, "qrels": read_lines_qrels},
        writes={"run": lines_run_bytes, "qrels": lines_qrels_bytes},
        suffixes={"run": (".jsonl", ".ndjson"), "qrels": (".jsonl", ".ndjson")},
        seconds=True,
        scale=True,
    ),
)
