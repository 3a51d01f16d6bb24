"""CSV tables, a header and a comma between columns; the columns found by their usual names, or named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.io.files import Source
from steelyard.io.tables import qrels_of, qrels_table, read_table, run_of, run_table, table_bytes

if TYPE_CHECKING:
    from steelyard.qrels import Qrels
    from steelyard.run import Run


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run of the table."""
    return run_of(read_table(source, ","), source, columns)


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments of the table."""
    return qrels_of(read_table(source, ","), columns)


def run_bytes(run: Run) -> bytes:
    """The run as a table."""
    return table_bytes(run_table(run), ",")


def qrels_bytes(qrels: Qrels) -> bytes:
    """The judgments as a table."""
    return table_bytes(qrels_table(qrels), ",")
