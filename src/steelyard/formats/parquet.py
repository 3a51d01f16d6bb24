"""Parquet tables; the columns found by their usual names, or named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.formats.frames import qrels_of, qrels_table, run_of, run_table
from steelyard.formats.source import Source

if TYPE_CHECKING:
    import polars as pl

    from steelyard.judgments import Qrels
    from steelyard.runs import Run

_NAME = "run"
"""The column that holds the run's name, in every row: a file name cannot hold every name."""

_UNNAMED = "run"
"""What a run is called that was given no name: its file's name says more."""


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of the table; its name is in the column `run`, where there is one, or the file's."""
    frame = source.parquet
    run = run_of(frame, source, columns)
    named = (
        frame[_NAME].unique().to_list() if _NAME in frame.columns and _NAME not in columns.values() else []
    )
    if len(named) == 1 and isinstance(named[0], str) and named[0]:
        run.name = named[0]
    return run


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments of the table."""
    return qrels_of(source.parquet, columns)


def run_bytes(run: Run) -> bytes:
    """The run as a table, with its name if it has one of its own."""
    import polars as pl

    named = [pl.lit(run.name).alias(_NAME)] if run.name != _UNNAMED else []
    return _parquet_bytes(run_table(run).with_columns(*named))


def qrels_bytes(qrels: Qrels) -> bytes:
    """The judgments as a table."""
    return _parquet_bytes(qrels_table(qrels))


def _parquet_bytes(frame: pl.DataFrame) -> bytes:
    import io

    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
