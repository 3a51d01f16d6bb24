"""steelyard report: one self-contained page of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.bench.folder import load_result
from steelyard.cli.output import say
from steelyard.cli.parsing import Argument, Option
from steelyard.report.page.making import missing_extra


def report(
    result: Annotated[Path, Argument("RESULT", "A result folder, as bench and demo write it.")],
    output: Annotated[
        Path,
        Option("The page to write.", "FILE", names=("--output", "-o")),
    ] = Path("report.html"),
    all: Annotated[bool, Option("Every list and every text whole, however large the page.")] = False,
    charts: Annotated[
        Path | None, Option("Also save every chart as PNG and SVG in this folder.", "DIR")
    ] = None,
) -> None:
    """Write one page that shows where each run wins and fails: no server, no network.

    Example: steelyard report steelyard-demo -o report.html

    The page holds the numbers of all queries, and the ranked lists of those that matter most, within
    15 MB; it says what was left out, and --all lifts that.
    """
    load_result(result).to_html(output, everything=all, charts=charts)
    lacking = missing_extra()
    if lacking is not None:
        say(
            f"{lacking} is not installed: this is the plain page. pip install 'steelyard[report]' makes the whole one."
        )
    say(f"{output} is the page: {output.stat().st_size / 1e6:.1f} MB.")
    if charts is not None:
        say(f"The charts are in {charts}.")
