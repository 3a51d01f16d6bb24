"""Scores as an HTML fragment, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from steelyard.report.comparison_html import fragment, table_html
from steelyard.report.tables import Cell, Table
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.scores import Scores


def scores_html(scores: Scores) -> str:
    """The means with their intervals, and the coverage."""
    intervals = scores.intervals()
    rows: list[list[Cell]] = []
    for key, mean in scores.means.items():
        pair = intervals[key]
        shown = "" if pair is None or pair[0] != pair[0] else f"{pair[0]:.4f} to {pair[1]:.4f}"
        rows.append([key, mean, shown, scores.measures[key].spelled])
    table = Table(["measure", "value", "95 % interval", "as defined"], rows)
    title = f"Scores of {escape(scores.name)} over {counted(len(scores.queries), 'query', 'queries')}"
    how = [f"<p>Measured with {escape(scores.settings)}.</p>"] if scores.settings else []
    covered = f"<p>{escape(str(scores.coverage))}</p>"
    return fragment([f"<p><strong>{title}</strong></p>", table_html(table), *how, covered])
