"""Decisions: each rule of a gate applied to each run, with the numbers that decide it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import cast

import numpy as np

from steelyard.comparison.pairs import NOT_TOGETHER, dependence
from steelyard.comparison.scores import ScoreTable
from steelyard.errors import InputError
from steelyard.gating.cases import ResolvedRule, RuleCase, Runs, keeps_margin
from steelyard.gating.inputs import GateInput
from steelyard.gating.result import Loser, Row
from steelyard.gating.settings import GatePlan, option
from steelyard.gating.unjudged import judged_documents, lists_notes, unjudged_notes, with_judged
from steelyard.notes import Note, note
from steelyard.report.documents import plain_values
from steelyard.statistics import adjust, best_of_p, cohens_d, mean_interval, power_analysis, tally
from steelyard.statistics.corrections import Correction
from steelyard.statistics.paired import PairedTest, fall_tests, smallest_p
from steelyard.wording import counted

SHOWN_LOSERS = 5  # Queries that a row shows: those with the largest losses.
POWER = 0.8  # The power of the smallest change that a row reports as detectable.


def decide(
    result: GateInput,
    baseline: GateInput | None,
    runs: Runs,
    rules: Sequence[ResolvedRule],
    plan: GatePlan,
    strict_judged: bool,
) -> tuple[list[Row], list[Note]]:
    """One row per run and rule, and notes on them.

    A rule whose outcome depends on unjudged documents, or on the overlap rule of chunks, is undecided: it does not
    pass if `strict_judged`.
    """
    notes = lists_notes(result, baseline, runs, rules, strict_judged)
    documents = {run: judged_documents(result, run, baseline, other, plan.seed, plan.test) for run, other in runs}
    cases = _cases(result, baseline, runs, rules, notes)
    tests = sum(case.rule.tested for case in cases)
    # Runs whose values all equal those of the baseline may not have been run again.
    compared = [case for case in cases if case.rule.needs_baseline]
    changed = {case.run for case in compared if case.differences.any()}
    same = [run for run in dict.fromkeys(case.run for case in compared) if run not in changed]
    notes += [note("gate-values-unchanged", runs=same)] if same else []
    decided = _rows(cases, plan, notes)
    by_rule = {
        overlap: _rows(_cases(now, before, runs, rules, []), plan, [])
        for overlap, (now, before) in _by_overlap(result, baseline, rules, notes).items()
    }
    rows = []
    for at, (case, row) in enumerate(zip(cases, decided, strict=True)):
        row = replace(row, losers=_losers(case, result), source=case.resolved.source)
        judged, parts = documents[case.run], result.parts(case.column.key)
        if judged is not None and parts:
            row = with_judged(row, case, judged, parts, plan, tests)
        row = _by_every_rule(row, {overlap: overlap_rows[at] for overlap, overlap_rows in by_rule.items()})
        rows.append(replace(row, passed=not strict_judged) if row.undecided else row)
    others = {run: other for run, other in runs if other is not None}
    notes += unjudged_notes(rows, documents, others, strict_judged)
    return rows, notes


def _cases(
    result: GateInput, baseline: GateInput | None, runs: Runs, rules: Sequence[ResolvedRule], notes: list[Note]
) -> list[RuleCase]:
    return [
        _case(result, baseline, pair, resolved, notes)
        for pair in runs
        for resolved in rules
        # A rule on the ceiling of a stage is only about the runs that have that stage.
        if resolved.rule.ceiling is None or not np.isnan(result.values(pair[0], resolved.key)).all()
    ]


def _rows(cases: Sequence[RuleCase], plan: GatePlan, notes: list[Note]) -> list[Row]:
    """The rows of all cases of a gate, whose tests are corrected together."""
    tested = [case for case in cases if case.rule.tested]
    _check_power(tested, plan)
    p_values, rows = iter(_tests(tested, plan)), []
    for case in cases:
        if case.rule.margin:
            rows.append(_margin_row(case, plan))
        elif case.rule.tested:
            rows.append(_tested_row(case, *next(p_values), plan=plan, tests=len(tested), notes=notes))
        else:
            rows.append(_threshold_row(case, plan, notes))
    return rows


def _by_overlap(
    result: GateInput, baseline: GateInput | None, rules: Sequence[ResolvedRule], notes: list[Note]
) -> dict[str, tuple[GateInput, GateInput]]:
    """The result and the baseline by each overlap rule of chunks, if a rule compares values that depend on it."""
    keys = {resolved.key for resolved in rules if resolved.rule.needs_baseline}
    tables = [source.overlaps for source in (result, baseline) if source is not None]
    if baseline is None or not any(_differ(list(overlaps.values()), key) for overlaps in tables for key in keys):
        return {}
    if result.overlaps.keys() != baseline.overlaps.keys():
        notes.append(note("gate-overlap-unknown", source=(baseline if result.overlaps else result).name))
        return {}
    return {
        rule: (replace(result, scores=table), replace(baseline, scores=baseline.overlaps[rule]))
        for rule, table in result.overlaps.items()
    }


def _differ(tables: Sequence[ScoreTable], key: str) -> bool:
    """Whether the values of a measure differ between tables."""
    values = [table.of(key) for table in tables if key in [column.key for column in table.columns]]
    return not all(np.array_equal(array, values[0], equal_nan=True) for array in values)


def _by_every_rule(row: Row, others: Mapping[str, Row]) -> Row:
    """The row; undecided if it compares with the baseline and the overlap rules of chunks do not agree on it."""
    if not row.rule.needs_baseline or len({other.passed for other in others.values()}) < 2:
        return row
    differences = {rule: other.difference or 0.0 for rule, other in others.items()}
    outcomes = {rule: "passes" if other.passed else "fails" for rule, other in others.items()}
    reason = dependence({rule: f"{differences[rule]:+.4f} {outcome}" for rule, outcome in outcomes.items()})
    return replace(row, undecided=True, overlaps=differences, why=f"{reason}; {row.why}")


def _case(
    result: GateInput, baseline: GateInput | None, runs: tuple[str, str | None], given: ResolvedRule, notes: list[Note]
) -> RuleCase:
    """The values that a rule is about; an error if there are none, or if they are times that cannot be compared."""
    (run, baseline_run), rule, key = runs, given.rule, given.key
    if (rule.tested or rule.margin) and result.column(key).timed:
        session = result.sessions.get(run)
        if session is None or baseline is None or session != baseline.sessions.get(str(baseline_run)):
            instead = f"{key} <= 0.2 or {key} <= baseline + 0.05"
            raise InputError(f"{rule.text}: {NOT_TOGETHER}. Write a threshold instead, as in {instead}.")
    values = result.values(run, key)
    selected = np.ones(len(values), dtype=bool) if given.selected is None else given.selected
    measured = selected & ~np.isnan(values)
    reference = None
    if baseline is not None and baseline_run is not None and baseline.definitions.get(key) == result.definitions[key]:
        places = {query: place for place, query in enumerate(baseline.scores.queries)}
        baseline_values = baseline.values(baseline_run, key)
        reference = np.array([baseline_values[places[q]] if q in places else math.nan for q in result.scores.queries])
        if rule.needs_baseline:
            missing = int(np.sum(selected & np.isnan(values) & ~np.isnan(reference)))
            if missing:
                notes.append(note("gate-values-missing", run=run, measure=key, count=missing))
            measured &= ~np.isnan(reference)
    if not measured.any():
        both = " in both the result and the baseline" if rule.needs_baseline else ""
        raise InputError(
            f"{rule.text}: run {run!r} has no query with a value of {key}{both}; a rule over no queries has no meaning."
        )
    queries = tuple(compress(result.scores.queries, measured.tolist()))
    candidates = None
    if baseline is not None and rule.tested and (chosen_from := baseline.chosen_from.get(str(baseline_run))):
        candidates = np.array([[candidate[key].get(query, math.nan) for query in queries] for candidate in chosen_from])
    before = None if reference is None else reference[measured]
    return RuleCase(given, run, baseline_run, result.column(key), queries, values[measured], before, candidates)


def _check_power(cases: Sequence[RuleCase], plan: GatePlan) -> None:
    """Raise if a test can never be significant: too few queries, whatever their values."""
    test, draws = cast(PairedTest, plan.test), plan.permutations_used or 1
    times = len(cases) if plan.correction in ("bonferroni", "holm") else 1
    for case in cases:
        n = len(case.queries)
        lowest = smallest_p(test, n, draws, draws) * times if n > 1 else math.inf
        if lowest >= plan.alpha:
            corrected = f", corrected for {times} tests," if times > 1 and n > 1 else ""
            advice = "write a threshold" if n == 1 else f"choose {option('test', 't')}"
            raise InputError(
                f"{case.rule.text}: with {counted(n, 'query', 'queries')} of run {case.run!r} no difference can be "
                f"significant by the {plan.test} test{corrected} at alpha {plan.alpha:g}: the rule would always pass. "
                f"Use more queries, or {advice}."
            )


def _tests(cases: Sequence[RuleCase], plan: GatePlan) -> list[tuple[float, float]]:
    """(p, adjusted p) of every case: one-sided, for a change for the worse, corrected over all of them."""
    test, draws = cast(PairedTest, plan.test), plan.permutations_used or 1
    raw = []
    for case in cases:
        p = fall_tests(case.gains[None, :], test, draws, draws, plan.seed)[0].p
        lost = case.losses_from_candidates
        raw.append(p if lost is None else best_of_p(p, lost, seed=plan.seed))
    adjusted = adjust(raw, cast(Correction, plan.correction)).tolist() if raw else []
    return list(zip(raw, adjusted, strict=True))


def _tested_row(case: RuleCase, p: float, adjusted: float, *, plan: GatePlan, tests: int, notes: list[Note]) -> Row:
    """A rule of significance: it fails if the run is significantly worse."""
    differences, n = case.differences, len(case.queries)
    low, high = case.interval(plan.seed)
    failed = not adjusted >= plan.alpha
    # A one-sided test at alpha has the power of a two-sided one at twice that.
    alpha = 2.0 * plan.alpha / (tests if plan.correction != "none" else 1)
    power = power_analysis(differences, POWER, alpha, significant=failed)
    detectable = abs(case.column.change(-power.smallest, case.reference))
    counts = tally(case.gains)
    p_shown = f"p = {p:.2g}" + (f" ({adjusted:.2g} corrected)" if adjusted != p else "")
    mean = "" if case.column.averaged else " in the mean change per query"
    effect = cohens_d(differences)
    change = f"{_change(case)} [{low:+.4f}, {high:+.4f}], effect {effect:+.2f}{mean}, {p_shown}"
    if not differences.any():
        why = f"the same on each of {n:,} queries"
    elif failed:
        why = f"{change}; {counts.losses:,} of {n:,} queries worse, {counts.wins:,} better"
    else:
        why = f"{change}; {n:,} queries detect a {case.rule.kind} of {detectable:.4f} {POWER:.0%} of the time"
        if bool(case.gains.mean() < 0) and power.needed is not None and power.needed > n:
            why += f", about {power.needed:,} would be needed if the true {case.rule.kind} is this large"
        if detectable > abs(case.reference) > 0:
            about = {"rule": case.rule.text, "run": case.run, "queries": n, "kind": case.rule.kind}
            notes.append(note("gate-too-few-queries", **about, value=abs(case.reference)))
    row = _row(case, f"no significant {case.rule.kind} from {case.reference:.4f}", not failed, why, (low, high))
    return replace(row, effect=effect, p=p, p_adjusted=adjusted, detectable=detectable)


def _row(
    case: RuleCase, needed: str, passed: bool, why: str, interval: tuple[float, float], compared: bool = True
) -> Row:
    """The row of a case; `compared`: with the baseline."""
    return Row(
        run=case.run,
        baseline=case.baseline_run,
        rule=case.rule,
        measure=case.column.key,
        value=case.value,
        needed=needed,
        passed=passed,
        why=why,
        queries=len(case.queries),
        reference=case.reference if compared else None,
        difference=case.value - case.reference if compared else None,
        low=plain_values(interval[0]),
        high=plain_values(interval[1]),
    )


def _margin_row(case: RuleCase, plan: GatePlan) -> Row:
    """Non-inferiority and equivalence: decided by the 95% interval of the mean difference.

    The interval is two-sided, so the chance to pass a run whose true loss is the margin is 2.5%, not 5%; several
    rules need no correction, because all of them have to pass.
    """
    rule, differences, n = case.rule, case.differences, len(case.queries)
    if not case.column.averaged:
        raise InputError(
            f"the rule `{rule.text}`: {case.column.key} is not a mean over queries, so its difference has no interval; "
            f"write `{case.column.key} >= baseline - NUMBER`."
        )
    low, high = case.interval(plan.seed) if n > 1 else (math.nan, math.nan)
    less = case.column.better == "less"
    worst, best = (-high, -low) if less else (low, high)
    passed = keeps_margin(rule, low, high, case.column)
    if math.isnan(low):
        why = "no interval: one query"
    else:
        why = f"{_change(case)} [{low:+.4f}, {high:+.4f}] on {counted(n, 'query', 'queries')}"
        if not passed:
            what = "loss" if rule.kind == "not worse" else "difference"
            beyond = best < -rule.number or (rule.kind != "not worse" and worst > rule.number)
            why += f"; the {what} is larger" if beyond else f"; the interval does not exclude a larger {what}"
            shifted = differences + (-rule.number if less else rule.number)
            power = power_analysis(shifted, POWER, plan.alpha, significant=False)
            advises = not case.column.geometric and (worst + best) / 2 > -rule.number
            if power.needed is not None and power.needed > n and advises:
                why += f"; about {power.needed:,} queries would be needed if the true difference is the measured one"
    form = "not worse than" if rule.kind == "not worse" else "equivalent to"
    row = _row(case, f"{form} {case.reference:.4f} within {rule.number:g}", passed, why, (low, high))
    return replace(row, effect=cohens_d(differences))


def _threshold_row(case: RuleCase, plan: GatePlan, notes: list[Note]) -> Row:
    """A threshold: a number, or the value of the baseline plus a number."""
    rule, value, n = case.rule, case.value, len(case.queries)
    relative = rule.kind == "baseline"
    bound = rule.number + (case.reference if relative else 0.0)
    passed = rule.kept(value, bound)
    better = case.column.better
    if (better == "less") == (rule.operator in (">=", ">")) and better != "neither":
        notes.append(note("gate-rule-direction", rule=rule.text, measure=case.column.key, better=better))
    # As many decimals as show a difference between the two, at least four.
    digits = next((d for d in range(4, 12) if f"{value:.{d}f}" != f"{bound:.{d}f}"), 4)
    low, high = (math.nan, math.nan)
    if case.column.averaged and n > 1:
        ends = mean_interval(case.column.tested(case.values), seed=plan.seed)
        low, high = case.interval(plan.seed) if relative else map(case.column.mean_of, ends)
    interval = "" if math.isnan(low) else f" [{low:+.4f}, {high:+.4f}]" if relative else f" [{low:.4f}, {high:.4f}]"
    parts = [] if passed else [f"{abs(value - bound):.{digits}f} {'too high' if value > bound else 'too low'}"]
    parts.append(f"{_change(case)}{interval}" if relative else interval.strip())
    parts.append(counted(n, "query", "queries"))
    offset = f" {'-' if rule.number < 0 else '+'} {abs(rule.number):g}" if rule.number else ""
    of_baseline = f" (baseline {case.reference:.4f}{offset})" if relative else ""
    needed = f"{rule.operator} {bound:.{digits}f}{of_baseline}"
    return _row(case, needed, passed, ", ".join(part for part in parts if part), (low, high), relative)


def _losers(case: RuleCase, result: GateInput) -> tuple[Loser, ...]:
    """The queries with the largest losses from the baseline; for a threshold without losses, the worst queries."""
    lost: list[tuple[str, float | None, float]] = []
    if case.baseline_values is not None:
        before, after = case.baseline_values, case.values
        losses = case.column.worth(np.where(case.differences == 0.0, 0.0, before - after))
        order = np.argsort(-losses, kind="stable")
        lost = [(case.queries[at], float(before[at]), float(after[at])) for at in order[losses[order] > 0].tolist()]
    if not lost and not case.rule.needs_baseline:
        order = np.argsort(case.column.worth(case.values), kind="stable").tolist()
        lost = [(case.queries[place], None, float(case.values[place])) for place in order[:SHOWN_LOSERS]]
    return tuple(Loser(query, before, now, result.texts.get(query, "")) for query, before, now in lost[:SHOWN_LOSERS])


def _change(case: RuleCase) -> str:
    difference = case.value - case.reference
    return f"{'fell' if difference < 0 else 'rose'} by {abs(difference):.4f}" if difference else "unchanged"
