"""A tool's rows, whatever file they were saved in: Parquet, JSON, JSON lines, CSV or TSV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from steelyard.errors import InputError, did_you_mean
from steelyard.formats.lists import query_ids
from steelyard.formats.records import names_of
from steelyard.formats.roles import check_roles
from steelyard.formats.source import Source


class ListedRows(NamedTuple):
    """A column of lists, one a row, with the query of each row; all the columns; and what is to be said of it."""

    queries: list[str]
    lists: list[Any]
    table: dict[str, list[Any]]
    notes: tuple[str, ...]


def listed_rows(source: Source, columns: Mapping[str, str], name: str, holds: str, called: str) -> ListedRows:
    """The column `name` of a tool's rows. `holds` says what is in it and `called` what such a file is, for errors."""
    check_roles(columns, ("query_id",), called)
    table = _columns_of(source)
    if name not in table:
        raise InputError(
            f"{source.path} has no column {name!r}, which holds {holds}; its columns are {', '.join(table)}."
            f"{did_you_mean(name, table)}"
        )
    queries, notes = query_ids(table, columns.get("query_id"), len(table[name]))
    return ListedRows(queries, table[name], table, notes)


def _columns_of(source: Source) -> dict[str, list[Any]]:
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
