"""check(): a result, rules and a baseline in, a verdict out."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.alignment.hits import Bools
from steelyard.comparison.rules import Rule, parse_rules
from steelyard.comparison.slices import COMPLEXITY, column_values, complexity
from steelyard.errors import InputError, SteelyardError, did_you_mean, problem_report
from steelyard.gate.advice import option
from steelyard.gate.agreement import check_allowed, check_measuring, check_queries
from steelyard.gate.failures import allowance, failure_rows
from steelyard.gate.measured import Measured
from steelyard.gate.plan import Plan
from steelyard.gate.reading import measured
from steelyard.gate.result import GateResult
from steelyard.gate.verdicts import Asked, verdicts
from steelyard.wording import counted

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
