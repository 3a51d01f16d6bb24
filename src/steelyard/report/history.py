"""A history as text, Markdown and a page with one drawing per dataset and measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from steelyard.report.page.embed import page_style, visible
from steelyard.report.tables import Cell, Table, markdown, plain, table_html
from steelyard.safe_text import markdown_text
from steelyard.statistics import shown_p
from steelyard.version import __version__

if TYPE_CHECKING:
    from steelyard.comparison.history import History, Point, Step

SHOWN_MOVERS = 5
"""Queries that are shown for a change."""


def history_tables(found: History) -> list[Table]:
    """One table per dataset and measure, one row per point; then the last and the best values."""
    keys = list(dict.fromkeys((dataset, measure) for dataset, measure, _ in found.lines))
    latest = found.latest
    rows = [[_short(cell) for cell in row] for row in latest.rows()]
    note = (
        "p: the last point and the best since the last break, paired t test, corrected for all lines (Holm)."
    )
    return [
        *(_points_table(found, dataset, measure) for dataset, measure in keys),
        Table(latest.columns, rows, title="Last and best", keys=3, note=note),
    ]


def _short(cell: Cell) -> Cell:
    return f"{cell:.4f}" if isinstance(cell, float) else cell


def _points_table(found: History, dataset: str, measure: str) -> Table:
    runs = [run for name, key, run in found.lines if (name, key) == (dataset, measure)]
    steps = {(id(step.point), run): step for run in runs for step in found.lines[dataset, measure, run]}
    points = [point for point in found.points if any((id(point), run) in steps for run in runs)]
    rows: list[list[Cell]] = []
    for point in points:
        own = [steps[id(point), run] for run in runs if (id(point), run) in steps]
        broken = list(dict.fromkeys(name for step in own for name in step.broken))
        changes = [
            f"{step.change} of {step.run} (p {shown_p(step.p_adjusted)})" for step in own if step.change
        ]
        remarks = [*([f"new {' and '.join(broken)}"] if broken else []), *changes]
        values = [_value(steps.get((id(point), run))) for run in runs]
        rows.append(
            [point.time, point.label, str(point.record.get("branch") or ""), *values, "; ".join(remarks)]
        )
    note = (
        "Means with 95% intervals. Changes from the point before are tested on the queries of both (paired t test, "
        "corrected for all steps of the measure); nothing is tested where the corpus, the queries, the qrels or the "
        "definition changed. *: with uncommitted changes."
    )
    head = ["time (UTC)", "commit", "branch", *runs, "changes"]
    return Table(head, rows, title=f"{measure} on {dataset}", keys=2, note=note)


def _value(step: Step | None) -> str:
    if step is None:
        return ""
    interval = f" [{step.low:.4f}, {step.high:.4f}]" if math.isfinite(step.low) else ""
    return f"{step.mean:.4f}{interval}"


def history_text(found: History) -> str:
    """The verdict and the tables as plain text."""
    return "\n\n".join([found.verdict, *map(plain, history_tables(found))])


def history_markdown(found: History) -> str:
    """The verdict and the tables in Markdown."""
    return "\n\n".join([markdown_text(found.verdict), *map(markdown, history_tables(found))])


# The page

_STYLE = """
.over-time { overflow-x: auto; margin-bottom: .75rem; }
.over-time svg { display: block; min-width: 44rem; }
.over-time svg text { font: 11px var(--sans); fill: currentColor; }
.over-time .c0 { color: light-dark(#0072b2, #6db6e8); } .over-time .c1 { color: light-dark(#b04e00, #ffa35c); }
.over-time .c2 { color: light-dark(#007a5a, #4fd0a8); } .over-time .c3 { color: light-dark(#9a3b76, #e59ac6); }
.over-time .c4 { color: light-dark(#6b6200, #e0d44b); } .over-time .c5 { color: light-dark(#444, #bbb); }
.over-time .break { stroke: var(--strong); stroke-dasharray: 4 4; }
.over-time .drop { fill: var(--bad); } .over-time .rise { fill: var(--good); }
.over-time ul { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; }
.over-time li span { display: inline-block; width: .8em; height: .8em; background: currentColor; margin-right: .4em; }
"""
_COLOURS = 6
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 960, 260, 60, 22, 34


def history_page(found: History) -> str:
    """One page without scripts."""
    keys = list(dict.fromkeys((dataset, measure) for dataset, measure, _ in found.lines))
    tables = history_tables(found)
    sections = "".join(
        f"<section><h2><bdi>{escape(measure)}</bdi> on <bdi>{escape(dataset)}</bdi></h2>"
        f"{_drawing(found, dataset, measure)}<details><summary>Table</summary>{_table(replace(table, title=''))}</details></section>"
        for (dataset, measure), table in zip(keys, tables, strict=False)
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return visible(
        '<!doctype html>\n<html lang="en" data-ready="yes">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="generator" content="Steelyard {__version__}">\n<title>History · Steelyard</title>\n'
        f"<style>{page_style()}{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<section id="verdict"><p class="kicker">History</p><h1>{escape(found.verdict)}</h1></section>\n'
        f'<section id="latest"><h2>Last and best</h2>{_table(tables[-1])}</section>\n{sections}\n'
        f"{_changes_html(found)}</main>\n<footer>Steelyard {__version__}</footer>\n</body>\n</html>\n"
    )


def _table(table: Table) -> str:
    bare = table_html(replace(table, title=""))
    return f'<div class="over-time">{bare}</div><p class="hint">{escape(table.note)}</p>'


def _drawing(found: History, dataset: str, measure: str) -> str:
    """The lines of a measure with intervals; broken lines, and marks at significant changes."""
    lines = {run: line for (name, key, run), line in found.lines.items() if (name, key) == (dataset, measure)}
    points = list({id(step.point): step.point for line in lines.values() for step in line}.values())
    points = [point for point in found.points if any(point is each for each in points)]
    ends = [end for line in lines.values() for step in line for end in (step.low, step.high, step.mean)]
    ends = [end for end in ends if math.isfinite(end)]
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
    every = -(-len(points) // 14)
    parts += [
        f'<text x="{x(point):.1f}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(point.label)}</text>'
        for point in points[::every]
    ]
    step_width = (_WIDTH - _LEFT - 20) / len(points)
    broken = {id(step.point): step for line in lines.values() for step in line if step.broken}
    for step in broken.values():
        at = x(step.point) - step_width / 2
        parts.append(
            f'<line class="break" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'<text x="{at:.1f}" y="12" text-anchor="middle">new {escape(" and ".join(step.broken))}</text>'
        )
    for number, line in enumerate(lines.values()):
        parts.append(f'<g class="c{number % _COLOURS}">{_line_svg(line, x, y)}</g>')
    names = "".join(
        f'<li class="c{number % _COLOURS}"><span></span><bdi>{escape(run)}</bdi></li>'
        for number, run in enumerate(lines)
    )
    title = f"{measure} on {dataset} over time, one line per run"
    return (
        f'<div class="over-time"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg><ul>{names}</ul></div>'
    )


def _line_svg(line: Sequence[Step], x: Callable[[Point], float], y: Callable[[float], float]) -> str:
    """A line, broken where its values cannot be compared, with intervals and marks of changes."""
    parts, path = [], ""
    for number, step in enumerate(line):
        move = "M" if number == 0 or step.broken else "L"
        path += f"{move}{x(step.point):.1f} {y(step.mean):.1f}"
        if math.isfinite(step.low):
            parts.append(
                f'<line x1="{x(step.point):.1f}" x2="{x(step.point):.1f}" y1="{y(step.low):.1f}" '
                f'y2="{y(step.high):.1f}" stroke="currentColor" stroke-opacity=".35" stroke-width="3"/>'
            )
        mark = ""
        if step.change:
            sign = "▼" if step.change == "drop" else "▲"
            mark = f'<text class="{step.change}" x="{x(step.point) + 9:.1f}" y="{y(step.mean) + 4:.1f}">{sign}</text>'
        shown = escape(f"{step.run} at {step.point.label}, {step.point.time}: {_value(step)}")
        parts.append(
            f'<circle cx="{x(step.point):.1f}" cy="{y(step.mean):.1f}" r="3.5" fill="currentColor">'
            f"<title>{shown}</title></circle>{mark}"
        )
    return f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>{"".join(parts)}'


def _changes_html(found: History) -> str:
    """For every significant change, the queries that moved most."""
    parts = []
    for step in found.changed:
        line = found.lines[step.dataset, step.measure, step.run]
        before = line[next(place for place, each in enumerate(line) if each is step) - 1].point
        moved = found.moved(before, step.point, step.run, step.measure)[:SHOWN_MOVERS]
        title = (
            f"{step.change} of {step.measure} of {step.run} on {step.dataset} by {abs(step.difference):.4f}, from "
            f"{before.label} to {step.point.label} (p {shown_p(step.p_adjusted)})"
        )
        rows: list[list[Cell]] = [
            [query, one, other, f"{change:+.4f}"] for query, one, other, change in moved
        ]
        table = Table(["query", "before", "after", "difference"], rows)
        parts.append(f"<details><summary>{escape(title)}</summary>{_table(table)}</details>")
    return f'<section id="changes"><h2>Significant changes</h2>{"".join(parts)}</section>\n' if parts else ""
