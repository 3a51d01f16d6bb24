"""steelyard reconcile: why two tools give different numbers, and which definition gives a number."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.cli.arguments import (
    Argument,
    Option,
    Output,
    QrelsColumns,
    QrelsFormat,
    RunColumns,
    TableFormat,
    UsageError,
    named,
    read_qrels,
)
from steelyard.cli.output import Format, emit, format_for, write
from steelyard.dialects.identify import Identification, identify
from steelyard.dialects.reconcile import Reconciliation
from steelyard.dialects.reconcile import reconcile as reconciled
from steelyard.report.tables import Table
from steelyard.run import Run


def reconcile(
    qrels: Annotated[Path, Argument("QRELS", "The judgments.")],
    run: Annotated[Path, Argument("RUN", "The run.")],
    measure: Annotated[
        list[str] | None,
        Option(
            "A metric's name, as in MAP@5. Repeat for more.",
            "METRIC",
            names=(
                "--measure",
                "-m",
            ),
        ),
    ] = None,
    dialects: Annotated[
        str | None, Option("The dialects to hold side by side, with commas.", "A,B,...")
    ] = None,
    value: Annotated[
        str | None,
        Option(
            "A number that another tool printed, with all its digits: which definition gives it?", "NUMBER"
        ),
    ] = None,
    queries: Annotated[int, Option("How many of the queries that differ most to show.", "N")] = 5,
    columns: RunColumns = None,
    qrels_columns: QrelsColumns = None,
    qrels_format: QrelsFormat = None,
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """Print each dialect's value of a metric and which clause makes them differ.

    Example: steelyard reconcile qrels.trec bm25.run -m MAP@5 --dialects trec_eval-9,multihop-rag

    With --value: which dialects' measures, cutoffs and policies give a number, and which clause matters.

    Example: steelyard reconcile qrels.trec bm25.run --value 0.4123

    -m and --dialects then narrow the search.
    """
    spoken = [name.strip() for name in (dialects or "").split(",") if name.strip()]
    found: Identification | Reconciliation
    if value is None and not (measure and spoken):
        raise UsageError(
            "name the metric and the dialects to hold side by side, as in -m MAP@5 --dialects trec_eval-9,multihop-rag, "
            "or give a number to look for, as in --value 0.4123."
        )
    truth = read_qrels(qrels, qrels_columns, qrels_format)
    roles = named(columns, "--columns")
    held = Run.read(run, **roles) if roles else run
    if value is not None:
        found = identify(truth, held, value, measure, spoken or None)
    else:
        found = reconciled(truth, held, measure or [], spoken, queries)
    if format_for(format, output) is Format.table:
        write(str(found), output)
        return
    emit(
        Table(found.frame.columns, [list(row) for row in found.frame.rows()]), found.to_dict(), format, output
    )
