"""The report page: one self-contained HTML file with leaderboard, charts, and every query's lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.report.page.subject import Subject


def write_page(
    subject: Subject, path: str | Path, *, everything: bool = False, charts: str | Path | None = None
) -> None:
    """Write the page at `path`; with `charts`, also every chart as PNG and SVG in that folder.

    A page has at most 15 MB and states what it leaves out; with `everything` it leaves nothing out. Where the extra
    `report` is not installed, a page with the tables alone is written, which states that.
    """
    from steelyard.io.files import write_file
    from steelyard.report.page.page import chart_files, missing_extra, page_html, plain_page

    missing = missing_extra()
    html = page_html(subject, everything=everything) if missing is None else plain_page(subject, missing)
    write_file(Path(path), html.encode("utf-8", "replace"))
    if charts is not None:
        chart_files(subject, Path(charts))
