"""Rendering of the page: template, charts, scripts and data in one file, within a size limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from steelyard.comparison.columns import is_time, title
from steelyard.comparison.failures import run_failures
from steelyard.errors import InputError
from steelyard.io.files import write_file
from steelyard.report.charts.charts import Chart, charts_of, save_charts
from steelyard.report.charts.data import chart_label
from steelyard.report.comparison import comparison_document
from steelyard.report.page import queries
from steelyard.report.page.embed import embedded_json, page_script, page_style, page_template, script_hash, vega_script
from steelyard.report.page.shell import document_page
from steelyard.report.page.subject import Subject
from steelyard.report.page.view import view_of
from steelyard.version import __version__
from steelyard.wording import counted

PAGE_LIMIT = 15_000_000  # The largest page, in bytes; `everything` lifts the limit.
SUMMARY_LIMIT = 8_000_000  # Of those, the bytes for the values of the queries; the rest is for lists and texts.
_SPARE = 120_000  # Bytes reserved for the numbers of the queries whose lists are included.
_EXTRA = ("jinja2", "vl_convert")


def write_page(
    subject: Subject, path: str | Path, *, everything: bool = False, charts: str | Path | None = None
) -> None:
    """Write the page at `path`; with `charts`, also every chart as PNG and SVG in that folder.

    A page has at most 15 MB and states what it leaves out; with `everything` it leaves nothing out. Where the extra
    `report` is not installed, a page with the tables alone is written, which states that.
    """
    missing = missing_extra()
    html = page_html(subject, everything=everything) if missing is None else plain_page(subject, missing)
    write_file(Path(path), html.encode("utf-8", "replace"))
    if charts is not None:
        chart_files(subject, Path(charts))


def missing_extra() -> str | None:
    """The first package of the extra `report` that is not installed; None if all are."""
    return next((name for name in _EXTRA if find_spec(name) is None), None)


def page_html(subject: Subject, *, everything: bool = False) -> str:
    """The page as text."""
    from markupsafe import Markup

    failures, scores = run_failures(subject.comparison), subject.comparison.score_tables[0]
    order = queries.interesting_order(scores.of(scores.columns[0].key), failures)
    kept = _kept(subject, order, everything)
    numbers = {place: number for number, place in enumerate(kept.places)}
    charts = [_embedded(chart, subject) for chart in charts_of(subject, failures)]
    script, vega = page_script(), vega_script() if charts else ""
    view = view_of(subject, failures, kept)
    summary = {**queries.summary_of(subject, failures, kept), "pairs": (view["matrix"] or {}).pop("pairs", [])}
    parts = {
        "version": __version__,
        "subject": subject,
        "comparison": subject.comparison,
        "title": lambda column: title(column.key, subject.comparison.dialect),
        "is_time": is_time,
        "view": view,
        "charts": charts,
        "depth": queries.DEPTH if subject.comparison.source is not None else None,
        "allowed": Markup(" ".join(map(script_hash, (script, *([vega] if vega else []))))),
        "style": Markup(page_style()),
        "script": Markup(script),
        "vega": Markup(vega),
    }

    def rendered(listed: Sequence[int], lists: str, left_out: Sequence[str]) -> str:
        packed = embedded_json({**summary, "listed": listed})
        return page_template().render(parts, summary=Markup(packed), lists=Markup(lists), left_out=left_out)

    limit = None if everything else max(0, PAGE_LIMIT - len(rendered((), "", ()).encode()) - _SPARE)
    lists = queries.lists_of(subject, failures, [place for place in order if place in numbers], numbers, limit)
    return rendered(sorted(lists.queries), lists.json, _left_out(subject, kept, lists))


def chart_files(subject: Subject, folder: Path) -> list[Path]:
    """Every chart as PNG and SVG in a folder."""
    missing = missing_extra()
    if missing is not None:
        raise InputError(f"charts need {missing}, which is not installed: pip install 'steelyard[report]'.")
    return save_charts(charts_of(subject, run_failures(subject.comparison)), folder)


def plain_page(subject: Subject, missing: str) -> str:
    """The tables alone, where a package of the extra `report` is not installed."""
    line = f"This page has tables only: {missing} is not installed. For the full page: pip install 'steelyard[report]'."
    document = comparison_document(subject.comparison)
    return document_page(replace(document, title=subject.title, notes=[line, *document.notes]))


def _kept(subject: Subject, order: Sequence[int], everything: bool) -> queries.Kept:
    """The queries whose values fit on the page: all of them, except in very large results."""
    comparison = subject.comparison
    size = len(comparison.score_tables[0].queries)
    columns = sum(len(scores.columns) for scores in comparison.score_tables)
    texts = sum(min(len(text.encode()), 4 * queries.QUERY_TEXT_LIMIT) for text in subject.queries.values())
    bytes_per_query = len(comparison.runs) * (columns * 16 / 3 + 4) + 40 + texts / max(1, len(subject.queries))
    most = size if everything else max(1, int(SUMMARY_LIMIT / bytes_per_query))
    return queries.Kept(tuple(sorted(order[:most])) if most < size else tuple(range(size)), everything)


def _left_out(subject: Subject, kept: queries.Kept, lists: queries.Lists) -> list[str]:
    """What the page leaves out, and how to include it."""
    size = len(subject.comparison.score_tables[0].queries)
    lines = []
    if len(kept.places) < size:
        lines.append(
            f"The table has {len(kept.places):,} of {size:,} queries: the largest differences, misses and a sample."
        )
    if subject.comparison.source is not None and len(lists.queries) < len(kept.places):
        lines.append(
            f"Ranked lists are included for {len(lists.queries):,} of {size:,} queries: the largest differences, "
            "misses and a sample."
        )
    if lists.cut_texts:
        lines.append(
            f"{counted(lists.cut_texts, 'document is cut to its', 'documents are cut to their')} first "
            f"{queries.TEXT_LIMIT:,} characters."
        )
    if lines and subject.whole:
        lines.append(f"`{subject.whole}` includes everything.")
    return lines


def _embedded(chart: Chart, subject: Subject) -> dict[str, Any]:
    from markupsafe import Markup

    data = {name: getattr(chart, name) for name in ("name", "title", "spec", "measures", "columns", "colours")}
    data["runs"] = list(map(chart_label, subject.candidates))
    data["numbers"] = [subject.comparison.runs.index(run) for run in subject.candidates]
    shown = {name: getattr(chart, name) for name in ("name", "title", "about", "height", "place")}
    return {**shown, "json": Markup(embedded_json(data))}
