"""Runs that failed on queries: their values are of no answer, so they do not pass unless that is allowed."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from steelyard.alignment.hits import Bools, Floats
from steelyard.checks import whole_number
from steelyard.comparison.movers import movers
from steelyard.comparison.rules import TOLERANCE, Rule, parse_rules
from steelyard.comparison.scores import Column, ScoreTable
from steelyard.comparison.slices import COMPLEXITY, column_values, complexity
from steelyard.errors import InputError, PolicyError, SteelyardError, did_you_mean, problem_report
from steelyard.gate.baseline import Plan, check_allowed, check_measuring, check_queries, option
from steelyard.gate.inputs import Measured, measured
from steelyard.gate.result import GateResult, Loser, Row
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
from steelyard.wording import SHOWN_NAMES, counted, listed, worded

MEASURE = "failed queries"


def allowance(given: Any, now: Measured) -> int:
    """How many queries a run may fail on: what was given, or else what the result brings along."""
    if given is None:
        return now.allow_failed
    return whole_number("`allow_failed`", given, unit="queries", error=PolicyError)


def failure_rows(now: Measured, runs: Sequence[str], allowed: int) -> list[Row]:
    """A row for every run that failed on any query; broken where that is more than is allowed."""
    text = f"at most {counted(allowed, 'failed query', 'failed queries')}" if allowed else "no failed queries"
    rule = Rule(text, "failed", MEASURE, "<=", float(allowed))
    rows = []
    for run in runs:
        found = now.failed.get(run)
        if found is None:
            continue
        kept = found.failed <= allowed
        advice = "" if kept else f"; mend it, or allow it: {option('allow_failed', found.failed)}"
        rows.append(
            Row(
                run=run,
                baseline=None,
                rule=rule,
                measure=MEASURE,
                value=found.failed,
                needed=f"<= {allowed}",
                passed=kept,
                why=f"{found}{advice}",
                queries=found.asked,
            )
        )
    return rows


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
        if case.rule.margin:
            row = _within_margin(case, plan)
        elif case.rule.tested:
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
    power = power_analysis(gap, POWER, 2.0 * plan.alpha / times, significant=broken)
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


def _within_margin(case: _Case, plan: Plan) -> Row:
    """Non-inferiority and equivalence: decided by the 95% interval of the mean difference.

    The interval is two-sided, so the chance to pass a run whose true loss is the margin is 2.5%, not 5%; several
    rules need no correction, because all of them have to pass.
    """
    rule, gap, n = case.rule, case.gap, len(case.queries)
    difference = case.value - case.reference
    low, high = mean_interval(gap, seed=plan.seed) if case.averaged and n > 1 else (math.nan, math.nan)
    less = case.column.better == "less"
    worst, best = (-high, -low) if less else (low, high)
    not_worse = worst > -rule.number
    passed = not_worse if rule.kind == "not worse" else not_worse and best < rule.number
    if math.isnan(low):
        why = "no interval: one query, or a value that is not a mean over queries"
    else:
        why = f"{_changed(difference)} [{low:+.4f}, {high:+.4f}] on {counted(n, 'query', 'queries')}"
        if not passed:
            what = "a larger loss" if rule.kind == "not worse" else "a larger difference"
            why += f"; the interval does not exclude {what}"
            power = power_analysis(
                gap + (-rule.number if less else rule.number), POWER, plan.alpha, significant=False
            )
            if power.needed is not None and power.needed > n and (worst + best) / 2 > -rule.number:
                why += (
                    f"; about {power.needed:,} queries would be needed if the true difference is this large"
                )
    form = "not worse than" if rule.kind == "not worse" else "equivalent to"
    return Row(
        run=case.run,
        baseline=case.other,
        rule=rule,
        measure=case.column.key,
        value=case.value,
        needed=f"{form} {case.reference:.4f} within {rule.number:g}",
        passed=passed,
        why=why,
        queries=n,
        reference=case.reference,
        difference=difference,
        low=low if low == low else None,
        high=high if high == high else None,
        effect=cohens_d(gap),
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
    board = ScoreTable(("run", "baseline"), (case.column,), case.queries, values)
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


NOT_BY_DEFAULT = ("Latency",)
"""Measures that depend on the machine: the default rules leave them out."""

FROM_BENCH = "`gate:` in bench.yaml"
BY_DEFAULT = "the default, as no rule speaks of the baseline"
"""Where rules come from that were not given."""


def check(
    result: Any,
    rules: str | Rule | Sequence[str | Rule] = (),
    *,
    baseline: Any = None,
    run: str | Sequence[str] | None = None,
    baseline_run: str | None = None,
    queries: Any = None,
    test: str = "t",
    correction: str = "holm",
    alpha: float = 0.05,
    permutations: int = 100_000,
    seed: int = 0,
    allow: str | Collection[str] = (),
    allow_failed: int | None = None,
) -> GateResult:
    """Hold a result against rules and a baseline.

    `result` and `baseline` are result folders, the JSON of `evaluate --per-query`, files that
    `save_baseline` wrote, Scores, or what `bench` gave. `rules` come on top of those the result brings
    along (`gate:` in bench.yaml). Where no rule speaks of the baseline, there must be no significant drop in
    any measure that both have (no rise, where less is better). `run` names the runs to check; left
    out, all, or the baseline's only run where the result has it. Each is held against the run of the same name, the baseline's only run, or
    `baseline_run`. `queries` holds the columns of slices where the result does not. `allow` names what
    may differ from the baseline: "queries" that are gone, "judgments" that changed. A run that failed on more
    queries than `allow_failed` does not pass; left out, it is `gate: {allow_failed: ...}` of bench.yaml, or 0.

    >>> before = {"runs": [{"name": "a", "per_query": {f"q{n}": {"RR": 1.0} for n in range(9)}}]}
    >>> after = {"runs": [{"name": "a", "per_query": {f"q{n}": {"RR": 0.5 + 0.05 * n} for n in range(9)}}]}
    >>> gate = check(after, ["RR >= 0.6", "no significant drop in RR"], baseline=before)
    >>> gate.passed, [row.verdict for row in gate.rows]
    (False, ['passed', 'FAILED'])
    """
    plan = Plan(test, correction, alpha, permutations, seed).checked()
    allow = (allow,) if isinstance(allow, str) else tuple(allow)
    check_allowed(allow)
    now = measured(result)
    base = None if baseline is None else measured(baseline, "the baseline")
    told = parse_rules([rules] if isinstance(rules, (str, Rule)) else rules)
    given = parse_rules([*told, *now.rules])
    if not given and base is None:
        raise InputError(
            f"there is nothing to check: no rule and no baseline. Give a rule, as in {option('rules', 'nDCG@10 >= 0.40')}, "
            "or a baseline: `steelyard gate RESULT --save-baseline baseline.json` writes one, "
            f"{option('baseline', 'baseline.json')} holds a later result against it."
        )
    allowed = allowance(allow_failed, now)
    warnings: list[str] = []
    own = [rule.text for rule in given if rule not in told]
    if own:
        warnings.append(f"From {FROM_BENCH}: {'; '.join(own)}.")
    chosen = [run] if isinstance(run, str) else list(run or _meant(now, base, baseline_run, warnings))
    for name in chosen:
        now.run(name)
    sources = {rule: "" if rule in told else FROM_BENCH for rule in given}
    sources |= dict.fromkeys(_defaults(now, base, given, warnings), BY_DEFAULT)
    asked = _resolved(now, base, sources, queries)
    others = _pairs(base, chosen, baseline_run, warnings) if base is not None else {}
    if base is not None:
        warnings += check_measuring(now, base, dict.fromkeys(a.key for a in asked if a.rule.needs_baseline))
        for name, other in others.items():
            warnings += check_queries(now, base, name, other, allow)
    warnings += [f"Run {name!r}: {now.remarks[name]}." for name in chosen if name in now.remarks]
    if base is not None:
        warnings += [
            f"Run {other!r} of the baseline: {base.failed[other]}."
            for other in dict.fromkeys(others.values())
            if other in base.failed
        ]
    rows, said = verdicts(now, base, [(name, others.get(name)) for name in chosen], asked, plan)
    return GateResult(
        rows=(*failure_rows(now, chosen, allowed), *rows),
        warnings=tuple(dict.fromkeys([*warnings, *said])),
        result=now.name,
        baseline=None if base is None else base.name,
        plan=plan,
        command=_command(
            now, base, told, chosen if run else (), baseline_run, queries, plan, allow, allow_failed
        ),
    )


def _meant(
    now: Measured, base: Measured | None, baseline_run: str | None, warnings: list[str]
) -> Sequence[str]:
    """The runs to check where none is named: all, or the one that is the baseline's only run."""
    runs: Sequence[str] = now.board.runs
    kept = base.board.runs if base is not None and baseline_run is None else ()
    if len(runs) > 1 and len(kept) == 1 and kept[0] in runs:
        warnings.append(
            f"Only {kept[0]!r} was checked, the baseline's only run; {option('run', 'NAME')} checks another."
        )
        return kept
    return runs


def _defaults(now: Measured, base: Measured | None, given: Sequence[Rule], warnings: list[str]) -> list[Rule]:
    """No significant drop in any measure both have, where there is a baseline that no rule speaks of."""
    if base is None or any(rule.needs_baseline for rule in given):
        return []
    shared = [key for key in now.keys if key in base.keys]
    if not shared:
        raise InputError(
            f"{now.name} and {base.name} have no measure in common ({', '.join(now.keys)}; {', '.join(base.keys)})."
        )
    made = []
    for column in map(now.column, shared):
        name = column.measure.name if column.measure is not None else column.key
        if name in NOT_BY_DEFAULT:
            warnings.append(
                f"{column.key} depends on the machine and is not checked; write a rule to check it."
            )
        elif all(np.isnan(held.board.of(column.key)).all() for held in (now, base)):
            warnings.append(f"{column.key} has no value on any query, now or before, and is not checked.")
        elif column.better == "neither":
            warnings.append(f"{column.key} is not checked: neither more nor less of it is better.")
        elif column.better == "less":
            made.append(Rule(f"no significant rise in {column.key}", "rise", column.key))
        else:
            made.append(Rule(f"no significant drop in {column.key}", "drop", column.key))
    if not made and not given:
        raise InputError(
            f"no rule can be made for {', '.join(shared)}; write one, as in {option('rules', 'Latency <= 0.2')}."
        )
    return made


def _resolved(now: Measured, base: Measured | None, rules: Mapping[Rule, str], queries: Any) -> list[Asked]:
    """Every rule with the measure and the queries it means, or one report of all that mean nothing here."""
    asked, problems = [], []
    for rule, source in rules.items():
        try:
            key = now.key(rule.measure)
            if rule.needs_baseline:
                _refuse_without(base, key)
                _refuse_direction(now, rule, key)
            asked.append(Asked(rule, key, _slice(now, rule, queries), source))
        except SteelyardError as error:
            problems.append(f"{rule.text}: {error}")
    if len(problems) == 1:
        raise InputError(problems[0])
    if problems:
        raise InputError(
            problem_report(f"{len(problems)} of {counted(len(rules), 'rule')} cannot be checked:", problems)
        )
    return asked


def _refuse_without(base: Measured | None, key: str) -> None:
    if base is None:
        raise InputError(f"the rule needs a baseline; give one with {option('baseline', 'baseline.json')}.")
    if key not in base.keys:
        raise InputError(
            f"{key!r} is not measured in the baseline {base.name}; there are {', '.join(base.keys)}. Make the baseline again."
        )


def _refuse_direction(now: Measured, rule: Rule, key: str) -> None:
    better = now.column(key).better
    if (rule.kind, better) == ("drop", "less") or (rule.kind, better) == ("rise", "more"):
        right = "rise" if rule.kind == "drop" else "drop"
        raise InputError(f"{better} of {key} is better; write `no significant {right} in {key}`.")


def _slice(now: Measured, rule: Rule, queries: Any) -> Bools | None:
    """The queries that a rule is about; None for all."""
    if rule.column is None:
        return None
    values = _column_values(now, rule.column, queries)
    labels = [str(values[query]) if values.get(query) is not None else None for query in now.board.queries]
    chosen = np.array([label == rule.value for label in labels])
    if not chosen.any():
        known = sorted({label for label in labels if label is not None})
        told = ", ".join(known[:10]) + (", ..." if len(known) > 10 else "")
        raise InputError(
            f"no query has {rule.column}={rule.value}; there are {told or 'no values at all'}.{did_you_mean(rule.value, known)}"
        )
    return chosen


def _column_values(now: Measured, column: str, queries: Any) -> Mapping[str, object]:
    if queries is not None:
        return column_values(queries, column)
    if column in now.columns:
        return now.columns[column]
    if column == COMPLEXITY and now.folder is not None:
        from steelyard.bench.folder import read_judgments

        return complexity(read_judgments(now.folder))
    known = [*now.columns, *([COMPLEXITY] if now.folder is not None else [])]
    there = f"there are {', '.join(known)}" if known else "it holds none"
    raise InputError(
        f"{now.name} has no column {column!r} of its queries; {there}.{did_you_mean(column, known)} "
        f"Give the queries' columns with {option('queries', 'FILE')} (JSONL, CSV, TSV or Parquet)."
    )


def _pairs(
    base: Measured, chosen: Sequence[str], baseline_run: str | None, warnings: list[str]
) -> dict[str, str]:
    """For every run the run it is held against."""
    if baseline_run is not None:
        base.run(baseline_run)
        return dict.fromkeys(chosen, baseline_run)
    only = base.board.runs[0] if len(base.board.runs) == 1 else None
    pairs = {name: name if name in base.board.runs else only for name in chosen}
    lost = [name for name, other in pairs.items() if other is None]
    if lost:
        raise InputError(
            f"{', '.join(map(repr, lost))} {'is' if len(lost) == 1 else 'are'} not in the baseline {base.name}, which has "
            f"{', '.join(base.board.runs)}. Name the runs to check ({option('run', 'NAME')}), the one to hold them against "
            f"({option('baseline_run', 'NAME')}), or make the baseline again."
        )
    warnings += [
        f"Run {name!r} is held against {other!r}, the baseline's only run."
        for name, other in pairs.items()
        if other != name
    ]
    return {name: str(other) for name, other in pairs.items()}


def _command(
    now: Measured,
    base: Measured | None,
    given: Sequence[Rule],
    runs: Sequence[str],
    baseline_run: str | None,
    queries: Any,
    plan: Plan,
    allow: Collection[str],
    allow_failed: int | None,
) -> str:
    """The command that checks the same again; rules that the result brings along need not be said."""
    parts = ["steelyard", "gate", now.name]
    parts += [] if base is None else ["--baseline", base.name]
    parts += [part for rule in given for part in ("--rule", rule.text)]
    parts += [part for name in runs for part in ("--run", name)]
    parts += [] if baseline_run is None else ["--baseline-run", baseline_run]
    parts += ["--queries", str(queries)] if isinstance(queries, (str, Path)) else []
    for name, value in vars(plan).items():
        if value != getattr(Plan(), name):
            parts += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    parts += [part for change in allow for part in ("--allow", change)]
    parts += [] if allow_failed is None else ["--allow-failed", str(allow_failed)]
    return shlex.join(parts)
