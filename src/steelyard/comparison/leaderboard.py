"""The leaderboard: runs best first, with intervals, rank intervals and tie groups; and the verdict on its leader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.pairs import DIFFERENT, NOT_SIGNIFICANT, NOT_TOGETHER, Pair
from steelyard.comparison.scores import COMPOSITE, Column, ScoreTable, label
from steelyard.comparison.testing import ComparisonPlan
from steelyard.statistics import groups_of, mean_intervals
from steelyard.statistics.arrays import ROUNDING
from steelyard.wording import SHOWN_NAMES, listed


@dataclass(frozen=True)
class LeaderboardRow:
    """A run (at a cutoff): its rank, the lowest and highest rank by the tests, groups, means and intervals.

    Runs that share a letter of `group` are not significantly different. Measures that are not averaged over queries
    have no interval. A run that was not measured has no rank, and its means are NaN.
    """

    rank: int | None
    run: str
    k: int | None
    group: str
    rank_low: int | None
    rank_high: int | None
    means: dict[str, float]
    intervals: dict[str, tuple[float, float] | None]


def order_of(table: ScoreTable) -> list[int]:
    """The runs best first, by the first measure; equal runs in the order given."""
    first = table.columns[0]
    return best_first(first, table.only([first.key]).means()[:, 0])


def best_first(column: Column, means: Floats) -> list[int]:
    """The positions of the means of a measure, best first; equal ones (to 12 digits) in the order given, NaN last."""
    worth = column.worth(np.where(np.isnan(means), -np.inf if column.better != "less" else np.inf, means))
    return sorted(range(len(means)), key=lambda run: -round(float(worth[run]), 12))


def leaderboard_rows(
    table: ScoreTable, order: Sequence[int], plan: ComparisonPlan, pairs: Sequence[Pair]
) -> list[LeaderboardRow]:
    """The rows of one score table in their order. `pairs` are every two runs on the first measure.

    By the tests, a rank is at least 1 + the number of significantly better runs, and at most that of all but the worse.
    """
    means = table.means()
    worth = np.empty(len(order))
    worth[list(order)] = -np.arange(len(order))
    # The corrected p-values of every two runs; 1 where the difference is undecided.
    matrix = np.ones((len(order), len(order)))
    one_is_better = np.ones(matrix.shape, dtype=bool)
    for pair in pairs:
        i, j = table.runs.index(pair.run), table.runs.index(pair.baseline)
        matrix[i, j] = matrix[j, i] = 1.0 if pair.verdict == "undecided" else pair.p_adjusted
        one_is_better[i, j] = one_is_better[j, i] = pair.verdict != DIFFERENT
    groups = groups_of(worth, matrix, plan.alpha)
    significant = (matrix < plan.alpha) & one_is_better
    better, worse = ((significant & side).sum(axis=1) for side in (worth > worth[:, None], worth < worth[:, None]))
    tested = np.stack([column.tested(table.compared(column.key)) for column in table.columns], axis=1)
    flat = tested.reshape(-1, len(table.queries))
    ends = np.array(mean_intervals(flat, seed=plan.seed)).reshape(len(table.runs), len(table.columns), 2)
    rows, keys = [], [column.key for column in table.columns]
    for rank, run in enumerate(order, start=1):
        intervals = {
            column.key: (column.mean_of(low), column.mean_of(high)) if column.averaged else None
            for column, (low, high) in zip(table.columns, ends[run].tolist(), strict=True)
        }
        ranks = 1 + int(better[run]), len(table.runs) - int(worse[run])
        own_means = dict(zip(keys, means[run].tolist(), strict=True))
        rows.append(LeaderboardRow(rank, table.runs[run], table.k, groups[run], *ranks, own_means, intervals))
    return rows


NOT_BELOW = "Not significantly below the leader"
"""The phrase for runs that are tied with the leader. They may differ significantly from each other."""


class Verdict(str):
    """The verdict of a comparison: which run leads, on what, by how much, and whether that is significant.

    `headline` is the first sentence, `tied` the runs that are not significantly below the leader, the leader first,
    `undecided` those whose difference from it depends on unjudged documents or on the overlap rule, and `unmeasured`
    those without values. `lead` has the parts of the headline where one run leads another. `labels`: who judged.
    """

    headline: str
    tied: tuple[str, ...]
    undecided: tuple[str, ...]
    unmeasured: tuple[str, ...]
    lead: Lead | None
    labels: str

    def __new__(
        cls,
        headline: str,
        details: Sequence[str] = (),
        tied: Sequence[str] = (),
        undecided: Sequence[str] = (),
        unmeasured: Sequence[str] = (),
        lead: Lead | None = None,
        labels: str = "",
    ) -> Verdict:
        not_measured = f"Not measured: {listed(list(unmeasured), SHOWN_NAMES)}." if unmeasured else ""
        verdict = super().__new__(cls, " ".join(filter(None, [headline, *details, not_measured, labels])))
        verdict.headline, verdict.lead, verdict.labels = headline, lead, labels
        verdict.tied, verdict.undecided, verdict.unmeasured = tuple(tied), tuple(undecided), tuple(unmeasured)
        return verdict

    @property
    def detail(self) -> str:
        """What follows the first sentence."""
        return self[len(self.headline) :].lstrip()


@dataclass(frozen=True)
class Lead:
    """A run that leads another: the leaders (several if equal), the next run, the outcome in words, longest first."""

    leaders: tuple[str, ...]
    second: str
    measure: str
    difference: float
    score: float
    significant: bool
    outcomes: tuple[str, ...]


def verdict_of(
    table: ScoreTable,
    rows: Sequence[LeaderboardRow],
    pairs: Sequence[Pair],
    predicted: bool = False,
    unmeasured: Sequence[str] = (),
    labels: str = "",
) -> Verdict:
    """The verdict on the first measure of a score table; `rows` are its rows, `pairs` every two runs on the measure.

    predicted: the differences are prediction-powered estimates, to which the power of a t test does not apply.
    """
    key = table.columns[0].key
    what = label("the composite score" if key == COMPOSITE else key, table.k)
    top = rows[0]
    score = f"{top.means[key]:.4f}"
    if len(rows) == 1:
        headline = f"{top.run} scores {score} on {what}; no other run to compare with."
        return Verdict(headline, tied=[top.run], unmeasured=unmeasured, labels=labels)
    values: dict[str, Floats] = dict(zip(table.runs, table.compared(key), strict=True))
    equal = [row.run for row in rows if np.allclose(values[row.run], values[top.run], 0.0, ROUNDING, equal_nan=True)]
    rest = [row for row in rows if row.run not in equal]
    if not rest:
        both = "both score" if len(equal) == 2 else "all score"
        headline = f"{listed(equal)} {both} {score} on {what}: no difference on any query."
        return Verdict(headline, tied=equal, unmeasured=unmeasured, labels=labels)
    second = rest[0]
    of_top = {run: pair for pair in pairs if top.run in pair.names for run in pair.names - {top.run}}
    lead_pair = of_top[second.run]
    difference = abs(lead_pair.difference)
    undecided = {run for run, pair in of_top.items() if pair.verdict == "undecided"}
    tied = [row.run for row in rest if of_top[row.run].verdict in (*NOT_SIGNIFICANT, DIFFERENT)]
    leads = f"{listed(equal)} (no difference on any query) lead" if len(equal) > 1 else f"{top.run} leads"
    headline = f"{leads} {second.run} on {what} by {difference:.4f} ({score})"
    if not difference:
        headline = f"{listed([*equal, second.run])} have the same mean on {what} ({score})"
    equivalent = f"; {lead_pair.equivalence}" if lead_pair.equivalence else ""
    outcomes = ["the difference is significant", "significant"]
    if not tied and not undecided and len(rest) > 1:
        others = "the difference is significant, and so are its differences from every other run"
        outcomes = [others, "significant, and so is its lead over every other run", "significant"]
    elif second.run in undecided and lead_pair.reason:
        short = lead_pair.reason.partition(" (")[0]
        outcomes = [f"undecided: {lead_pair.reason}", f"undecided: {short}", "undecided (overlap rule)"]
    elif second.run in undecided:
        outcomes = ["undecided, since it depends on unjudged documents", "undecided (unjudged documents)"]
    elif lead_pair.verdict == DIFFERENT:
        outcomes = ["the test and the means disagree, so neither is called better", "test and means disagree"]
    elif second.run in tied and predicted:
        outcomes = ["not significant"]
    elif lead_pair.reason == NOT_TOGETHER:
        outcomes = [f"not tested, since {NOT_TOGETHER}", "not tested"]
    elif second.run in tied:
        outcomes = list(lead_pair.power().clauses)
    details = [lead_pair.sentence] if predicted else []
    if tied:
        details.append(f"{NOT_BELOW}: {listed(tied, SHOWN_NAMES)}.")
    unclear = [row.run for row in rest if row.run in undecided] if undecided - {second.run} else []
    if unclear:
        why = "the overlap rule" if any(of_top[run].reason for run in unclear) else "unjudged documents"
        details.append(f"Undecided ({why}): {listed(unclear, SHOWN_NAMES)}.")
    significant = second.run not in tied and second.run not in undecided
    phrases = tuple(f"{outcome}{equivalent}" for outcome in outcomes)
    lead = Lead(tuple(equal), second.run, what, difference, float(top.means[key]), significant, phrases)
    headline = f"{headline}: {phrases[0]}."
    return Verdict(headline, details, [*equal, *tied], unclear, unmeasured, lead if difference else None, labels)
