"""Decisions: each rule of a gate applied to each run, with the numbers that decide it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from steelyard.alignment.hits import Bools, Floats
from steelyard.comparison.movers import movers
from steelyard.comparison.pairs import NOT_TOGETHER
from steelyard.comparison.rules import TOLERANCE, Rule, not_worse, within_margin
from steelyard.comparison.scores import Column, ScoreTable
from steelyard.errors import InputError
from steelyard.gate.inputs import GateInput
from steelyard.gate.result import Loser, Row
from steelyard.gate.settings import GatePlan, option
from steelyard.gate.unjudged import judged_documents, lists_notes, unjudged_notes, with_judged
from steelyard.notes import Note, note
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
from steelyard.statistics.paired import PairedTest
from steelyard.wording import counted

SHOWN_LOSERS = 5
"""Queries that a row shows: those with the largest losses."""

POWER = 0.8
"""The power of the smallest change that a row reports as detectable."""


@dataclass(frozen=True)
class ResolvedRule:
    """A rule, the key of its measure in the result, its queries (None: all), and where it comes from."""

    rule: Rule
    key: str
    selected: Bools | None
    source: str = ""


@dataclass(frozen=True)
class RuleCase:
    """A rule and a run: the values of the run, and those of the baseline for the same queries."""

    resolved: ResolvedRule
    run: str
    baseline_run: str | None
    column: Column
    queries: tuple[str, ...]
    values: Floats
    baseline_values: Floats | None

    @property
    def rule(self) -> Rule:
        """The rule."""
        return self.resolved.rule

    @property
    def value(self) -> float:
        """The value of the run."""
        return self.column.mean(self.values)

    @property
    def reference(self) -> float:
        """The value of the baseline."""
        assert self.baseline_values is not None
        return self.column.mean(self.baseline_values)

    @property
    def differences(self) -> Floats:
        """The run minus the baseline, per query; 0 for differences by rounding, which depend on the machine.

        For a geometric mean, of the logarithms.
        """
        assert self.baseline_values is not None
        differences = self.column.tested(self.values) - self.column.tested(self.baseline_values)
        rounding = TOLERANCE * np.maximum(1.0, np.abs(self.baseline_values))
        return np.where(np.abs(differences) <= rounding, 0.0, differences)

    @property
    def gains(self) -> Floats:
        """The differences, negative where the rule forbids them: of a rule on a rise, inverted."""
        return self.differences if self.rule.kind == "drop" else -self.differences

    @property
    def averaged(self) -> bool:
        """Whether the value follows from a mean over queries, so that an interval of the mean is its interval."""
        return self.column.averaged

    def interval(self, seed: int) -> tuple[float, float]:
        """The 95% interval of the difference from the baseline."""
        low, high = mean_interval(self.differences, seed=seed)
        return self.column.change(low, self.reference), self.column.change(high, self.reference)


def decide(
    result: GateInput,
    baseline: GateInput | None,
    runs: Sequence[tuple[str, str | None]],
    rules: Sequence[ResolvedRule],
    plan: GatePlan,
    strict_judged: bool = False,
) -> tuple[list[Row], list[Note]]:
    """One row per run and rule, and notes on them. `runs` are (run, run of the baseline).

    A rule whose outcome depends on unjudged documents is undecided: it does not pass if `strict_judged`.
    """
    notes = lists_notes(result, baseline, runs, rules, strict_judged)
    documents = {run: judged_documents(result, run, baseline, other, plan.seed) for run, other in runs}
    cases = [_case(result, baseline, run, other, each, notes) for run, other in runs for each in rules]
    tested = [case for case in cases if case.rule.tested]
    _check_power(tested, plan)
    p_values = iter(_tests(tested, plan))
    notes += _unchanged_note(cases)
    rows = []
    for case in cases:
        if case.rule.margin:
            row = _margin_row(case, plan)
        elif case.rule.tested:
            row = _tested_row(case, *next(p_values), plan=plan, tests=len(tested), notes=notes)
        else:
            row = _threshold_row(case, plan, notes)
        row = replace(row, losers=_losers(case, result), source=case.resolved.source)
        judged, parts = documents[case.run], result.parts(case.column.key)
        if judged is not None and parts:
            row = with_judged(row, case, judged, parts, plan, len(tested))
        rows.append(replace(row, passed=not strict_judged) if row.undecided else row)
    others = {run: other for run, other in runs if other is not None}
    notes += unjudged_notes(rows, documents, others, strict_judged)
    return rows, notes


def _unchanged_note(cases: Sequence[RuleCase]) -> list[Note]:
    """A note on runs whose values all equal those of the baseline: they may not have been run again."""
    compared = [case for case in cases if case.rule.needs_baseline]
    changed = {case.run for case in compared if case.differences.any()}
    same = [run for run in dict.fromkeys(case.run for case in compared) if run not in changed]
    return [note("gate-values-unchanged", runs=same)] if same else []


def _case(
    result: GateInput,
    baseline: GateInput | None,
    run: str,
    baseline_run: str | None,
    resolved: ResolvedRule,
    notes: list[Note],
) -> RuleCase:
    """The values that a rule is about; an error if there are none, or if they are times that cannot be compared."""
    rule, key = resolved.rule, resolved.key
    if (rule.tested or rule.margin) and result.column(key).timed:
        other = None if baseline is None else baseline.sessions.get(str(baseline_run))
        _check_times(rule, key, result.sessions.get(run), other)
    values = result.values(run, key)
    selected = np.ones(len(values), dtype=bool) if resolved.selected is None else resolved.selected
    known = selected & ~np.isnan(values)
    reference = None
    if (
        baseline is not None
        and baseline_run is not None
        and baseline.definitions.get(key) == result.definitions[key]
    ):
        places = {query: place for place, query in enumerate(baseline.scores.queries)}
        own = baseline.values(baseline_run, key)
        reference = np.array([own[places[q]] if q in places else math.nan for q in result.scores.queries])
        if rule.needs_baseline:
            missing = int(np.sum(selected & np.isnan(values) & ~np.isnan(reference)))
            if missing:
                notes.append(note("gate-values-missing", run=run, measure=key, count=missing))
            known &= ~np.isnan(reference)
    if not known.any():
        both = " in both the result and the baseline" if rule.needs_baseline else ""
        raise InputError(
            f"{rule.text}: run {run!r} has no query with a value of {key}{both}; a rule over no queries has no meaning."
        )
    return RuleCase(
        resolved=resolved,
        run=run,
        baseline_run=baseline_run,
        column=result.column(key),
        queries=tuple(q for q, keep in zip(result.scores.queries, known.tolist(), strict=True) if keep),
        values=values[known],
        baseline_values=None if reference is None else reference[known],
    )


def _check_times(rule: Rule, key: str, session: str | None, other: str | None) -> None:
    """Raise if a rule infers from times that were not measured together."""
    if session is None or session != other:
        raise InputError(
            f"{rule.text}: {NOT_TOGETHER}. Write a threshold instead, as in {key} <= 0.2 or {key} <= baseline + 0.05."
        )


def _check_power(cases: Sequence[RuleCase], plan: GatePlan) -> None:
    """Raise if a test can never be significant: too few queries, whatever their values."""
    test = cast(PairedTest, plan.test)
    times = len(cases) if plan.correction in ("bonferroni", "holm") else 1
    for case in cases:
        n = len(case.queries)
        lowest = smallest_p(test, n, plan.permutations) * times if n > 1 else math.inf
        if lowest >= plan.alpha:
            corrected = f", corrected for {times} tests," if times > 1 and n > 1 else ""
            advice = (
                "Use more queries, or write a threshold."
                if n == 1
                else f"Use more queries, or choose {option('test', 't')}."
            )
            raise InputError(
                f"{case.rule.text}: with {counted(n, 'query', 'queries')} of run {case.run!r} no difference can be "
                f"significant by the {plan.test} test{corrected} at alpha {plan.alpha:g}: the rule would always pass. "
                f"{advice}"
            )


def _tests(cases: Sequence[RuleCase], plan: GatePlan) -> list[tuple[float, float]]:
    """(p, adjusted p) of every case: one-sided, for a change for the worse, corrected over all of them."""
    test = cast(PairedTest, plan.test)
    raw = [fall_tests(case.gains[None, :], test, plan.permutations, seed=plan.seed)[0].p for case in cases]
    adjusted = adjust(raw, cast(Correction, plan.correction)).tolist() if raw else []
    return list(zip(raw, adjusted, strict=True))


def _tested_row(
    case: RuleCase, p: float, adjusted: float, *, plan: GatePlan, tests: int, notes: list[Note]
) -> Row:
    """A rule of significance: it fails if the run is significantly worse."""
    differences, n = case.differences, len(case.queries)
    difference = case.value - case.reference
    low, high = case.interval(plan.seed)
    times = tests if plan.correction != "none" else 1
    failed = not adjusted >= plan.alpha
    # A one-sided test at alpha has the power of a two-sided one at twice that.
    power = power_analysis(differences, POWER, 2.0 * plan.alpha / times, significant=failed)
    detectable = abs(case.column.change(-power.smallest, case.reference))
    counts = tally(case.gains)
    p_shown = f"p = {p:.2g}" + (f" ({adjusted:.2g} corrected)" if adjusted != p else "")
    mean = "" if case.averaged else " in the mean change per query"
    effect = cohens_d(differences)
    change = f"{_change(difference)} [{low:+.4f}, {high:+.4f}], effect {effect:+.2f}{mean}, {p_shown}"
    if not differences.any():
        why = f"the same on each of {n:,} queries"
    elif failed:
        why = f"{change}; {counts.losses:,} of {n:,} queries worse, {counts.wins:,} better"
    else:
        why = f"{change}; {n:,} queries detect a {case.rule.kind} of {detectable:.4f} {POWER:.0%} of the time"
        if bool(case.gains.mean() < 0) and power.needed is not None and power.needed > n:
            why += f", about {power.needed:,} would be needed if the true {case.rule.kind} is this large"
        if detectable > abs(case.reference) > 0:
            notes.append(
                note(
                    "gate-too-few-queries",
                    rule=case.rule.text,
                    run=case.run,
                    queries=n,
                    kind=case.rule.kind,
                    value=abs(case.reference),
                )
            )
    return Row(
        run=case.run,
        baseline=case.baseline_run,
        rule=case.rule,
        measure=case.column.key,
        value=case.value,
        needed=f"no significant {case.rule.kind} from {case.reference:.4f}",
        passed=not failed,
        why=why,
        queries=n,
        reference=case.reference,
        difference=difference,
        low=low,
        high=high,
        effect=effect,
        p=p,
        p_adjusted=adjusted,
        detectable=detectable,
    )


def _margin_row(case: RuleCase, plan: GatePlan) -> Row:
    """Non-inferiority and equivalence: decided by the 95% interval of the mean difference.

    The interval is two-sided, so the chance to pass a run whose true loss is the margin is 2.5%, not 5%; several
    rules need no correction, because all of them have to pass.
    """
    rule, differences, n = case.rule, case.differences, len(case.queries)
    difference = case.value - case.reference
    low, high = case.interval(plan.seed) if case.averaged and n > 1 else (math.nan, math.nan)
    less = case.column.better == "less"
    worst, best = (-high, -low) if less else (low, high)
    passed = within_margin(low, high, rule.number)
    if rule.kind == "not worse":
        passed = not_worse(low, high, rule.number, case.column.better)
    if math.isnan(low):
        why = "no interval: one query, or a value that is not a mean over queries"
    else:
        why = f"{_change(difference)} [{low:+.4f}, {high:+.4f}] on {counted(n, 'query', 'queries')}"
        if not passed:
            what = "a larger loss" if rule.kind == "not worse" else "a larger difference"
            why += f"; the interval does not exclude {what}"
            shifted = differences + (-rule.number if less else rule.number)
            power = power_analysis(shifted, POWER, plan.alpha, significant=False)
            advises = not case.column.geometric and (worst + best) / 2 > -rule.number
            if power.needed is not None and power.needed > n and advises:
                why += f"; about {power.needed:,} queries would be needed if the true difference is the measured one"
    form = "not worse than" if rule.kind == "not worse" else "equivalent to"
    return Row(
        run=case.run,
        baseline=case.baseline_run,
        rule=rule,
        measure=case.column.key,
        value=case.value,
        needed=f"{form} {case.reference:.4f} within {rule.number:g}",
        passed=passed,
        why=why,
        queries=n,
        reference=case.reference,
        difference=difference,
        low=_known(low),
        high=_known(high),
        effect=cohens_d(differences),
    )


def _threshold_row(case: RuleCase, plan: GatePlan, notes: list[Note]) -> Row:
    """A threshold: a number, or the value of the baseline plus a number."""
    rule, value, n = case.rule, case.value, len(case.queries)
    relative = rule.kind == "baseline"
    bound = rule.number + (case.reference if relative else 0.0)
    passed = rule.kept(value, bound)
    better = case.column.better
    if (better == "less") == (rule.operator in (">=", ">")) and better != "neither":
        notes.append(note("gate-rule-direction", rule=rule.text, measure=case.column.key, better=better))
    digits = _digits(value, bound)
    low, high = (math.nan, math.nan)
    if case.averaged and n > 1:
        own = mean_interval(case.column.tested(case.values), seed=plan.seed)
        low, high = case.interval(plan.seed) if relative else map(case.column.mean_of, own)
    interval = (
        "" if low != low else f" [{low:+.4f}, {high:+.4f}]" if relative else f" [{low:.4f}, {high:.4f}]"
    )
    parts = (
        [] if passed else [f"{abs(value - bound):.{digits}f} {'too high' if value > bound else 'too low'}"]
    )
    parts.append(f"{_change(value - case.reference)}{interval}" if relative else interval.strip())
    parts.append(counted(n, "query", "queries"))
    offset = f" {'-' if rule.number < 0 else '+'} {abs(rule.number):g}" if rule.number else ""
    of_baseline = f" (baseline {case.reference:.4f}{offset})" if relative else ""
    return Row(
        run=case.run,
        baseline=case.baseline_run,
        rule=rule,
        measure=case.column.key,
        value=value,
        needed=f"{rule.operator} {bound:.{digits}f}{of_baseline}",
        passed=passed,
        why=", ".join(part for part in parts if part),
        queries=n,
        reference=case.reference if relative else None,
        difference=value - case.reference if relative else None,
        low=_known(low),
        high=_known(high),
    )


def _losers(case: RuleCase, result: GateInput) -> tuple[Loser, ...]:
    """The queries with the largest losses from the baseline; for a threshold without losses, the worst queries."""
    lost = _losses(case)
    if not lost and not case.rule.needs_baseline:
        order = np.argsort(case.column.worth(case.values), kind="stable")[:SHOWN_LOSERS].tolist()
        lost = [(case.queries[place], None, float(case.values[place])) for place in order]
    return tuple(Loser(query, before, after, result.texts.get(query, "")) for query, before, after in lost)


def _losses(case: RuleCase) -> list[tuple[str, float | None, float]]:
    """(query, before, after) of the largest losses; none without a baseline."""
    if case.baseline_values is None:
        return []
    after = np.where(case.differences == 0.0, case.baseline_values, case.values)
    values = np.array([[after], [case.baseline_values]])
    table = ScoreTable(("run", "baseline"), (case.column,), case.queries, values)
    less = case.column.better == "less"
    moved = movers(table, case.column.key, 0, 1, None, most=len(case.queries))
    lost = [each for each in moved if (each.difference > 0) == less]
    return [(each.query_id, each.before, each.after) for each in lost[:SHOWN_LOSERS]]


def _change(difference: float) -> str:
    if difference == 0:
        return "unchanged"
    return f"{'fell' if difference < 0 else 'rose'} by {abs(difference):.4f}"


def _digits(value: float, bound: float) -> int:
    """The number of decimals that shows a difference between the two, at least four."""
    return next((d for d in range(4, 12) if f"{value:.{d}f}" != f"{bound:.{d}f}"), 4)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
