"""Pairs of runs: the difference on each measure, its interval, its test and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import isfinite
from typing import Any, cast

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.scores import Board, Column, label
from steelyard.comparison.tests import Plan
from steelyard.notes import Note, note
from steelyard.statistics import (
    FAMILY_TESTS,
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


@dataclass(frozen=True)
class Pair:
    """One run compared with another on one measure, on the queries that both have a value for.

    `k` is the cutoff of the row, where rows are made for several. `p_adjusted` is corrected for the pairs tested
    on the measure, and `verdict` follows from it at the comparison's alpha: better, worse, not significant,
    equal (no difference on any query) or not tested; different where test and means disagree on the direction,
    higher or lower where the measure has no better direction. `low` and `high` are the interval of this pair
    alone, for measures that are averaged.
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

    @property
    def label(self) -> str:
        """The measure with the cutoff of the row."""
        return label(self.measure, self.k)

    def disagrees(self, alpha: float) -> bool:
        """Whether the interval excludes 0 and p is not below alpha, or the other way round."""
        if self.low != self.low or self.p_adjusted != self.p_adjusted:
            return False
        return (self.low > 0 or self.high < 0) != (self.p_adjusted < alpha)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite, which JSON cannot hold, as None."""
        return {
            key: None if isinstance(v, float) and not isfinite(v) else v for key, v in asdict(self).items()
        }


def pairs_of(boards: Sequence[Board], plan: Plan, orders: Sequence[Sequence[int]]) -> list[Pair]:
    """Every run against the baseline, or, without one, every two runs, the higher-ranked first.

    The boards are of the same queries.
    """
    asked = [
        _Asked(board, column, i, j)
        for board, order in zip(boards, orders, strict=True)
        for i, j in _couples(board, plan, order)
        for column in board.columns
    ]
    if not asked:
        return []
    gaps = np.array([each.gap for each in asked])
    p_values, reasons = (
        _family_tests(asked, plan) if plan.test in FAMILY_TESTS else _separate_tests(gaps, plan)
    )
    adjusted = p_values if plan.test in FAMILY_TESTS else _adjusted(asked, p_values, plan)
    intervals = mean_intervals(gaps, seed=plan.seed)
    return [
        _pair(each, (float(p), float(q)), interval, reason, plan)
        for each, p, q, interval, reason in zip(asked, p_values, adjusted, intervals, reasons, strict=True)
    ]


@dataclass(frozen=True)
class _Asked:
    """A pair of runs to be tested on a measure."""

    board: Board
    column: Column
    run: int
    baseline: int

    @property
    def values(self) -> tuple[Floats, Floats]:
        values = self.board.of(self.column.key)
        return values[self.run], values[self.baseline]

    @property
    def gap(self) -> Floats:
        mine, theirs = self.values
        return mine - theirs


def _pair(
    each: _Asked, p: tuple[float, float], interval: tuple[float, float], reason: str, plan: Plan
) -> Pair:
    column, board, gap = each.column, each.board, each.gap
    paired = ~np.isnan(gap)
    mine, theirs = (column.mean(values[paired]) for values in each.values)
    outcome = tally(column.worth(gap))
    low, high = interval if column.averaged else (float("nan"), float("nan"))
    power = power_analysis(gap, alpha=plan.alpha, separated=bool(p[1] < plan.alpha))
    return Pair(
        run=board.runs[each.run],
        baseline=board.runs[each.baseline],
        measure=column.key,
        k=board.k,
        difference=mine - theirs,
        relative=relative_change(mine, theirs),
        p=p[0],
        p_adjusted=p[1],
        stars="" if p[1] != p[1] else stars(p[1]),
        low=low,
        high=high,
        effect=cohens_d(gap),
        wins=outcome.wins,
        ties=outcome.ties,
        losses=outcome.losses,
        queries=power.n,
        smallest=power.smallest,
        needed=power.needed,
        sentence=power.sentence,
        reason=reason,
        verdict=_verdict(column, mine - theirs, gap[paired], p[1], plan),
    )


def _verdict(column: Column, difference: float, gap: Floats, p: float, plan: Plan) -> str:
    """The verdict of a test.

    The test and the difference of the means may have different signs: ranks and signs are not means, and a
    geometric mean is not a mean. Then the runs are different, and neither is called better.
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


def apart(board: Board, plan: Plan, tested: Sequence[Pair]) -> Floats:
    """Adjusted p-values of every pair on the board's first measure, runs x runs.

    A pair that the table tests has the table's p-value. With a baseline, the other pairs are a
    family of their own.
    """
    column = board.columns[0]
    couples = list(combinations(range(len(board.runs)), 2))
    asked = [_Asked(board, column, i, j) for i, j in couples]
    known = {
        (pair.run, pair.baseline): pair.p_adjusted
        for pair in tested
        if (pair.measure, pair.k) == (column.key, board.k)
    }
    found = [known.get(_names(each), known.get(_names(each)[::-1])) for each in asked]
    new = [number for number, p in enumerate(found) if p is None]
    if new:
        others = [asked[number] for number in new]
        if plan.test in FAMILY_TESTS:
            fresh, _ = _family_tests(others, plan)
        else:
            raw, _ = _separate_tests(np.array([each.gap for each in others]), plan)
            fresh = adjust(raw, cast(Correction, plan.correction))
        for number, p in zip(new, fresh.tolist(), strict=True):
            found[number] = p
    sure = np.ones((len(board.runs), len(board.runs)))
    for (i, j), p in zip(couples, found, strict=True):
        sure[i, j] = sure[j, i] = p
    return sure


def _adjusted(asked: Sequence[_Asked], p_values: Floats, plan: Plan) -> Floats:
    """The p-values corrected for the number of pairs tested on the same measure."""
    adjusted = np.empty(len(asked))
    for numbers in _by_measure(asked):
        adjusted[numbers] = adjust(p_values[numbers], cast(Correction, plan.correction))
    return adjusted


def _by_measure(asked: Sequence[_Asked]) -> list[list[int]]:
    """The places of the tests of each measure."""
    places: dict[tuple[int | None, str], list[int]] = {}
    for number, each in enumerate(asked):
        places.setdefault((each.board.k, each.column.key), []).append(number)
    return list(places.values())


def _names(each: _Asked) -> tuple[str, str]:
    return each.board.runs[each.run], each.board.runs[each.baseline]


def _couples(board: Board, plan: Plan, order: Sequence[int]) -> list[tuple[int, int]]:
    if plan.baseline is None:
        return list(combinations(order, 2))
    base = board.runs.index(plan.baseline)
    return [(run, base) for run in order if run != base]


def _separate_tests(gaps: Floats, plan: Plan) -> tuple[Floats, list[str]]:
    results = paired_tests(gaps, cast(PairedTest, plan.test), permutations=plan.permutations, seed=plan.seed)
    return np.array([result.p for result in results]), [result.reason for result in results]


def _family_tests(asked: Sequence[_Asked], plan: Plan) -> tuple[Floats, list[str]]:
    """One joint test of all runs for each measure."""
    together = tukey if plan.test == "tukey" else max_t
    p_values, reasons = np.empty(len(asked)), [""] * len(asked)
    for numbers in _by_measure(asked):
        first = asked[numbers[0]]
        couples = [(asked[n].run, asked[n].baseline) for n in numbers]
        result = together(first.board.of(first.column.key), seed=plan.seed, pairs=couples)
        p_values[numbers] = result.p
        for number in numbers:
            reasons[number] = result.reason
    return p_values, reasons


def untested(tested: Sequence[Pair]) -> list[Note]:
    """A note for every reason that pairs could not be tested; measures without any test come before single pairs."""
    reasons: dict[str, list[Pair]] = {}
    for pair in tested:
        if pair.p != pair.p:
            reasons.setdefault(pair.reason, []).append(pair)
    return [found for reason, pairs in reasons.items() for found in _untested(reason, pairs, tested)]


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


def disagreement(tested: Sequence[Pair], plan: Plan) -> list[Note]:
    """One note that names the pairs whose interval and p-value disagree, with the reason."""
    odd = [pair for pair in tested if pair.disagrees(plan.alpha)]
    if not odd:
        return []
    labels = list(dict.fromkeys(pair.label for pair in tested))
    odd.sort(key=lambda pair: (pair.p_adjusted < plan.alpha, labels.index(pair.label)))
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
                for pair in odd
            ],
            test=plan.test,
            correction=correction,
            alpha=plan.alpha,
        )
    ]
