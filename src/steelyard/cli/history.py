"""steelyard history: one benchmark over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.benchmark.history import history as read
from steelyard.cli.options import Alpha, Argument, Option, Output, Setting, TableFormat, UsageError
from steelyard.cli.output import Format, emit, emit_result, print_message, print_tables
from steelyard.comparison.history import uncollected
from steelyard.report.documents import frame_table


@uncollected()
def history(
    file: Annotated[Path, Argument("FILE", "The history that `history: FILE` in bench.yaml writes.")],
    commits: Annotated[
        str | None, Option("Show the queries that moved between two commits; first and last are the ends.", "FROM..TO")
    ] = None,
    run: Annotated[str | None, Option("With --commits: the run; default: the first.", "NAME")] = None,
    measure: Annotated[str | None, Option("With --commits: the measure; default: the first.", "MEASURE")] = None,
    dataset: Annotated[str | None, Setting("With --commits: the dataset; default: the last.", "NAME")] = None,
    alpha: Alpha = 0.05,
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """Show one benchmark over time: every measure with intervals and tested changes.

    Examples:

      steelyard history history.jsonl -o history.html

      steelyard history history.jsonl --commits 1a2b3c4..last

    A line is broken where the corpus, the queries, the qrels or the definition of
    the measure changed. Other changes are tested, paired by query and corrected.
    """
    before, dots, after = (commits or "..").partition("..")
    if not dots:
        raise UsageError(f"--commits is {commits!r}; expected two commits, as in 1a2b3c4..last.")
    result = read(file, alpha)
    if commits is not None:
        moved = result.movers(before or "first", after or "last", run, measure, dataset)
        emit(frame_table(moved), moved.to_dicts(), format, output)
        return

    def show() -> None:
        print_message(result.verdict, "bold")
        print_tables(result.document().tables)

    emit_result(result, format, output, show)
