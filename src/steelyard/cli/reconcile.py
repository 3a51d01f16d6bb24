"""steelyard reconcile: why two tools give different numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.cli.options import Output, TableFormat
from steelyard.cli.output import Format, emit, write
from steelyard.cli.parsing import Argument, Option
from steelyard.reconciliation import reconcile as reconciled
from steelyard.report.tables import Table


def reconcile(
    qrels: Annotated[Path, Argument("QRELS", "The judgments.")],
    run: Annotated[Path, Argument("RUN", "The run.")],
    measure: Annotated[
        list[str],
        Option(
            "A metric's name, as in MAP@5. Repeat for more.",
            "METRIC",
            names=(
                "--measure",
                "-m",
            ),
        ),
    ],
    dialects: Annotated[str, Option("The dialects to hold side by side, with commas.", "A,B,...")],
    queries: Annotated[int, Option("How many of the queries that differ most to show.", "N")] = 5,
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """Print each dialect's value of a metric and which clause makes them differ.

    Example: steelyard reconcile qrels.trec bm25.run -m MAP@5 --dialects trec_eval-9,multihop-rag
    """
    found = reconciled(
        qrels, run, measure, [name.strip() for name in dialects.split(",") if name.strip()], queries
    )
    if format is Format.table:
        write(str(found), output)
        return
    emit(
        Table(found.frame.columns, [list(row) for row in found.frame.rows()]), found.to_dict(), format, output
    )
