"""Pairs of runs: is the difference real?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import isfinite
from typing import Any, cast

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.scores import Board, Column
from steelyard.comparison.tests import Plan
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
from steelyard.wording import SHOWN_NAMES, counted, listed


@dataclass(frozen=True)
class Pair:
    """One run against another on one measure, on the queries that both have a value for.

    `p_adjusted` accounts for the pairs tested on the measure, and `verdict` is what it says at the
    comparison's alpha. `low` and `high` are of this pair alone, and only where the measure is averaged.
    """

    run: str
    baseline: str
    measure: str
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

    def at_odds(self, alpha: float) -> bool:
        """Whether the interval leaves out 0 where p does not reach alpha, or the other way round."""
        if self.low != self.low or self.p_adjusted != self.p_adjusted:
            return False
        return (self.low > 0 or self.high < 0) != (self.p_adjusted < alpha)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is no finite number, which JSON cannot hold, as None."""
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
        measure=_label(board, column),
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
    """What a test says, in a word or two.

    What was tested and the difference shown may point different ways: ranks and signs are not means,
    and a geometric mean is not a mean. Then the runs differ, and neither is called the better one.
    """
    if p != p:
        return "no test"
    if not gap.any():
        return "the same"
    if not p < plan.alpha:
        return "cannot tell"
    ways = {difference > 0, float(gap.mean()) > 0}
    if plan.test in ("wilcoxon", "sign"):
        ways.add(int(np.sum(gap > 0)) > int(np.sum(gap < 0)))
    if len(ways) > 1:
        return "differs"
    if column.better == "neither":
        return "higher" if difference > 0 else "lower"
    return "better" if (difference > 0) == (column.better == "more") else "worse"


def apart(board: Board, plan: Plan, tested: Sequence[Pair]) -> Floats:
    """How sure it is that two runs differ on the board's first measure: adjusted p-values, runs x runs.

    A pair that the table tests has the table's p-value. With a baseline, the other pairs are a
    family of their own.
    """
    column = board.columns[0]
    couples = list(combinations(range(len(board.runs)), 2))
    asked = [_Asked(board, column, i, j) for i, j in couples]
    known = {
        (pair.run, pair.baseline): pair.p_adjusted for pair in tested if pair.measure == _label(board, column)
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


def _label(board: Board, column: Column) -> str:
    return column.key if board.k is None else f"{column.key} at {board.k}"


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


def untested(tested: Sequence[Pair]) -> list[str]:
    """A note for every reason that pairs have no test; measures that no pair was tested on go before single pairs."""
    reasons: dict[str, list[Pair]] = {}
    for pair in tested:
        if pair.p != pair.p:
            reasons.setdefault(pair.reason, []).append(pair)
    return [note for reason, pairs in reasons.items() for note in _notes(reason, pairs, tested)]


def _notes(reason: str, pairs: Sequence[Pair], tested: Sequence[Pair]) -> list[str]:
    measures = list(dict.fromkeys(pair.measure for pair in tested))
    whole = [m for m in measures if all(pair in pairs for pair in tested if pair.measure == m)]
    if len(whole) == len(measures):
        return [f"No test of {_couple(pairs[0]) if _one_couple(tested) else 'any two runs'}: {reason}."]
    notes = [f"No test of any two runs on {listed(whole, SHOWN_NAMES)}: {reason}."] if whole else []
    single: dict[tuple[str, ...], list[str]] = {}
    couples: dict[str, list[str]] = {}
    for pair in pairs:
        if pair.measure not in whole:
            couples.setdefault(_couple(pair), []).append(pair.measure)
    for couple, on in couples.items():
        single.setdefault(tuple(on), []).append(couple)
    notes += [
        f"No test of {listed(names, SHOWN_NAMES)} on {listed(on, SHOWN_NAMES)}: {reason}."
        for on, names in single.items()
    ]
    return notes


def _couple(pair: Pair) -> str:
    return f"{pair.run} against {pair.baseline}"


def _one_couple(tested: Sequence[Pair]) -> bool:
    return len({(pair.run, pair.baseline) for pair in tested}) == 1


MOST_NAMED = 10
"""Pairs that the note names; it counts the others."""


def disagreement(tested: Sequence[Pair], plan: Plan) -> list[str]:
    """One note that names the pairs whose interval and p disagree, and says why; none where all agree."""
    odd = [pair for pair in tested if pair.at_odds(plan.alpha)]
    if not odd:
        return []
    measures = list(dict.fromkeys(pair.measure for pair in tested))
    odd.sort(key=lambda pair: measures.index(pair.measure))
    more = f"; and {len(odd) - MOST_NAMED:,} more" if len(odd) > MOST_NAMED else ""
    return [
        f"Interval and p disagree on {counted(len(odd), 'pair')}: {_named(odd[:MOST_NAMED], plan.alpha)}{more}. "
        f"The 95 % interval is a bootstrap of each pair alone; p is by the {_tested(tested, plan)}. "
        "The verdicts go by p."
    ]


def _named(odd: Sequence[Pair], alpha: float) -> str:
    """The pairs, those of one measure and one baseline together."""
    alike: dict[tuple[bool, str, str], list[Pair]] = {}
    for pair in sorted(odd, key=lambda pair: pair.p_adjusted < alpha):
        alike.setdefault((pair.p_adjusted < alpha, pair.measure, pair.baseline), []).append(pair)
    said = []
    for (below, measure, baseline), pairs in alike.items():
        how = "the interval holds 0" if below else "the interval leaves out 0"
        runs = listed([pair.run for pair in pairs])
        each = ", ".join(shown_p(pair.p_adjusted) for pair in pairs)
        said.append(f"{runs} against {baseline} on {measure} ({how}, p is {each})")
    return "; ".join(said)


def _tested(tested: Sequence[Pair], plan: Plan) -> str:
    """The test, what it was corrected for, and alpha where the interval's level is another."""
    pairs = sum(pair.measure == tested[0].measure for pair in tested)
    said = f"paired {plan.test} test"
    if pairs > 1 and plan.test in FAMILY_TESTS:
        said += ", which corrects for all pairs of a measure"
    elif pairs > 1 and plan.correction != "none":
        said += f", corrected by {plan.correction} for the {pairs:,} pairs of a measure"
    return said if plan.alpha == 0.05 else f"{said}, and held against alpha {plan.alpha:g}"
