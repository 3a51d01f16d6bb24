"""Files of evidence: detected, read and written. The formats of other tools are declared in their own modules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias

from steelyard.checks import unknown_name
from steelyard.errors import InputError, did_you_mean
from steelyard.evidence.conditions import Alternative
from steelyard.evidence.evidence import Evidence
from steelyard.frames import check_single
from steelyard.ids import text_ids
from steelyard.io.autorag import corpus_chunks
from steelyard.io.files import bare_name, errors_name, reading, streams_read_once, write_file
from steelyard.io.formats import EvidenceReader, Format, every_format
from steelyard.io.frames import NamedColumns, json_list, rows_of_file
from steelyard.io.json import json_lines
from steelyard.io.text import Source
from steelyard.lazy import polars as pl
from steelyard.wording import in_words

Record: TypeAlias = Mapping[str, Any]

_QUERIES = ("query_id", "qid", "question", "query")
_DOCUMENTS = ("doc_id", "document_id", "corpus_id", "document", "source")
_STARTS, _ENDS = ("start", "start_index"), ("end", "end_index")
_CONTENTS = ("content", "contents", "text")
_CONDITIONS = ("fact", "page", "parent", "hash", "chunk_id")
"""The columns that make a row evidence, beside those of a span."""
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@streams_read_once()
def read_evidence(path: Path, format: str | None, options: Mapping[str, Any]) -> Evidence:
    """The evidence of a file, in the format named or detected from the names of its fields."""
    with errors_name(path), reading(path):
        readers = {fmt.name: fmt.evidence for fmt in reversed(every_format()) if fmt.evidence is not None}
        rows = rows_of_file(Source(path))
        fields = {field for reader in readers.values() for field in reader.fields}
        if isinstance(rows, dict) and rows.keys() & {*fields, *_STARTS, *_CONDITIONS}:
            rows = [rows]
        name = format or _format_of(rows, readers)
        if name not in readers:
            raise InputError(unknown_name("evidence format", name, readers))
        read = readers[name].read
        allowed = list(signature(read).parameters)[1:]
        for option in options:
            if option not in allowed:
                listed = f"{did_you_mean(option, allowed)} Its options: {', '.join(allowed) or 'none'}."
                raise InputError(f"format {name} has no option {option!r}.{listed}")
        records = rows.to_dicts() if hasattr(rows, "to_dicts") else rows
        if not (name == "json" if isinstance(records, Mapping) else records):
            raise InputError("expected one record per question, and there are none.")
        return read(records, **options)


@streams_read_once()
def read_chunks(path: str | Path) -> pl.DataFrame:
    """Chunks of a file, as `Evidence.judge` takes them: JSON, JSON lines, CSV, TSV or Parquet, one row per chunk.

    AutoRAG's corpus (doc_id, contents, path, start_end_idx) becomes chunks of the documents at its paths.
    """
    with errors_name(Path(path)), reading(Path(path)):
        rows = rows_of_file(Source(Path(path)))
        if isinstance(rows, Mapping):
            expected = "a list of chunks, each with chunk_id, doc_id, start, end and text"
            raise InputError(f"one JSON object; expected {expected}.")
        return corpus_chunks(NamedColumns(rows).as_frame())


def _format_of(rows: Any, readers: Mapping[str, EvidenceReader]) -> str:
    if isinstance(rows, dict):
        return "json"
    names = set(NamedColumns(rows).names)
    for name, reader in readers.items():
        if names & set(reader.fields):
            return name
    if (names & set(_STARTS) and names & set(_ENDS)) or names & set(_CONDITIONS):
        return "rows"
    raise InputError(
        f"no evidence: the fields are {', '.join(sorted(map(str, names))[:10]) or 'none'}. Expected evidence_list "
        "(MultiHop-RAG), references (spans), start and end, fact, page, parent or hash (rows), retrieval_gt "
        "(AutoRAG), reference_contexts (ragas), targets or distractors." + in_words(" format=... selects a format.", "")
    )


def _read_json(records: Any) -> Evidence:
    """The mapping that Evidence takes; or records of query_id, targets, distractors, `null: true` for a null query."""
    if isinstance(records, Mapping):
        return Evidence(records)
    queries, notes = NamedColumns(records).query_ids()
    evidence = {
        query: {"targets": record.get("targets") or [], "distractors": record.get("distractors")}
        for query, record in zip(queries, records, strict=True)
    }
    null = [query for query, record in zip(queries, records, strict=True) if record.get("null") is True]
    return Evidence(evidence, null, notes=notes)


def _read_spans(records: Sequence[Record], doc_id: str | None = None) -> Evidence:
    """One row per question, its references a list of spans (and its distractors another); or one row per span.

    The document is that of the reference, or of the row (doc_id, corpus_id, ...), or the column `doc_id` names.
    """
    if not any("references" in record for record in records):
        return _read_rows(records, doc_id)
    columns = (doc_id,) if doc_id else _DOCUMENTS
    queries, notes = NamedColumns(records).query_ids()
    evidence: dict[str, Any] = {query: {"targets": [], "distractors": []} for query in queries}
    for query, record in zip(queries, records, strict=True):
        for part, name in (("targets", "references"), ("distractors", "distractors")):
            for span in json_list(record.get(name), query):
                where = f"query {query!r}"
                if not isinstance(span, Mapping) or _first(span, (*_STARTS, *_ENDS)) is None:
                    raise InputError(f"{where}: {span!r:.60} is not a span; expected start_index and end_index.")
                evidence[query][part].append(_condition(span, columns, where, _first(record, columns)))
    return Evidence(evidence, notes=notes)


def _read_rows(records: Sequence[Record], doc_id: str | None = None) -> Evidence:
    """One row per span, fact, page, parent, document or hash; rows with the same `target` are alternatives.

    A row with a grade below 0 or a true `distractor` is a distractor; a true `null` marks a null query.
    """
    columns = (doc_id,) if doc_id else _DOCUMENTS
    targets: dict[str, dict[str, list[dict[str, Any]]]] = {}
    distractors: dict[str, list[dict[str, Any]]] = {}
    null: set[str] = set()
    for number, record in enumerate(records, start=1):
        where = f"row {number:,}"
        named, target = _first(record, _QUERIES), _first(record, ("target",))
        if named is None:
            raise InputError(f"{where} names no query; expected query_id, and the conditions in the other columns.")
        (query,) = text_ids([named], "query id", where)
        by_target = targets.setdefault(query, {})
        if _flag(record, "null", where):
            null.add(query)
            continue
        condition = _condition(record, columns, where)
        grade = condition.get("grade")
        if condition.get("distractor") or (isinstance(grade, (int, float)) and grade < 0):
            distractors.setdefault(query, []).append(condition)
        else:
            by_target.setdefault(where if target is None else str(target), []).append(condition)
    evidence: dict[str, Any] = {}
    for query, by_target in targets.items():
        needed = list(by_target.values()) or (None if query in null else [])
        evidence[query] = {"targets": needed, "distractors": distractors.get(query, [])}
    return Evidence(evidence)


def _condition(record: Record, columns: Sequence[str], where: str, document: Any = None) -> dict[str, Any]:
    """The conditions of a row, with its grade; `document` is that of a row that names none."""
    doc_id = _first(record, columns)
    condition: dict[str, Any] = {"doc_id": document if doc_id is None else doc_id}
    # Whole numbers in texts are read; anything else is left for the checks to refuse.
    start, end = (
        int(value) if isinstance(value, str) and re.fullmatch(r"\s*-?\d+\s*", value) else value
        for value in (_first(record, _STARTS), _first(record, _ENDS))
    )
    if start is not None or end is not None:  # a span, whatever the other columns
        condition |= {"start": start, "end": end, "content": _first(record, _CONTENTS)}
    else:
        condition |= {name: _first(record, (name,)) for name in _CONDITIONS}
        condition["share"] = _float(_first(record, ("share",)))
    condition["grade"] = _float(_first(record, ("grade",)))
    condition["distractor"] = _flag(record, "distractor", where)
    return {name: value for name, value in condition.items() if value is not None}


def _first(record: Record, names: Sequence[str]) -> Any:
    """The first of the fields that is not empty."""
    name = next((name for name in names if record.get(name) not in (None, "")), None)
    check_single(record, name)
    return None if name is None else record[name]


def _float(value: Any) -> Any:
    """The number in a text; anything else unchanged, for the checks to refuse."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _flag(record: Record, name: str, where: str) -> bool | None:
    """Whether a row is marked; None where the field is empty."""
    value = _first(record, (name,))
    if value is None or isinstance(value, bool):
        return value
    flag = _FLAGS.get(str(value).strip().lower())
    if flag is None:
        raise InputError(f"{where}: {name} is {value!r}; expected true or false.")
    return flag


_COLUMNS = (
    *("query_id", "target", "chunk_id", "doc_id", "parent", "page", "start", "end", "content"),
    *("fact", "share", "hash", "grade", "null"),
)


def write_evidence(evidence: Evidence, path: Path) -> None:
    """Write the form of the file's suffix."""
    suffix = bare_name(path).suffix.lower()
    if suffix == ".json":
        content: dict[str, Any] = {}
        for query in evidence.queries:
            record = _record(evidence, query)
            content[query] = targets = record["targets"] or None
            if "distractors" in record:
                content[query] = {"targets": targets, "distractors": record["distractors"]}
        write_file(path, f"{json.dumps(content, ensure_ascii=False, indent=1)}\n".encode())
    elif suffix == ".jsonl":
        write_file(path, json_lines(_record(evidence, query) for query in evidence.queries))
    elif suffix in (".csv", ".tsv"):
        with errors_name(path):
            write_file(path, _table(evidence, "," if suffix == ".csv" else "\t"))
    else:
        raise InputError("evidence is written as .json, .jsonl, .csv or .tsv; name one of these.", path)


def _record(evidence: Evidence, query: str) -> dict[str, Any]:
    targets = [[_fields(one) for one in target] for target in evidence.targets[query]]
    record: dict[str, Any] = {"query_id": query, "targets": targets}
    if evidence.distractors[query]:
        record["distractors"] = [_fields(one) for one in evidence.distractors[query]]
    return record if targets else {**record, "null": True}


def _fields(alternative: Alternative) -> dict[str, Any]:
    """The conditions that are set, and a grade other than 1."""
    fields = {name: value for name, value in asdict(alternative).items() if value is not None}
    if alternative.grade == 1:
        del fields["grade"]
    return fields


def _table(evidence: Evidence, separator: str) -> bytes:
    """One row per condition, with the columns that are used."""
    rows: list[dict[str, Any]] = []
    for query in evidence.queries:
        targets = evidence.targets[query]
        rows += [
            {"query_id": query, "target": str(number), **_fields(one)}
            for number, target in enumerate(targets, start=1)
            for one in target
        ]
        rows += [{"query_id": query, **_fields(one)} for one in evidence.distractors[query]]
        rows += [] if targets else [{"query_id": query, "null": "true"}]
    for row in rows:
        if "start" in row and any(name in row for name in _CONDITIONS):
            problem = f"query {row['query_id']!r} has a span with another condition, which a table cannot hold"
            raise InputError(f"{problem}; write .json or .jsonl.")
    used = [name for name in _COLUMNS if any(name in row for row in rows)]
    columns = {name: [None if row.get(name) is None else str(row[name]) for row in rows] for name in used}
    return pl.DataFrame(columns, schema=dict.fromkeys(used, pl.String)).write_csv(separator=separator).encode()


FORMATS = (
    Format("rows", "one row per span, fact, page, ...", evidence=EvidenceReader(_read_rows)),
    Format("json", "targets by query", evidence=EvidenceReader(_read_json, ("targets", "distractors"))),
    Format("spans", "references of start_index and end_index", evidence=EvidenceReader(_read_spans, ("references",))),
)
