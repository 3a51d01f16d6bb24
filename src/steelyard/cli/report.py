"""steelyard report: one self-contained HTML page for a result."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from steelyard.benchmark.across import across
from steelyard.benchmark.folder import ACROSS_FILE, load_result
from steelyard.cli.options import Argument, Option
from steelyard.cli.output import print_message
from steelyard.report.page.page import missing_extra


def report(
    result: Annotated[Path, Argument("RESULT", "A result folder of `steelyard bench` or `steelyard demo`.")],
    output: Annotated[Path, Option("The page to write.", "FILE")] = Path("report.html"),
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
    if (result / ACROSS_FILE).is_file():
        across([result]).to_html(output)
        print_message(f"Report: {output}. Every dataset has its own page, to which --full and --charts apply.")
        return
    load_result(result).to_html(output, everything=full, charts=charts)
    print_message(f"{page_line(output, result)} ({output.stat().st_size / 1e6:.1f} MB)")
    if charts is not None:
        print_message(f"The charts are in {charts}.")


def page_line(page: Path, result: Path | None) -> str:
    """Where the page is; if it is the plain one, the command for the full one. `result` is its folder, if any."""
    missing = missing_extra()
    if missing is None:
        return f"Report: {page}"
    again = "" if result is None else f" && {shlex.join(['steelyard', 'report', str(result), '-o', str(page)])}"
    return (
        f"Report: {page}. It is the plain page, because {missing} is not installed. "
        f"For the full one: pip install 'steelyard[report]'{again}"
    )
