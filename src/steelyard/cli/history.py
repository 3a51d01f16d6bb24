"""steelyard history: one benchmark over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.benchmark.history import history as read
from steelyard.cli.arguments import Alpha, Argument, Option, Output, TableFormat
from steelyard.cli.output import Format, emit, emit_result, print_message, print_tables
from steelyard.report.documents import frame_table


def history(
    file: Annotated[Path, Argument("FILE", "The history that `history: FILE` in bench.yaml writes.")],
    before: Annotated[
        str | None, Option("With --to: show the queries that moved between two commits.", "COMMIT", names=("--from",))
    ] = None,
    after: Annotated[
        str | None, Option("The other commit; first and last are the ends.", "COMMIT", names=("--to",))
    ] = None,
    run: Annotated[str | None, Option("With --from: the run; default: the first.", "NAME")] = None,
    measure: Annotated[str | None, Option("With --from: the measure; default: the first.", "MEASURE")] = None,
    dataset: Annotated[str | None, Option("With --from: the dataset; default: the last.", "NAME")] = None,
    alpha: Alpha = 0.05,
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
    result = read(file, alpha)
    if before is not None or after is not None:
        moved = result.movers(before or "first", after or "last", run, measure, dataset)
        emit(frame_table(moved), moved.to_dicts(), format, output)
        return

    def show() -> None:
        print_message(result.verdict, "bold")
        print_tables(result.document().tables)

    emit_result(result, format, output, show)
