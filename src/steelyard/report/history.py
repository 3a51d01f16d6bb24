"""A history as text, Markdown and a page with one drawing per dataset and measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from itertools import pairwise
from textwrap import shorten
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import urlencode

from steelyard.comparison.history import HistoryData, LinePoint, Point, uncollected
from steelyard.report.documents import Document
from steelyard.report.page.shell import scrolled, section, shell, table_part
from steelyard.report.tables import Cell, Table
from steelyard.statistics import shown_p

SHOWN_MOVERS = 5  # Queries that are shown for a change.
SHOWN_TEXT = 160  # Characters of a query's text.
SHOWN_POINTS = 200  # Points of a table, the last ones; a file of data has all of them.
_LATEST = ("dataset", "measure", "run", "last", "last point", "best", "best point", "difference", "p", "verdict")
_COLOURS = 6
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 960, 290, 60, 22, 50
_DODGE = 8  # Pixels between the intervals of two runs at one point.


def history_tables(result: HistoryData) -> list[Table]:
    """One table per dataset and measure, one row per point; then the last and the best values."""
    keys = list(dict.fromkeys((dataset, measure) for dataset, measure, _ in result.lines))
    rows: list[list[Cell]] = []
    for *row, p, verdict in result.latest.rows():
        cells = (f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row)
        rows.append([*cells, "" if p is None else shown_p(p), verdict])
    note = "p: the last point and the best since the last break, paired t test, corrected for all lines (Holm)."
    return [
        *(_points_table(result, dataset, measure) for dataset, measure in keys),
        Table([*_LATEST], rows, title="Last and best", keys=3, note=note),
    ]


def _points_table(result: HistoryData, dataset: str, measure: str) -> Table:
    runs = [run for name, key, run in result.lines if (name, key) == (dataset, measure)]
    lines = [result.lines[dataset, measure, run] for run in runs]
    points = _measured(result, dataset, lines)
    # None of the points that are shown is further from the end of a line than from the end of all points.
    steps = {(id(step.point), step.run): step for line in lines for step in line[-SHOWN_POINTS:]}
    rows: list[list[Cell]] = []
    for point in points[-SHOWN_POINTS:]:
        at_point = [steps[id(point), run] for run in runs if (id(point), run) in steps]
        broken = list(dict.fromkeys(name for step in at_point for name in step.broken))
        changes = [f"{step.change} of {step.run} (p {shown_p(step.p_adjusted)})" for step in at_point if step.change]
        remarks = [*([f"new {' and '.join(broken)}"] if broken else []), *changes]
        values = [_value(steps.get((id(point), run))) for run in runs]
        rows.append([point.time, point.label, str(point.record.get("branch") or ""), *values, "; ".join(remarks)])
    note = (
        "Means with 95% intervals. Changes from the point before are tested on the queries of both (paired t test, "
        "corrected for all steps of the measure); nothing is tested where the corpus, the queries, the qrels or the "
        "definition changed. *: with uncommitted changes."
    )
    if len(points) > SHOWN_POINTS:
        note += f" The last {SHOWN_POINTS} of {len(points):,} points; a .csv, .json or .parquet file has all of them."
    head = ["time (UTC)", "commit", "branch", *runs, "changes"]
    return Table(head, rows, title=f"{measure} on {dataset}", keys=2, note=note)


def _measured(result: HistoryData, dataset: str, lines: Iterable[Sequence[LinePoint]]) -> list[Point]:
    """The points that some of the lines have."""
    measured = {id(step.point) for line in lines for step in line}
    return [point for point in result.by_dataset[dataset] if id(point) in measured]


def _value(step: LinePoint | None) -> str:
    if step is None:
        return ""
    interval = f" [{step.low:.4f}, {step.high:.4f}]" if math.isfinite(step.low) else ""
    return f"{step.mean:.4f}{interval}"


@uncollected()
def history_document(result: HistoryData) -> Document:
    """The verdict and the tables."""
    return Document("History", result.verdict, history_tables(result))


KnownQueries: TypeAlias = tuple[Mapping[str, str], str]
"""The texts of a dataset's queries, and the address of a report page that has them; empty if there is none."""


@uncollected()
def history_page(result: HistoryData, known: Mapping[str, KnownQueries] = MappingProxyType({})) -> str:
    """One page. `known` has the queries by the fingerprint of their dataset."""
    keys = list(dict.fromkeys((dataset, measure) for dataset, measure, _ in result.lines))
    tables = history_tables(result)
    drawn = [
        f"<section><h2><bdi>{escape(measure)}</bdi> on <bdi>{escape(dataset)}</bdi></h2>"
        f"{_drawing(result, dataset, measure)}<details><summary>Table</summary>"
        f"{table_part(table, f'{table.title}, table')}</details></section>"
        for (dataset, measure), table in zip(keys, tables, strict=False)
    ]
    verdict = f'<p class="kicker">History</p><h1>{escape(result.verdict)}</h1>'
    changes = section("changes", "Queries that moved most", _changes_html(result, known))
    latest = section("latest", "Last and best", table_part(tables[-1], "Last and best"))
    style = (files("steelyard.report") / "history.css").read_text("utf-8")
    return shell("History", verdict, [*drawn, "\n", latest, changes], style)


def _drawing(result: HistoryData, dataset: str, measure: str) -> str:
    """The lines of a measure with intervals; broken lines, and marks at significant changes."""
    lines = {run: line for (name, key, run), line in result.lines.items() if (name, key) == (dataset, measure)}
    points = _measured(result, dataset, lines.values())
    steps = [step for line in lines.values() for step in line]
    ends = [end for step in steps for end in (step.low, step.high, step.mean) if math.isfinite(end)]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0
    places = {id(point): number for number, point in enumerate(points)}

    def x(point: Point) -> float:
        return _LEFT + (_WIDTH - _LEFT - 20) * (places[id(point)] + 0.5) / len(points)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / span

    parts = [
        f'<text x="{_LEFT - 8}" y="{y(low + span * share):.1f}" text-anchor="end" dominant-baseline="middle">'
        f"{low + span * share:.3f}</text>"
        for share in (0.0, 0.5, 1.0)
    ]
    parts += [
        f'<text x="{x(point):.1f}" y="{_HEIGHT - 24}" text-anchor="middle">{escape(point.label)}</text>'
        f'<text class="date" x="{x(point):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">'
        f"{'' if point.label == point.time else escape(point.time[:10])}</text>"
        for point in points[:: -(-len(points) // 14)]
    ]
    step_width = (_WIDTH - _LEFT - 20) / len(points)
    broken = {id(step.point): step for step in steps if step.broken}
    for step in broken.values():
        at = x(step.point) - step_width / 2
        parts.append(
            f'<line class="break" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'<text x="{at:.1f}" y="12" text-anchor="middle">new {escape(" and ".join(step.broken))}</text>'
        )
    for number, line in enumerate(lines.values()):
        aside = _DODGE * (number - (len(lines) - 1) / 2) if len(lines) * _DODGE < step_width else 0.0
        parts.append(f'<g class="c{number % _COLOURS}" transform="translate({aside:g} 0)">{_line_svg(line, x, y)}</g>')
    names = "".join(
        f'<li class="c{number % _COLOURS}"><span></span><bdi>{escape(run)}</bdi></li>'
        for number, run in enumerate(lines)
    )
    title = f"{measure} on {dataset} over time, one line per run"
    return (
        f'<div class="over-time" tabindex="0" role="region" aria-label="{escape(measure)} on {escape(dataset)}">'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg><ul>{names}</ul></div>'
        '<p class="hint">Bars are 95% intervals. Triangles mark significant changes from the point before.</p>'
    )


def _line_svg(line: Sequence[LinePoint], x: Callable[[Point], float], y: Callable[[float], float]) -> str:
    """A line, broken where its values cannot be compared, with intervals and marks of changes."""
    parts, path = [], []
    for number, step in enumerate(line):
        move = "M" if number == 0 or step.broken else "L"
        path.append(f"{move}{x(step.point):.1f} {y(step.mean):.1f}")
        if math.isfinite(step.low):
            parts.append(
                f'<line x1="{x(step.point):.1f}" x2="{x(step.point):.1f}" y1="{y(step.low):.1f}" '
                f'y2="{y(step.high):.1f}" stroke="currentColor" stroke-opacity=".35" stroke-width="3"/>'
            )
        mark = ""
        if step.change:
            sign = "▼" if step.change == "drop" else "▲"
            mark = f'<text class="{step.change}" x="{x(step.point) + 6:.1f}" y="{y(step.mean) + 6:.1f}">{sign}</text>'
        shown = escape(f"{step.run} at {step.point.label}, {step.point.time}: {_value(step)}")
        parts.append(
            f'<circle cx="{x(step.point):.1f}" cy="{y(step.mean):.1f}" r="3.5" fill="currentColor">'
            f"<title>{shown}</title></circle>{mark}"
        )
    return f'<path d="{"".join(path)}" fill="none" stroke="currentColor" stroke-width="1.5"/>{"".join(parts)}'


def _changes_html(result: HistoryData, by_fingerprint: Mapping[str, KnownQueries]) -> str:
    """The queries that moved most at every significant change, the last one first; without any, at the last step of
    the line that moved most. Those of the first are open."""
    parts: list[str] = []
    pairs = [pair for line in result.lines.values() for pair in pairwise(line)]
    last_steps = [(line[-2], line[-1]) for line in result.lines.values() if abs(line[-1].difference) > 0]
    largest = max(last_steps, key=lambda pair: abs(pair[1].difference), default=None)
    changed = [pair for pair in pairs if pair[1].change] or ([largest] if largest else [])
    for last, step in sorted(changed, key=lambda pair: pair[1].point.time, reverse=True):
        title = (
            f"{step.change or 'change'} of {step.measure} of {step.run} on {step.dataset} by "
            f"{abs(step.difference):.4f}, from {last.point.label} to {step.point.label} (p {shown_p(step.p_adjusted)})"
        )
        texts, report = by_fingerprint.get(step.point.record["fingerprints"].get("dataset") or "", ({}, ""))
        rows = "".join(
            f"<tr>{_query_cells(query, step, texts, report)}"
            f'<td class="number">{one:.4f}</td><td class="number">{other:.4f}</td>'
            f'<td class="number">{change:+.4f}</td></tr>'
            for query, one, other, change in result.moved(last.point, step.point, step.run, step.measure)[:SHOWN_MOVERS]
        )
        head = "<th>query</th><th>text</th>" if texts else "<th>query</th>"
        head += "".join(f'<th class="number">{name}</th>' for name in ("before", "after", "difference"))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        opened = "" if parts else " open"
        parts.append(f"<details{opened}><summary>{escape(title)}</summary>{scrolled(title, table)}</details>")
    return "".join(parts)


def _query_cells(query: str, step: LinePoint, texts: Mapping[str, str], report: str) -> str:
    """The id of a query, as a link to it in the report page if there is one, and its text if texts are known."""
    name = f"<bdi>{escape(query)}</bdi>"
    if report:
        state = urlencode({"query": query, "measure": step.measure, "run": step.run})
        name = f'<a href="{escape(report)}#{escape(state)}">{name}</a>'
    text = shorten(texts.get(query, ""), SHOWN_TEXT, placeholder="…")
    return f"<td>{name}</td>" + (f'<td class="text"><bdi>{escape(text)}</bdi></td>' if texts else "")
