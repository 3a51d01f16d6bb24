"""A tool's rows, whatever file they were saved in: Parquet, JSON, JSON lines, CSV or TSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.errors import InputError, did_you_mean
from steelyard.formats.records import names_of
from steelyard.formats.source import Source


def columns_of(source: Source) -> dict[str, list[Any]]:
    """Every column, by name."""
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"PAR1"):
        return source.parquet.to_dict(as_series=False)
    if head.startswith((b"[", b"{")):
        records = source.json if head.startswith(b"[") else source.jsonl
        return {
            name: [record.get(name) for record in records] for name in names_of(records, str(source.path))
        }
    from steelyard.formats.delimited import read_table

    separator = "\t" if b"\t" in head.split(b"\n", 1)[0] else ","
    return read_table(source, separator).to_dict(as_series=False)


def required(columns: dict[str, list[Any]], name: str, source: Source, what: str) -> list[Any]:
    """A column the tool's rows have to have."""
    if name not in columns:
        raise InputError(
            f"{source.path} has no column {name!r}, which holds {what}; its columns are {', '.join(columns)}."
            f"{did_you_mean(name, columns)}"
        )
    return columns[name]


def row_count(columns: dict[str, list[Any]]) -> int:
    """How many rows there are."""
    return len(next(iter(columns.values()), []))


def first_of(columns: dict[str, list[Any]], names: Sequence[str]) -> str | None:
    """The first of the names that is a column."""
    return next((name for name in names if name in columns), None)
