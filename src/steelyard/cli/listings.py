"""steelyard explain and list: the definition of a measure, and what there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from steelyard.cli.options import Argument, DialectName, Output, TableFormat, UsageError
from steelyard.cli.output import emit, format_for, write_prose
from steelyard.dialects import dialect as dialect_of
from steelyard.dialects import list_dialects
from steelyard.dialects.explain import explain as explain_measure
from steelyard.errors import did_you_mean
from steelyard.io import list_formats
from steelyard.listing import Listing
from steelyard.measures import list_measures
from steelyard.report.tables import Cell, Table
from steelyard.retrievers.registry import list_retrievers


def explain(
    measure: Annotated[
        str | None, Argument("MEASURE", "A measure, as in nDCG@10; default: list the names of the dialect.")
    ] = None,
    dialect: DialectName = "steelyard",
    format: TableFormat = "table",
    output: Output = None,
) -> None:
    """Show the exact formula, clauses and edge cases of a measure in a dialect.

    Example:

      steelyard explain nDCG@10 --dialect autorag
    """
    if measure is not None:
        explanation = explain_measure(measure, dialect)
        if format_for(format, output) == "table":
            write_prose(str(explanation), output)
        else:
            parts = {part: [value] if isinstance(value, str) else value for part, value in explanation.parts.items()}
            rows: Sequence[Sequence[Cell]] = [[part, text] for part, texts in parts.items() for text in texts if text]
            emit(Table(["part", "text"], rows), explanation.parts, format, output)
        return
    chosen = dialect_of(dialect)
    table = Table(["name", "measure"], [[name, definition] for name, definition in chosen.names.items()])
    data = {"dialect": chosen.name, "about": chosen.about, "names": dict(chosen.names)}
    emit(table, data, format, output)


_LISTS: dict[str, Callable[[], Listing[Any]]] = {
    "measures": list_measures,
    "dialects": list_dialects,
    "retrievers": list_retrievers,
    "formats": list_formats,
}


def list(
    what: Annotated[
        Literal["measures", "dialects", "retrievers", "formats"],
        Argument("measures|dialects|retrievers|formats", "What to list."),
    ],
    name: Annotated[str | None, Argument("NAME", "Show one entry, as a retriever with its settings.")] = None,
    format: TableFormat = "table",
    output: Output = None,
) -> None:
    """List the measures, the dialects, the retrievers of a bench or the formats.

    Example:

      steelyard list measures --format markdown
      steelyard list retrievers
      steelyard list retrievers bm25-okapi

    The formats other than table have more columns, as the settings of every
    retriever with their defaults.
    """
    listing = _LISTS[what]()
    if name is not None and name not in listing:
        expected = f"expected one of {', '.join(listing)}.{did_you_mean(name, listing)}"
        raise UsageError(f"unknown {what.removesuffix('s')} {name!r}; {expected}")
    as_table = format_for(format, output) == "table"
    if name is not None and as_table and what == "retrievers":
        write_prose(str(listing[name]), output)
        return
    rows = [row for row in listing.rows if name in (None, row[0])]
    data = [dict(zip(listing.columns, row, strict=True)) for row in rows]
    # The settings of retrievers (the third column) are too long for a terminal.
    brief = [0, 1, 3] if what == "retrievers" else [0, 1]
    shown = brief if name is None and as_table else range(len(listing.columns))
    table = Table([listing.columns[place] for place in shown], [[row[place] for place in shown] for row in rows])
    emit(table, data, format, output)
