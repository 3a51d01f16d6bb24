"""Evidence into files that read back as the same evidence: JSON, JSON lines, CSV and TSV."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steelyard.errors import InputError
from steelyard.evidence.alternatives import Alternative
from steelyard.evidence.evidence import Evidence
from steelyard.formats.atomic import write_file
from steelyard.formats.names import bare_name

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

    from steelyard.formats.delimited import table_bytes

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
