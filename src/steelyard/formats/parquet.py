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


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of the table."""
    return run_of(source.parquet, source, columns)


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments of the table."""
    return qrels_of(source.parquet, columns)


def run_bytes(run: Run) -> bytes:
    """The run as a table."""
    return _parquet_bytes(run_table(run))


def qrels_bytes(qrels: Qrels) -> bytes:
    """The judgments as a table."""
    return _parquet_bytes(qrels_table(qrels))


def _parquet_bytes(frame: pl.DataFrame) -> bytes:
    import io

    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
