"""The report page: one self-contained file that shows where a retriever wins and fails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.report.page.subject import Subject


def write_page(
    subject: Subject, path: str | Path, *, everything: bool = False, charts: str | Path | None = None
) -> None:
    """Write the page at `path`; with `charts`, also every chart as PNG and SVG in that folder.

    A page keeps within 15 MB and says what it leaves out; `everything` lifts that. Where the extra
    `report` is not installed, the plain tables are written instead, with a line that says so.
    """
    from steelyard.io.files import write_file
    from steelyard.report.page.page import chart_files, missing_extra, page_html, plain_page

    lacking = missing_extra()
    if lacking is None:
        write_file(Path(path), page_html(subject, everything=everything).encode("utf-8", "replace"))
    else:
        write_file(Path(path), plain_page(subject, lacking).encode("utf-8", "replace"))
    if charts is not None:
        chart_files(subject, Path(charts))
