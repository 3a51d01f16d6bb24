"""Decisions: each rule of a gate applied to each run, with the numbers that decide it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import TypeAlias, cast

import numpy as np

from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Bools, Floats
from steelyard.comparison.judged import ALL_JUDGED, Conventions, JudgedDocuments, Part, by_test
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.pairs import NOT_TOGETHER, dependence
from steelyard.comparison.provenance import MAX_DEPTH
from steelyard.comparison.rules import TOLERANCE, Rule, not_worse, within_margin
from steelyard.comparison.scores import Column, ScoreTable
from steelyard.comparison.unjudged import MOST_RANKS
from steelyard.errors import InputError
from steelyard.gating.inputs import GateInput
from steelyard.gating.notes import LISTS_ADVICE, LISTS_UNKNOWN
from steelyard.gating.result import GatePlan, Loser, Row, option
from steelyard.lazy import polars as pl
from steelyard.measures.bounds import rank_cutoff
from steelyard.measures.gradings import is_fixed
from steelyard.notes import Note, fill, note
from steelyard.options import Options
from steelyard.report.documents import plain_values
from steelyard.statistics import adjust, best_of_p, cohens_d, mean_interval, power_analysis, tally
from steelyard.statistics.corrections import Correction
from steelyard.statistics.paired import PairedTest, fall_tests, smallest_p
from steelyard.wording import counted

Runs: TypeAlias = Sequence[tuple[str, str | None]]  # Runs, each with the run of the baseline that it is compared with.


@dataclass(frozen=True)
class ResolvedRule:
    """A rule, the key of its measure in the result, its queries (None: all), and where it comes from."""

    rule: Rule
    key: str
    selected: Bools | None
    source: str = ""


@dataclass(frozen=True)
class RuleCase:
    """A rule and a run: the values of the run, and those of the baseline for the same queries.

    `candidates` (candidates x queries) are the values of all that the baseline was chosen from as the best, if it was.
    """

    resolved: ResolvedRule
    run: str
    baseline_run: str | None
    column: Column
    queries: tuple[str, ...]
    values: Floats
    baseline_values: Floats | None
    candidates: Floats | None = None

    @property
    def rule(self) -> Rule:
        return self.resolved.rule

    @property
    def value(self) -> float:
        return self.column.mean(self.values)

    @property
    def reference(self) -> float:
        """The value of the baseline."""
        assert self.baseline_values is not None
        return self.column.mean(self.baseline_values)

    @property
    def differences(self) -> Floats:
        """The run minus the baseline, per query (logarithms for a geometric mean)."""
        assert self.baseline_values is not None
        differences = self.column.tested(self.values) - self.column.tested(self.baseline_values)
        rounding = TOLERANCE * np.maximum(1.0, np.abs(self.baseline_values))  # It depends on the machine.
        return np.where(np.abs(differences) <= rounding, 0.0, differences)

    @property
    def gains(self) -> Floats:
        """The differences, negative where the rule forbids them: of a rule on a rise, inverted."""
        return self.differences if self.rule.kind == "drop" else -self.differences

    @property
    def losses_from_candidates(self) -> Floats | None:
        """What the run lost against each of the candidates, positive where the rule forbids it; None without any."""
        if self.candidates is None:
            return None
        lost = self.column.tested(self.candidates) - self.column.tested(self.values)
        return lost if self.rule.kind == "drop" else -lost

    def interval(self, seed: int) -> tuple[float, float]:
        """The 95% interval of the difference from the baseline."""
        ends = mean_interval(self.differences, seed=seed)
        low, high = (self.column.within_range(self.column.change(end, self.reference)) for end in ends)
        return low, high


def keeps_margin(rule: Rule, low: float, high: float, column: Column) -> bool:
    """Whether an interval of the difference satisfies a rule of non-inferiority or equivalence."""
    if rule.kind == "not worse":
        return not_worse(low, high, rule.number, column.better)
    return within_margin(low, high, rule.number)


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
    """One row per run and rule, and notes on them; an undecided rule does not pass if `strict_judged`."""
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
    """Non-inferiority and equivalence: decided by the 95% interval of the mean difference, which is two-sided.

    A run whose true loss is the margin passes in 2.5% of cases, not 5%. As all rules have to pass, none is corrected.
    """
    rule, differences, n = case.rule, case.differences, len(case.queries)
    if not case.column.averaged:
        key = case.column.key
        problem = f"{key} is not a mean over queries, so its difference has no interval"
        raise InputError(f"the rule `{rule.text}`: {problem}; write `{key} >= baseline - NUMBER`.")
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


# Unjudged documents: judged shares and bounds, and rules whose outcome depends on unjudged documents. They are known if
# the result is a result folder, and for rules that compare with a baseline if that is a result folder too, or a file
# that `save_baseline` wrote from one. An outcome is undecided as a verdict of a comparison is (docs/unjudged.md).


RUN, BASELINE = "run", "baseline"  # The names of the two runs: both may have the same one.


def judged_documents(
    result: GateInput, run: str, baseline: GateInput | None, baseline_run: str | None, seed: int = 0, test: str = "t"
) -> JudgedDocuments | None:
    """The documents of a run and, if they are known, of the run that it is compared with; None if unknown."""
    lists = result.run_lists(run)
    if lists is None or result.folder is None or result.policies is None:
        return None
    from steelyard.benchmark.folder import read_qrels, read_record

    runs, options = {RUN: lists}, Options(**result.policies)
    other = None if baseline is None or baseline_run is None else baseline.run_lists(baseline_run)
    if other is not None and baseline is not None:
        runs[BASELINE] = other
        if baseline.list_depth is not None:
            depth = min(baseline.list_depth, options.depth or baseline.list_depth)
            options = replace(options, depth=depth)
    qrels = read_qrels(result.folder, read_record(result.folder)["settings"])
    alignments = {name: options.lists(align(qrels, side, options.ordering).alignment) for name, side in runs.items()}
    return JudgedDocuments(qrels, runs.__getitem__, alignments, options, seed, test)


def stored_lists(source: GateInput, run: str) -> tuple[int, dict[str, list[str]]] | None:
    """The first documents of a run for a baseline, and how many ranks that are; None if they are not known.

    No rule needs them if the qrels have only relevant documents and do not look as if they were made from this run.
    Otherwise a later run, whose first documents may be judged, may need them.
    """
    if run in source.lists:
        return source.list_depth or 0, {query: list(docs) for query, docs in source.lists[run].items()}
    judged = judged_documents(source, run, None, None)
    if judged is None:
        return None
    if judged.relevant_only and not judged.edges:
        return 0, {}
    parts = [part for key in source.keys for part in source.parts(key)]
    measures = [part.measure for part in parts if not is_fixed(part.measure)]
    depth = max(min(max((rank_cutoff(m) or MOST_RANKS for m in measures), default=0), MOST_RANKS), MAX_DEPTH)
    rows = ranked_rows(judged.source(RUN), judged.options.ordering).filter(pl.col("rank") <= depth)
    grouped = rows.drop_nulls("doc_id").sort("rank").group_by("query_id", maintain_order=True).agg("doc_id")
    documents = dict(grouped.iter_rows())
    return depth, {query: documents[query] for query in source.scores.queries if query in documents}


def with_judged(
    row: Row, case: RuleCase, judged: JudgedDocuments, parts: list[Part], plan: GatePlan, tests: int
) -> Row:
    """The row with the judged share, the bounds, and whether its outcome depends on unjudged documents."""
    queries = set(case.queries)
    kept = np.array([query in queries for query in judged.qrels.judged.query_ids], dtype=bool)
    share = judged.share(parts, RUN, kept)
    if share is None:
        return row
    compared = case.rule.needs_baseline and BASELINE in judged.alignments
    estimates = Conventions(judged_run=share)
    if compared:
        estimates = judged.conventions(parts, RUN, BASELINE, kept, whole=not (case.rule.tested and row.passed))
        if row.p is not None and row.difference is not None:
            estimates = by_test(plan.test, 2 * min(row.p, 1 - row.p), row.difference, estimates, case.differences)
    if case.rule.needs_baseline and _depends(row, case, estimates, set(judged.edges), plan, tests):
        row = replace(row, undecided=True)
    shares = [share, estimates.judged_baseline]
    if not judged.informative or min(known_share for known_share in shares if known_share is not None) >= ALL_JUDGED:
        return row
    low, high = estimates.bound_low, estimates.bound_high
    if not case.rule.needs_baseline:
        low, high = judged.value_bounds(parts, RUN, kept) or (None, None)
    baseline = "" if estimates.judged_baseline is None else f" (baseline {estimates.judged_baseline:.0%})"
    why = f"{row.why}; {share:.0%} of the documents judged{baseline}"
    if low is not None and high is not None:
        what, sign = ("the difference", "+") if row.rule.needs_baseline else (row.measure, "")
        why += f"; depending on the others, {what} is between {low:{sign}.4f} and {high:{sign}.4f}"
    row = replace(row, judged=share, judged_baseline=estimates.judged_baseline, unjudged=estimates.unjudged, why=why)
    return replace(row, bound_low=low, bound_high=high)


def _depends(row: Row, case: RuleCase, estimates: Conventions, edges: set[str], plan: GatePlan, tests: int) -> bool:
    """Whether the outcome of a rule depends on unjudged documents."""
    rule = case.rule
    if rule.tested and row.passed:
        return False
    # The p-values of the estimate and of the bounds are corrected by the same factor as that of the plain test.
    factor = row.p_adjusted / row.p if row.p and row.p_adjusted else float(tests)

    def significant(difference: float | None, p: float | None) -> bool:
        """Whether a change is significantly for the worse."""
        if difference is None or p is None:
            return False
        return ((difference < 0) == (rule.kind == "drop")) and p / 2 * factor < plan.alpha

    if estimates.all_judged or (rule.tested and significant(estimates.bound_low, estimates.bound_p)):
        return False  # Whatever the unjudged documents are.
    favoured = {RUN, BASELINE} if rule.kind == "equivalent" else {RUN} if row.passed else {BASELINE}
    if favoured & edges:
        return True
    if estimates.imputed is None or estimates.imputed_p is None:
        return False
    if rule.tested:
        return not significant(estimates.imputed, estimates.imputed_p)
    if rule.margin:
        low, high = estimates.imputed_low, estimates.imputed_high
        assert low is not None
        assert high is not None
        return keeps_margin(rule, low, high, case.column) != row.passed
    return rule.kept(case.reference + estimates.imputed, case.reference + rule.number) != row.passed


def lists_notes(
    result: GateInput, baseline: GateInput | None, runs: Runs, rules: Sequence[ResolvedRule], strict: bool
) -> list[Note]:
    """A note if rules compare with a baseline and the lists of a run are not known; an error if `strict`."""
    keys = {resolved.key for resolved in rules if resolved.rule.needs_baseline}
    fixed = {key for key in keys if (parts := result.parts(key)) and all(is_fixed(p.measure) for p in parts)}
    if baseline is None or keys == fixed:
        return []
    sides = [(result, run) for run, _ in runs] + [(baseline, other) for _, other in runs if other is not None]
    unknown = [source for source, run in sides if run not in source.files and run not in source.lists]
    if not unknown:
        return []
    names = tuple(dict.fromkeys(source.name for source in unknown))
    values = {"sources": names, "chunked": any(source.chunked for source in unknown)}
    if strict:
        problem = f"{fill(LISTS_UNKNOWN, values)}, so unjudged documents cannot be checked"
        advice = f"{fill(LISTS_ADVICE, values)}, or leave the option out"
        raise InputError(f"strict_judged=True (--strict): {problem}. {advice}.")
    return [note("gate-lists-unknown", **values)]


def unjudged_notes(
    rows: list[Row], documents: dict[str, JudgedDocuments | None], baseline_runs: dict[str, str], strict: bool
) -> list[Note]:
    """Notes on undecided rules, by their reason, and on qrels made from a run."""
    notes = []
    compared = {row.run for row in rows if row.rule.needs_baseline}
    for run, judged in documents.items():
        names = {RUN: run, BASELINE: f"the baseline ({baseline_runs.get(run)})"}
        for name, edge in judged.edges.items() if judged is not None and run in compared else ():
            notes.append(note("qrels-made-from-run", run=names[name], depth=edge.depth))
    if by_overlap := [(row.rule.text, row.run) for row in rows if row.overlaps]:
        notes.append(note("gate-depends-on-overlap", rules=by_overlap))
    if undecided := [row for row in rows if row.undecided and not row.overlaps]:
        rules, most = [(row.rule.text, row.run) for row in undecided], max(row.unjudged for row in undecided)
        notes.append(note("gate-undecided", rules=rules, documents=most, strict=strict))
    return notes
