"""A comparison as an HTML fragment: for notebooks, and for pages of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from steelyard.report.comparison_rows import leaderboard_table, pairs_tables, remarks, slice_table
from steelyard.report.tables import Table

if TYPE_CHECKING:
    from steelyard.comparison.result import Comparison

_STYLE = """
.steelyard { font: 14px/1.5 system-ui, sans-serif; max-width: 70em; overflow-x: auto; }
.steelyard table { border-collapse: collapse; margin: 0.5em 0 1em; }
.steelyard th, .steelyard td { padding: 0.25em 0.75em; text-align: left; border-bottom: 1px solid #8886; }
.steelyard thead th { border-bottom: 2px solid #8889; font-weight: 600; white-space: nowrap; }
.steelyard caption { text-align: left; font-weight: 600; padding: 0.25em 0.75em; }
.steelyard ul { padding-left: 1.2em; opacity: 0.8; }
.steelyard .number { text-align: right; font-variant-numeric: tabular-nums; }
"""


def comparison_html(comparison: Comparison) -> str:
    """The verdict, the tables and the remarks."""
    sliced = slice_table(comparison)
    tables = [
        leaderboard_table(comparison),
        *pairs_tables(comparison),
        *([] if sliced is None else [sliced]),
    ]
    parts = [f"<p><strong>{escape(comparison.verdict)}</strong></p>", *map(table_html, tables)]
    parts.append("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in remarks(comparison)) + "</ul>")
    return fragment(parts)


def fragment(parts: Sequence[str]) -> str:
    """Parts of HTML in the one style."""
    return f'<div class="steelyard"><style>{_STYLE}</style>{"".join(parts)}</div>'


def table_html(table: Table) -> str:
    """One table, everything escaped, the title as its caption."""
    right = table.numeric()
    head = "".join(f"<th{_kind(r)}>{escape(c)}</th>" for c, r in zip(table.columns, right, strict=True))
    rows = [
        "<tr>" + "".join(f"<td{_kind(r)}>{escape(c)}</td>" for c, r in zip(row, right, strict=True)) + "</tr>"
        for row in table.shown()
    ]
    title = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _kind(number: bool) -> str:
    return ' class="number"' if number else ""
