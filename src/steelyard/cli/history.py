"""steelyard history: one benchmark over time."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from steelyard.benchmark.history import history as read
from steelyard.cli.options import Alpha, Argument, Option, Output, Setting, TableFormat, UsageError
from steelyard.cli.output import emit, emit_result, is_page, print_message, print_tables
from steelyard.comparison.history import uncollected
from steelyard.io.files import read_bytes, write_file
from steelyard.report.documents import frame_table

if TYPE_CHECKING:
    from steelyard.report.history import KnownQueries


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
    format: TableFormat = "table",
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

    if output is not None and is_page(output):
        from steelyard.report.history import history_page

        write_file(output, history_page(result, _known_queries(file, output)).encode())
        print_message(f"Page: {output}")
        return

    def show() -> None:
        print_message(result.verdict, "bold")
        print_tables(result.document().tables)

    emit_result(result, format, output, show)


def _known_queries(file: Path, page: Path) -> dict[str, KnownQueries]:
    """The queries of the results beside the history whose benches write it, by the fingerprint of their dataset."""
    from steelyard.benchmark.folder import read_queries
    from steelyard.report.page.shell import page_link

    by_fingerprint: dict[str, KnownQueries] = {}
    for result_file in sorted(chain.from_iterable(file.parent.glob(f"{depth}result.json") for depth in ("*/", "*/*/"))):
        with suppress(OSError, ValueError, LookupError, TypeError):
            record, folder = json.loads(read_bytes(result_file)), result_file.parent
            if (folder / record["settings"]["history"]).resolve() == file.resolve():
                link = page_link(folder / "report.html", page.parent)
                by_fingerprint[str(record["dataset"]["fingerprint"])] = read_queries(folder)[0], link
    return by_fingerprint
