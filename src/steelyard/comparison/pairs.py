"""Pairs of runs: the difference on each measure, its interval, its test and the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import Any, NamedTuple, cast

import numpy as np

from steelyard import statistics
from steelyard.alignment.hits import Floats
from steelyard.comparison.rules import within_margin
from steelyard.comparison.scores import Column, ScoreTable, label
from steelyard.comparison.testing import ComparisonPlan
from steelyard.comparison.unjudged import RANK_TESTS as RANK_TESTS
from steelyard.notes import Note, note
from steelyard.statistics.arrays import ROUNDING, snapped
from steelyard.statistics.corrections import Correction, interval_level, margin_level, student_margin
from steelyard.statistics.intervals import BOOTSTRAP_FROM, share_interval
from steelyard.statistics.paired import PairedTest

NOT_TOGETHER = "the times were not measured together, by turns in one bench, so the load of the machine may differ"
NOT_SIGNIFICANT = ("not significant", "equal", "not tested")  # Verdicts of pairs without a significant difference.
DIFFERENT = "different"  # The verdict where a significant test and the means disagree on the direction.


@dataclass(frozen=True)
class Pair:
    """One run compared with another on one measure (at the cutoff `k`), on the queries that every run has a value for.

    `p_adjusted` is corrected for the pairs tested on the measure, and `verdict` follows from it at the comparison's
    alpha: better, worse, not significant, undecided (it depends on unjudged documents or on the overlap rule), equal
    (no difference on any query) or not tested; different where test and means disagree on the direction, higher or
    lower where the measure has no better direction. `low` and `high` are the interval of the difference, for measures
    that are averaged: 95% at an alpha of 0.05, corrected as `p_adjusted` is (for Holm at the Bonferroni level).
    `smallest` is the smallest difference that so many queries detect with 80% power, `needed` the number of queries
    that the observed difference needs; `sentence` states both. `equivalent` is the margin of equivalence if the
    interval lies within it whatever unjudged documents are. Fields from `judged_run` on: see `judged.Conventions`.
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
    def names(self) -> frozenset[str]:
        return frozenset((self.run, self.baseline))

    @property
    def label(self) -> str:
        """The measure with the cutoff of the row."""
        return label(self.measure, self.k)

    @property
    def named(self) -> dict[str, str]:
        """The runs and the measure, as values of a note."""
        return {"run": self.run, "baseline": self.baseline, "measure": self.label}

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
            return f"Not tested: {self.reason}."
        return self.power(scale).sentence

    def power(self, scale: float = 1.0) -> statistics.PowerResult:
        """What so many queries can detect, with the differences multiplied by a factor."""
        significant = self.verdict not in NOT_SIGNIFICANT if self.queries > 1 else None
        difference, smallest = self.difference * scale, self.smallest * scale
        return statistics.PowerResult(self.queries, difference, math.nan, smallest, self.needed, significant)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite, which JSON cannot hold, as None."""
        return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in asdict(self).items()}


def tested_pairs(tests: Sequence[PairTest], plan: ComparisonPlan) -> list[Pair]:
    """The pairs of some tests, corrected for the number of pairs on each measure; tables have the same queries."""
    if not tests:
        return []
    outcomes = _outcomes(tests, plan)
    alone = [number for number, outcome in enumerate(outcomes) if outcome.margin is None]
    gaps = np.array([test.tested_gap for test in tests])
    intervals = dict(zip(alone, statistics.mean_intervals(gaps[alone], 1 - plan.alpha, seed=plan.seed), strict=True))
    for number, (gap, outcome) in enumerate(zip(gaps, outcomes, strict=True)):
        if outcome.margin is not None:
            mean = math.nan if isnan(outcome.margin) else float(np.nanmean(gap))
            intervals[number] = mean - outcome.margin, mean + outcome.margin
    return [_pair(test, outcomes[number], intervals[number], plan) for number, test in enumerate(tests)]


@dataclass(frozen=True)
class PairTest:
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
        """The difference of the tested values on every query; 0 where it is only rounding."""
        run, baseline = map(self.column.tested, self.values)
        return snapped(run - baseline)

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


class _Outcome(NamedTuple):
    """What a test found: p, corrected p, why there is none, the level that the correction leaves to this pair alone,
    and the half-width of the corrected interval, or of Student's; None where neither is used."""

    p: float
    adjusted: float
    reason: str
    level: float
    margin: float | None


def _outcomes(tests: Sequence[PairTest], plan: ComparisonPlan) -> list[_Outcome]:
    """The outcome of every test; the tests of a measure are corrected together."""
    families: dict[tuple[int | None, str], list[int]] = {}
    for number, test in enumerate(tests):
        families.setdefault((test.table.k, test.column.key), []).append(number)
    outcomes: dict[int, _Outcome] = {}
    if plan.test in statistics.FAMILY_TESTS:
        for numbers in families.values():
            outcomes |= zip(numbers, _joint_test([tests[number] for number in numbers], plan), strict=True)
        return [outcomes[number] for number in range(len(tests))]
    gaps = np.array([test.tested_gap for test in tests])
    draws, correction = plan.permutations_used or 1, cast(Correction, plan.correction)
    results = statistics.paired_tests(gaps, cast(PairedTest, plan.test), draws, draws, plan.seed)
    for numbers in families.values():
        p_values = np.array([results[number].p for number in numbers])
        adjusted = statistics.adjust(p_values, correction)
        level = plan.alpha * interval_level(adjusted, correction, plan.alpha)
        for number, p, q in zip(numbers, p_values.tolist(), adjusted.tolist(), strict=True):
            reason = results[number].reason if tests[number].comparable else NOT_TOGETHER
            counts = statistics.tally(gaps[number])
            # Where few queries decide, Student's interval is the better one, by simulation.
            tied = counts.ties >= MOSTLY_TIED * (counts.wins + counts.ties + counts.losses)
            alone = correction == "none" or len(numbers) == 1
            margin = None if alone and not tied else student_margin(gaps[number], level)
            outcomes[number] = _Outcome(p, q, reason, level, margin)
    return [outcomes[number] for number in range(len(tests))]


def _joint_test(tests: Sequence[PairTest], plan: ComparisonPlan) -> list[_Outcome]:
    """One test of all pairs of a measure."""
    if not all(test.comparable for test in tests):
        return [_Outcome(math.nan, math.nan, NOT_TOGETHER, plan.alpha, math.nan)] * len(tests)
    values = tests[0].column.tested(tests[0].table.compared(tests[0].column.key))
    couples = [(test.run, test.baseline) for test in tests]
    joint_test = statistics.tukey if plan.test == "tukey" else statistics.max_t
    result = joint_test(values, plan.permutations_used or 1, plan.seed, couples, plan.alpha)
    return [
        _Outcome(p, p, result.reason, margin_level(test.gap, margin, plan.alpha), margin)
        for test, p, margin in zip(tests, result.p, result.margins, strict=True)
    ]


def _pair(test: PairTest, outcome: _Outcome, interval: tuple[float, float], plan: ComparisonPlan) -> Pair:
    column, table, gap = test.column, test.table, test.gap
    paired = ~np.isnan(gap)
    mine, theirs = (column.mean(values[paired]) for values in test.values)
    mine = theirs if abs(mine - theirs) < ROUNDING else mine
    counts = statistics.tally(column.worth(gap))
    ends = (column.change(end, theirs) if column.averaged else math.nan for end in interval)
    low, high = map(column.within_range, ends)
    unseen = _unseen(column, gap[paired], plan)
    significant = bool(outcome.adjusted < plan.alpha)
    own_p = outcome.p if plan.test in RANK_TESTS else None
    power = statistics.power_analysis(test.tested_gap, alpha=outcome.level, significant=significant, p=own_p)
    difference, smallest = column.change(power.difference, theirs), column.change(power.smallest, theirs)
    power = replace(power, difference=difference, smallest=smallest)
    return Pair(
        run=table.runs[test.run],
        baseline=table.runs[test.baseline],
        measure=column.key,
        k=table.k,
        difference=mine - theirs,
        relative=statistics.relative_change(mine, theirs),
        p=outcome.p,
        p_adjusted=outcome.adjusted,
        stars=statistics.stars(outcome.adjusted),
        low=low,
        high=high,
        effect=statistics.cohens_d(test.tested_gap),
        wins=counts.wins,
        ties=counts.ties,
        losses=counts.losses,
        queries=int(paired.sum()),
        smallest=power.smallest,
        needed=power.needed,
        sentence=power.sentence if test.comparable else f"Not tested: {outcome.reason}.",
        reason=outcome.reason,
        verdict=verdict_of_test(column, mine - theirs, gap[paired], outcome.adjusted, plan),
        equivalent=equivalence_of(low - unseen, high + unseen, plan),
    )


def _unseen(column: Column, gap: Floats, plan: ComparisonPlan) -> float:
    """How large a mean difference may be that no query shows: the exact bound of the share of queries with one, times
    the range of the measure. The interval of differences that are all 0 is 0 to 0, whatever their number."""
    if gap.any() or not len(gap):
        return 0.0
    return share_interval(0, len(gap), 1 - plan.alpha)[1] * (column.range[1] - column.range[0])


def equivalence_of(low: float, high: float, plan: ComparisonPlan) -> float | None:
    """The margin of equivalence, if the interval of a difference lies within it."""
    margin = plan.equivalence
    return margin if margin is not None and within_margin(low, high, margin) else None


def verdict_of_test(column: Column, difference: float, gap: Floats, p: float, plan: ComparisonPlan) -> str:
    """The verdict of a test; `different` where its sign is not that of the means: ranks are not means."""
    if isnan(p):
        return "not tested"
    if not gap.any():
        return "equal"
    if not p < plan.alpha:
        return "not significant"
    signs = {difference > 0, float(gap.mean()) > 0}
    if plan.test in ("wilcoxon", "sign"):
        signs.add(int(np.sum(gap > 0)) > int(np.sum(gap < 0)))
    if len(signs) > 1:
        return DIFFERENT
    if column.better == "neither":
        return "higher" if difference > 0 else "lower"
    return "better" if (difference > 0) == (column.better == "more") else "worse"


def untested_notes(tested: Sequence[Pair]) -> list[Note]:
    """A note for every reason that pairs could not be tested; measures without any test come before single pairs."""
    reasons: dict[str, list[Pair]] = {}
    for pair in tested:
        if isnan(pair.p):
            reasons.setdefault(pair.reason, []).append(pair)
    measures = list(dict.fromkeys(pair.label for pair in tested))
    notes = []
    for reason, pairs in reasons.items():
        whole = [m for m in measures if all(pair in pairs for pair in tested if pair.label == m)]
        measures_of: dict[str, list[str]] = {}
        for pair in pairs:
            if pair.label not in whole:
                measures_of.setdefault(f"{pair.run} vs {pair.baseline}", []).append(pair.label)
        where: dict[tuple[str, ...], list[str]] = {tuple(whole): []} if whole else {}
        for names, labels in measures_of.items():
            where.setdefault(tuple(labels), []).append(names)
        if len(whole) == len(measures):
            one = len({(pair.run, pair.baseline) for pair in tested}) == 1
            where = {(): [f"{pairs[0].run} vs {pairs[0].baseline}"] if one else []}
        notes += [note("not-tested", pairs=names, measures=list(of), reason=reason) for of, names in where.items()]
    return notes


def disagreement_notes(tested: Sequence[Pair], plan: ComparisonPlan) -> list[Note]:
    """A note on the pairs whose interval excludes 0 and p is not below alpha, or the other way round.

    It is a warning if both are of the mean difference of the pair alone, so that they should agree.
    """
    decided = [pair for pair in tested if not isnan(pair.low) and not isnan(pair.p_adjusted)]
    disagreeing = [pair for pair in decided if (pair.low > 0 or pair.high < 0) != (pair.p_adjusted < plan.alpha)]
    if not disagreeing:
        return []
    labels = list(dict.fromkeys(pair.label for pair in tested))
    disagreeing.sort(key=lambda pair: (pair.p_adjusted < plan.alpha, labels.index(pair.label)))
    several = sum(pair.label == tested[0].label for pair in tested) > 1
    correction = plan.corrected_by if several or plan.test in statistics.FAMILY_TESTS else "none"
    pairs = [
        (p.run, p.baseline, p.label, statistics.shown_p(p.p_adjusted), p.p_adjusted < plan.alpha) for p in disagreeing
    ]
    alike = not plan.interval_kind(several) and plan.test not in (*RANK_TESTS, *statistics.FAMILY_TESTS)
    how = {"test": plan.test, "correction": correction, "alpha": plan.alpha, "alike": alike}
    code = "uncertain-difference" if alike else "interval-and-p-disagree"
    return [note(code, pairs=pairs, **how, intervals=plan.intervals_are(several, interval_method(disagreeing)))]


def interval_method(pairs: Iterable[Pair]) -> str:
    """What the intervals of pairs alone are: Student's where few queries decide, otherwise from the bootstrap."""
    student = {p.queries < BOOTSTRAP_FROM or p.ties >= MOSTLY_TIED * p.queries for p in pairs if not isnan(p.low)}
    if student == {True, False}:
        return f"bootstrap or, with under {BOOTSTRAP_FROM} queries or {MOSTLY_TIED:.0%} ties, Student's"
    return "Student's" if True in student else "bootstrap"


MOST_RATIO = 1.5  # Of standard deviations, above which Tukey's test is known to call equal runs different too often.
MOSTLY_TIED = 0.8  # The share of tied queries from which intervals of a mean difference are known to be too narrow.


def assumption_notes(tested: Sequence[Pair], plan: ComparisonPlan) -> list[Note]:
    """Notes on pairs for which a test or an interval is not what it claims to be."""
    notes = []
    if plan.test == "tukey":
        for measure in dict.fromkeys(pair.label for pair in tested):
            # Cohen's d is the difference over the standard deviation.
            spreads = sorted(
                (abs(pair.difference / pair.effect), pair.run, pair.baseline)
                for pair in tested
                if pair.label == measure and pair.effect and math.isfinite(pair.effect)
            )
            if len(spreads) > 1 and spreads[-1][0] > MOST_RATIO * spreads[0][0]:
                ratio, wide, narrow = spreads[-1][0] / spreads[0][0], spreads[-1][1:], spreads[0][1:]
                values = {"measure": measure, "wide": wide, "narrow": narrow, "ratio": ratio, "alpha": plan.alpha}
                notes.append(note("unequal-spread", **values))
    decided = [pair for pair in tested if pair.wins + pair.losses and not isnan(pair.low)]
    if tied := [pair for pair in decided if pair.ties >= MOSTLY_TIED * pair.queries]:
        most = max(tied, key=lambda pair: pair.ties / pair.queries)
        notes.append(note("mostly-tied", pairs=len(tied), ties=most.ties, queries=most.queries, **most.named))
    return notes


# Chunkers. A span that a chunk boundary splits counts by one of three rules: a chunk must contain any of it, a
# majority, or the whole. Which chunker is better can depend on the rule, so every pair is tested by all three.

DEPENDS = "depends on how much of a passage a chunk must contain"  # The difference by each rule follows.

Rules = Mapping[str, Sequence[ScoreTable]]  # The score tables by each rule; the rule of the bench is one of them.


def by_every_rule(pairs: Sequence[Pair], tests: Sequence[PairTest], rules: Rules, plan: ComparisonPlan) -> list[Pair]:
    """The pairs; undecided, with the difference by each rule, where the rules do not agree on the verdict."""
    by_rule = []
    for tables in rules.values():
        at = {table.k: table for table in tables}
        by_rule.append(tested_pairs([replace(test, table=at[test.table.k]) for test in tests], plan))
    updated_pairs = []
    for pair, *views in zip(pairs, *by_rule, strict=True):
        if len({"not significant" if view.verdict == "equal" else view.verdict for view in views}) > 1:
            shown = (f"{view.difference:+.4f}{view.stars.removeprefix('ns')}" for view in views)
            reason = dependence(dict(zip(rules, shown, strict=True)))
            sentence = f"Undecided: {reason}."
            pair = replace(pair, verdict="undecided", stars="", equivalent=None, reason=reason, sentence=sentence)
        updated_pairs.append(pair)
    return updated_pairs


def dependence(outcomes: Mapping[str, str]) -> str:
    """The reason why something is undecided, with the outcome by each rule.

    >>> dependence({"any": "+0.1610***", "whole": "-0.4530***"})
    'depends on how much of a passage a chunk must contain (any +0.1610***, whole -0.4530***)'
    """
    return f"{DEPENDS} ({', '.join(f'{rule} {outcome}' for rule, outcome in outcomes.items())})"


def rule_outcomes(reason: str) -> str:
    """The outcomes in a reason of `dependence`; empty for other reasons.

    >>> rule_outcomes(dependence({"any": "+0.1610***", "whole": "-0.4530***"}))
    'any +0.1610***, whole -0.4530***'
    """
    return reason.removeprefix(f"{DEPENDS} (").removesuffix(")") if reason.startswith(DEPENDS) else ""


def overlap_notes(pairs: Sequence[Pair]) -> list[Note]:
    """A note on the pairs that depend on the rule; it names the first."""
    depending = [pair for pair in pairs if pair.reason.startswith(DEPENDS)]
    if not depending:
        return []
    first, measures = depending[0], list(dict.fromkeys(pair.label for pair in depending))
    return [note("depends-on-overlap", pairs=len(depending), measures=measures, **first.named, reason=first.reason)]
