"""Tables: CSV, TSV and Parquet files, one row per document or one row per query with lists."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from steelyard.errors import InputError
from steelyard.frames import parquet_bytes
from steelyard.io.columns import QRELS_LISTS, RUN_LISTS, kind_of_table, listed_name
from steelyard.io.delimited import read_table, table_bytes
from steelyard.io.files import UNNAMED, bare_name, run_name
from steelyard.io.formats import Detected, Format, Layout, name_them, run_or_qrels
from steelyard.io.frames import is_constant
from steelyard.io.records import qrels_of_table, run_of_table
from steelyard.io.shapes import Shape
from steelyard.io.table_datasets import read_table_dataset
from steelyard.io.text import Source
from steelyard.lazy import polars as pl
from steelyard.qrels import Qrels
from steelyard.run import Run

# The rows of a file


def run_table(run: Run) -> pl.DataFrame:
    """The run's rows: a score column where it has scores, a rank column where it has an order of its own.

    With scores the ranks are called own_rank, since scores are used before ranks. A query with an
    empty list is a row without a document. Token counts and seconds are added where the run has them.
    """
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
    known = pl.DataFrame({key: list(by_id), name: list(by_id.values())}, schema={key: pl.String, name: kind})
    return frame.join(known, on=key, how="left", maintain_order="left")


def qrels_table(qrels: Qrels) -> pl.DataFrame:
    """The rows of the qrels, with a target column where they have targets."""
    return qrels.frame if qrels.has_targets else qrels.frame.drop("target")


# Parquet

_NAME = "run"
"""The column with the run's name, in every row: a file name cannot hold every name."""


def _read_parquet_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of a Parquet file; its name is in the column `run`, if there is one, or that of the file."""
    frame, name = source.parquet, None
    if frame.height and _NAME in frame.columns and _NAME not in columns.values() and is_constant(frame[_NAME]):
        name, frame = frame[_NAME][0], frame.drop(_NAME)
    run = run_of_table(frame, columns, run_name(source.path))
    if isinstance(name, str) and name:
        run.name = name
    return run


def _parquet_run_bytes(run: Run) -> bytes:
    """The run as Parquet, with its name if it has one of its own."""
    named = [pl.lit(run.name).alias(_NAME)] if run.name != UNNAMED else []
    return parquet_bytes(run_table(run).with_columns(*named))


# Declarations


def _detect(format: str, shape: Shape) -> Detected | None:
    """What a table holds, by the names of its columns."""
    if shape.form != format:
        return None
    kind = kind_of_table(shape.names)
    if kind is not None:
        graded = any(name.lower() in ("corpus-id", "corpus_id") for name in shape.names)
        is_qrels = kind == "qrels" or (kind == "either" and graded)
        return Detected(kind, format, "qrels" if is_qrels else "run")
    lists = run_or_qrels(format, bool(listed_name(shape.names, RUN_LISTS)), bool(listed_name(shape.names, QRELS_LISTS)))
    if lists is None:
        raise InputError(
            f"no columns hold query and document; the columns are {', '.join(shape.names)}. "
            f"Call them query_id and doc_id, or {name_them()}"
        )
    return lists


def _text_format(name: str, separator: str, called: str, **more: Any) -> Format:
    return Format(
        name=name,
        description=f"a table with a header, separated by {called}",
        detect=partial(_detect, name),
        reads={
            "run": lambda source, columns: run_of_table(read_table(source, separator), columns, run_name(source.path)),
            "qrels": lambda source, columns: qrels_of_table(read_table(source, separator), columns),
        },
        writes={
            "run": lambda run: table_bytes(run_table(run), separator),
            "qrels": lambda qrels: table_bytes(qrels_table(qrels), separator),
        },
        seconds=True,
        **more,
    )


FORMATS = (
    _text_format(
        "csv",
        ",",
        "commas",
        suffixes={"run": (".csv",), "qrels": (".csv",)},
        dataset=Layout(
            read_table_dataset, lambda path: path.is_file() and bare_name(path).suffix.lower() in (".csv", ".tsv")
        ),
    ),
    _text_format("tsv", "\t", "tabs", suffixes={"run": (".tsv",)}),
    Format(
        name="parquet",
        description="a Parquet table",
        detect=partial(_detect, "parquet"),
        reads={"run": _read_parquet_run, "qrels": lambda source, columns: qrels_of_table(source.parquet, columns)},
        writes={"run": _parquet_run_bytes, "qrels": lambda qrels: parquet_bytes(qrels_table(qrels))},
        suffixes=dict.fromkeys(("run", "qrels"), (".parquet", ".parq", ".pq")),
        seconds=True,
    ),
)
