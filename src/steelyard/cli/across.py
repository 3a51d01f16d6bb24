"""steelyard across: several datasets in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

from steelyard.bench.across import across as over_datasets
from steelyard.cli.arguments import (
    Argument,
    DialectName,
    Option,
    Output,
    RunFile,
    ShowAll,
    TableFormat,
)
from steelyard.cli.output import (
    Format,
    format_for,
    print_message,
    print_messages,
    print_tables,
    write,
    write_json,
)
from steelyard.comparison.across import Across, Missing
from steelyard.notes import by_severity, sentence
from steelyard.statistics.datasets import BordaRule


def across(
    results: Annotated[
        list[RunFile],
        Argument(
            "RESULT",
            "Result folders, FOLDER or NAME=FOLDER; and published results: MTEB's JSON, or a table.",
        ),
    ],
    measure: Annotated[
        str | None,
        Option(
            "The measure, as in nDCG@10; default: the first of the results.",
            "MEASURE",
            names=("--measure", "-m"),
        ),
    ] = None,
    missing: Annotated[
        str,
        Option("The mean of a run that was not measured on every dataset: refuse or skip.", "POLICY"),
    ] = "refuse",
    borda: Annotated[
        str | None,
        Option("The Borda rule: complete, all or measured; default: that of the dialect.", "RULE"),
    ] = None,
    dialect: DialectName = "steelyard",
    seed: Annotated[int, Option("Seed of random draws.", "N")] = 0,
    show_all: ShowAll = False,
    format: TableFormat = Format.table,
    output: Output = None,
) -> None:
    """Compare runs over several datasets: means, ranks and significance.

    Examples:

      steelyard across scifact-result cranfield-result -m nDCG@10

      steelyard across bench-result -o across.html

      steelyard across my-result beir.csv --missing skip

    The folder of a bench with `datasets` stands for all of them. Macro mean: every
    dataset counts the same. Two tests answer two questions: on these datasets
    (queries are resampled) and on datasets like these (datasets are a sample, too).
    Published results are MTEB's JSON files, or a table (CSV, TSV, Markdown) with
    one row or one column per dataset.
    """
    named = {str(each.name): each.path for each in results if each.name is not None}
    plain = [each.path for each in results if each.name is None]
    found = over_datasets(
        [*named.items(), *plain],
        measure,
        missing=cast(Missing, missing),
        borda=cast("BordaRule | None", borda),
        dialect=dialect,
        seed=seed,
    )
    print_across(found, format, output, show_all)
    if output is None and format is Format.table and not show_all:
        print_message("More: --all")


SHOWN_WARNINGS = 3
"""Warnings that are shown unless all are asked for."""


def print_across(found: Across, format: Format, output: Path | None, show_all: bool) -> None:
    """Print the verdict, one table or all, and warnings or all notes; or write all of it to a file."""
    from steelyard.report.across import across_tables, short_table

    kind = format_for(format, output)
    shown = by_severity(found.notes) if show_all else by_severity(found.notes)[:SHOWN_WARNINGS]
    notes = [sentence(each) for each in shown]
    if output is not None and output.suffix in (".html", ".htm"):
        found.to_html(output)
        print_message(f"Page: {output}")
    elif kind is Format.table and output is None:
        print_message(found.verdict.headline, "bold")
        if found.verdict.detail:
            print_message(found.verdict.detail)
        print_tables(across_tables(found) if show_all else [short_table(found)])
        print_messages(notes)
    elif kind is Format.json:
        write_json(found.to_json(), output)
    else:
        text = {
            Format.csv: found.to_csv,
            Format.markdown: found.to_markdown,
            Format.latex: found.to_latex,
        }.get(kind, found.to_text)
        write(text(), output)
