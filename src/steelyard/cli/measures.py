"""steelyard measures: list the measures."""

from __future__ import annotations

from steelyard.cli.options import Output, TableFormat
from steelyard.cli.output import Format, emit, format_for
from steelyard.measures import listing
from steelyard.report.tables import Table


def measures(format: TableFormat = Format.table, output: Output = None) -> None:
    """List the measures: name, what each is, parameters with their defaults, other names.

    Example: steelyard measures --format markdown
    """
    found = listing()
    data = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    shown = 2 if format_for(format, output) is Format.table else len(found.columns)
    emit(Table(found.columns[:shown], [row[:shown] for row in found.rows]), data, format, output)
