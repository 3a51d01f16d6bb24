"""steelyard across: several datasets in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

from steelyard.benchmark.across import across as over_datasets
from steelyard.cli.options import Argument, DialectName, Option, Output, RunFile, Seed, Setting, ShowAll, TableFormat
from steelyard.cli.output import Format, emit_result, print_message, print_messages, print_tables
from steelyard.comparison.across import Across, Missing
from steelyard.statistics.datasets import BordaRule


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
    dialect: DialectName = "steelyard",
    seed: Seed = 0,
    show_all: ShowAll = False,
    format: TableFormat = "table",
    output: Output = None,
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
    named = {str(source.name): source.path for source in results if source.name is not None}
    plain = [source.path for source in results if source.name is None]
    sources, rule = [*named.items(), *plain], cast("BordaRule | None", borda)
    result = over_datasets(sources, measure, missing=cast(Missing, missing), borda=rule, dialect=dialect, seed=seed)
    print_across(result, format, output, show_all)
    if output is None and format == "table" and not show_all:
        print_message("More: --all")


SHOWN_WARNINGS = 3  # Warnings that are shown unless all are asked for.


def print_across(result: Across, format: Format, output: Path | None, show_all: bool) -> None:
    """Print the verdict, one table or all, and warnings or all notes; or write all of it to a file."""
    from steelyard.report.across import short_table

    def show() -> None:
        print_message(result.verdict.headline, "bold")
        if result.verdict.detail:
            print_message(result.verdict.detail)
        document = result.document()
        print_tables(document.tables if show_all else [short_table(result)])
        print_messages(document.notes if show_all else document.notes[:SHOWN_WARNINGS])

    emit_result(result, format, output, show)
