"""steelyard dialects: list the dialects."""

from __future__ import annotations

from steelyard.cli.options import Output, TableFormat
from steelyard.cli.output import Format, emit, format_for
from steelyard.dialects import listing
from steelyard.report.tables import Table


def dialects(format: TableFormat = Format.table, output: Output = None) -> None:
    """List the dialects: whose definitions Steelyard can speak.

    Example: steelyard dialects; then steelyard explain --dialect autorag for one dialect's names.
    """
    found = listing()
    data = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    shown = 2 if format_for(format, output) is Format.table else len(found.columns)
    emit(Table(found.columns[:shown], [row[:shown] for row in found.rows]), data, format, output)
