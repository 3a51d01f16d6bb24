"""steelyard history: one benchmark over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.bench.history import history as read
from steelyard.cli.arguments import Argument, Option, Output, TableFormat
from steelyard.cli.output import (
    Format,
    emit,
    format_for,
    print_message,
    print_tables,
    write,
    write_json,
)


def history(
    file: Annotated[Path, Argument("FILE", "The history that `history: FILE` in bench.yaml writes.")],
    before: Annotated[
        str | None,
        Option("With --to: show the queries that moved between two commits.", "COMMIT", names=("--from",)),
    ] = None,
    after: Annotated[
        str | None, Option("The other commit; first and last are the ends.", "COMMIT", names=("--to",))
    ] = None,
    run: Annotated[str | None, Option("With --from: the run; default: the first.", "NAME")] = None,
    measure: Annotated[
        str | None,
        Option("With --from: the measure; default: the first.", "MEASURE", names=("--measure", "-m")),
    ] = None,
    dataset: Annotated[str | None, Option("With --from: the dataset; default: the last.", "NAME")] = None,
    alpha: Annotated[float, Option("Significance level.", "P")] = 0.05,
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """Show one benchmark over time: every measure with intervals and tested changes.

    Examples:

      steelyard history history.jsonl -o history.html

      steelyard history history.jsonl --from 1a2b3c4 --to last

    A line is broken where the corpus, the queries, the qrels or the definition of
    the measure changed. Other changes are tested, paired by query and corrected.
    """
    from steelyard.report.history import history_tables
    from steelyard.report.tables import Table, comma_separated, latex

    found = read(file, alpha)
    if before is not None or after is not None:
        moved = found.movers(before or "first", after or "last", run, measure, dataset)
        emit(Table(moved.columns, moved.rows()), moved.to_dicts(), format, output)
        return
    kind = format_for(format, output)
    if output is not None and output.suffix in (".html", ".htm"):
        found.to_html(output)
        print_message(f"Page: {output}")
    elif kind is Format.table and output is None:
        print_message(found.verdict, "bold")
        print_tables(history_tables(found))
    elif kind is Format.json:
        write_json(found.to_json(), output)
    elif kind is Format.csv:
        write(comma_separated(Table(found.table.columns, found.table.rows())), output)
    elif kind is Format.latex:
        write("\n\n".join(map(latex, history_tables(found))), output)
    else:
        write(found.to_markdown() if kind is Format.markdown else found.to_text(), output)
