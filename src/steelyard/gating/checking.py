"""gate(): a result, rules and a baseline in, a GateResult out."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from steelyard.alignment.hits import Bools
from steelyard.checks import whole_number
from steelyard.comparison.rules import Rule, parse_rules
from steelyard.comparison.slices import COMPLEXITY, column_values, complexity
from steelyard.comparison.testing import STATISTICS, Statistics
from steelyard.errors import InputError, PolicyError, SteelyardError, did_you_mean, problem_report
from steelyard.gating.baseline import CHANGES, PREFIX, definition_notes, history_baseline, query_notes
from steelyard.gating.decisions import ResolvedRule, decide
from steelyard.gating.inputs import GateInput, gate_input, with_ceilings
from steelyard.gating.result import GatePlan, GateResult, Row, flags, option
from steelyard.notes import Note, note
from steelyard.options import check_names
from steelyard.wording import counted

if TYPE_CHECKING:
    from typing_extensions import Unpack

FAILED_QUERIES = "failed queries"  # What the row on failed queries has in place of a measure.
MEASURED = "measured queries"  # What the row on a run that was not measured has in place of a measure.
NOT_BY_DEFAULT = ("Latency",)  # Measures that depend on the machine: the default rules do not include them.

FROM_BENCH = "`gate:` in bench.yaml"  # Where rules come from that the caller did not give.
BY_DEFAULT = "the default, because no rule compares with the baseline"


def gate(
    result: Any,
    rules: str | Rule | Sequence[str | Rule] = (),
    *,
    baseline: Any = None,
    run: str | Sequence[str] | None = None,
    baseline_run: str | None = None,
    queries: Any = None,
    allow: str | Collection[str] = (),
    allow_failed: int | None = None,
    strict_judged: bool = False,
    **statistics: Unpack[Statistics],
) -> GateResult:
    """Check a result against rules and compare it with a baseline.

    result, baseline: a result folder, the JSON of `evaluate --per-query`, a file that `save_baseline` wrote, Scores,
    or the result of `bench`.
    baseline may also be `history:best`, `history:last` or `history:COMMIT`: from the history of the bench.
    rules: rules in addition to those of the result (`gate:` in bench.yaml). If no rule compares with the baseline,
    there must be no significant drop in any measure that both have (no rise, if lower is better).
    run: the runs to check; default: all, or the only run of the baseline if the result has it.
    baseline_run: the run to compare with; default: the run of the same name, or the only run of the baseline.
    queries: the columns of the queries for slices, if the result does not have them.
    allow: what may differ from the baseline: "queries" (missing ones) or "judgments".
    allow_failed: a run that failed on more queries than this does not pass; default: `gate: {allow_failed: ...}` of
    bench.yaml, or 0.
    strict_judged: a rule is undecided if its outcome depends on documents that nobody judged, or on how much of a
    passage a chunk must contain. Such a rule does not pass if this is set; otherwise there is a warning.
    statistics: test, correction, alpha, permutations and seed, as in `compare`.

    >>> before = {"runs": [{"name": "a", "per_query": {f"q{n}": {"RR": 1.0} for n in range(9)}}]}
    >>> after = {"runs": [{"name": "a", "per_query": {f"q{n}": {"RR": 0.5 + 0.05 * n} for n in range(9)}}]}
    >>> checked = gate(after, ["RR >= 0.6", "no significant drop in RR"], baseline=before)
    >>> checked.passed, [row.verdict for row in checked.rows]
    (False, ['passed', 'FAILED'])
    """
    check_names(statistics, gate.__kwdefaults__ or (), STATISTICS)
    plan = GatePlan(**statistics).checked()
    allow = (allow,) if isinstance(allow, str) else tuple(allow)
    for change in allow:
        if change not in CHANGES:
            expected = f"expected {' or '.join(CHANGES)}.{did_you_mean(change, CHANGES)}"
            raise InputError(f"{change!r} cannot be allowed to differ; {expected}")
    now = gate_input(result)
    before = None
    if isinstance(baseline, (str, Path)) and str(baseline).startswith(PREFIX):
        before = history_baseline(str(baseline), now)
    elif baseline is not None:
        before = gate_input(baseline, "the baseline")
    given = parse_rules([rules] if isinstance(rules, (str, Rule)) else rules)
    all_rules = parse_rules([*given, *now.rules])
    if not all_rules and before is None:
        raise InputError(
            "nothing to check: there is no rule and no baseline. Give a rule, as in "
            f"{option('rules', 'nDCG@10 >= 0.40')}, or a baseline: `steelyard gate RESULT --save-baseline "
            f"baseline.json` writes one, {option('baseline', 'baseline.json')} compares a later result with it."
        )
    allowed = now.allow_failed
    if allow_failed is not None:
        allowed = whole_number("`allow_failed`", allow_failed, unit="queries", error=PolicyError)
    from_bench = [rule for rule in all_rules if rule not in given]
    notes = [note("gate-bench-rules", rules=[rule.text for rule in from_bench])] if from_bench else []
    runs = [run] if isinstance(run, str) else list(run or _default_runs(now, before, baseline_run, notes))
    for name in runs:
        now.run(name)
    measured = [name for name in runs if name not in now.unmeasured]
    sources = {rule: FROM_BENCH if rule in from_bench else "" for rule in all_rules}
    sources |= dict.fromkeys(_default_rules(now, before, all_rules, notes), BY_DEFAULT)
    now = with_ceilings(now, all_rules)
    before = None if before is None else with_ceilings(before, all_rules, needed=False)
    resolved = _resolve(now, before, sources, queries)
    others: dict[str, str] = {}
    if before is not None:
        others = _baseline_runs(before, measured, baseline_run, notes)
        for name in others.values():
            before.check_measured(name)
        compared = dict.fromkeys(each.key for each in resolved if each.rule.needs_baseline)
        notes += definition_notes(now, before, compared)
        for name, other in others.items():
            notes += query_notes(now, before, name, other, allow)
    unknown, failures = now.unknown_documents, {} if before is None else before.failures
    failed = [name for name in dict.fromkeys(others.values()) if name in failures]
    notes += [note("gate-unknown-documents", run=name, count=unknown[name]) for name in runs if name in unknown]
    notes += [note("gate-baseline-run-failed", run=name, failures=str(failures[name])) for name in failed]
    pairs = [(name, others.get(name)) for name in measured]
    rows, decision_notes = decide(now, before, pairs, resolved, plan, strict_judged)
    return GateResult(
        rows=(*_failure_rows(now, runs, allowed), *rows),
        warnings=tuple(dict.fromkeys([*notes, *decision_notes])),
        result=now.name,
        baseline=None if before is None else before.name,
        plan=plan,
        command=_command(
            now.name,
            strict_judged,
            baseline=None if before is None else before.name,
            rules=[rule.text for rule in given],
            run=runs if run else (),
            baseline_run=baseline_run,
            queries=queries if isinstance(queries, (str, Path)) else None,
            **plan.changed(),
            allow=allow,
            allow_failed=allow_failed,
        ),
    )


def _failure_rows(now: GateInput, runs: Sequence[str], allowed: int) -> list[Row]:
    """One row per run that failed on queries, perhaps on no more than are allowed, or that was not measured."""
    text = f"at most {counted(allowed, 'failed query', 'failed queries')}" if allowed else "no failed queries"
    rule = Rule(text, "failed", FAILED_QUERIES, "<=", float(allowed))
    rows = []
    for run, failures in ((run, now.failures[run]) for run in runs if run in now.failures):
        passed, needed, why = failures.failed <= allowed, f"<= {allowed}", str(failures)
        if not passed:
            why += f"; fix the retriever, or allow it: {option('allow_failed', failures.failed)}"
        rows.append(Row(run, None, rule, FAILED_QUERIES, failures.failed, needed, passed, why, failures.queries))
    rule = Rule("the run was measured", "failed", MEASURED)
    reasons = {run: now.unmeasured[run] for run in runs if run in now.unmeasured}
    return rows + [Row(run, None, rule, MEASURED, 0, ">= 1", False, why, 0) for run, why in reasons.items()]


def _default_runs(
    now: GateInput, before: GateInput | None, baseline_run: str | None, notes: list[Note]
) -> Sequence[str]:
    """The runs to check if none is named: all, or the only run of the baseline."""
    runs: Sequence[str] = now.scores.runs
    baseline_runs = before.scores.runs if before is not None and baseline_run is None else ()
    if len(runs) > 1 and len(baseline_runs) == 1 and baseline_runs[0] in runs:
        notes.append(note("gate-one-run-checked", run=baseline_runs[0]))
        return baseline_runs
    return runs


def _default_rules(now: GateInput, before: GateInput | None, given: Sequence[Rule], notes: list[Note]) -> list[Rule]:
    """No significant drop in any shared measure, if there is a baseline and no rule compares with it."""
    if before is None or any(rule.needs_baseline for rule in given):
        return []
    shared = [key for key in now.keys if key in before.keys]
    if not shared:
        raise InputError(
            f"{now.name} and {before.name} have no measure in common ({', '.join(now.keys)}; {', '.join(before.keys)})."
        )
    rules = []
    for column in map(now.column, shared):
        name = column.measure.name if column.measure is not None else column.key
        reason = None
        if name in NOT_BY_DEFAULT:
            reason = "machine"
        elif all(np.isnan(source.scores.of(column.key)).all() for source in (now, before)):
            reason = "no values"
        elif column.better == "neither":
            reason = "no direction"
        kind: Literal["rise", "drop"] = "rise" if column.better == "less" else "drop"
        if reason is None:
            rules.append(Rule(f"no significant {kind} in {column.key}", kind, column.key))
        else:
            notes.append(note("gate-measure-not-checked", measure=column.key, reason=reason))
    if not rules and not given:
        raise InputError(
            f"there is no default rule for {', '.join(shared)}; write one, as in {option('rules', 'Latency <= 0.2')}."
        )
    return rules


def _resolve(now: GateInput, before: GateInput | None, rules: Mapping[Rule, str], queries: Any) -> list[ResolvedRule]:
    """Every rule with its measure and its queries, or one report of all rules that cannot be checked."""
    resolved, problems = [], []
    for rule, source in rules.items():
        try:
            key = now.key(rule.measure)
            if rule.needs_baseline:
                _check_comparable(now, before, rule, key)
            resolved.append(ResolvedRule(rule, key, _selected(now, rule, queries), source))
        except SteelyardError as error:
            problems.append(f"{rule.text}: {error}")
    if problems:
        headline = f"{len(problems)} of {counted(len(rules), 'rule')} cannot be checked:"
        raise InputError(problems[0] if len(problems) == 1 else problem_report(headline, problems))
    return resolved


def _check_comparable(now: GateInput, before: GateInput | None, rule: Rule, key: str) -> None:
    """Raise if the baseline does not have the measure of a rule, or if the rule is about the better direction."""
    if before is None:
        raise InputError(f"the rule needs a baseline; give one with {option('baseline', 'baseline.json')}.")
    if key not in before.keys:
        problem = f"{key!r} is not measured in the baseline {before.name}, which has {', '.join(before.keys)}."
        raise InputError(f"{problem} Write the baseline again.")
    if (rule.kind, now.column(key).better) in (("drop", "less"), ("rise", "more")):
        right, direction = ("rise", "lower") if rule.kind == "drop" else ("drop", "higher")
        raise InputError(f"a {direction} {key} is better; write `no significant {right} in {key}`.")


def _selected(now: GateInput, rule: Rule, queries: Any) -> Bools | None:
    """The queries of a rule's slice; None for all."""
    if rule.column is None:
        return None
    names = [*now.columns, *([COMPLEXITY] if now.folder is not None else [])]
    values: Mapping[str, object]
    if queries is not None:
        values = column_values(queries, rule.column)
    elif rule.column in now.columns:
        values = now.columns[rule.column]
    elif rule.column == COMPLEXITY and now.folder is not None:
        from steelyard.benchmark.folder import read_qrels, read_record

        settings = read_record(now.folder)["settings"]
        values = complexity(read_qrels(now.folder, settings), settings.get("rel"))
    else:
        columns = f"it has {', '.join(names)}" if names else "it has none"
        raise InputError(
            f"{now.name} has no column {rule.column!r} of its queries; {columns}.{did_you_mean(rule.column, names)} "
            f"Give the columns of the queries with {option('queries', 'FILE')} (JSONL, CSV, TSV or Parquet)."
        )
    labels = [str(values[query]) if values.get(query) is not None else None for query in now.scores.queries]
    selected = np.array([label == rule.value for label in labels])
    if not selected.any():
        distinct = sorted({label for label in labels if label is not None})
        shown = ", ".join(distinct[:10]) + (", ..." if len(distinct) > 10 else "")
        raise InputError(
            f"no query has {rule.column}={rule.value}; the values are {shown or 'all missing'}."
            f"{did_you_mean(rule.value, distinct)}"
        )
    return selected


def _baseline_runs(
    before: GateInput, runs: Sequence[str], baseline_run: str | None, notes: list[Note]
) -> dict[str, str]:
    """For every run, the run of the baseline that it is compared with."""
    if baseline_run is not None:
        before.run(baseline_run)
        return dict.fromkeys(runs, baseline_run)
    others = before.scores.runs
    only = others[0] if len(others) == 1 else None
    pairs = {name: name if name in others else only for name in runs}
    missing = [name for name, other in pairs.items() if other is None]
    if missing:
        raise InputError(
            f"{', '.join(map(repr, missing))} {'is' if len(missing) == 1 else 'are'} not in the baseline {before.name}"
            f", which has {', '.join(others)}. Name the runs to check: {option('run', 'NAME')}; or the run to compare "
            f"with: {option('baseline_run', 'NAME')}; or write the baseline again."
        )
    notes += [note("gate-other-run", run=name, baseline=str(other)) for name, other in pairs.items() if other != name]
    return {name: str(other) for name, other in pairs.items()}


def _command(result: str, strict_judged: bool, **options: Any) -> str:
    """The command that repeats the check; the result brings its own rules."""
    parts = ["steelyard", "gate", result]
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [] if value is None else [value]:
            parts += flags(name, one)
    return shlex.join([*parts, *(["--strict"] if strict_judged else [])])
