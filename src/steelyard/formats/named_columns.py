"""What a file is where its columns are named: a table needs none of the usual names then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from steelyard.errors import InputError
from steelyard.formats.registry import Kind
from steelyard.formats.roles import kind_of_table
from steelyard.formats.sniffing import Detected, detect
from steelyard.formats.source import Source

_RUN_ONLY = {"score", "rank", "seconds"}
_QRELS_ONLY = {"grade", "target"}


def detect_named(source: Source, columns: Mapping[str, str], asked: Kind | None = None) -> Detected:
    """The format by content; whether a table is a run or judgments, by the roles that its columns are named for.

    A table of which one of the two is `asked` is taken for that, where it has roles of either kind.
    """
    if not columns:
        return detect(source)
    try:
        found = detect(source)
    except InputError:
        format = table_format(source)
        if format is None:
            raise
        return _of_columns(source, format, columns, asked)
    records = found.format == "json" and isinstance(source.json, list)
    tabular = records or found.format in ("csv", "tsv", "parquet", "jsonl")
    return _of_columns(source, found.format, columns, asked) if tabular else found


def table_format(source: Source) -> str | None:
    """The format of a table, whatever its columns are called: Parquet, JSON lines, JSON, TSV or CSV."""
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"["):
        return "json"
    if head.startswith(b"{"):
        return "jsonl"
    first = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in first else "csv" if b"," in first else None


def _of_columns(source: Source, format: str, columns: Mapping[str, str], asked: Kind | None) -> Detected:
    kind: Literal["run", "qrels", "either"] = "either"
    if columns.keys() & (_RUN_ONLY | _QRELS_ONLY):
        kind = asked or ("run" if columns.keys() & _RUN_ONLY else "qrels")
    else:
        role_of = {name: role for role, name in columns.items()}
        known = kind_of_table([role_of.get(name, name) for name in _names(source, format)])
        kind = "run" if known == "run" else "qrels" if known == "qrels" else "either"
    return Detected(kind, format, "qrels" if kind == "qrels" else "run")


def _names(source: Source, format: str) -> Sequence[str]:
    """The names of a table's columns, or of the fields of its first record."""
    if format == "parquet":
        return source.parquet.columns
    if format in ("json", "jsonl"):
        first = (source.json if format == "json" else source.jsonl)[:1]
        return list(first[0]) if first and isinstance(first[0], Mapping) else []
    line = source.head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0].decode(errors="replace")
    return [name.strip().strip('"') for name in line.split("\t" if format == "tsv" else ",")]
