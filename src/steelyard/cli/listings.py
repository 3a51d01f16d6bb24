"""steelyard explain, measures, dialects and retrievers: definitions and lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from steelyard.cli.arguments import Argument, DialectName, Output, TableFormat, UsageError
from steelyard.cli.output import Format, emit, format_for, write_prose
from steelyard.dialects import dialect as dialect_of
from steelyard.dialects import list_dialects
from steelyard.dialects.explain import Explanation
from steelyard.dialects.explain import explain as explain_measure
from steelyard.errors import did_you_mean
from steelyard.listing import Listing
from steelyard.measures import list_measures
from steelyard.report.tables import Cell, Table
from steelyard.retrievers.registry import list_retrievers


def explain(
    measure: Annotated[
        str | None, Argument("MEASURE", "A measure, as in nDCG@10; default: list the names of the dialect.")
    ] = None,
    dialect: DialectName = "steelyard",
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """Show the exact formula, clauses and edge cases of a measure in a dialect.

    Example:

      steelyard explain nDCG@10 --dialect autorag
    """
    if measure is not None:
        found = explain_measure(measure, dialect)
        if format_for(format, output) is Format.table:
            write_prose(str(found), output)
        else:
            emit(Table(["part", "text"], _rows(found)), found.parts, format, output)
        return
    chosen = dialect_of(dialect)
    table = Table(["name", "measure"], [[name, definition] for name, definition in chosen.names.items()])
    data = {"dialect": chosen.name, "about": chosen.about, "names": dict(chosen.names)}
    emit(table, data, format, output)


def _rows(found: Explanation) -> list[list[Cell]]:
    """One row per text of an explanation."""
    return [
        [part, text]
        for part, texts in found.parts.items()
        for text in ([texts] if isinstance(texts, str) else texts)
        if text
    ]


def measures(format: TableFormat = Format.table, output: Output = None) -> None:
    """List the measures: name, description, parameters with defaults, other names.

    Example:

      steelyard measures --format markdown
    """
    _emit_listing(list_measures(), format, output)


def dialects(format: TableFormat = Format.table, output: Output = None) -> None:
    """List the dialects: the tools whose definitions and names can be used.

    Example:

      steelyard dialects
      steelyard explain --dialect autorag
    """
    _emit_listing(list_dialects(), format, output)


def _emit_listing(found: Listing[Any], format: Format, output: Path | None) -> None:
    """Print a listing: the name and the description as a table, every column in the other formats."""
    data = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    shown = 2 if format_for(format, output) is Format.table else len(found.columns)
    emit(Table(found.columns[:shown], [row[:shown] for row in found.rows]), data, format, output)


def retrievers(
    name: Annotated[str | None, Argument("NAME", "Show the settings of one retriever.")] = None,
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """List the retrievers for `retrievers:` in bench.yaml; with a NAME, its settings.

    Example:

      steelyard retrievers
      steelyard retrievers bm25-okapi

    The formats other than table have the settings of each retriever, with their
    defaults.
    """
    found = list_retrievers()
    if name is not None and name not in found:
        raise UsageError(f"unknown retriever {name!r}; expected one of {', '.join(found)}.{did_you_mean(name, found)}")
    as_table = format_for(format, output) is Format.table
    if name is not None and as_table:
        write_prose(str(found[name]), output)
        return
    rows = [row for row in found.rows if name in (None, row[0])]
    data = [dict(zip(found.columns, row, strict=True)) for row in rows]
    shown = [0, 1, 3] if as_table else range(len(found.columns))
    table = Table([found.columns[place] for place in shown], [[row[place] for place in shown] for row in rows])
    emit(table, data, format, output)
