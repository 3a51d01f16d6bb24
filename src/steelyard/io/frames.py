"""Tables in memory as runs and qrels: frames (polars, pandas, pyarrow), and records of JSON or Python.

A table has one row per document, or one row per query with lists; every value is checked.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

import steelyard.io.columns as known
from steelyard.alignment.hits import JudgedDocs
from steelyard.checks import is_number
from steelyard.errors import SHOWN_PROBLEMS, InputError, did_you_mean, nearest
from steelyard.frames import as_polars
from steelyard.ids import text_ids
from steelyard.io.columns import (
    ITERATION,
    PARTS,
    QRELS_ROLES,
    RUN_NAMES,
    SCORE_LISTS,
    SURE_RUN_NAMES,
    check_roles,
    find_name,
    first_named,
    rank_column,
)
from steelyard.io.files import bare_name, run_name
from steelyard.io.formats import table_form
from steelyard.io.lists import qrels_of_lists, qrels_of_mapping, run_of_lists, unique_ids
from steelyard.io.text import Source, line_blocks, read_table
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import SHOWN_NAMES, counted, listed

NO_DOCUMENT = "a score or rank but no document"
NO_SCORE = "a score that is not a finite number"
NO_RANK = "a rank that is not a number"


def qrels_of_frame(frame: pl.DataFrame, columns: Mapping[str, str]) -> Qrels:
    """The qrels of a frame with one row per judgment; its columns are found by name, or named."""
    table, notes = qrels_columns(frame, columns)
    query_ids = table["query_id"].unique(maintain_order=True).to_list()
    judged = table.drop_nulls("doc_id")
    flat = judged["target"].null_count() == judged.height and bool(judged["grade"].is_finite().all())
    once = flat and not judged.select("query_id", "doc_id").is_duplicated().any()
    qrels = flat_qrels(judged, query_ids) if once else Qrels.from_rows(judged.rows(), query_ids)
    if find_name(frame.columns, "grade", columns.get("grade"), required=False) is None:
        notes.append(note("no-grades"))
    if not qrels.has_targets and judged.height > len(qrels):
        notes.append(note("judgments-merged", count=judged.height - len(qrels)))
    qrels.notes = tuple(notes)
    return qrels


def flat_qrels(judged: pl.DataFrame, query_ids: list[str]) -> Qrels:
    """The qrels of a table without targets in which every document is judged once for a query."""
    schema = {"query_id": pl.String, "place": pl.Int64}
    place = pl.DataFrame({"query_id": query_ids, "place": range(len(query_ids))}, schema=schema)
    judged = judged.join(place, on="query_id", how="left", maintain_order="left").sort("place", maintain_order=True)
    sizes = np.bincount(judged["place"].to_numpy(), minlength=len(query_ids))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    documents = JudgedDocs(query_ids, starts, judged["doc_id"].to_list())
    return Qrels.from_columns(documents, judged["grade"].cast(pl.Float64).to_numpy().copy())


def qrels_columns(frame: pl.DataFrame, columns: Mapping[str, str]) -> tuple[pl.DataFrame, list[Note]]:
    """query_id, doc_id, grade and target of a frame, checked, and notes on conversions."""
    names = _find_columns(frame, QRELS_ROLES, columns)
    notes: list[Note] = []
    grade, target = names["grade"], names["target"]
    table = pl.DataFrame(
        {
            "query_id": _ids(frame, names["query_id"], "query_id", notes, required=True),
            "doc_id": _ids(frame, names["doc_id"], "doc_id", notes),
            "grade": _numbers(frame, grade, "grade") if grade else pl.Series([1.0]).new_from_index(0, frame.height),
            "target": _ids(frame, target, "target", []) if target else _nulls(frame, pl.String),
        }
    )
    if not target and ITERATION in frame.columns:
        table = _with_subtopics(table, frame[ITERATION].cast(pl.String), notes)
    ungraded = table.filter(pl.col("doc_id").is_not_null() & pl.col("grade").is_null())
    if ungraded.height:
        pairs = ungraded.select("query_id", "doc_id").head(SHOWN_PROBLEMS).iter_rows()
        raise ungraded_error(ungraded.height, [f"query {query!r}, document {doc!r}" for query, doc in pairs])
    return table, notes


def _with_subtopics(table: pl.DataFrame, iteration: pl.Series, notes: list[Note]) -> pl.DataFrame:
    """The table with iterations as targets, by the rule for column 2 of a TREC file: see `steelyard.io.trec`."""
    values = iteration.drop_nulls().unique().sort().to_list()
    if len(values) < 2:
        return table
    rows = table.with_columns(iteration=iteration).drop_nulls("doc_id")
    if rows.group_by("query_id", "doc_id").agg(pl.col("iteration").n_unique())["iteration"].max() == 1:
        notes.append(note("iterations-ignored", count=len(values), values=values[:3]))
        return table
    notes.append(note("read-as-subtopics"))
    none = (iteration == "0") & (table["grade"] <= 0)
    return table.with_columns(target=pl.select(pl.when(none).then(None).otherwise(iteration)).to_series())


def run_of_frame(frame: pl.DataFrame, columns: Mapping[str, str], name: str | None = None) -> Run:
    """The run of a frame with one row per document, ordered by its scores.

    A run without scores is ordered by its ranks, or as the rows are; a run with scores is ordered by its ranks if
    their column is named, or called own_rank. A row without a document is an empty list.
    """
    names = _find_columns(frame, ("query_id", "doc_id", "score", "rank", "own_rank"), columns)
    _refuse_several_runs(frame, names["query_id"])
    notes: list[Note] = []
    data = {
        "query_id": _ids(frame, names["query_id"], "query_id", notes, required=True),
        "doc_id": _ids(frame, names["doc_id"], "doc_id", notes),
        "score": _numbers(frame, names["score"], "score") if names["score"] else _nulls(frame, pl.Float64),
    }
    scored = data["score"].null_count() < frame.height
    ranks = rank_column(names, scored, named=columns.get("rank") is not None)
    data["given"] = _numbers(frame, ranks, "rank") if ranks else _nulls(frame, pl.Float64)
    tokens = find_name(frame.columns, "tokens", required=False)
    if tokens:
        data["tokens"] = _numbers(frame, tokens, "tokens").cast(pl.Int64)
    table = pl.DataFrame(data)
    _check_run(table, scored, ranked=ranks is not None)
    if ranks and not _is_ranked(table):
        first_row = pl.col("_row").min().over("query_id")
        table = table.with_row_index("_row").sort(first_row, "given", maintain_order=True).drop("_row")
    elif not ranks and names["rank"]:
        notes += _rank_notes(table, frame[names["rank"]])
    listed, empty = table.drop("given"), list[str]()
    if table["doc_id"].null_count():
        listed = listed.drop_nulls("doc_id")
        answered = set(listed["query_id"].unique().to_list())
        without = table.filter(pl.col("doc_id").is_null())["query_id"].unique(maintain_order=True).to_list()
        empty = [query for query in without if query not in answered]
    return Run.from_table(listed, bool(ranks) or not scored, name=name, empty=tuple(empty), notes=tuple(notes))


def runs_of_frame(source: Any) -> dict[str, pl.DataFrame]:
    """The rows of each run of a long frame, which has a column that names the run.

    >>> long = pl.DataFrame({"run": ["a", "b"], "query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> list(runs_of_frame(long))
    ['a', 'b']
    """
    frame = as_polars(source)
    column = first_named(frame.columns, RUN_NAMES)
    if column is None:
        problem = f"one frame, and none of its columns ({', '.join(frame.columns)}) names the run"
        raise InputError(f"{problem}; call it run, or pass a mapping of name to frame.")
    names = frame[column].cast(pl.String)
    if names.null_count():
        raise empty_ids_error(column, "run", names.null_count(), [])
    return {name: frame.filter(names == name).drop(column) for name in names.unique(maintain_order=True).to_list()}


def _refuse_several_runs(frame: pl.DataFrame, query: str | None) -> None:
    """An error if a query has rows of more than one run."""
    column = first_named(frame.columns, SURE_RUN_NAMES)
    if column is None or query is None or is_constant(frame[column]):
        return
    if frame.group_by(query).agg(pl.col(column).n_unique())[column].max() == 1:
        return
    names = frame[column].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
    problem = f"the column {column!r} names {counted(len(names), 'run')} ({listed(names, SHOWN_NAMES)}); expected one"
    raise InputError(f"{problem}. Select the rows of one; compare(qrels, frame) compares the runs of a frame.")


def is_constant(series: pl.Series) -> bool:
    """Whether a column has one value, or none; a null is a value.

    >>> is_constant(pl.Series(["a", "a"])), is_constant(pl.Series(["a", None]))
    (True, False)
    """
    return not len(series) or bool(series.eq_missing(series.head(1)).all())


def _find_columns(frame: pl.DataFrame, roles: Sequence[str], columns: Mapping[str, str]) -> dict[str, str | None]:
    return {role: find_name(frame.columns, role, columns.get(role), role in ("query_id", "doc_id")) for role in roles}


def _check_run(table: pl.DataFrame, scored: bool, ranked: bool) -> None:
    """Refuse a score or rank without a document, and a document without a finite score or rank."""
    named = pl.col("doc_id").is_not_null()
    _check_rows(table, named | (pl.col("score").is_null() & pl.col("given").is_null()), NO_DOCUMENT)
    for column, required, problem in (("score", scored, NO_SCORE), ("given", ranked, NO_RANK)):
        if required:
            _check_rows(table, ~named | pl.col(column).is_finite().fill_null(False), problem)


def _rank_notes(table: pl.DataFrame, ranks: pl.Series) -> list[Note]:
    """The note on ranks that give another order than the scores, which are used."""
    if not (ranks.dtype.is_numeric() or ranks.dtype == pl.String):
        return []
    table = table.with_columns(given=ranks.cast(pl.Float64, strict=False)).drop_nulls(["doc_id", "given"])
    if not _is_ranked(table):
        table = table.sort("query_id", "given", maintain_order=True)
    query, score = table["query_id"], table["score"]
    rising = query.filter((score > score.shift(1)) & query.eq_missing(query.shift(1)))
    return [note("ranks-ignored", column=ranks.name, queries=rising.n_unique())] if len(rising) else []


def _is_ranked(table: pl.DataFrame) -> bool:
    """Whether each query's rows are together and in the order of their ranks."""
    query, rank = table["query_id"], table["given"]
    first = query.ne_missing(query.shift(1))
    falls = (rank < rank.shift(1)) & ~first
    return not falls.any() and first.sum() == query.n_unique()


def _nulls(frame: pl.DataFrame, dtype: Any) -> pl.Series:
    return pl.repeat(None, frame.height, dtype=dtype, eager=True)


def _check_rows(table: pl.DataFrame, good: pl.Expr, problem: str) -> None:
    if table.select(good.all()).item():
        return
    bad = table.with_row_index("row", offset=1).filter(~good)
    shown = bad.select("row", "query_id", "doc_id", "score").head(SHOWN_PROBLEMS).iter_rows()
    rows = [f"row {row}: query {q!r}, document {d!r}, score {s}" for row, q, d, s in shown]
    raise bad_rows_error(problem, bad.height, rows)


def _ids(frame: pl.DataFrame, column: str | None, role: str, notes: list[Note], required: bool = False) -> pl.Series:
    assert column is not None
    series = frame[column]
    if series.dtype.is_integer():
        notes.append(note("ids-are-numbers", role=role))
    elif series.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        raise not_ids_error(column, role, str(series.dtype))
    if required and series.null_count():
        rows = [f"row {row + 1}" for row in series.is_null().arg_true().head(SHOWN_PROBLEMS).to_list()]
        raise empty_ids_error(column, role, series.null_count(), rows)
    ids: pl.Series = series.cast(pl.String).alias(role)
    return ids


def _numbers(frame: pl.DataFrame, column: str, role: str) -> pl.Series:
    series = frame[column]
    if series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
        numbers: pl.Series = series.cast(pl.Float64).alias(role)
        return numbers
    is_text = series.dtype in (pl.String, pl.Categorical, pl.Enum)
    cast = series.cast(pl.String).cast(pl.Float64, strict=False) if is_text else _nulls(frame, pl.Float64)
    bad = (cast.is_null() & series.is_not_null()).arg_true().to_list()
    if bad:
        rows = [f"row {row + 1}: {series[row]!r}" for row in bad[:SHOWN_PROBLEMS]]
        raise not_numbers_error(column, role, len(bad), rows)
    return cast.rename(role)


def bad_rows_error(problem: str, total: int, rows: Sequence[str]) -> InputError:
    """Rows of a run that cannot be used: the problem, their number, and the first of them."""
    count = counted(total, "row of the run has", "rows of the run have")
    advice = "Fix these rows, or remove them from the run."
    return InputError.of_problems(f"{count} {problem}:", rows, advice, total=total)


def ungraded_error(total: int, rows: Sequence[str]) -> InputError:
    """Judgments without a grade."""
    headline = f"{counted(total, 'judgment has', 'judgments have')} no grade:"
    return InputError.of_problems(headline, rows, "Grade them, or remove them.", total=total)


def empty_ids_error(column: str, role: str, total: int, rows: Sequence[str]) -> InputError:
    """Rows without an id."""
    headline = f"column {column!r} ({role}) is empty in {counted(total, 'row')}:"
    return InputError.of_problems(headline, rows, "Fill them in, or remove the rows.", total=total)


def not_numbers_error(column: str, role: str, total: int, rows: Sequence[str]) -> InputError:
    """Text where a number is expected."""
    headline = f"column {column!r} ({role}) does not hold a number in {counted(total, 'row')}:"
    return InputError.of_problems(headline, rows, f"Fix them, or name another column ({role}=...).", total=total)


def not_ids_error(column: str, role: str, kind: str) -> InputError:
    """A column of ids that are neither text nor whole numbers."""
    expected = "expected text or whole numbers. Convert the column, or name another."
    return InputError(f"column {column!r} ({role}) holds {kind}; {expected}")


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
        """The column that holds each query's documents as a list, if there is one."""
        if self.records is not None:
            name = named or first_named(self.names, usual)
            return name if name is not None and self.holds_lists(name) else None
        if named is None and find_name(self.names, "doc_id", required=False) is None:
            # In a text file the lists are texts: the column has a usual name and no doc_id beside it.
            return first_named(self.names, usual)
        return named if named in self.names and isinstance(self._frame[named].dtype, (pl.List, pl.Array)) else None

    def holds_lists(self, name: str) -> bool:
        """Whether some record has a list or an object under this name."""
        kinds = set(map(type, self.column(name))) if self.records is not None and name in self.names else ()
        return any(issubclass(kind, (list, Mapping)) for kind in kinds)

    def query_ids(self, named: str | None = None, listed: bool = False) -> tuple[list[str], tuple[Note, ...]]:
        """The query id of each row, and notes: of the column named or one with a usual name, or the row's number."""
        usual: tuple[str, ...] = known.QUERY_IDS
        if listed and self.records is not None:
            usual += known.NAMES["query_id"]  # Beside lists, a field such as query or topic also identifies the query.
        name = first_named(self.names, usual) if named is None else find_name(self.names, "query_id", named)
        if name is None:
            size = self._frame.height if self.records is None else len(self.records)
            return [str(row) for row in range(size)], (note("queries-numbered"),)
        return unique_ids(self.column(name), name)

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
                read = _record_texts if role in _TEXT_ROLES else _record_numbers
                data[name] = read(name, role, self.column(name))
        for name in self.names:
            if name.lower().strip() in (known.ITERATION, *known.SURE_RUN_NAMES) and name not in data:
                data[name] = pl.Series([None if v is None else str(v) for v in self.column(name)], dtype=pl.String)
        return pl.DataFrame(data)


def _record_texts(name: str, role: str, values: Sequence[Any]) -> pl.Series:
    ids = iter(text_ids([value for value in values if value is not None], role, f"the field {name!r}"))
    return pl.Series([None if value is None else next(ids) for value in values], dtype=pl.String)


def _record_numbers(name: str, role: str, values: Sequence[Any]) -> pl.Series:
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
        queries, notes = table.query_ids(columns.get("query_id"), listed=True)
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
    queries, notes = table.query_ids(columns.get("query_id"), listed=True)
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
    unread, expected = f"not read beside {', '.join(lists)}", "Expected one form in one list of records."
    InputError.refuse(problems, f"field is {unread}", f"fields are {unread}", expected)


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

    If every name is a key once per line, and there are no other keys, no line has another or a repeated name.
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
