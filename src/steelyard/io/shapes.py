"""The shape of a file, by which formats recognise their own: Parquet, JSON, a table with a header, or lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

from steelyard.errors import InputError
from steelyard.io.columns import QRELS_LISTS, RUN_LISTS, first_named, kind_of_records, kind_of_table
from steelyard.io.files import LZ4
from steelyard.io.text import FIRST_LINES, Source
from steelyard.io.white_space import number

Form: TypeAlias = Literal["lz4", "parquet", "jsonl", "json", "object", "tsv", "csv", "lines"]
"""json: a list of records; object: one JSON object; tsv, csv: a header with known names; lines: any other text."""
LINES = 500  # How many lines, and records, are looked at.
_ARCHIVES = {b"PK\x03\x04": "a zip archive", b"BZh": "bzip2 data", b"\xfd7zXZ": "xz data"}


class Shape:
    """What a file looks like before its format is known. Everything is read when it is first asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def form(self) -> Form:
        """The form of the whole file; an error if it is empty or an archive."""
        source = self.source
        if source.head.startswith(LZ4):
            return "lz4"
        if not source.start:
            raise InputError("the file is empty; expected qrels or a run.")
        archive = next((name for magic, name in _ARCHIVES.items() if source.start.startswith(magic)), None)
        if archive is not None:
            raise InputError(f"{archive}; unpack it first (gzip, Zstandard and LZ4 are read directly).")
        if source.start.startswith(b"PAR1"):
            return "parquet"
        if source.start.startswith((b"{", b"[")):
            rows = [fields for line in source.head_lines[:LINES] if (fields := line.split())]
            # An id in a TREC file may start with anything.
            if set(map(_line_shape, rows)) not in ({"run"}, {"qrels"}):
                if _is_json_lines(source):
                    return "jsonl"
                return "json" if isinstance(source.json, list) else "object"
        # A table has its header in the first line. The lines below may hold anything in quotes.
        forms: tuple[Form, ...] = () if _line_shape(source.first_line.encode().split()) else ("tsv", "csv")
        for form in forms:
            names = header_names(source, form)
            if len(names) > 1 and (kind_of_table(names) or first_named(names, (*RUN_LISTS, *QRELS_LISTS))):
                return form
        return "lines"

    @cached_property
    def names(self) -> list[str]:
        """The names of a table's columns, or of the fields of the first records; none for other forms."""
        return self.names_as(self.form)

    def names_as(self, form: str) -> list[str]:
        """The same if the file is read in that form."""
        if form == "parquet":
            return self.source.parquet.columns
        if form in ("json", "jsonl"):
            records = self.source.json if form == "json" else self.source.first_objects
            named = [record for record in records[:FIRST_LINES] if isinstance(record, Mapping)]
            return list(dict.fromkeys(name for record in named for name in record))
        return header_names(self.source, form) if form in ("tsv", "csv") else []

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines of the head that are not blank."""
        return [line for line in self.source.head_lines if line.strip()]

    @cached_property
    def rows(self) -> list[list[bytes]]:
        """The fields of the lines, separated by white space, without comments."""
        return [fields for line in self.lines if not (fields := line.split())[0].startswith(b"#")]

    @cached_property
    def line_shape(self) -> str:
        """What most lines look like, in a file of that form: 'run', 'qrels', 'three' columns, or '' (none)."""
        if self.form != "lines" or not self.rows:
            return ""
        shapes = [_line_shape(fields) for fields in self.rows[:LINES]]
        return max(("run", "qrels", "three", ""), key=shapes.count)


def table_form(source: Source) -> str | None:
    """The form of a table, whatever the names of its columns: Parquet, JSON lines, JSON, TSV or CSV."""
    if source.start.startswith(b"PAR1"):
        return "parquet"
    if source.start.startswith(b"["):
        return "json"
    if source.start.startswith(b"{"):
        return "jsonl"
    return "tsv" if "\t" in source.first_line else "csv" if "," in source.first_line else None


def header_names(source: Source, form: str) -> list[str]:
    """The names in the first line of a CSV or TSV table."""
    return split_names(source.first_line, "\t" if form == "tsv" else ",")


def split_names(line: str, separator: str) -> list[str]:
    """The names in a header line."""
    return [name.strip().strip('"') for name in line.split(separator)]


def is_ranked(rows: Sequence[list[bytes]]) -> bool:
    """Whether column 2 counts 1, 2, 3, ... in each query (column 0), and some query has two documents or more.

    The last of several queries is not looked at: the end of the head may cut it.
    """
    ranks: dict[bytes, list[float | None]] = {}
    for fields in rows:
        ranks.setdefault(fields[0], []).append(number(fields[2]))
    listed = list(ranks.values())
    counts = all(set(column) == set(range(1, len(column) + 1)) for column in (listed[:-1] or listed))
    return counts and max(map(len, listed), default=0) > 1


def _line_shape(fields: list[bytes]) -> str:
    width = len(fields)
    if width >= 5 and number(fields[3]) is not None and number(fields[4]) is not None:
        return "run"
    if width == 4 and number(fields[3]) is not None:
        return "qrels"
    return "three" if width == 3 and number(fields[2]) is not None else ""


def _is_json_lines(source: Source) -> bool:
    """Whether the first line is a whole object, and another follows or it is itself the record of a query."""
    head = source.head
    is_long = not source.whole_head and b"\n" not in head.strip()
    if is_long:
        # One line longer than the head: another object may follow it.
        end = source.data.find(b"\n", len(head))
        if end >= 0 and (following := source.data[end : end + 100].lstrip()):
            return following.startswith(b"{")
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 3) if line.strip()]
    try:
        first: Any = source.json if is_long else json.loads(lines[0])
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return False
    # A whole dataset in one line, as LlamaIndex writes it, has an object of queries; a record is of one query.
    if not isinstance(first, dict) or isinstance(first.get("queries"), dict):
        return False
    if len(lines) > 1:
        return lines[1].lstrip().startswith(b"{")
    scalars = any(not isinstance(value, (dict, list)) for value in first.values())
    return kind_of_records(list(first)) is not None and scalars


# Pools of documents to judge are recognised where a run or qrels are expected: they have no scores and no grades.
POOL = "this is a pool: documents to judge, without grades; judge it first with `steelyard judge`."
_POOL_FIELDS = {"query_id", "doc_id", "priority", "runs", "ranks", "strategy"}


def is_pool(source: Source) -> bool:
    """Whether a file is a pool, also where its first line, which records how it was made, was removed."""
    if not source.start.startswith(b"{"):
        return False
    row = source.first_object
    return is_pool_header(source.first_line) or (row.keys() >= _POOL_FIELDS and "grade" not in row)


def is_pool_header(line: str) -> bool:
    """Whether a line, or the start of a long one, is the first line of a pool.

    >>> is_pool_header('{"pool": {"strategy": "depth"'), is_pool_header('{"pool": {"d1": 0.7}}')
    (True, False)
    """
    return re.match(r'\{\s*"pool"\s*:\s*\{', line) is not None and '"strategy"' in line
