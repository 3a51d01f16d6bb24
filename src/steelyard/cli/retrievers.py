"""steelyard retrievers: list what can stand under `retrievers:` in bench.yaml."""

from __future__ import annotations

from typing import Annotated

from steelyard.cli.options import Output, TableFormat
from steelyard.cli.output import Format, emit, format_for, write
from steelyard.cli.parsing import Argument, UsageError
from steelyard.errors import did_you_mean
from steelyard.report.tables import Table
from steelyard.retrievers.catalogue import listing


def retrievers(
    name: Annotated[str | None, Argument("NAME", "One retriever, with all its settings explained.")] = None,
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """List what can stand under `retrievers:` in bench.yaml; with a NAME, its settings, explained.

    Example: steelyard retrievers; then steelyard retrievers bm25-okapi

    In the formats other than table, settings stand beside each name, with their defaults.
    """
    found = listing()
    if name is not None and name not in found:
        raise UsageError(
            f"there is no retriever {name!r}.{did_you_mean(name, found)} There are {', '.join(found)}."
        )
    as_table = format_for(format, output) is Format.table
    if name is not None and as_table:
        write(str(found[name]), output)
        return
    rows = [row for row in found.rows if name in (None, row[0])]
    data = [dict(zip(found.columns, row, strict=True)) for row in rows]
    shown = [0, 1, 3] if as_table else range(len(found.columns))
    table = Table(
        [found.columns[place] for place in shown], [[row[place] for place in shown] for row in rows]
    )
    emit(table, data, format, output)
