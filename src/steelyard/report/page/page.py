"""What a page's scripts read: the numbers of every query, packed, and what they need to weigh them anew."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.comparison.scores import Board
from steelyard.errors import InputError
from steelyard.report.charts.rows import Shown, shown_measures, slice_columns
from steelyard.report.page.queries import (
    DEPTH,
    TEXT_LIMIT,
    Lists,
    Look,
    interesting_order,
    lists_of,
    looks_of,
    low_cutoff,
)
from steelyard.report.page.subject import (
    Subject,
    embedded_json,
    packed,
    page_script,
    page_style,
    script_hash,
    visible,
)
from steelyard.report.page.view import is_time, view_of
from steelyard.statistics.arrays import student_quantile
from steelyard.version import __version__
from steelyard.wording import counted

if TYPE_CHECKING:
    import jinja2

    from steelyard.report.charts.charts import Chart


QUERY_TEXT_LIMIT = 400
"""Characters of a query that the table shows."""


@dataclass(frozen=True)
class Kept:
    """The queries a page has room for, as places in the comparison's first board, in its order."""

    places: tuple[int, ...]
    everything: bool


def summary_of(subject: Subject, looks: Sequence[Look], kept: Kept) -> dict[str, Any]:
    """The numbers of the kept queries: values, failures, slices; and what the sliders weigh."""
    comparison = subject.comparison
    board = comparison.boards[0]
    places = np.array(kept.places, dtype=np.int64)
    names = [board.queries[place] for place in kept.places]
    measures = shown_measures(comparison)
    return {
        "title": subject.title,
        "runs": list(comparison.runs),
        "baseline": -1
        if comparison.plan.baseline is None
        else comparison.runs.index(comparison.plan.baseline),
        "leader": comparison.runs.index(comparison.standings[0].run),
        "second": comparison.runs.index(comparison.standings[1].run) if len(comparison.runs) > 1 else -1,
        "measures": [
            {"label": each.label, "better": each.column.better, "unit": "s" if is_time(each.column) else ""}
            for each in measures
        ],
        "values": packed(_values(measures, places), "f4"),
        "queries": names,
        "texts": [_cut(subject.queries.get(name, ""), kept.everything) for name in names],
        "cutoff": low_cutoff(comparison),
        **_failures(looks, names),
        "slices": _slices(subject, names),
        "boards": [
            _weighable(components, board.k, comparison.weights or {})
            for components, board in zip(comparison.components, comparison.boards, strict=True)
            if components is not None
        ],
    }


def _values(measures: Sequence[Shown], places: Ints) -> Floats:
    """Measures x runs x queries."""
    found = [each.values[:, places] for each in measures]
    return np.stack(found) if found else np.zeros((0, 0, 0))


def _failures(looks: Sequence[Look], names: Sequence[str]) -> dict[str, Any]:
    """Each run's failures and first relevant rank by query; nothing where only scores are known."""
    if not looks:
        return {"failures": None, "first": None}
    place = {query: number for number, query in enumerate(looks[0].alignment.queries)}
    chosen = np.array([place[name] for name in names], dtype=np.int64)
    return {
        "failures": packed(np.stack([each.failures[chosen] for each in looks]), "u1"),
        "first": packed(np.stack([each.first[chosen] for each in looks]), "u2"),
    }


def _slices(subject: Subject, names: Sequence[str]) -> list[dict[str, Any]]:
    """The columns that queries can be filtered by: values, and which of them each query has."""
    made = []
    for column, values in slice_columns(subject).items():
        texts = [str(values[name]) if values.get(name) is not None else "not given" for name in names]
        known = sorted(set(texts))
        place = {text: number for number, text in enumerate(known)}
        made.append(
            {"column": column, "values": known, "codes": packed([place[text] for text in texts], "u1")}
        )
    return made


def _weighable(board: Board, k: int | None, weights: Mapping[str, float]) -> dict[str, Any]:
    """What is needed to weigh the components anew: their means, and how they vary together over queries.

    Only queries with a value of every component count, as in the composite itself. Where less is
    better the values are turned round.
    """
    turned = np.stack(
        [
            1 - values if column.better == "less" else values
            for column, values in zip(board.columns, _by_column(board), strict=True)
        ],
        axis=1,
    )
    whole: Bools = np.asarray(~np.isnan(turned).any(axis=1))
    means = [
        (parts[:, there].mean(axis=1) if there.any() else np.zeros(len(parts))).tolist()
        for parts, there in zip(turned, whole, strict=True)
    ]
    everywhere = whole.all(axis=0)
    size = int(everywhere.sum())
    flat = turned[:, :, everywhere].reshape(-1, size)
    spread = np.cov(flat).reshape(len(flat), len(flat)) if size > 1 else np.zeros((len(flat), len(flat)))
    return {
        "k": k,
        "keys": [column.key for column in board.columns],
        "less": [column.better == "less" for column in board.columns],
        "weights": [weights[column.key] for column in board.columns],
        "means": means,
        "covariance": packed(spread, "f8"),
        "queries": size,
        "reach": student_quantile(0.975, size - 1) if size > 1 else 0.0,
    }


def _by_column(board: Board) -> list[Floats]:
    return [board.of(column.key) for column in board.columns]


def _cut(text: str, whole: bool) -> str:
    return text if whole or len(text) <= QUERY_TEXT_LIMIT else f"{text[:QUERY_TEXT_LIMIT]}…"


PAGE_LIMIT = 15_000_000
"""Bytes a page may have unless everything is asked for."""

SUMMARY_LIMIT = 8_000_000
"""Of those, what the numbers of the queries may take; lists and texts get what is left."""

_SPARE = 120_000
"""Room for the numbers of the queries whose lists are there."""

_SNIPPET = "window.vegaEmbed = vegaEmbed;"

_EXTRA = ("jinja2", "altair", "vl_convert")


def missing_extra() -> str | None:
    """The first package of the extra `report` that is not installed."""
    return next((name for name in _EXTRA if find_spec(name) is None), None)


def page_html(subject: Subject, *, everything: bool = False) -> str:
    """The page as text."""
    from markupsafe import Markup

    from steelyard.report.charts.charts import charts_of

    looks = looks_of(subject.comparison)
    order = interesting_order(_first_values(subject), looks)
    kept = _kept(subject, order, everything)
    numbers = {place: number for number, place in enumerate(kept.places)}
    charts = [_embedded(chart) for chart in charts_of(subject, looks)]
    script, vega = page_script(), _vega() if charts else ""
    summary = summary_of(subject, looks, kept)
    parts = {
        "version": __version__,
        "view": view_of(subject),
        "charts": charts,
        "depth": DEPTH if subject.comparison.source is not None else None,
        "allowed": Markup(" ".join(map(script_hash, (script, *([vega] if vega else []))))),
        "style": Markup(page_style()),
        "script": Markup(script),
        "vega": Markup(vega),
    }

    def rendered(listed: Sequence[int], lists: str, left_out: Sequence[str]) -> str:
        packed = embedded_json({**summary, "listed": listed})
        return _template().render(parts, summary=Markup(packed), lists=Markup(lists), left_out=left_out)

    room = None
    if not everything:
        room = max(0, PAGE_LIMIT - len(rendered((), "", ()).encode()) - _SPARE)
    wanted = [place for place in order if place in numbers]
    found = lists_of(subject, looks, wanted, numbers, room)
    return rendered(sorted(found.queries), found.json, _left_out(subject, kept, found))


def chart_files(subject: Subject, folder: Path) -> list[Path]:
    """Every chart as PNG and SVG in a folder."""
    lacking = missing_extra()
    if lacking is not None:
        raise InputError(f"charts need {lacking}, which is not installed: pip install 'steelyard[report]'.")
    from steelyard.report.charts.charts import charts_of, save_charts

    return save_charts(charts_of(subject, looks_of(subject.comparison)), folder)


def plain_page(subject: Subject, lacking: str) -> str:
    """The tables alone, where the extra `report` is not installed."""
    from steelyard.report.comparison import comparison_html

    said = f"This is the plain page: {lacking} is not installed. pip install 'steelyard[report]' makes the whole one."
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(visible(subject.title))} · Steelyard</title>'
    return f"{head}<body>{visible(comparison_html(subject.comparison))}<p>{escape(said)}</p></body></html>\n"


def _first_values(subject: Subject) -> Floats:
    board = subject.comparison.boards[0]
    return board.of(board.columns[0].key)


def _kept(subject: Subject, order: Sequence[int], everything: bool) -> Kept:
    """The queries whose numbers there is room for: all of them, but for the very largest results."""
    comparison = subject.comparison
    size = len(comparison.boards[0].queries)
    columns = sum(len(board.columns) for board in comparison.boards)
    texts = sum(min(len(text.encode()), 4 * QUERY_TEXT_LIMIT) for text in subject.queries.values())
    each = len(comparison.runs) * (columns * 16 / 3 + 4) + 40 + texts / max(1, len(subject.queries))
    most = size if everything else max(1, int(SUMMARY_LIMIT / each))
    return Kept(tuple(sorted(order[:most])) if most < size else tuple(range(size)), everything)


def _left_out(subject: Subject, kept: Kept, found: Lists) -> list[str]:
    """What the page does not hold, and how to have it."""
    size = len(subject.comparison.boards[0].queries)
    said = []
    if len(kept.places) < size:
        said.append(
            f"The table holds {len(kept.places):,} of {size:,} queries: the biggest differences, misses and a sample."
        )
    if subject.comparison.source is not None and len(found.queries) < len(kept.places):
        said.append(
            f"Ranked lists are here for {len(found.queries):,} of {size:,} queries: the biggest differences, misses and a sample."
        )
    if found.cut_texts:
        said.append(
            f"{counted(found.cut_texts, 'document is cut to its', 'documents are cut to their')} first "
            f"{TEXT_LIMIT:,} characters."
        )
    if said:
        said.append("`steelyard report RESULT --all` leaves nothing of this out.")
    return said


def _embedded(chart: Chart) -> dict[str, Any]:
    from markupsafe import Markup

    data = {"title": chart.title, "spec": chart.spec, "measures": chart.measures, "columns": chart.columns}
    return {
        "name": chart.name,
        "title": chart.title,
        "about": chart.about,
        "height": chart.height,
        "json": Markup(embedded_json(data)),
    }


@cache
def _vega() -> str:
    """The script that draws charts in the browser: Vega, Vega-Lite and Vega-Embed, as vl-convert bundles them."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(_SNIPPET)
    return re.sub(r"</(?=script)", r"<\\/", bundle.replace("\r\n", "\n"), flags=re.IGNORECASE)


@cache
def _template() -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    return environment.from_string((files("steelyard.report.page") / "template.html").read_text("utf-8"))
