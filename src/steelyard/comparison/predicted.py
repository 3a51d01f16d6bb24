"""compare(predicted=): runs compared by few human judgments and many predicted ones, by prediction-powered estimates.

All runs of a comparison share the weight of the predictions, so that differences are those of the means.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.comparison.judged import JudgedDocuments, Part, PartsOf
from steelyard.comparison.leaderboard import LeaderboardRow, best_first
from steelyard.comparison.pairs import Pair, equivalence_of, verdict_of_test
from steelyard.comparison.scores import ScoreTable
from steelyard.comparison.testing import ComparisonPlan
from steelyard.coverage import Coverage
from steelyard.errors import InputError, PolicyError
from steelyard.notes import Note, note
from steelyard.predicted import TopUnjudged, human_judged, most_unjudged, sample_notes, unjudged_notes, value_bounds
from steelyard.qrels import Qrels
from steelyard.statistics import adjust, relative_change, stars
from steelyard.statistics.arrays import snapped
from steelyard.statistics.corrections import interval_level
from steelyard.statistics.prediction_powered import (
    PredictionPowered,
    prediction_powered,
    prediction_powered_differences,
    shared_weight,
)
from steelyard.wording import listed, worded


class Series(NamedTuple):
    """What a measure is estimated from, runs x queries: human values (NaN if there is none) and predicted ones.

    `weight` is that of the predictions. `finite`: intervals are of the mean over exactly these queries.
    """

    human: Floats
    predicted: Floats
    weight: Floats
    finite: bool

    def differences(self, pairs: Sequence[tuple[int, int]], level: float = 0.95) -> list[PredictionPowered]:
        """The estimates of the differences of these runs."""
        return prediction_powered_differences(self.human, self.predicted, pairs, level, self.weight, finite=self.finite)


@dataclass(frozen=True, eq=False)
class Predictions:
    """The values of the runs by judgments of people and of a model, one table per cutoff; who predicted them.

    `human`: of the human-judged queries with predictions; `left_out`: those without.
    """

    human: tuple[ScoreTable, ...]
    predicted: tuple[ScoreTable, ...]
    judge: str
    pool: Any
    left_out: tuple[str, ...]
    these_queries: bool = False

    @classmethod
    def of(
        cls,
        qrels: Qrels,
        human: Sequence[ScoreTable],
        predicted: Sequence[ScoreTable],
        judge: str,
        pool: Any,
        plan: ComparisonPlan,
        these_queries: bool = False,
    ) -> Predictions:
        """Check that the tables can be combined, and restrict the human ones to the judged queries."""
        if plan.test != "t":
            raise PolicyError(
                f"predicted= has its own test, and test={plan.test} cannot be used with it; leave the test out."
            )
        if summaries := [column.key for column in human[0].columns if not column.averaged or column.geometric]:
            why = "not a mean over queries"
            raise InputError(f"{listed(summaries)} cannot be estimated from predicted judgments: {why}.")
        if unknown := sorted(set(human[0].runs) ^ set(predicted[0].runs)):
            raise InputError(
                f"{listed(unknown)} cannot be measured with both the human and the predicted judgments; leave "
                f"{worded(len(unknown), 'it', 'them')} out."
            )
        kept, left_out = human_judged(human[0].queries, qrels, predicted[0].queries)
        tables = tuple(_only(table, kept) for table in human)
        return cls(tables, tuple(predicted), judge, pool, tuple(left_out), these_queries)

    def kept(self, table: ScoreTable | None) -> ScoreTable | None:
        """Another table of the same queries, restricted to those of the human tables."""
        return None if table is None else _only(table, self.human[0].queries)

    @cached_property
    def _series(self) -> list[list[Series]]:
        """What every measure of every table is estimated from."""
        series: list[list[Series]] = []
        for human, predicted in zip(self.human, self.predicted, strict=True):
            place = {query: at for at, query in enumerate(predicted.queries)}
            places = [place[query] for query in human.queries]
            series.append([])
            for column in human.columns:
                y, f = np.full((len(human.runs), len(place)), np.nan), predicted.compared(column.key)
                y[:, places] = human.compared(column.key)
                # A run without any value of the measure does not count.
                counted = ~np.isnan(y).all(axis=1) & ~np.isnan(f).all(axis=1)
                series[-1].append(Series(y, f, shared_weight(y[counted], f[counted]), self.these_queries))
        return series

    @cached_property
    def estimates(self) -> list[list[list[PredictionPowered]]]:
        """The estimate of every table, measure and run."""
        return [
            [
                prediction_powered(*data[:2], value_bounds(column.measure), weight=data.weight, finite=data.finite)
                for column, data in zip(table.columns, series, strict=True)
            ]
            for table, series in zip(self.human, self._series, strict=True)
        ]

    def orders(self) -> list[list[int]]:
        """The runs of every table best first, by the estimates of the first measure."""
        return [
            best_first(table.columns[0], np.array([estimate.estimate for estimate in estimates[0]]))
            for table, estimates in zip(self.human, self.estimates, strict=True)
        ]

    def pairs(
        self, pairs: Sequence[Pair], plan: ComparisonPlan, judged: JudgedDocuments | None, parts: PartsOf
    ) -> list[Pair]:
        """The pairs with prediction-powered differences, intervals, p-values and verdicts.

        A significant difference is undecided if it is so by human judgments alone, or if it favours a run whose
        documents were probably the ones judged; any difference is, if too many of a run's first documents are unjudged.
        """
        final = list(pairs)
        suspected: Collection[str] = () if judged is None else judged.edges
        for number, table in enumerate(self.human):
            for place, column in enumerate(table.columns):
                series = self._series[number][place]
                gone = self._unjudged(judged, parts.get((column.key, table.k), ()))
                places = {
                    at: (table.runs.index(pair.run), table.runs.index(pair.baseline))
                    for at, pair in enumerate(final)
                    if (pair.measure, pair.k) == (column.key, table.k)
                }
                chosen = [at for at, both in places.items() if table.comparable(column, *both)]
                runs = [places[at] for at in chosen]
                differences = series.differences(runs)
                adjusted = adjust(np.array([diff.p for diff in differences]), plan.correction)  # type: ignore[arg-type]
                share = interval_level(adjusted, plan.correction, plan.alpha)  # type: ignore[arg-type]
                differences = series.differences(runs, 1 - plan.alpha * share)
                means = [estimate.estimate for estimate in self.estimates[number][place]]
                for at, (i, j), difference, p in zip(chosen, runs, differences, adjusted.tolist(), strict=True):
                    gap = snapped(series.human[i] - series.human[j])
                    by_test = verdict_of_test(column, difference.estimate, gap[~np.isnan(gap)], p, plan)
                    winner = {"better": final[at].run, "worse": final[at].baseline}.get(by_test)
                    left = max((gone[run] for run in (final[at].run, final[at].baseline) if run in gone), default=None)
                    undecided = winner is not None and (final[at].verdict == "undecided" or winner in suspected)
                    undecided = undecided or (left is not None and by_test not in ("equal", "not tested"))
                    sentence = difference.summary()
                    if left is not None:
                        sentence = f"People left {left.share:.0%} of the first {left.k} of {left.run} unjudged."
                    final[at] = replace(
                        final[at],
                        difference=means[i] - means[j],
                        relative=relative_change(means[i], means[j]),
                        p=difference.p,
                        p_adjusted=p,
                        stars="" if np.isnan(p) or undecided else stars(p),
                        low=difference.low,
                        high=difference.high,
                        smallest=float("nan"),
                        needed=None,
                        sentence=sentence,
                        verdict="undecided" if undecided else by_test,
                        equivalent=None if undecided or left else equivalence_of(difference.low, difference.high, plan),
                    )
        return final

    def rows(self, number: int, rows: Sequence[LeaderboardRow]) -> list[LeaderboardRow]:
        """The rows of one table of the leaderboard, best first, with estimates in place of means."""
        table, estimates = self.human[number], self.estimates[number]
        board = []
        for row in rows:
            run = table.runs.index(row.run)
            by_key = {column.key: by_run[run] for column, by_run in zip(table.columns, estimates, strict=True)}
            means = {key: one.estimate for key, one in by_key.items()}
            board.append(replace(row, means=means, intervals={key: (one.low, one.high) for key, one in by_key.items()}))
        return board

    def _unjudged(self, judged: JudgedDocuments | None, parts: Sequence[Part]) -> dict[str, TopUnjudged]:
        """The runs of whose first documents people left too many unjudged, by a measure."""
        if judged is None:
            return {}
        measures, queries = [part.measure for part in parts], self.human[0].queries
        by_run = {run: most_unjudged(run, measures, judged.alignments[run], queries) for run in self.human[0].runs}
        return {run: unjudged for run, unjudged in by_run.items() if unjudged is not None}

    def notes(self, judged: JudgedDocuments | None, parts: PartsOf) -> list[Note]:
        """Whose labels these are, what they add to the comparison of the first two runs, and what they need."""
        order = self.orders()[0]
        notes = [note("predicted-judgments", judge=self.judge)]
        if len(order) > 1:
            (estimate,) = self._series[0][0].differences([(order[0], order[1])])
            notes.append(note("predictions-worth", n=estimate.n, others=estimate.N, effective=estimate.effective_n))
            if estimate.helped:
                notes.append(note("estimated-together"))
        notes += unjudged_notes([unjudged for of in parts.values() for unjudged in self._unjudged(judged, of).values()])
        notes += sample_notes(self.human[0].queries, self.pool)
        if self.left_out:
            notes.append(note("no-predictions", count=len(self.left_out), examples=self.left_out[:3]))
        return notes

    def coverage(
        self, human: Mapping[str, Coverage], predicted: Mapping[str, Coverage], lists: Mapping[str, Alignment]
    ) -> dict[str, Coverage]:
        """The coverage of every run by human judgments; a query with predictions is not one without judgments."""
        coverage = {}
        for run, covered in human.items():
            answered = compress(lists[run].queries, lists[run].answered.tolist())
            ignored = predicted[run].without_judgments - len(set(answered) & set(self.left_out))
            coverage[run] = replace(covered, without_judgments=min(ignored, covered.without_judgments))
        return coverage


def _only(table: ScoreTable, queries: Sequence[str]) -> ScoreTable:
    """The table of these queries."""
    kept = set(queries)
    return table.where(np.array([query in kept for query in table.queries]))
