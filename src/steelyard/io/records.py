"""Lists of records, one per query or one per document: from JSON, from tables and from Python."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.errors import InputError, did_you_mean, nearest, problem_report
from steelyard.ids import text_ids
from steelyard.io.columns import (
    ITERATION,
    QRELS_ROLES,
    RUN_ROLES,
    TableKind,
    check_roles,
    find_name,
    kind_of_table,
)
from steelyard.io.files import run_name
from steelyard.io.lists import (
    QRELS_LISTS,
    QUERY_IDS,
    RUN_LISTS,
    listed_name,
    qrels_of_lists,
    query_ids,
    record_query_ids,
    run_of_lists,
    score_name,
)
from steelyard.io.objects import PARTS
from steelyard.io.tables import qrels_of, read_table, run_of
from steelyard.io.text import Source, line_blocks
from steelyard.notes import Note
from steelyard.qrels import Qrels
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.run import Run


_TEXT_ROLES = ("query_id", "doc_id", "target")


def kind_of_records(names: Sequence[str]) -> TableKind | None:
    """What records hold, by their names; None where these name no query or no document."""
    run, qrels = listed_name(names, RUN_LISTS), listed_name(names, (*QRELS_LISTS, *PARTS))
    if run or qrels:
        return "either" if run and qrels else "run" if run else "qrels"
    return kind_of_table(names)


def run_of_records(records: Sequence[Mapping[str, Any]], source: Source, columns: Mapping[str, str]) -> Run:
    """The run of the records."""
    from steelyard.run import Run

    check_roles(columns, RUN_ROLES, "a run")
    names = names_of(records)
    listed = columns.get("doc_id") or listed_name(names, RUN_LISTS)
    if listed is None or not _holds_lists(records, listed):
        return run_of(_frame(records, names, columns, RUN_ROLES), source, columns)
    queries, notes = _queries(records, names, columns)
    check_roles(columns, ("query_id", "doc_id", "score", "seconds"), "a run of lists")
    scores = score_name(names, columns.get("score"))
    run = run_of_lists(
        queries,
        [record.get(listed) for record in records],
        [record.get(scores) for record in records] if scores else None,
        run_name(source.path),
    )
    timed = find_name(names, "seconds", columns.get("seconds"), required=False)
    if timed is not None:
        seconds = {
            query: record[timed]
            for query, record in zip(queries, records, strict=True)
            if record.get(timed) is not None
        }
        run = Run(run, seconds=seconds)
    run.notes = (*notes, *run.notes)
    return run


def qrels_of_records(records: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Qrels:
    """The qrels of the records."""
    check_roles(columns, QRELS_ROLES, "a qrels table")
    names = names_of(records, '{"query_id": "q1", "doc_id": "d1", "grade": 1}')
    if "doc_id" not in columns and any(_holds_lists(records, part) for part in ("targets", "distractors")):
        check_roles(columns, ("query_id",), "a list of records with lists of judgments")
        _refuse_other_forms(records, names, tuple(PARTS))
        return _qrels_of_parts(records, names, columns)
    listed = columns.get("doc_id") or listed_name(names, QRELS_LISTS)
    if listed is None or not _holds_lists(records, listed):
        frame = _frame(records, names, columns, QRELS_ROLES)
        if ITERATION in names and ITERATION not in frame.columns:
            import polars as pl

            values = [record.get(ITERATION) for record in records]
            texts = [None if value is None else str(value) for value in values]
            frame = frame.with_columns(pl.Series(ITERATION, texts, dtype=pl.String))
        return qrels_of(frame, columns)
    check_roles(columns, ("query_id", "doc_id"), "a list of records with lists of judgments")
    if "doc_id" not in columns:
        _refuse_other_forms(records, names, (listed,))
    queries, notes = _queries(records, names, columns)
    qrels = qrels_of_lists(queries, [record.get(listed) for record in records])
    qrels.notes = (*notes, *qrels.notes)
    return qrels


def _refuse_other_forms(
    records: Sequence[Mapping[str, Any]], names: Sequence[str], lists: Sequence[str]
) -> None:
    """Refuse records with judgments under other names than the lists that are read: nothing is ignored."""
    single = find_name(names, "doc_id", required=False)
    others = {name for name in names if name.lower() in QRELS_LISTS or name == single} - set(lists)
    misspelt = {name for name in names if name not in lists and nearest(name, lists, most=1, cutoff=0.85)}
    problems = [
        f"record {number:,}: {name!r}{did_you_mean(name, lists) if name in misspelt else ''}"
        for number, record in enumerate(records, start=1)
        for name in record
        if name in others | misspelt and record[name] is not None
    ]
    if problems:
        raise InputError(
            problem_report(
                f"{counted(len(problems), 'field is', 'fields are')} not read beside {', '.join(lists)}:",
                problems,
                "Expected one form in one list of records.",
            )
        )


def _qrels_of_parts(
    records: Sequence[Mapping[str, Any]], names: Sequence[str], columns: Mapping[str, str]
) -> Qrels:
    """The qrels of records that list a query's documents under the names of PARTS."""
    queries, notes = _queries(records, names, columns)
    qrels = Qrels(
        {
            query: {part: record[part] for part in PARTS if record.get(part) is not None}
            for query, record in zip(queries, records, strict=True)
        }
    )
    qrels.notes = (*notes, *qrels.notes)
    return qrels


def names_of(
    records: Sequence[Any], example: str = '{"query_id": "q1", "doc_id": "d1", "score": 12.5}'
) -> list[str]:
    """Every name in the records, in order of appearance."""
    if not records:
        raise InputError("there are no records; expected one for each query or each document.")
    for number, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise InputError(
                f"record {number:,} is a {type(record).__name__}; expected objects with names, as {example}."
            )
    return list(dict.fromkeys(name for record in records for name in record))


def _holds_lists(records: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(isinstance(record.get(name), (list, Mapping)) for record in records)


def _queries(
    records: Sequence[Mapping[str, Any]], names: Sequence[str], columns: Mapping[str, str]
) -> tuple[list[str], tuple[Note, ...]]:
    named = columns.get("query_id")
    if named is None and not {name.lower() for name in names} & set(QUERY_IDS):
        named = find_name(names, "query_id", required=False)
    return record_query_ids(records, named)


def _frame(
    records: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    columns: Mapping[str, str],
    roles: Sequence[str],
) -> pl.DataFrame:
    """The columns of the roles: ids as text, everything else as numbers."""
    import polars as pl

    data: dict[str, pl.Series] = {}
    for role in roles:
        name = find_name(names, role, columns.get(role), required=role in ("query_id", "doc_id"))
        if name is None or name in data:
            continue
        values = [record.get(name) for record in records]
        given = [value for value in values if value is not None]
        if role in _TEXT_ROLES:
            ids = iter(text_ids(given, role, f"the field {name!r}"))
            data[name] = pl.Series(
                [None if value is None else next(ids) for value in values], dtype=pl.String
            )
        else:
            wrong = next((v for v in given if isinstance(v, bool) or not isinstance(v, (int, float))), None)
            if wrong is not None:
                raise InputError(f"the field {name!r} ({role}) holds {wrong!r}; expected numbers.")
            floats = [None if value is None else float(value) for value in values]
            data[name] = pl.Series(floats, dtype=pl.Float64)
    return pl.DataFrame(data)


def frame_of_lines(source: Source, columns: Mapping[str, str], roles: Sequence[str]) -> pl.DataFrame | None:
    """`_frame` of JSON lines whose objects all have the same names and one text or number for each, read by polars.

    None if they have not, or if that cannot be seen from counts of their bytes: then line by line is right, and its
    errors name the line. A name that occurs twice in an object is such a case.
    """
    import polars as pl

    kinds = {name: type(value) for name, value in source.first_objects[0].items()}
    chosen: dict[str, str] = {}
    try:
        for role in roles:
            name = find_name(list(kinds), role, columns.get(role), required=role in ("query_id", "doc_id"))
            chosen |= {} if name is None or name in chosen else {name: role}
    except InputError:
        return None
    schema: dict[str, Any] = {}
    for name, role in chosen.items():
        is_id = role in _TEXT_ROLES
        known = {str: pl.String} if is_id else {int: pl.Float64, float: pl.Float64}
        if kinds[name] not in known:
            return None
        schema[name] = known[kinds[name]]
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


class ListedRows(NamedTuple):
    """A column of lists, one per row, with the query of each row, all columns, and notes."""

    queries: list[str]
    lists: list[Any]
    table: dict[str, list[Any]]
    notes: tuple[Note, ...]


def listed_rows(source: Source, columns: Mapping[str, str], name: str, holds: str, called: str) -> ListedRows:
    """The column `name` of a tool's rows. Errors use `holds`, its content, and `called`, the kind of file."""
    check_roles(columns, ("query_id",), called)
    table = _columns_of(source)
    if name not in table:
        raise InputError(
            f"no column {name!r}, which holds {holds}; the columns are {', '.join(table)}."
            f"{did_you_mean(name, table)}"
        )
    queries, notes = query_ids(table, columns.get("query_id"), len(table[name]))
    return ListedRows(queries, table[name], table, notes)


def _columns_of(source: Source) -> dict[str, list[Any]]:
    """Every column, by name."""
    if source.start.startswith(b"PAR1"):
        return source.parquet.to_dict(as_series=False)
    if source.start.startswith((b"[", b"{")):
        names = names_of(source.records)
        return {name: [record.get(name) for record in source.records] for name in names}
    return read_table(source, "\t" if "\t" in source.first_line else ",").to_dict(as_series=False)
