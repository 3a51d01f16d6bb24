"""The verdict: what a comparison says, in a sentence or two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.comparison.board import COMPOSITE
from steelyard.comparison.pairs import apart
from steelyard.statistics import power_analysis

if TYPE_CHECKING:
    from steelyard.comparison.result import Comparison


def verdict(comparison: Comparison) -> str:
    """Which run leads, on what, by how much, and whether the data can tell.

    Where several cutoffs were compared, it speaks of the first.
    """
    board = comparison.boards[0]
    rows = [row for row in comparison.standings if row.k == board.k]
    column = board.columns[0]
    what = "the composite score" if column.key == COMPOSITE else column.key
    at = "" if board.k is None else f" at {board.k}"
    top = rows[0]
    if len(rows) == 1:
        return f"{top.run} scores {top.means[column.key]:.4f} on {what}{at}; there is no other run to hold it against."
    second = rows[1]
    lead = abs(top.means[column.key] - second.means[column.key])
    values = board.of(column.key)
    first, next_ = board.runs.index(top.run), board.runs.index(second.run)
    sure = apart(board, comparison.plan, comparison.tested)
    others = [
        row.run for row in rows[1:] if not sure[first, board.runs.index(row.run)] < comparison.plan.alpha
    ]
    said = f"{top.run} leads on {what}{at} with {top.means[column.key]:.4f}, {lead:.4f} ahead of {second.run}"
    if not others:
        return f"{said}; the data can tell it from every other run."
    power = power_analysis(values[first] - values[next_], alpha=comparison.plan.alpha, separated=False)
    named = others[0] if len(others) == 1 else f"{', '.join(others[:-1])} and {others[-1]}"
    return f"{said}, but the data cannot tell it from {named}. Of the first two: {power.sentence}"
