"""The verdicts: each rule on each run, with the numbers that decide it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from steelyard.alignment.hits import Bools, Floats
from steelyard.comparison.board import Board, Column
from steelyard.comparison.movers import movers
from steelyard.comparison.rules import TOLERANCE, Rule
from steelyard.errors import InputError
from steelyard.gate.advice import option
from steelyard.gate.measured import Measured
from steelyard.gate.plan import Plan
from steelyard.gate.result import Loser, Row
from steelyard.statistics import (
    adjust,
    cohens_d,
    fall_tests,
    mean_interval,
    power_analysis,
    smallest_p,
    tally,
)
from steelyard.statistics.corrections import Correction
from steelyard.statistics.tests import PairedTest
from steelyard.wording import SHOWN_NAMES, counted, listed, worded

MOST_LOSERS = 5
POWER = 0.8


@dataclass(frozen=True)
class Asked:
    """A rule with the measure it means in the result, its queries (None: all), and where it comes from."""

    rule: Rule
    key: str
    chosen: Bools | None
    source: str = ""


@dataclass(frozen=True)
class _Case:
    """A rule on a run: its values on the queries that count, and the baseline's on the same ones."""

    asked: Asked
    run: str
    other: str | None
    column: Column
    queries: tuple[str, ...]
    mine: Floats
    theirs: Floats | None

    @property
    def rule(self) -> Rule:
        return self.asked.rule

    @property
    def value(self) -> float:
        return self.column.mean(self.mine)

    @property
    def reference(self) -> float:
        assert self.theirs is not None
        return self.column.mean(self.theirs)

    @property
    def gap(self) -> Floats:
        """The differences, 0 where they are rounding only: another machine may round otherwise."""
        assert self.theirs is not None
        gap = self.mine - self.theirs
        rounding = TOLERANCE * np.maximum(1.0, np.abs(self.theirs))
        return np.where(np.abs(gap) <= rounding, 0.0, gap)

    @property
    def averaged(self) -> bool:
        """Whether the value is the mean over queries, so that an interval of the mean is its interval."""
        return self.column.averaged


def verdicts(
    now: Measured,
    base: Measured | None,
    runs: Sequence[tuple[str, str | None]],
    asked: Sequence[Asked],
    plan: Plan,
) -> tuple[list[Row], list[str]]:
    """A row for every run and rule, and what should be known about them."""
    said: list[str] = []
    cases = [_case(now, base, run, other, each, said) for run, other in runs for each in asked]
    tested = [case for case in cases if case.rule.tested]
    _refuse_blind(tested, plan)
    p_values = _tests(tested, plan)
    found = iter(p_values)
    said += _unmoved(cases)
    rows = []
    for case in cases:
        if case.rule.tested:
            row = _tested(case, *next(found), plan=plan, tests=len(tested), said=said)
        else:
            row = _bounded(case, plan, said)
        rows.append(replace(row, losers=_losers(case, now), source=case.asked.source))
    return rows, said


def _unmoved(cases: Sequence[_Case]) -> list[str]:
    """A word on runs whose every value is the baseline's: they may not have been run again."""
    against = [case for case in cases if case.rule.needs_baseline]
    moved = {case.run for case in against if case.gap.any()}
    same = [run for run in dict.fromkeys(case.run for case in against) if run not in moved]
    return (
        [f"Every value checked equals the baseline's: {listed(same, SHOWN_NAMES)}. Was it run again?"]
        if same
        else []
    )


def _case(
    now: Measured, base: Measured | None, run: str, other: str | None, asked: Asked, said: list[str]
) -> _Case:
    """The values that a rule looks at; an error where there are none."""
    mine = now.values(run, asked.key)
    inside = np.ones(len(mine), dtype=bool) if asked.chosen is None else asked.chosen
    theirs = None
    known = inside & ~np.isnan(mine)
    if (
        base is not None
        and other is not None
        and base.definitions.get(asked.key) == now.definitions[asked.key]
    ):
        places = {query: place for place, query in enumerate(base.board.queries)}
        held = base.values(other, asked.key)
        theirs = np.array([held[places[q]] if q in places else math.nan for q in now.board.queries])
        if asked.rule.needs_baseline:
            only = int(np.sum(inside & np.isnan(mine) & ~np.isnan(theirs)))
            if only:
                said.append(
                    f"Run {run!r} has no value of {asked.key} on "
                    f"{counted(only, 'query that has', 'queries that have')} one in "
                    f"the baseline; {worded(only, 'it is', 'they are')} left out."
                )
            known &= ~np.isnan(theirs)
    if not known.any():
        both = " in both the result and the baseline" if asked.rule.needs_baseline else ""
        raise InputError(
            f"{asked.rule.text}: run {run!r} has no query with a value of {asked.key}{both}; a rule over no queries says nothing."
        )
    kept = tuple(query for query, keep in zip(now.board.queries, known.tolist(), strict=True) if keep)
    return _Case(
        asked,
        run,
        other,
        now.column(asked.key),
        kept,
        mine[known],
        None if theirs is None else theirs[known],
    )


def _refuse_blind(cases: Sequence[_Case], plan: Plan) -> None:
    """An error where a test could never find anything: too few queries, whatever their values."""
    test = cast(PairedTest, plan.test)
    times = len(cases) if plan.correction in ("bonferroni", "holm") else 1
    for case in cases:
        n = len(case.queries)
        least = smallest_p(test, n, plan.permutations) * times if n > 1 else math.inf
        if least >= plan.alpha:
            what = "one query" if n == 1 else f"{n} queries"
            over = f", corrected for {times} tests," if times > 1 and n > 1 else ""
            remedy = (
                "Ask more queries, or write a threshold."
                if n == 1
                else f"Ask more queries, or choose {option('test', 't')}."
            )
            raise InputError(
                f"{case.rule.text}: {what} of run {case.run!r} can never show a significant difference "
                f"by the {plan.test} test{over} at alpha {plan.alpha:g}: the rule would always pass. {remedy}"
            )


def _tests(cases: Sequence[_Case], plan: Plan) -> list[tuple[float, float]]:
    """(p, adjusted p) of every case: one-sided, for the worse, corrected over all of them."""
    test = cast(PairedTest, plan.test)
    raw = [
        fall_tests(_forbidden(case)[None, :], test, plan.permutations, seed=plan.seed)[0].p for case in cases
    ]
    adjusted = adjust(raw, cast(Correction, plan.correction)).tolist() if raw else []
    return list(zip(raw, adjusted, strict=True))


def _forbidden(case: _Case) -> Floats:
    """The differences, turned so that they fall where the rule says they must not go."""
    return case.gap if case.rule.kind == "drop" else -case.gap


def _tested(case: _Case, p: float, adjusted: float, *, plan: Plan, tests: int, said: list[str]) -> Row:
    """A rule of significance: broken where the run is significantly worse."""
    gap, n = case.gap, len(case.queries)
    difference = case.value - case.reference
    low, high = mean_interval(gap, seed=plan.seed)
    times = tests if plan.correction != "none" else 1
    broken = not adjusted >= plan.alpha
    # A one-sided test at alpha has the power of a two-sided one at twice that.
    power = power_analysis(gap, POWER, 2.0 * plan.alpha / times, separated=broken)
    counts = tally(_forbidden(case))
    p_shown = f"p = {p:.2g}" + (f" ({adjusted:.2g} corrected)" if adjusted != p else "")
    mean = "" if case.averaged else " in the mean change per query"
    found = f"{_changed(difference)} [{low:+.4f}, {high:+.4f}], effect {cohens_d(gap):+.2f}{mean}, {p_shown}"
    if not gap.any():
        why = f"the same on each of {n:,} queries"
    elif broken:
        why = f"{found}; {counts.losses:,} of {n:,} queries worse, {counts.wins:,} better"
    else:
        worse = bool(_forbidden(case).mean() < 0)
        why = f"{found}; {n:,} queries find a {case.rule.kind} of {power.smallest:.4f} {100 * POWER:g} % of the time"
        if worse and power.needed is not None and power.needed > n:
            why += f", one like this would take {power.needed:,}"
        if power.smallest > abs(case.reference) > 0:
            said.append(
                f"{case.rule.text}: {n:,} queries of run {case.run!r} are too few to tell: they would likely miss even "
                f"a {case.rule.kind} of {abs(case.reference):.4f}, the baseline's whole value."
            )
    return Row(
        run=case.run,
        baseline=case.other,
        rule=case.rule,
        measure=case.column.key,
        value=case.value,
        needed=f"no significant {case.rule.kind} from {case.reference:.4f}",
        passed=not broken,
        why=why,
        queries=n,
        reference=case.reference,
        difference=difference,
        low=low,
        high=high,
        effect=cohens_d(gap),
        p=p,
        p_adjusted=adjusted,
        notices=power.smallest,
    )


def _bounded(case: _Case, plan: Plan, said: list[str]) -> Row:
    """A threshold: a number, or the baseline's value and a number."""
    rule, value, n = case.rule, case.value, len(case.queries)
    moving = rule.kind == "baseline"
    bound = rule.number + (case.reference if moving else 0.0)
    kept = rule.kept(value, bound)
    if (case.column.better == "less") == (rule.operator in (">=", ">")) and case.column.better != "neither":
        said.append(
            f"{rule.text}: {case.column.better} of {case.column.key} is better; is the sign the right way round?"
        )
    digits = _digits(value, bound)
    gap = case.gap if moving else None
    low, high = (math.nan, math.nan)
    if case.averaged and n > 1:
        low, high = mean_interval(case.mine if gap is None else gap, seed=plan.seed)
    span = "" if low != low else f" [{low:.4f}, {high:.4f}]" if gap is None else f" [{low:+.4f}, {high:+.4f}]"
    parts = (
        [f"{abs(value - bound):.{digits}f} {'too high' if value > bound else 'short'}"] if not kept else []
    )
    parts.append(f"{_changed(value - case.reference)}{span}" if moving else span.strip())
    parts.append(counted(n, "query", "queries"))
    offset = f" {'-' if rule.number < 0 else '+'} {abs(rule.number):g}" if rule.number else ""
    from_baseline = f" (baseline {case.reference:.4f}{offset})" if moving else ""
    return Row(
        run=case.run,
        baseline=case.other,
        rule=rule,
        measure=case.column.key,
        value=value,
        needed=f"{rule.operator} {bound:.{digits}f}{from_baseline}",
        passed=kept,
        why=", ".join(part for part in parts if part),
        queries=n,
        reference=case.reference if moving else None,
        difference=value - case.reference if moving else None,
        low=low if low == low else None,
        high=high if high == high else None,
    )


def _losers(case: _Case, now: Measured) -> tuple[Loser, ...]:
    """The queries that lost most against the baseline; for a threshold that none lost on, the worst."""
    lost = _lost(case)
    if not lost and not case.rule.needs_baseline:
        order = np.argsort(case.column.worth(case.mine), kind="stable")[:MOST_LOSERS].tolist()
        lost = [(case.queries[place], None, float(case.mine[place])) for place in order]
    return tuple(Loser(query, before, after, now.texts.get(query, "")) for query, before, after in lost)


def _lost(case: _Case) -> list[tuple[str, float | None, float]]:
    """(query, before, after) of those that lost most; none where there is no baseline."""
    if case.theirs is None:
        return []
    values = np.array([[np.where(case.gap == 0.0, case.theirs, case.mine)], [case.theirs]])
    board = Board(("run", "baseline"), (case.column,), case.queries, values)
    less = case.column.better == "less"
    moved = movers(board, case.column.key, 0, 1, None, most=len(case.queries))
    lost = [each for each in moved if (each.difference > 0) == less]
    return [(each.query_id, each.before, each.after) for each in lost[:MOST_LOSERS]]


def _changed(difference: float) -> str:
    if difference == 0:
        return "unchanged"
    return f"{'fell' if difference < 0 else 'rose'} by {abs(difference):.4f}"


def _digits(value: float, bound: float) -> int:
    """As many decimals as tell the two apart, four at least."""
    return next((d for d in range(4, 12) if f"{value:.{d}f}" != f"{bound:.{d}f}"), 4)
