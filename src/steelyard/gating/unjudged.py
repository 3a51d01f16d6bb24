"""Unjudged documents in a gate: judged shares and bounds, and rules whose outcome depends on unjudged documents.

They are known if the result is a result folder, and for rules that compare with a baseline if that is a result folder
too, or a file that `save_baseline` wrote from one. The rule is that of a comparison
(docs/unjudged.md): an outcome is undecided if it is another one with estimated grades, or if the qrels look as if they
were made from the run that it favours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steelyard.alignment.alignment import align
from steelyard.comparison.judged import ALL_JUDGED, Conventions, JudgedDocuments, Part, by_test
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.provenance import MAX_DEPTH
from steelyard.comparison.unjudged import MOST_RANKS
from steelyard.errors import InputError
from steelyard.gating.cases import ResolvedRule, RuleCase, Runs, keeps_margin
from steelyard.gating.inputs import GateInput
from steelyard.gating.notes import LISTS_ADVICE, LISTS_UNKNOWN
from steelyard.gating.result import Row
from steelyard.gating.settings import GatePlan
from steelyard.lazy import polars as pl
from steelyard.measures.bounds import rank_cutoff
from steelyard.measures.gradings import is_fixed
from steelyard.notes import Note, fill, note
from steelyard.options import Options

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
    Otherwise a later run may need them, even if it is not so for this run alone: the first documents of the later run
    may be judged, those of this one not.
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
        raise InputError(
            f"strict_judged=True (--strict): {fill(LISTS_UNKNOWN, values)}, so unjudged documents cannot "
            f"be checked. {fill(LISTS_ADVICE, values)}, or leave the option out."
        )
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
    by_overlap = [(row.rule.text, row.run) for row in rows if row.overlaps]
    if by_overlap:
        notes.append(note("gate-depends-on-overlap", rules=by_overlap))
    undecided = [row for row in rows if row.undecided and not row.overlaps]
    if undecided:
        rules, most = [(row.rule.text, row.run) for row in undecided], max(row.unjudged for row in undecided)
        notes.append(note("gate-undecided", rules=rules, documents=most, strict=strict))
    return notes
