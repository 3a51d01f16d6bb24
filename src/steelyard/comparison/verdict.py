"""The verdict: what a comparison says, in a sentence or two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from steelyard.comparison.board import COMPOSITE
from steelyard.comparison.pairs import apart
from steelyard.statistics import power_analysis
from steelyard.wording import SHOWN_NAMES, listed

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
    values = board.of(column.key)
    place = {run: number for number, run in enumerate(board.runs)}
    mine = values[place[top.run]]
    same = [row.run for row in rows if np.array_equal(values[place[row.run]], mine, equal_nan=True)]
    rest = [row for row in rows if row.run not in same]
    score = f"{top.means[column.key]:.4f}"
    if not rest:
        each = "both have" if len(same) == 2 else "all have"
        return f"{listed(same)} {each} {score} on {what}{at}: no difference on any query."
    second = rest[0]
    lead = abs(top.means[column.key] - second.means[column.key])
    sure = apart(board, comparison.plan, comparison.tested)
    others = [row.run for row in rest if not sure[place[top.run], place[row.run]] < comparison.plan.alpha]
    if len(same) == 1:
        said, them = f"{top.run} leads on {what}{at} with {score}", "it"
    else:
        said = f"{listed(same)} lead on {what}{at} with {score}, no difference between them on any query"
        them = "them"
    said = f"{said}, {lead:.4f} ahead of {second.run}"
    if not others:
        return f"{said}; the data can tell {them} from every other run."
    power = power_analysis(mine - values[place[second.run]], alpha=comparison.plan.alpha, separated=False)
    which = "" if len(same) == 1 else " that differ"
    return f"{said}, but the data cannot tell {them} from {listed(others, SHOWN_NAMES)}. Of the first two{which}: {power.sentence}"
