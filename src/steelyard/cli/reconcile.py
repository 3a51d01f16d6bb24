"""steelyard reconcile: why two tools give different numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steelyard.cli.options import Output, TableFormat
from steelyard.cli.output import Format, emit, write
from steelyard.reconciliation import reconcile as reconciled
from steelyard.report.tables import Table


def reconcile(
    qrels: Annotated[Path, typer.Argument(help="The judgments.", metavar="QRELS")],
    run: Annotated[Path, typer.Argument(help="The run.", metavar="RUN")],
    measure: Annotated[
        list[str],
        typer.Option(
            "--measure", "-m", help="A metric's name, as in MAP@5. Repeat for more.", metavar="METRIC"
        ),
    ],
    dialects: Annotated[
        str, typer.Option(help="The dialects to hold side by side, with commas.", metavar="A,B,...")
    ],
    queries: Annotated[
        int, typer.Option(help="How many of the queries that differ most to show.", metavar="N")
    ] = 5,
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
