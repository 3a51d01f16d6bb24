"""Evidence in rows, as a table has it: a row a span, a fact, a page, a parent, a document, a hash or a chunk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError, did_you_mean
from steelyard.evidence.evidence import Alternative, Evidence
from steelyard.io.detect import table_format
from steelyard.io.files import Source, bare_name, write_file
from steelyard.io.lists import query_ids
from steelyard.io.tables import read_table

if TYPE_CHECKING:
    import polars as pl


QUERIES = ("query_id", "qid", "question", "query")
DOCUMENTS = ("doc_id", "document_id", "corpus_id", "document", "source")
STARTS, ENDS = ("start", "start_index"), ("end", "end_index")
CONTENTS = ("content", "contents", "text")
TOLD_BY = ("fact", "page", "parent", "hash", "chunk_id")
"""The conditions, beside a span, that a row is told to be evidence by."""

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def answers_of_rows(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dict[str, Any]:
    """Targets and distractors by query, as `Evidence` takes them; `columns` are those that may name the document."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    misleading: dict[str, list[dict[str, Any]]] = {}
    null: set[str] = set()
    for place, record in enumerate(records, start=1):
        where = f"row {place:,}"
        query = str(first(record, QUERIES) or "")
        if not query:
            raise InputError(
                f"{where} names no query; expected query_id, and what it needs in the other columns."
            )
        targets = found.setdefault(query, {})
        if flag(record, "null", where):
            null.add(query)
            continue
        way = way_of_row(record, columns, where)
        if way.get("distractor") or _below_zero(way.get("grade")):
            misleading.setdefault(query, []).append(way)
        else:
            targets.setdefault(str(first(record, ("target",)) or where), []).append(way)
    return {
        query: {
            "targets": list(targets.values()) or (None if query in null else []),
            "distractors": misleading.get(query, []),
        }
        for query, targets in found.items()
    }


def way_of_row(
    record: Mapping[str, Any], columns: Sequence[str], where: str, owner: Any = None
) -> dict[str, Any]:
    """The conditions of a row, with its grade; `owner` is the document of a row that names none.

    A row with a start and an end is that span, whatever else stands beside it.
    """
    document = first(record, columns)
    way: dict[str, Any] = {"doc_id": owner if document is None else document}
    start, end = (number(first(record, names)) for names in (STARTS, ENDS))
    if start is not None or end is not None:
        way |= {"start": start, "end": end, "content": first(record, CONTENTS)}
    else:
        way |= {name: first(record, (name,)) for name in TOLD_BY}
        way["share"] = decimal(first(record, ("share",)))
    way["grade"] = decimal(first(record, ("grade",)))
    way["distractor"] = flag(record, "distractor", where)
    return {name: value for name, value in way.items() if value is not None}


def first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of the fields that holds something."""
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


def number(value: Any) -> Any:
    """The whole number that a table holds as text; anything else as it is, for the checks to refuse."""
    return int(value) if isinstance(value, str) and value.strip().lstrip("-").isdigit() else value


def decimal(value: Any) -> Any:
    """The number that a table holds as text; anything else as it is, for the checks to refuse."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def flag(record: Mapping[str, Any], name: str, where: str) -> bool | None:
    """Whether a row is marked; None where nothing is said."""
    value = first(record, (name,))
    if value is None or isinstance(value, bool):
        return value
    known = _FLAGS.get(str(value).strip().lower())
    if known is None:
        raise InputError(f"{where}: {name} is {value!r}; expected true or false.")
    return known


def _below_zero(grade: Any) -> bool:
    return isinstance(grade, (int, float)) and grade < 0


Record = Mapping[str, Any]


def read_evidence(path: Path, format: str | None, options: Mapping[str, Any]) -> Evidence:
    """The evidence of a file, in the format named or found from the names it holds."""
    source = Source(path)
    content = _content(source)
    known = format or _format_of(content, path)
    if known not in _READERS:
        raise InputError(
            f"there is no evidence format {known!r}.{did_you_mean(known, _READERS)} Known: {', '.join(_READERS)}."
        )
    reader = _READERS[known]
    taken = list(signature(reader).parameters)[1:]
    for name in options:
        if name not in taken:
            raise InputError(
                f"{path}: format {known} has no option {name!r}.{did_you_mean(name, taken)} "
                f"It has: {', '.join(taken) or 'none'}."
            )
    try:
        return reader(content, **options)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_chunks(path: str | Path) -> pl.DataFrame:
    """Chunks of a file, as `Evidence.judge` takes them: JSON, JSON lines, CSV, TSV or Parquet, a row a chunk.

    AutoRAG's corpus (doc_id, contents, path, start_end_idx) becomes chunks of the documents that its
    paths name. Its index of the end is that of the last character, so the end is one more; equal indices
    mean that the place is not known. What AutoRAG puts before a chunk's own text (the file's name) is left out.
    """
    import polars as pl

    content = _content(Source(Path(path)))
    if isinstance(content, Mapping):
        raise InputError(
            f"{path} is one JSON object; expected a list of chunks, each with chunk_id, doc_id, start, end and text."
        )
    frame = content if isinstance(content, pl.DataFrame) else pl.DataFrame(list(content), strict=False)
    if "start_end_idx" not in frame.columns:
        return frame
    first, last = (pl.col("start_end_idx").list.get(at, null_on_oob=True) for at in (0, 1))
    known = last > first
    placed = frame.with_columns(
        start=pl.when(known).then(first),
        end=pl.when(known).then(last + 1),
    )
    own = pl.col("contents").str.slice(
        pl.col("contents").str.len_chars().cast(pl.Int64) - (pl.col("end") - pl.col("start"))
    )
    text = pl.when(pl.col("end") > pl.col("start")).then(own).otherwise(pl.col("contents"))
    document = pl.coalesce(pl.col("path"), pl.col("doc_id")) if "path" in frame.columns else pl.col("doc_id")
    return placed.select(
        pl.col("doc_id").alias("chunk_id"), document.alias("doc_id"), "start", "end", text.alias("text")
    )


def _content(source: Source) -> Any:
    """A mapping (one JSON object), a frame (Parquet) or a list of records."""
    kind = table_format(source)
    if kind == "parquet":
        return source.parquet
    if kind in ("csv", "tsv"):
        return read_table(source, "," if kind == "csv" else "\t").to_dicts()
    if kind == "json":
        return _records(source.json, source.path)
    if kind == "jsonl":
        lines = [line for line in source.text.split("\n") if line.strip()]
        several = len(lines) > 1 and all(
            line.lstrip().startswith("{") and line.rstrip().endswith("}") for line in lines[:2]
        )
        if several:
            return source.jsonl
        whole = source.json
        return [whole] if _is_record(whole) else whole
    raise InputError(
        f"{source.path} is not JSON, JSON lines, CSV, TSV or Parquet; evidence is read from these."
    )


def _records(content: Any, path: Path) -> list[Record]:
    if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
        raise InputError(
            f"{path} holds a list of something other than objects; expected one object a question."
        )
    return content


def _is_record(content: Any) -> bool:
    named = ("evidence_list", "reference_contexts", "references", "targets", "distractors", *STARTS, *TOLD_BY)
    return isinstance(content, dict) and any(name in content for name in named)


def _format_of(content: Any, path: Path) -> str:
    if isinstance(content, dict):
        return "json"
    names = (
        set(content.columns)
        if hasattr(content, "columns")
        else {name for record in content for name in record}
    )
    for name, format in (
        ("evidence_list", "multihop-rag"),
        ("reference_contexts", "ragas"),
        ("retrieval_gt", "autorag"),
        ("references", "spans"),
        ("targets", "json"),
        ("distractors", "json"),
    ):
        if name in names:
            return format
    if (names & set(STARTS) and names & set(ENDS)) or names & set(TOLD_BY):
        return "rows"
    raise InputError(
        f"{path} holds {', '.join(sorted(map(str, names))[:10]) or 'nothing'}, which is no evidence; expected evidence_list "
        "(MultiHop-RAG), references (spans), start and end, fact, page, parent or hash (rows), retrieval_gt "
        "(AutoRAG), reference_contexts (ragas), targets or distractors. format= insists."
    )


def _own(content: Any) -> Evidence:
    """The mapping that Evidence takes; or records of query_id, targets and distractors, `null: true` for a null query."""
    if isinstance(content, Mapping):
        return Evidence(content)
    records = _rows(content)
    queries, notes = _queries(records)
    given = {
        query: {"targets": record.get("targets") or [], "distractors": record.get("distractors")}
        for query, record in zip(queries, records, strict=True)
    }
    null = [query for query, record in zip(queries, records, strict=True) if record.get("null") is True]
    return _noted(Evidence(given, null), notes)


def _multihop(content: Any) -> Evidence:
    """A question's facts, each a target; a question of type null_query is null."""
    records = _rows(content)
    queries, notes = _queries(records)
    given: dict[str, Any] = {}
    for query, record in zip(queries, records, strict=True):
        facts = [{"fact": _text(piece, "fact", query)} for piece in record.get("evidence_list") or []]
        given[query] = (
            None if not facts and str(record.get("question_type", "")).startswith("null") else facts
        )
    return _noted(Evidence(given), notes)


def _ragas(content: Any) -> Evidence:
    """A sample's reference contexts, each a target."""
    records = _rows(content)
    queries, notes = _queries(records)
    given = {
        query: [{"fact": text} for text in _listed(record.get("reference_contexts"), query)]
        for query, record in zip(queries, records, strict=True)
    }
    return _noted(Evidence(given), notes)


def _spans(content: Any, doc_id: str | None = None) -> Evidence:
    """A row a question, its references a list of spans (and its distractors another); or a row a span.

    The document is the reference's own, the row's (doc_id, corpus_id, ...), or the column `doc_id` names.
    """
    records = _rows(content)
    if not any("references" in record for record in records):
        return _by_row(content, doc_id)
    columns = (doc_id,) if doc_id else DOCUMENTS
    queries, notes = _queries(records)
    given = {
        query: {
            part: [
                _span(reference, first(record, columns), columns, query)
                for reference in _listed(record.get(name), query)
            ]
            for part, name in (("targets", "references"), ("distractors", "distractors"))
        }
        for query, record in zip(queries, records, strict=True)
    }
    return _noted(Evidence(given), notes)


def _by_row(content: Any, doc_id: str | None = None) -> Evidence:
    """A row a span, a fact, a page, a parent, a document or a hash; `target` puts rows together, any of which is enough.

    A grade below 0, or a true `distractor`, makes a row a distractor; a true `null` marks a null query.
    """
    return Evidence(answers_of_rows(_rows(content), (doc_id,) if doc_id else DOCUMENTS))


def _autorag(content: Any, corpus: str | Path | None = None) -> Evidence:
    """AutoRAG's groups: each a target, any document of which is enough.

    With `corpus`, its corpus file, a document that has a place in its source (path and start_end_idx)
    is evidence by that span, so that it survives re-chunking; without, by its id.
    """
    records = _rows(content)
    queries, notes = _queries(records)
    places: dict[str, dict[str, Any]] = {}
    if corpus is not None:
        for row in read_chunks(corpus).iter_rows(named=True):
            spanned = row.get("start") is not None
            named = str(row.get("chunk_id") or row["doc_id"])
            places[named] = (
                {"doc_id": str(row["doc_id"]), "start": row["start"], "end": row["end"]}
                if spanned
                else {"doc_id": named}
            )
    given: dict[str, Any] = {}
    for query, record in zip(queries, records, strict=True):
        groups = [group for group in record.get("retrieval_gt") or [] if group]
        targets = []
        for group in groups:
            ids = [group] if isinstance(group, str) else list(group)
            lost = [doc for doc in ids if corpus is not None and doc not in places]
            if lost:
                raise InputError(f"query {query!r} names the document {lost[0]!r}, which is not in {corpus}.")
            targets.append([places.get(doc, {"doc_id": doc}) for doc in ids])
        given[query] = targets or None
    return _noted(Evidence(given), notes)


_READERS: dict[str, Callable[..., Evidence]] = {
    "json": _own,
    "multihop-rag": _multihop,
    "spans": _spans,
    "rows": _by_row,
    "autorag": _autorag,
    "ragas": _ragas,
}


def _rows(content: Any) -> Sequence[Record]:
    rows: Sequence[Record] = content.to_dicts() if hasattr(content, "to_dicts") else content
    if isinstance(rows, Mapping) or not rows:
        raise InputError("expected one record a question, and there are none.")
    return rows


def _queries(records: Sequence[Record]) -> tuple[list[str], tuple[str, ...]]:
    names = dict.fromkeys(name for record in records for name in record)
    return query_ids({name: [record.get(name) for record in records] for name in names}, None, len(records))


def _noted(evidence: Evidence, notes: tuple[str, ...]) -> Evidence:
    evidence.notes = (*notes, *evidence.notes)
    return evidence


def _listed(value: Any, query: str) -> list[Any]:
    """A list, which a table of text holds as JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise InputError(f"query {query!r}: its list is not JSON ({error.msg}).") from None
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"query {query!r}: expected a list, got {value!r:.60}.")
    return value


def _span(record: Any, owner: Any, columns: Sequence[str], query: str) -> dict[str, Any]:
    if not isinstance(record, Mapping) or first(record, (*STARTS, *ENDS)) is None:
        raise InputError(
            f"query {query!r}: {record!r:.60} is not a span; expected start_index and end_index."
        )
    return way_of_row(record, columns, f"query {query!r}", owner)


def _text(piece: Any, field: str, query: str) -> str:
    value = piece.get(field) if isinstance(piece, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"query {query!r} lists evidence without a text in {field!r}: {piece!r:.60}.")
    return value


_COLUMNS = (
    *("query_id", "target", "chunk_id", "doc_id", "parent", "page", "start", "end", "content"),
    *("fact", "share", "hash", "grade", "null"),
)


def write_evidence(evidence: Evidence, path: Path) -> None:
    """Write the form that the file's name asks for."""
    suffix = bare_name(path).suffix.lower()
    if suffix == ".json":
        data = _json({query: _parts(evidence, query) for query in evidence.queries}, indent=1)
    elif suffix == ".jsonl":
        data = "".join(_json(_record(evidence, query)) for query in evidence.queries)
    elif suffix in (".csv", ".tsv"):
        write_file(path, _table(evidence, path, "," if suffix == ".csv" else "\t"))
        return
    else:
        raise InputError(f"{path}: evidence is written as .json, .jsonl, .csv or .tsv; name one of these.")
    write_file(path, data.encode())


def _json(content: Any, indent: int | None = None) -> str:
    return json.dumps(content, ensure_ascii=False, indent=indent) + "\n"


def _parts(evidence: Evidence, query: str) -> Any:
    """A query's targets as `Evidence` takes them, with its distractors where it has any."""
    targets = [[_fields(way) for way in target] for target in evidence.targets[query]] or None
    misleading = [_fields(way) for way in evidence.distractors[query]]
    return {"targets": targets, "distractors": misleading} if misleading else targets


def _record(evidence: Evidence, query: str) -> dict[str, Any]:
    targets = [[_fields(way) for way in target] for target in evidence.targets[query]]
    misleading = [_fields(way) for way in evidence.distractors[query]]
    record: dict[str, Any] = {"query_id": query, "targets": targets}
    if misleading:
        record["distractors"] = misleading
    return record if targets else {**record, "null": True}


def _fields(way: Alternative) -> dict[str, Any]:
    """The conditions that are given; a grade of 1 goes without saying."""
    given = {name: value for name, value in asdict(way).items() if value is not None}
    if way.grade == 1:
        del given["grade"]
    return given


def _table(evidence: Evidence, path: Path, separator: str) -> bytes:
    """A row a condition, with the columns that are used."""
    import polars as pl

    from steelyard.io.tables import table_bytes

    rows: list[dict[str, Any]] = []
    for query in evidence.queries:
        targets = evidence.targets[query]
        rows += [
            {"query_id": query, "target": str(number), **_fields(way)}
            for number, target in enumerate(targets, start=1)
            for way in target
        ]
        rows += [{"query_id": query, **_fields(way)} for way in evidence.distractors[query]]
        rows += [] if targets else [{"query_id": query, "null": "true"}]
    for row in rows:
        if "start" in row and any(name in row for name in ("chunk_id", "parent", "page", "fact", "hash")):
            raise InputError(
                f"{path}: query {row['query_id']!r} has a span with another condition, which a table cannot hold; "
                "write .json or .jsonl."
            )
    used = [name for name in _COLUMNS if any(name in row for row in rows)]
    columns = {name: [None if row.get(name) is None else str(row[name]) for row in rows] for name in used}
    return table_bytes(pl.DataFrame(columns, schema=dict.fromkeys(used, pl.String)), separator)
