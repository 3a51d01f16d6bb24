"""Pairs of runs: the difference on each measure, its interval, its test and the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, cast

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.rules import within_margin
from steelyard.comparison.scores import Column, ScoreTable, label
from steelyard.comparison.testing import ComparisonPlan
from steelyard.notes import Note, note
from steelyard.statistics import (
    FAMILY_TESTS,
    PowerResult,
    adjust,
    cohens_d,
    max_t,
    mean_intervals,
    paired_tests,
    power_analysis,
    relative_change,
    shown_p,
    stars,
    tally,
    tukey,
)
from steelyard.statistics.corrections import Correction
from steelyard.statistics.paired import PairedTest

NOT_TOGETHER = (
    "the times were not measured together, by turns in one bench, so the load of the machine may differ"
)
"""Why times are not tested."""


def no_test_sentence(reason: str) -> str:
    """A sentence in place of that on power."""
    return f"Not tested: {reason}."


@dataclass(frozen=True)
class Pair:
    """One run compared with another on one measure, on the queries that every run has a value for.

    `k` is the cutoff of the row, where there are rows for several. `p_adjusted` is corrected for the pairs tested
    on the measure, and `verdict` follows from it at the comparison's alpha: better, worse, not significant,
    undecided (significant, but it depends on unjudged documents), equal (no difference on any query) or not tested; different where test and means disagree on the direction,
    higher or lower where the measure has no better direction. `low` and `high` are the 95% interval of this pair
    alone, for measures that are averaged. `smallest` is the smallest difference that so many queries detect with
    80% power, `needed` the number of queries that the observed difference needs, and `sentence` states both.
    `equivalent` is the comparison's margin of equivalence if the interval lies within it, and that does not depend on
    unjudged documents. The fields from `judged_run` on are those of `judged.Conventions`.
    """

    run: str
    baseline: str
    measure: str
    k: int | None
    difference: float
    relative: float
    p: float
    p_adjusted: float
    stars: str
    low: float
    high: float
    effect: float
    wins: int
    ties: int
    losses: int
    queries: int
    smallest: float
    needed: int | None
    sentence: str
    reason: str = ""
    verdict: str = ""
    equivalent: float | None = None
    judged_run: float | None = None
    judged_baseline: float | None = None
    bound_low: float | None = None
    bound_high: float | None = None
    condensed: float | None = None
    condensed_p: float | None = None
    imputed: float | None = None
    imputed_p: float | None = None
    imputed_low: float | None = None
    imputed_high: float | None = None
    unjudged: int = 0

    @property
    def label(self) -> str:
        """The measure with the cutoff of the row."""
        return label(self.measure, self.k)

    @property
    def shown_verdict(self) -> str:
        """The verdict, with the margin of equivalence where that is shown."""
        return self.verdict if self.equivalent is None else f"{self.verdict}, {self.equivalence}"

    @property
    def equivalence(self) -> str:
        """The claim of equivalence; empty where there is none."""
        return "" if self.equivalent is None else f"equivalent within {self.equivalent:g}"

    def power_sentence(self, scale: float) -> str:
        """`sentence` with the differences multiplied by a factor, as for times in milliseconds."""
        if self.verdict == "not tested" and self.queries > 1:
            return no_test_sentence(self.reason)
        significant = self.verdict not in ("not significant", "equal", "not tested")
        return PowerResult(
            n=self.queries,
            difference=self.difference * scale,
            deviation=math.nan,
            smallest=self.smallest * scale,
            needed=self.needed,
            significant=significant if self.queries > 1 else None,
        ).sentence

    def disagrees(self, alpha: float) -> bool:
        """Whether the interval excludes 0 and p is not below alpha, or the other way round."""
        if self.low != self.low or self.p_adjusted != self.p_adjusted:
            return False
        return (self.low > 0 or self.high < 0) != (self.p_adjusted < alpha)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite, which JSON cannot hold, as None."""
        return {
            key: None if isinstance(v, float) and not math.isfinite(v) else v
            for key, v in asdict(self).items()
        }


def pairs_of(
    tables: Sequence[ScoreTable], plan: ComparisonPlan, orders: Sequence[Sequence[int]]
) -> list[Pair]:
    """Every run compared with the baseline or, without one, every two runs, the higher-ranked first.

    The score tables are of the same queries.
    """
    tests = [
        _Test(table, column, i, j)
        for table, order in zip(tables, orders, strict=True)
        for i, j in _couples(table, plan, order)
        for column in table.columns
    ]
    if not tests:
        return []
    p_values, adjusted, reasons = _p_values(tests, plan)
    intervals = mean_intervals(np.array([each.tested_gap for each in tests]), seed=plan.seed)
    return [
        _pair(each, (float(p), float(q)), interval, reason, plan)
        for each, p, q, interval, reason in zip(tests, p_values, adjusted, intervals, reasons, strict=True)
    ]


def adjusted_p_matrix(table: ScoreTable, plan: ComparisonPlan, pairs: Sequence[Pair]) -> Floats:
    """Adjusted p-values of every two runs on the first measure, runs x runs.

    Pairs that were tested keep their p-value; it is 1 for undecided ones. With a baseline, the other pairs are a family of their own.
    """
    column = table.columns[0]
    known = {
        frozenset((pair.run, pair.baseline)): 1.0 if pair.verdict == "undecided" else pair.p_adjusted
        for pair in pairs
        if (pair.measure, pair.k) == (column.key, table.k)
    }
    tests = [_Test(table, column, i, j) for i, j in combinations(range(len(table.runs)), 2)]
    others = [each for each in tests if each.names not in known]
    if others:
        _, adjusted, _ = _p_values(others, plan)
        known |= {each.names: p for each, p in zip(others, adjusted.tolist(), strict=True)}
    matrix = np.ones((len(table.runs), len(table.runs)))
    for each in tests:
        matrix[each.run, each.baseline] = matrix[each.baseline, each.run] = known[each.names]
    return matrix


def every_pair(
    table: ScoreTable, plan: ComparisonPlan, pairs: Sequence[Pair], order: Sequence[int]
) -> list[Pair]:
    """Every two runs on the first measure, the higher-ranked first; those that were tested as they are.

    With a baseline, the other pairs are a family of their own, as in `adjusted_p_matrix`.
    """
    column = table.columns[0]
    known = {
        frozenset((pair.run, pair.baseline)): pair
        for pair in pairs
        if (pair.measure, pair.k) == (column.key, table.k)
    }
    tests = [_Test(table, column, i, j) for i, j in combinations(order, 2)]
    others = [each for each in tests if each.names not in known]
    if others:
        p_values, adjusted, reasons = _p_values(others, plan)
        intervals = mean_intervals(np.array([each.tested_gap for each in others]), seed=plan.seed)
        known |= {
            each.names: _pair(each, (float(p), float(q)), interval, reason, plan)
            for each, p, q, interval, reason in zip(
                others, p_values, adjusted, intervals, reasons, strict=True
            )
        }
    return [known[each.names] for each in tests]


RANK_TESTS = ("wilcoxon", "sign")
"""Tests that are not of the mean difference."""


def corrected_interval(pair: Pair, column: Column, plan: ComparisonPlan) -> tuple[float, float]:
    """The interval of a difference at the level of its corrected test: it excludes 0 exactly if p_adjusted < alpha.

    The level is 1 - alpha * p / p_adjusted, and the half-width is |difference| * t(level) / t(p), with quantiles t of
    Student's distribution. For the paired t test this is Student's interval. For tests of ranks and signs, which are
    not of the mean, and for geometric means it is the interval of the pair alone.
    """
    if plan.test in RANK_TESTS or column.geometric or not column.averaged:
        return pair.low, pair.high
    if not 0.0 < pair.p < 1.0 or pair.difference == 0.0 or pair.queries < 2:
        return pair.low, pair.high
    from scipy.special import stdtrit

    level = plan.alpha * pair.p / pair.p_adjusted
    observed, needed = (float(-stdtrit(pair.queries - 1, p / 2)) for p in (pair.p, level))
    if not 0.0 < observed < math.inf:
        return pair.low, pair.high
    reach = abs(pair.difference) * needed / observed
    return pair.difference - reach, pair.difference + reach


@dataclass(frozen=True)
class _Test:
    """Two runs to be tested on a measure."""

    table: ScoreTable
    column: Column
    run: int
    baseline: int

    @property
    def values(self) -> tuple[Floats, Floats]:
        values = self.table.compared(self.column.key)
        return values[self.run], values[self.baseline]

    @property
    def gap(self) -> Floats:
        """The difference of the tested values on every query."""
        run, baseline = map(self.column.tested, self.values)
        return run - baseline

    @property
    def comparable(self) -> bool:
        return self.table.comparable(self.column, self.run, self.baseline)

    @property
    def tested_gap(self) -> Floats:
        """`gap`; NaN on every query if the runs may not be tested against each other."""
        return self.gap if self.comparable else np.full(len(self.table.queries), np.nan)

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.table.runs[self.run], self.table.runs[self.baseline]))


def _couples(table: ScoreTable, plan: ComparisonPlan, order: Sequence[int]) -> list[tuple[int, int]]:
    if plan.baseline is None:
        return list(combinations(order, 2))
    base = table.runs.index(plan.baseline)
    return [(run, base) for run in order if run != base]


def _p_values(tests: Sequence[_Test], plan: ComparisonPlan) -> tuple[Floats, Floats, list[str]]:
    """The p-values, those corrected for the number of pairs of the same measure, and why a pair has none."""
    measures: dict[tuple[int | None, str], list[int]] = {}
    for number, each in enumerate(tests):
        measures.setdefault((each.table.k, each.column.key), []).append(number)
    if plan.test in FAMILY_TESTS:
        p_values, reasons = _family_tests(tests, measures.values(), plan)
        return p_values, p_values, reasons
    gaps = np.array([each.tested_gap for each in tests])
    results = paired_tests(gaps, cast(PairedTest, plan.test), permutations=plan.permutations, seed=plan.seed)
    p_values = np.array([result.p for result in results])
    adjusted = np.empty(len(tests))
    for numbers in measures.values():
        adjusted[numbers] = adjust(p_values[numbers], cast(Correction, plan.correction))
    reasons = [
        result.reason if each.comparable else NOT_TOGETHER
        for each, result in zip(tests, results, strict=True)
    ]
    return p_values, adjusted, reasons


def _family_tests(
    tests: Sequence[_Test], measures: Iterable[list[int]], plan: ComparisonPlan
) -> tuple[Floats, list[str]]:
    """One joint test of all runs for each measure."""
    joint_test = tukey if plan.test == "tukey" else max_t
    p_values, reasons = np.empty(len(tests)), [""] * len(tests)
    for numbers in measures:
        if not all(tests[n].comparable for n in numbers):
            p_values[numbers] = np.nan
            reasons = [NOT_TOGETHER if n in numbers else reason for n, reason in enumerate(reasons)]
            continue
        first = tests[numbers[0]]
        couples = [(tests[n].run, tests[n].baseline) for n in numbers]
        values = first.column.tested(first.table.compared(first.column.key))
        result = joint_test(values, seed=plan.seed, pairs=couples)
        p_values[numbers] = result.p
        for number in numbers:
            reasons[number] = result.reason
    return p_values, reasons


def _pair(
    each: _Test, p: tuple[float, float], interval: tuple[float, float], reason: str, plan: ComparisonPlan
) -> Pair:
    column, table, gap = each.column, each.table, each.gap
    paired = ~np.isnan(gap)
    mine, theirs = (column.mean(values[paired]) for values in each.values)
    outcome = tally(column.worth(gap))
    low, high = (column.change(end, theirs) if column.averaged else math.nan for end in interval)
    power = power_of(column, each.tested_gap, theirs, plan.alpha, significant=bool(p[1] < plan.alpha))
    return Pair(
        run=table.runs[each.run],
        baseline=table.runs[each.baseline],
        measure=column.key,
        k=table.k,
        difference=mine - theirs,
        relative=relative_change(mine, theirs),
        p=p[0],
        p_adjusted=p[1],
        stars="" if p[1] != p[1] else stars(p[1]),
        low=low,
        high=high,
        effect=cohens_d(each.tested_gap),
        wins=outcome.wins,
        ties=outcome.ties,
        losses=outcome.losses,
        queries=int(paired.sum()),
        smallest=power.smallest,
        needed=power.needed,
        sentence=power.sentence if each.comparable else no_test_sentence(reason),
        reason=reason,
        verdict=verdict_of_test(column, mine - theirs, gap[paired], p[1], plan),
        equivalent=equivalence_of(low, high, plan),
    )


def equivalence_of(low: float, high: float, plan: ComparisonPlan) -> float | None:
    """The margin of equivalence, if the interval of a difference lies within it."""
    margin = plan.equivalence
    return margin if margin is not None and within_margin(low, high, margin) else None


def power_of(
    column: Column, gap: Floats, reference: float, alpha: float, *, significant: bool
) -> PowerResult:
    """What the queries can detect, from the differences of the tested values; `reference` is the other run's mean."""
    power = power_analysis(gap, alpha=alpha, significant=significant)
    return replace(
        power,
        difference=column.change(power.difference, reference),
        smallest=column.change(power.smallest, reference),
    )


def verdict_of_test(column: Column, difference: float, gap: Floats, p: float, plan: ComparisonPlan) -> str:
    """The verdict of a test.

    The test and the difference of the means may have different signs: ranks and signs are not means, and a
    percentile is not a mean. Then the runs are different, and neither is called better.
    """
    if p != p:
        return "not tested"
    if not gap.any():
        return "equal"
    if not p < plan.alpha:
        return "not significant"
    signs = {difference > 0, float(gap.mean()) > 0}
    if plan.test in ("wilcoxon", "sign"):
        signs.add(int(np.sum(gap > 0)) > int(np.sum(gap < 0)))
    if len(signs) > 1:
        return "different"
    if column.better == "neither":
        return "higher" if difference > 0 else "lower"
    return "better" if (difference > 0) == (column.better == "more") else "worse"


def untested_notes(tested: Sequence[Pair]) -> list[Note]:
    """A note for every reason that pairs could not be tested; measures without any test come before single pairs."""
    reasons: dict[str, list[Pair]] = {}
    for pair in tested:
        if pair.p != pair.p:
            reasons.setdefault(pair.reason, []).append(pair)
    return [each for reason, pairs in reasons.items() for each in _untested(reason, pairs, tested)]


def _untested(reason: str, pairs: Sequence[Pair], tested: Sequence[Pair]) -> list[Note]:
    measures = list(dict.fromkeys(pair.label for pair in tested))
    whole = [m for m in measures if all(pair in pairs for pair in tested if pair.label == m)]
    if len(whole) == len(measures):
        one = len({(pair.run, pair.baseline) for pair in tested}) == 1
        return [note("not-tested", pairs=[_names_of(pairs[0])] if one else [], measures=[], reason=reason)]
    notes = [note("not-tested", pairs=[], measures=whole, reason=reason)] if whole else []
    measures_of: dict[str, list[str]] = {}
    for pair in pairs:
        if pair.label not in whole:
            measures_of.setdefault(_names_of(pair), []).append(pair.label)
    pairs_of_measures: dict[tuple[str, ...], list[str]] = {}
    for names, labels in measures_of.items():
        pairs_of_measures.setdefault(tuple(labels), []).append(names)
    return notes + [
        note("not-tested", pairs=names, measures=labels, reason=reason)
        for labels, names in pairs_of_measures.items()
    ]


def _names_of(pair: Pair) -> str:
    return f"{pair.run} vs {pair.baseline}"


def disagreement_notes(tested: Sequence[Pair], plan: ComparisonPlan) -> list[Note]:
    """A note that names the pairs whose interval and p-value disagree, with the reason."""
    disagreeing = [pair for pair in tested if pair.disagrees(plan.alpha)]
    if not disagreeing:
        return []
    labels = list(dict.fromkeys(pair.label for pair in tested))
    disagreeing.sort(key=lambda pair: (pair.p_adjusted < plan.alpha, labels.index(pair.label)))
    correction = plan.correction
    if plan.test in FAMILY_TESTS:
        correction = plan.test
    elif sum(pair.label == tested[0].label for pair in tested) == 1:
        correction = "none"
    return [
        note(
            "interval-and-p-disagree",
            pairs=[
                (pair.run, pair.baseline, pair.label, shown_p(pair.p_adjusted), pair.p_adjusted < plan.alpha)
                for pair in disagreeing
            ],
            test=plan.test,
            correction=correction,
            alpha=plan.alpha,
        )
    ]
