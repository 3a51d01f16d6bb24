"""steelyard explain: what a measure is, exactly, under a dialect."""

from __future__ import annotations

from typing import Annotated

from steelyard.cli.options import DialectName, Output, TableFormat
from steelyard.cli.output import Format, emit, format_for, write
from steelyard.cli.parsing import Argument
from steelyard.dialects import dialect as dialect_of
from steelyard.explanation import Explanation
from steelyard.explanation import explain as explained
from steelyard.report.tables import Cell, Table


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
