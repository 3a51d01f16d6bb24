"""The leaderboard: runs best first, with intervals, rank intervals and groups the data cannot tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.comparison.pairs import Pair, apart
from steelyard.comparison.scores import COMPOSITE, Board
from steelyard.comparison.tests import Plan
from steelyard.statistics import groups_of, mean_intervals, rank_intervals


@dataclass(frozen=True)
class Standing:
    """One row: a run (at a cutoff), its rank and how far it may move, the letters of its groups, its values."""

    rank: int
    run: str
    k: int | None
    group: str
    rank_low: int
    rank_high: int
    means: dict[str, float]
    intervals: dict[str, tuple[float, float] | None]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `compare`; k and the composite are null where none was asked for."""
        made: dict[str, Any] = {"rank": self.rank, "run": self.run, "k": self.k, COMPOSITE: None}
        made |= {key: None if value != value else value for key, value in self.means.items()}
        made |= {"group": self.group, "rank_low": self.rank_low, "rank_high": self.rank_high}
        made["intervals"] = {
            key: None if pair is None or pair[0] != pair[0] else list(pair)
            for key, pair in self.intervals.items()
        }
        return made


def order_of(board: Board) -> list[int]:
    """The runs best first, by the board's first measure; equal runs in the order given."""
    first = board.columns[0]
    means = [first.mean(row) for row in board.of(first.key)]
    worth = [float("-inf") if m != m else (-m if first.better == "less" else m) for m in means]
    return sorted(range(len(board.runs)), key=lambda run: -worth[run])


def standings(board: Board, order: Sequence[int], plan: Plan, tested: Sequence[Pair]) -> list[Standing]:
    """The rows of one board, best first; groups agree with what the pairs say."""
    first = board.columns[0]
    places = rank_intervals(first.worth(board.of(first.key)), seed=plan.seed)
    means = board.means()
    groups = groups_of(first.worth(means[:, 0]), apart(board, plan, tested), plan.alpha)
    flat = board.values.reshape(-1, len(board.queries))
    found = np.array(mean_intervals(flat, seed=plan.seed)).reshape(len(board.runs), len(board.columns), 2)
    rows = []
    for rank, run in enumerate(order, start=1):
        intervals = {
            column.key: (float(pair[0]), float(pair[1])) if column.averaged else None
            for column, pair in zip(board.columns, found[run], strict=True)
        }
        rows.append(
            Standing(
                rank=rank,
                run=board.runs[run],
                k=board.k,
                group=groups[run],
                rank_low=places[run][0],
                rank_high=places[run][1],
                means={column.key: float(m) for column, m in zip(board.columns, means[run], strict=True)},
                intervals=intervals,
            )
        )
    return rows
