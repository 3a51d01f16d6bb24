"""steelyard explain: what a measure is, exactly, under a dialect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from steelyard.cli.arguments import Argument, DialectName, Output, TableFormat, UsageError
from steelyard.cli.output import Format, emit, format_for, write
from steelyard.dialects import dialect as dialect_of
from steelyard.dialects import listing as dialect_listing
from steelyard.dialects.explain import Explanation
from steelyard.dialects.explain import explain as explained
from steelyard.errors import did_you_mean
from steelyard.listing import Listing
from steelyard.measures import listing as measure_listing
from steelyard.report.tables import Cell, Table
from steelyard.retrievers.registry import listing as retriever_listing


def explain(
    measure: Annotated[
        str | None,
        Argument("MEASURE", "A measure, as in nDCG@10; left out, the dialect's names are listed."),
    ] = None,
    dialect: DialectName = "steelyard",
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """Print the exact formula, clauses and edge cases of a measure as a dialect uses it.

    Example: steelyard explain nDCG@10 --dialect autorag
    """
    if measure is not None:
        found = explained(measure, dialect)
        if format_for(format, output) is Format.table:
            write(str(found), output)
        else:
            emit(Table(["part", "text"], _rows(found)), found.parts, format, output)
        return
    spoken = dialect_of(dialect)
    rows = [[name, spelled] for name, spelled in spoken.names.items()]
    table = Table(["name", "measure"], rows)
    emit(table, {"dialect": spoken.name, "about": spoken.about, "names": dict(spoken.names)}, format, output)


def _rows(found: Explanation) -> list[list[Cell]]:
    """A row for everything that an explanation says."""
    return [
        [part, text]
        for part, said in found.parts.items()
        for text in ([said] if isinstance(said, str) else said)
        if text
    ]


def measures(format: TableFormat = Format.table, output: Output = None) -> None:
    """List the measures: name, what each is, parameters with their defaults, other names.

    Example: steelyard measures --format markdown
    """
    _emit_listing(measure_listing(), format, output)


def dialects(format: TableFormat = Format.table, output: Output = None) -> None:
    """List the dialects: whose definitions Steelyard can speak.

    Example: steelyard dialects; then steelyard explain --dialect autorag for one dialect's names.
    """
    _emit_listing(dialect_listing(), format, output)


def _emit_listing(found: Listing[Any], format: Format, output: Path | None) -> None:
    """A listing: the name and the description in a terminal, every column in the other formats."""
    data = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    shown = 2 if format_for(format, output) is Format.table else len(found.columns)
    emit(Table(found.columns[:shown], [row[:shown] for row in found.rows]), data, format, output)


def retrievers(
    name: Annotated[str | None, Argument("NAME", "One retriever, with all its settings explained.")] = None,
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """List what can stand under `retrievers:` in bench.yaml; with a NAME, its settings, explained.

    Example: steelyard retrievers; then steelyard retrievers bm25-okapi

    In the formats other than table, settings stand beside each name, with their defaults.
    """
    found = retriever_listing()
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
