"""Tables in memory, one row per document or one row per query with lists: frames, and records of JSON or Python."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import steelyard.io.columns as known
from steelyard.checks import is_number
from steelyard.errors import InputError, did_you_mean, nearest
from steelyard.frames import as_polars
from steelyard.ids import text_ids
from steelyard.io.columns import PARTS, SCORE_LISTS, check_roles, find_name, first_named
from steelyard.io.files import bare_name, run_name
from steelyard.io.frames import qrels_of_frame, run_of_frame
from steelyard.io.lists import qrels_of_lists, qrels_of_mapping, run_of_lists, unique_ids
from steelyard.io.shapes import table_form
from steelyard.io.text import Source, line_blocks, read_table
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted

_TEXT_ROLES = ("query_id", "doc_id", "target")
_RUN_EXAMPLE = '{"query_id": "q1", "doc_id": "d1", "score": 12.5}'
_QRELS_EXAMPLE = '{"query_id": "q1", "doc_id": "d1", "grade": 1}'


class NamedColumns:
    """A frame, or a list of records, as named columns."""

    def __init__(self, source: Any, example: str = _RUN_EXAMPLE) -> None:
        self.records: Sequence[Mapping[str, Any]] | None = None
        if not isinstance(source, (list, tuple)):
            self._frame = as_polars(source)
            return
        if not source:
            raise InputError("there are no records; expected one for each query or each document.")
        if not all(issubclass(kind, Mapping) for kind in set(map(type, source))):
            number, record = next(pair for pair in enumerate(source, start=1) if not isinstance(pair[1], Mapping))
            kind = type(record).__name__
            raise InputError(f"record {number:,} is a {kind}; expected objects with names, as {example}.")
        self.records = source

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, or of all fields, in order of appearance."""
        records = self.records
        return self._frame.columns if records is None else list(dict.fromkeys(chain.from_iterable(records)))

    def column(self, name: str) -> list[Any]:
        """The values of a column; None in records that do not have it."""
        return self._frame[name].to_list() if self.records is None else [record.get(name) for record in self.records]

    def list_column(self, named: str | None, usual: Sequence[str]) -> str | None:
        """The column that holds each query's documents as a list, if there is one.

        A column of a text file has a usual name and no doc_id beside it: its lists are texts.
        """
        if self.records is not None:
            name = named or first_named(self.names, usual)
            return name if name is not None and self.holds_lists(name) else None
        if named is None and find_name(self.names, "doc_id", required=False) is None:
            return first_named(self.names, usual)
        return named if named in self.names and isinstance(self._frame[named].dtype, (pl.List, pl.Array)) else None

    def holds_lists(self, name: str) -> bool:
        """Whether some record has a list or an object under this name."""
        kinds = set(map(type, self.column(name))) if self.records is not None and name in self.names else ()
        return any(issubclass(kind, (list, Mapping)) for kind in kinds)

    def query_ids(self, named: str | None = None) -> tuple[list[str], tuple[Note, ...]]:
        """The query id of each row, and notes: of the column named or one with a usual name, or the row's number."""
        name = first_named(self.names, known.QUERY_IDS) if named is None else find_name(self.names, "query_id", named)
        if name is None:
            size = self._frame.height if self.records is None else len(self.records)
            return [str(row) for row in range(size)], (note("queries-numbered"),)
        return unique_ids(self.column(name), name)

    def listed_query_ids(self, named: str | None) -> tuple[list[str], tuple[Note, ...]]:
        """The same for lists; in records, a field such as query or topic also identifies the query."""
        if self.records is not None and named is None and first_named(self.names, known.QUERY_IDS) is None:
            named = find_name(self.names, "query_id", required=False)
        return self.query_ids(named)

    def as_frame(self) -> pl.DataFrame:
        """The whole table as a frame, of whatever types polars finds."""
        return self._frame if self.records is None else pl.DataFrame(list(self.records), strict=False)

    def frame(self, columns: Mapping[str, str], roles: Sequence[str]) -> pl.DataFrame:
        """The table as a frame: the columns of records become texts and numbers, by their roles."""
        if self.records is None:
            return self._frame
        data: dict[str, pl.Series] = {}
        for role in roles:
            name = find_name(self.names, role, columns.get(role), required=role in ("query_id", "doc_id"))
            if name is not None and name not in data:
                read = _texts if role in _TEXT_ROLES else _numbers
                data[name] = read(name, role, self.column(name))
        for name in self.names:
            if name.lower().strip() in (known.ITERATION, *known.SURE_RUN_NAMES) and name not in data:
                data[name] = pl.Series([None if v is None else str(v) for v in self.column(name)], dtype=pl.String)
        return pl.DataFrame(data)


def _texts(name: str, role: str, values: Sequence[Any]) -> pl.Series:
    ids = iter(text_ids([value for value in values if value is not None], role, f"the field {name!r}"))
    return pl.Series([None if value is None else next(ids) for value in values], dtype=pl.String)


def _numbers(name: str, role: str, values: Sequence[Any]) -> pl.Series:
    # NaN and infinity are floats: the checks of the frame report them with their rows.
    plain = set(map(type, values)) <= {int, float, type(None)}
    try:
        if plain or all(value is None or isinstance(value, float) or is_number(value) for value in values):
            return pl.Series([None if value is None else float(value) for value in values], dtype=pl.Float64)
    except OverflowError:
        pass
    wrong = next(cell for cell in values if cell is not None and not isinstance(cell, float) and not is_number(cell))
    raise InputError(f"the field {name!r} ({role}) holds {wrong!r}; expected numbers.")


def run_of_table(source: Any, columns: Mapping[str, str], name: str | None = None) -> Run:
    """The run of a frame or of records; columns are found by their usual names, or named by role."""
    check_roles(columns, known.RUN_ROLES, "a run")
    table = NamedColumns(source)
    timed = find_name(table.names, "seconds", columns.get("seconds"), required=False)
    listed = table.list_column(columns.get("doc_id"), known.RUN_LISTS)
    if listed is None:
        frame = table.frame(columns, (*known.RUN_ROLES, "own_rank", "tokens"))
        run = run_of_frame(frame, columns, name)
        queries = frame[find_name(frame.columns, "query_id", columns.get("query_id")) or ""].to_list() if timed else []
    else:
        check_roles(columns, ("query_id", "doc_id", "score", "seconds"), "a run of lists")
        queries, notes = table.listed_query_ids(columns.get("query_id"))
        named = columns.get("score")
        scores = first_named(table.names, SCORE_LISTS) if named is None else find_name(table.names, "score", named)
        run = run_of_lists(queries, table.column(listed), table.column(scores) if scores else None, name, notes)
    if timed is not None:
        times = zip(queries, table.column(timed), strict=True)
        run.seconds = {str(query): _seconds(value, timed) for query, value in times if value is not None}
    return run


def _seconds(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"the column {name!r} (seconds) holds {value!r}; expected numbers.") from None


def qrels_of_table(source: Any, columns: Mapping[str, str]) -> Qrels:
    """The qrels of a frame or of records; columns are found by their usual names, or named by role."""
    check_roles(columns, known.QRELS_ROLES, "a qrels table")
    table = NamedColumns(source, _QRELS_EXAMPLE)
    in_parts = "doc_id" not in columns and any(map(table.holds_lists, ("targets", "distractors")))
    listed = None if in_parts else table.list_column(columns.get("doc_id"), known.QRELS_LISTS)
    if not in_parts and listed is None:
        return qrels_of_frame(table.frame(columns, known.QRELS_ROLES), columns)
    check_roles(columns, ("query_id",) if in_parts else ("query_id", "doc_id"), "a qrels table of lists")
    if "doc_id" not in columns:
        _refuse_other_forms(table, tuple(PARTS) if listed is None else (listed,))
    queries, notes = table.listed_query_ids(columns.get("query_id"))
    if listed is not None:
        return qrels_of_lists(queries, table.column(listed), notes)
    records = zip(queries, table.records or (), strict=True)
    qrels = qrels_of_mapping(
        {query: {part: record[part] for part in PARTS if record.get(part) is not None} for query, record in records}
    )
    qrels.notes = (*notes, *qrels.notes)
    return qrels


def _refuse_other_forms(table: NamedColumns, lists: Sequence[str]) -> None:
    """Refuse records with judgments under other names than the lists that are read: nothing is ignored."""
    single = find_name(table.names, "doc_id", required=False)
    others = {name for name in table.names if name.lower() in known.QRELS_LISTS or name == single} - set(lists)
    misspelt = {name for name in table.names if name not in lists and nearest(name, lists, most=1, cutoff=0.85)}
    problems = [
        f"record {number:,}: {name!r}{did_you_mean(name, lists) if name in misspelt else ''}"
        for number, record in enumerate(table.records or (), start=1)
        for name in record
        if name in others | misspelt and record[name] is not None
    ]
    if problems:
        headline = f"{counted(len(problems), 'field is', 'fields are')} not read beside {', '.join(lists)}:"
        raise InputError.of_problems(headline, problems, "Expected one form in one list of records.")


def frame_of_lines(source: Source, columns: Mapping[str, str], roles: Sequence[str]) -> pl.DataFrame | None:
    """`NamedColumns.frame` of JSON lines whose objects have the same names, each a text or number; read by polars.

    None if the names differ, or if counts of the bytes cannot rule that out: then the file is read line by line, and
    errors name the line. A name that occurs twice in an object is such a case.
    """
    kinds = {name: type(value) for name, value in source.first_objects[0].items()}
    chosen: dict[str, str] = {}
    try:
        for role in roles:
            name = find_name(list(kinds), role, columns.get(role), required=role in ("query_id", "doc_id"))
            chosen |= {} if name is None or name in chosen else {name: role}
    except InputError:
        return None
    schema: dict[str, Any] = {name: pl.String if role in _TEXT_ROLES else pl.Float64 for name, role in chosen.items()}
    if any(kinds[name] not in ((str,) if schema[name] == pl.String else (int, float)) for name in schema):
        return None
    frames: list[pl.DataFrame] = []
    try:
        for block in line_blocks(source.path):
            frame = pl.read_ndjson(io.BytesIO(block), schema=schema)
            if not _read_exactly(block, frame, kinds):
                return None
            frames.append(frame)
    except (InputError, RuntimeError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return pl.concat(frames)


def _read_exactly(block: bytes, frame: pl.DataFrame, kinds: Mapping[str, type]) -> bool:
    """Whether every line is an object with each of the names once and no other, texts and numbers as in the first.

    As many `"name":` as lines and no more `":` than these leave no room for another name or a second value.
    """
    size = block.count(b"\n") + (not block.endswith(b"\n"))
    if frame.height != size or any(frame.null_count().row(0)):
        return False
    # Some versions of polars read half of a character as another, and truth values as numbers.
    if (b"\\" in block and (b"\\ud" in block or b"\\uD" in block)) or b"true" in block or b"false" in block:
        return False
    space = b" " if b'": ' in block[: block.find(b"\n")] else b""
    for name, kind in kinds.items():
        key = json.dumps(name, ensure_ascii=False).encode() + b":"
        is_text = name in frame.columns and kind is str
        if block.count(key + space + b'"' if is_text else key) != size:
            return False
        if name in frame.columns and not is_text and block.count(key + space + b'"'):
            return False
    return block.count(b'":') == size * len(kinds)


def listed_rows(
    source: Source, columns: Mapping[str, str], name: str, holds: str, called: str
) -> tuple[NamedColumns, list[str], tuple[Note, ...]]:
    """A tool's rows, of which the column `name` holds lists; their queries; notes. `holds`, `called`: for errors."""
    check_roles(columns, ("query_id",), called)
    rows = rows_of_file(source)
    table = NamedColumns([rows] if isinstance(rows, dict) else rows)
    if name not in table.names:
        problem = f"no column {name!r}, which holds {holds}; the columns are {', '.join(table.names)}"
        raise InputError(f"{problem}.{did_you_mean(name, table.names)}")
    return table, *table.query_ids(columns.get("query_id"))


def listed_run(source: Source, columns: Mapping[str, str], name: str, called: str, scores: str = "") -> Run:
    """The run of a tool's rows, in the order of the lists in the column `name`."""
    table, queries, notes = listed_rows(source, columns, name, "the retrieved ids", called)
    values = table.column(scores) if scores in table.names else None
    return run_of_lists(queries, table.column(name), values, run_name(source.path), notes)


def rows_of_file(source: Source) -> Any:
    """The rows of a file: a frame, a list of records, or a mapping (one JSON object)."""
    form = table_form(source)
    if form == "parquet":
        return source.parquet
    if form in ("csv", "tsv"):
        return read_table(source, "," if form == "csv" else "\t")
    if form == "json":
        content = source.json
        if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
            raise InputError("a list of something other than objects; expected one object per question.", source.path)
        return content
    if form == "jsonl":
        lines = [line for line in map(str.strip, source.text.split("\n")) if line]
        if len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines[:2]):
            return source.jsonl
        content = source.json
        lines_file = bare_name(source.path).suffix.lower() in (".jsonl", ".ndjson")
        # Evidence by query id, in one line, has a list or an object for every query.
        is_record = lines_file and any(isinstance(value, (str, int, float)) for value in content.values())
        return [content] if is_record else content
    raise InputError("not JSON, JSON lines, CSV, TSV or Parquet; evidence is read from these.", source.path)


def json_list(value: Any, query: str) -> list[Any]:
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
