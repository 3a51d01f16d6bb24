"""steelyard report: one self-contained page of a result."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from steelyard.bench.folder import load_result
from steelyard.cli.arguments import Argument, Option
from steelyard.cli.output import say
from steelyard.report.page.page import missing_extra


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
    say(f"{page_line(output, result)} ({output.stat().st_size / 1e6:.1f} MB)")
    if charts is not None:
        say(f"The charts are in {charts}.")


def page_line(page: Path, result: Path | None) -> str:
    """A sentence on the page of a result folder, or of none; where it is the plain one, what makes the whole one."""
    lacking = missing_extra()
    if lacking is None:
        return f"{page} is the page to look at."
    again = (
        "" if result is None else f" && {shlex.join(['steelyard', 'report', str(result), '-o', str(page)])}"
    )
    return (
        f"{page} is the plain page, as {lacking} is not installed. "
        f"For the whole one: pip install 'steelyard[report]'{again}"
    )
