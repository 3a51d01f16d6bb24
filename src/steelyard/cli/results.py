"""steelyard report, across and history: the result of a bench, of several datasets, and over time."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from steelyard.benchmark.history import history as read_history
from steelyard.cli import options as args
from steelyard.cli import output as out
from steelyard.cli.options import Argument, Option, RunFile, Setting, UsageError
from steelyard.comparison.history import uncollected
from steelyard.io.files import read_bytes, write_file
from steelyard.report.documents import frame_table

if TYPE_CHECKING:
    from steelyard.comparison.across import Across, Missing
    from steelyard.report.history import KnownQueries
    from steelyard.statistics.datasets import BordaRule


def report(
    result: Annotated[Path, Argument("RESULT", "A result folder of `steelyard bench` or `steelyard demo`.")],
    output: Annotated[Path, Option("The page to write.")] = Path("report.html"),
    full: Annotated[bool, Option("Include every list and every full text, whatever the size of the page.")] = False,
    charts: Annotated[Path | None, Option("Also write every chart as PNG and SVG to this folder.", "DIR")] = None,
) -> None:
    """Write one HTML page that shows where each run wins and fails. It needs no server
    and no network.

    Example:

      steelyard report steelyard-demo -o report.html

    The page has the scores of all queries, and the ranked lists of those that
    differ most, up to 15 MB. It shows what was left out; --full includes all of it.
    """
    from steelyard.benchmark.across import across as over_datasets
    from steelyard.benchmark.folder import ACROSS_FILE, load_result

    if (result / ACROSS_FILE).is_file():
        over_datasets([result]).to_html(output)
        out.print_message(f"Report: {output}. Every dataset has its own page, to which --full and --charts apply.")
        return
    load_result(result).to_html(output, everything=full, charts=charts)
    out.print_message(f"{out.page_line(output, result)} ({output.stat().st_size / 1e6:.1f} MB)")
    if charts is not None:
        out.print_message(f"The charts are in {charts}.")


def across(
    results: Annotated[
        list[RunFile],
        Argument("RESULT", "Result folders, FOLDER or NAME=FOLDER; and published results: MTEB's JSON, or a table."),
    ],
    measure: Annotated[
        str | None, Option("The measure, as in nDCG@10; default: the first of the results.", "MEASURE")
    ] = None,
    missing: Annotated[
        str, Setting("The mean of a run that was not measured on every dataset: refuse or skip.", "POLICY")
    ] = "refuse",
    borda: Annotated[
        str | None, Setting("The Borda rule: complete, all or measured; default: that of the dialect.", "RULE")
    ] = None,
    dialect: args.DialectName = "steelyard",
    seed: args.Seed = 0,
    show_all: args.ShowAll = False,
    format: args.TableFormat = "table",
    output: args.Output = None,
) -> None:
    """Compare runs over several datasets: means, ranks and significance.

    Examples:

      steelyard across scifact-result cranfield-result -m nDCG@10

      steelyard across bench-result -o across.html

      steelyard across my-result beir.csv --set missing=skip

    The folder of a bench with `datasets` stands for all of them. Macro mean: every
    dataset counts the same. Two tests answer two questions: on these datasets
    (queries are resampled) and on datasets like these (datasets are a sample, too).
    Published results are MTEB's JSON files, or a table (CSV, TSV, Markdown) with
    one row or one column per dataset.
    """
    from steelyard.benchmark.across import across as over_datasets

    named = {str(source.name): source.path for source in results if source.name is not None}
    plain = [source.path for source in results if source.name is None]
    sources, rule = [*named.items(), *plain], cast("BordaRule | None", borda)
    result = over_datasets(sources, measure, missing=cast("Missing", missing), borda=rule, dialect=dialect, seed=seed)
    print_across(result, format, output, show_all)
    if output is None and format == "table" and not show_all:
        out.print_message("More: --all")


SHOWN_WARNINGS = 3  # Warnings that are shown unless all are asked for.


def print_across(result: Across, format: out.Format, output: Path | None, show_all: bool) -> None:
    """Print the verdict, one table or all, and warnings or all notes; or write all of it to a file."""
    from steelyard.report.across import short_table

    def show() -> None:
        out.print_message(result.verdict.headline, "bold")
        if result.verdict.detail:
            out.print_message(result.verdict.detail)
        document = result.document()
        out.print_tables(document.tables if show_all else [short_table(result)])
        out.print_messages(document.notes if show_all else document.notes[:SHOWN_WARNINGS])

    out.emit_result(result, format, output, show)


@uncollected()
def history(
    file: Annotated[Path, Argument("FILE", "The history that `history: FILE` in bench.yaml writes.")],
    commits: Annotated[
        str | None, Option("Show the queries that moved between two commits; first and last are the ends.", "FROM..TO")
    ] = None,
    run: Annotated[str | None, Option("With --commits: the run; default: the first.")] = None,
    measure: Annotated[str | None, Option("With --commits: the measure; default: the first.", "MEASURE")] = None,
    dataset: Annotated[str | None, Setting("With --commits: the dataset; default: the last.")] = None,
    alpha: args.Alpha = 0.05,
    format: args.TableFormat = "table",
    output: args.Output = None,
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
    result = read_history(file, alpha)
    if commits is not None:
        moved = result.movers(before or "first", after or "last", run, measure, dataset)
        out.emit(frame_table(moved), moved.to_dicts(), format, output)
        return

    if output is not None and out.is_page(output):
        from steelyard.report.history import history_page

        write_file(output, history_page(result, _known_queries(file, output)).encode())
        out.print_message(f"Page: {output}")
        return

    def show() -> None:
        out.print_message(result.verdict, "bold")
        out.print_tables(result.document().tables)

    out.emit_result(result, format, output, show)


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
