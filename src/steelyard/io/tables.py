"""Tables: CSV, TSV and Parquet files, one row per document or one row per query with lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError
from steelyard.io.columns import QRELS_ROLES, RUN_ROLES, check_roles, find_name
from steelyard.io.files import run_name
from steelyard.io.lists import (
    QRELS_LISTS,
    RUN_LISTS,
    listed_name,
    qrels_of_lists,
    query_ids,
    run_of_lists,
    score_name,
)
from steelyard.io.text import Source, bad_lines
from steelyard.notes import note
from steelyard.qrels import Qrels
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.run import Run


# Runs and qrels of a table in memory


def run_of(frame: pl.DataFrame, source: Source, columns: Mapping[str, str]) -> Run:
    """The run of a table; its columns are found by name, or named."""
    import polars as pl

    from steelyard.run import Run

    check_roles(columns, RUN_ROLES, "a run")
    listed = _list_column(frame, columns, RUN_LISTS)
    if listed is not None:
        check_roles(columns, ("query_id", "doc_id", "score"), "a run of lists")
        queries, notes = query_ids(frame.to_dict(as_series=False), columns.get("query_id"), frame.height)
        score = score_name(frame.columns, columns.get("score"))
        scores = frame[score].to_list() if score else None
        run = run_of_lists(queries, frame[listed].to_list(), scores, run_name(source.path))
        run.notes = (*notes, *run.notes)
        return run
    named: dict[str, Any] = {role: name for role, name in columns.items() if role != "seconds"}
    timed = find_name(frame.columns, "seconds", columns.get("seconds"), required=False)
    run = Run(frame, name=run_name(source.path), **named)
    if timed is None:
        return run
    query = find_name(frame.columns, "query_id", columns.get("query_id"))
    times = frame.select(pl.col(query or "").cast(pl.String), pl.col(timed).cast(pl.Float64)).drop_nulls()
    return Run(run, seconds=dict(times.iter_rows()))


def qrels_of(frame: pl.DataFrame, columns: Mapping[str, str]) -> Qrels:
    """The qrels of a table; its columns are found by name, or named."""
    check_roles(columns, QRELS_ROLES, "a qrels table")
    listed = _list_column(frame, columns, QRELS_LISTS)
    if listed is not None:
        check_roles(columns, ("query_id", "doc_id"), "a qrels table of lists")
        queries, notes = query_ids(frame.to_dict(as_series=False), columns.get("query_id"), frame.height)
        qrels = qrels_of_lists(queries, frame[listed].to_list())
        qrels.notes = (*notes, *qrels.notes)
        return qrels
    doc = find_name(frame.columns, "doc_id", columns.get("doc_id"))
    qrels = Qrels(frame, **columns)
    if find_name(frame.columns, "grade", columns.get("grade"), required=False) is None:
        qrels.notes += (note("no-grades"),)
    repeats = frame[doc or ""].drop_nulls().len() - len(qrels)
    if not qrels.has_targets and repeats > 0:
        qrels.notes += (note("judgments-merged", count=repeats),)
    return qrels


def _list_column(frame: pl.DataFrame, columns: Mapping[str, str], known: Sequence[str]) -> str | None:
    """The column with each query's documents as a list, where the table has one."""
    import polars as pl

    named = columns.get("doc_id")
    if named is None and find_name(frame.columns, "doc_id", required=False) is None:
        return listed_name(frame.columns, known)
    lists = named in frame.columns and isinstance(frame[named].dtype, (pl.List, pl.Array))
    return named if lists else None


def run_table(run: Run) -> pl.DataFrame:
    """The run's rows: a score column where it has scores, a rank column where it has an order of its own.

    With scores the ranks are called own_rank, since scores are used before ranks. A query with an
    empty list is a row without a document. Token counts and seconds are added where the run has them.
    """
    import polars as pl

    frame = run.frame if run.ordered else run.table
    if (
        run.tokens is not None
        and "tokens" not in frame.columns
        and set(frame["doc_id"].unique().to_list()) <= set(run.tokens)
    ):
        frame = _with_values(frame, "doc_id", "tokens", run.tokens, pl.Int64)
    chosen = ["query_id", "doc_id"]
    scored = not frame.height or frame["score"].null_count() < frame.height
    if run.ordered:
        chosen.append("own_rank" if scored else "rank")
        frame = frame.rename({"rank": chosen[-1]})
    if scored:
        chosen.append("score")
    frame = frame.select(*chosen, *(["tokens"] if "tokens" in frame.columns else []))
    answered = set(frame["query_id"].unique().to_list())
    empty = [query for query in run.queries if query not in answered]
    if empty:
        rows = pl.DataFrame({"query_id": empty}, schema={"query_id": pl.String})
        frame = pl.concat([frame, rows], how="diagonal")
    if run.seconds is not None:
        frame = _with_values(frame, "query_id", "seconds", run.seconds, pl.Float64)
    return frame


def _with_values(
    frame: pl.DataFrame, key: str, name: str, by_id: Mapping[str, float], kind: type[pl.DataType]
) -> pl.DataFrame:
    """The frame with the value of each row's id in a new column, null where an id has none."""
    import polars as pl

    known = pl.DataFrame({key: list(by_id), name: list(by_id.values())}, schema={key: pl.String, name: kind})
    return frame.join(known, on=key, how="left", maintain_order="left")


def qrels_table(qrels: Qrels) -> pl.DataFrame:
    """The rows of the qrels, with a target column where they have targets."""
    return qrels.frame if qrels.has_targets else qrels.frame.drop("target")


# CSV and TSV


def read_text_run(source: Source, columns: Mapping[str, str], *, separator: str) -> Run:
    """The run of a CSV or TSV file."""
    return run_of(read_table(source, separator), source, columns)


def read_text_qrels(source: Source, columns: Mapping[str, str], *, separator: str) -> Qrels:
    """The qrels of a CSV or TSV file."""
    return qrels_of(read_table(source, separator), columns)


def text_run_bytes(run: Run, *, separator: str) -> bytes:
    """The run as CSV or TSV."""
    return table_bytes(run_table(run), separator)


def text_qrels_bytes(qrels: Qrels, *, separator: str) -> bytes:
    """The qrels as CSV or TSV."""
    return table_bytes(qrels_table(qrels), separator)


def read_table(source: Source, separator: str) -> pl.DataFrame:
    """Every column as text, so that an id like 007 is kept; every row as wide as the header."""
    import io

    import polars as pl

    text = source.text
    if not text.strip():
        raise InputError("the file is empty. Expected a header line and one row per document.", source.path)
    try:
        frame = pl.read_csv(io.BytesIO(text.encode()), separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        _check_widths(source, separator)
        raise InputError(f"cannot be read as a table: {str(error).splitlines()[0]}", source.path) from None
    last = frame[frame.columns[-1]]
    if last.null_count():
        # A truncated row ends in null, and so does a row whose last field is empty: only the widths differ.
        _check_widths(source, separator)
    if not frame.height:
        raise InputError("there is a header line and nothing else.", source.path)
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def table_bytes(frame: pl.DataFrame, separator: str) -> bytes:
    """The table as text."""
    import io

    buffer = io.BytesIO()
    frame.write_csv(buffer, separator=separator)
    return buffer.getvalue()


def _check_widths(source: Source, separator: str) -> None:
    problems = list(_wrong_widths(source, separator))
    if problems:
        raise bad_lines(
            source.path,
            problems,
            "Expected as many columns as in the header, with quotes around text that holds the separator.",
        )


def _wrong_widths(source: Source, separator: str) -> Iterator[tuple[int, str]]:
    import csv
    import io

    reader = csv.reader(io.StringIO(source.text, newline=""), delimiter=separator, strict=True)
    try:
        width = len(next(reader))
        for row in reader:
            if row and len(row) != width:
                yield reader.line_num, f"{counted(len(row), 'column')}, and the header has {width}"
    except csv.Error as error:
        yield reader.line_num, str(error)


# Parquet

_NAME = "run"
"""The column with the run's name, in every row: a file name cannot hold every name."""

_UNNAMED = "run"
"""The name of a run that was given none: the file's name is better."""


def read_parquet_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of a Parquet file; its name is in the column `run`, if there is one, or that of the file."""
    from steelyard.io.frames import is_constant

    frame, name = source.parquet, None
    if (
        frame.height
        and _NAME in frame.columns
        and _NAME not in columns.values()
        and is_constant(frame[_NAME])
    ):
        name, frame = frame[_NAME][0], frame.drop(_NAME)
    run = run_of(frame, source, columns)
    if isinstance(name, str) and name:
        run.name = name
    return run


def read_parquet_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The qrels of a Parquet file."""
    return qrels_of(source.parquet, columns)


def parquet_run_bytes(run: Run) -> bytes:
    """The run as Parquet, with its name if it has one of its own."""
    import polars as pl

    named = [pl.lit(run.name).alias(_NAME)] if run.name != _UNNAMED else []
    return _parquet_bytes(run_table(run).with_columns(*named))


def parquet_qrels_bytes(qrels: Qrels) -> bytes:
    """The qrels as Parquet."""
    return _parquet_bytes(qrels_table(qrels))


def _parquet_bytes(frame: pl.DataFrame) -> bytes:
    import io

    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
