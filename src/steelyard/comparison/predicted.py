"""compare(predicted=): runs compared by few human judgments and many predicted ones.

The values by human judgments are corrected with those by predicted judgments, as in `evaluate(predicted=)`: means,
differences, intervals and p-values are prediction-powered estimates.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.leaderboard import LeaderboardRow, best_first
from steelyard.comparison.pairs import Pair, equivalence_of, verdict_of_test
from steelyard.comparison.scores import Column, ScoreTable
from steelyard.comparison.testing import ComparisonPlan
from steelyard.errors import InputError, PolicyError
from steelyard.notes import Note, note
from steelyard.predicted import human_judged, sample_notes, value_bounds
from steelyard.qrels import Qrels
from steelyard.statistics import adjust, relative_change, stars
from steelyard.statistics.corrections import interval_level
from steelyard.statistics.prediction_powered import (
    PredictionPowered,
    prediction_powered,
    prediction_powered_differences,
)
from steelyard.wording import listed, worded


@dataclass(frozen=True, eq=False)
class Predictions:
    """The values of the runs by predicted judgments, one table per cutoff, and who predicted them.

    `human` are the tables by human judgments, of the human-judged queries that have predictions; `left_out` are
    those that have none.
    """

    human: tuple[ScoreTable, ...]
    predicted: tuple[ScoreTable, ...]
    judge: str
    pool: Any
    left_out: tuple[str, ...]

    @classmethod
    def of(
        cls,
        qrels: Qrels,
        human: Sequence[ScoreTable],
        predicted: Sequence[ScoreTable],
        judge: str,
        pool: Any,
        plan: ComparisonPlan,
    ) -> Predictions:
        """Check that the tables can be combined, and restrict the human ones to the judged queries."""
        if plan.test != "t":
            raise PolicyError(
                f"predicted= has its own test, and test={plan.test} cannot be used with it; leave the test out."
            )
        summaries = [column.key for column in human[0].columns if not column.averaged or column.geometric]
        if summaries:
            raise InputError(
                f"{listed(summaries)} cannot be estimated from predicted judgments: not a mean over queries."
            )
        if human[0].runs != predicted[0].runs:
            unknown = sorted(set(human[0].runs) ^ set(predicted[0].runs))
            raise InputError(
                f"{listed(unknown)} cannot be measured with both the human and the predicted judgments; leave "
                f"{worded(len(unknown), 'it', 'them')} out."
            )
        kept, left_out = human_judged(human[0].queries, qrels, predicted[0].queries)
        tables = tuple(_only(table, kept) for table in human)
        return cls(tables, tuple(predicted), judge, pool, tuple(left_out))

    def kept(self, table: ScoreTable | None) -> ScoreTable | None:
        """Another table of the same queries, restricted to those of the human tables."""
        return None if table is None else _only(table, self.human[0].queries)

    def _values(self, number: int) -> tuple[Floats, Floats]:
        """The values of one table, runs x measures x queries: human ones (NaN if there is none), and predicted ones."""
        human, predicted = self.human[number], self.predicted[number]
        place = {query: at for at, query in enumerate(predicted.queries)}
        values = np.full_like(predicted.values, np.nan)
        values[:, :, [place[query] for query in human.queries]] = human.values
        return values, predicted.values

    @cached_property
    def estimates(self) -> list[list[list[PredictionPowered]]]:
        """The estimate of every table, measure and run."""
        made = []
        for number, table in enumerate(self.human):
            human, predicted = self._values(number)
            made.append(
                [
                    prediction_powered(human[:, place], predicted[:, place], _bounds(column))
                    for place, column in enumerate(table.columns)
                ]
            )
        return made

    def orders(self) -> list[list[int]]:
        """The runs of every table best first, by the estimates of the first measure."""
        return [
            best_first(table.columns[0], np.array([each.estimate for each in found[0]]))
            for table, found in zip(self.human, self.estimates, strict=True)
        ]

    def pairs(self, pairs: Sequence[Pair], plan: ComparisonPlan, suspected: Collection[str] = ()) -> list[Pair]:
        """The pairs with prediction-powered differences, intervals, p-values and verdicts.

        A significant difference is undecided if it is so by human judgments alone, or if it favours a run that the
        qrels look to be made from (`suspected`).
        """
        made = list(pairs)
        for number, table in enumerate(self.human):
            human, predicted = self._values(number)
            for place, column in enumerate(table.columns):
                places = {
                    at: (table.runs.index(pair.run), table.runs.index(pair.baseline))
                    for at, pair in enumerate(made)
                    if (pair.measure, pair.k) == (column.key, table.k)
                }
                chosen = [at for at, both in places.items() if table.comparable(column, *both)]
                runs = [places[at] for at in chosen]
                found = prediction_powered_differences(human[:, place], predicted[:, place], runs)
                adjusted = adjust(np.array([each.p for each in found]), plan.correction)  # type: ignore[arg-type]
                share = interval_level(adjusted, plan.correction, plan.alpha)  # type: ignore[arg-type]
                found = prediction_powered_differences(
                    human[:, place], predicted[:, place], runs, 1 - plan.alpha * share
                )
                means = [each.estimate for each in self.estimates[number][place]]
                gaps = human[:, place]
                for at, (i, j), each, p in zip(chosen, runs, found, adjusted.tolist(), strict=True):
                    gap = gaps[i] - gaps[j]
                    by_test = verdict_of_test(column, each.estimate, gap[~np.isnan(gap)], p, plan)
                    winner = {"better": made[at].run, "worse": made[at].baseline}.get(by_test)
                    undecided = winner is not None and (made[at].verdict == "undecided" or winner in suspected)
                    made[at] = replace(
                        made[at],
                        difference=each.estimate,
                        relative=relative_change(means[j] + each.estimate, means[j]),
                        p=each.p,
                        p_adjusted=p,
                        stars="" if p != p or undecided else stars(p),
                        low=each.low,
                        high=each.high,
                        smallest=float("nan"),
                        needed=None,
                        sentence=each.summary(),
                        verdict="undecided" if undecided else by_test,
                        equivalent=None if undecided else equivalence_of(each.low, each.high, plan),
                    )
        return made

    def rows(self, number: int, rows: Sequence[LeaderboardRow]) -> list[LeaderboardRow]:
        """The rows of one table of the leaderboard, best first, with estimates in place of means."""
        table, found = self.human[number], self.estimates[number]
        made = []
        for row in rows:
            run = table.runs.index(row.run)
            each = {column.key: found[place][run] for place, column in enumerate(table.columns)}
            made.append(
                replace(
                    row,
                    means={key: one.estimate for key, one in each.items()},
                    intervals={key: (one.low, one.high) for key, one in each.items()},
                )
            )
        return made

    def notes(self) -> list[Note]:
        """Whose labels these are, what they add to the comparison of the first two runs, and what they need."""
        human, predicted = self._values(0)
        order = self.orders()[0]
        made = [note("predicted-judgments", judge=self.judge)]
        if len(order) > 1:
            (found,) = prediction_powered_differences(human[:, 0], predicted[:, 0], [(order[0], order[1])])
            made.append(note("predictions-worth", n=found.n, others=found.N, effective=found.effective_n))
            if found.helped:
                made.append(note("estimated-separately"))
        made += sample_notes(self.human[0].queries, self.pool)
        if self.left_out:
            made.append(note("no-predictions", count=len(self.left_out), examples=self.left_out[:3]))
        return made


def _only(table: ScoreTable, queries: Sequence[str]) -> ScoreTable:
    """The table of these queries."""
    kept = set(queries)
    return table.where(np.array([query in kept for query in table.queries]))


def _bounds(column: Column) -> tuple[float, float] | None:
    """The bounds of the values of a column; None where it has none, or its measure is not known."""
    return None if column.measure is None else value_bounds(column.measure)
