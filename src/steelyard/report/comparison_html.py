"""A comparison as an HTML fragment: for notebooks, and for pages of one's own."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.report.comparison_rows import leaderboard_table, pairs_table, remarks, slice_tables
from steelyard.report.tables import Table

if TYPE_CHECKING:
    from steelyard.comparison.result import Comparison

_STYLE = """
.steelyard { font: 14px/1.5 system-ui, sans-serif; }
.steelyard table { border-collapse: collapse; margin: 0.5em 0 1em; }
.steelyard th, .steelyard td { padding: 0.25em 0.75em; text-align: left; border-bottom: 1px solid #8886; }
.steelyard .number { text-align: right; font-variant-numeric: tabular-nums; }
"""


def comparison_html(comparison: Comparison, path: Path | None = None) -> str:
    """The verdict, the tables and the remarks; with a path, written there as a page of their own."""
    parts = [
        f"<p><strong>{escape(comparison.verdict)}</strong></p>",
        table_html(leaderboard_table(comparison)),
    ]
    if comparison.tested:
        parts.append(table_html(pairs_table(comparison)))
    for heading, table in slice_tables(comparison):
        parts.append(f"<h4>{escape(heading)}</h4>{table_html(table)}")
    parts.append("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in remarks(comparison)) + "</ul>")
    fragment = f'<div class="steelyard"><style>{_STYLE}</style>{"".join(parts)}</div>'
    if path is not None:
        from steelyard.formats.atomic import write_file

        head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Steelyard</title>'
        write_file(path, f"{head}<body>{fragment}</body></html>\n".encode())
    return fragment


def table_html(table: Table) -> str:
    """One table, everything escaped."""
    right = table.numeric()
    head = "".join(f"<th{_kind(r)}>{escape(c)}</th>" for c, r in zip(table.columns, right, strict=True))
    rows = [
        "<tr>" + "".join(f"<td{_kind(r)}>{escape(c)}</td>" for c, r in zip(row, right, strict=True)) + "</tr>"
        for row in table.shown()
    ]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _kind(number: bool) -> str:
    return ' class="number"' if number else ""
