"""Unjudged documents in a gate: judged shares and bounds, and rules whose outcome depends on unjudged documents.

They are known if the result is a result folder, and for rules that compare with a baseline if that is a result folder
too, or a file of `save_baseline` that has the first documents of its lists. The rule is that of a comparison
(docs/unjudged.md): an outcome is undecided if it is another one with estimated grades, or if the qrels look as if they
were made from the run that it favours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Bools
from steelyard.comparison.judged import ALL_JUDGED, MOST_RANKS, Conventions, JudgedDocuments, Part
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.provenance import MAX_DEPTH
from steelyard.comparison.rules import not_worse, within_margin
from steelyard.gate.inputs import GateInput
from steelyard.measures.bounds import rank_cutoff
from steelyard.measures.gradings import is_fixed
from steelyard.notes import Note, note
from steelyard.options import Options
from steelyard.run import Run

if TYPE_CHECKING:
    from steelyard.gate.decisions import RuleCase
    from steelyard.gate.result import Row
    from steelyard.gate.settings import GatePlan

RUN, BASELINE = "run", "baseline"
"""The names of the two runs: both may have the same one."""


@dataclass(frozen=True)
class _Runs:
    """The runs by these names."""

    runs: dict[str, Run]

    def run(self, name: str) -> Run:
        """A run by name."""
        return self.runs[name]


def judged_documents(
    result: GateInput, run: str, baseline: GateInput | None, baseline_run: str | None, seed: int = 0
) -> JudgedDocuments | None:
    """The documents of a run and, if they are known, of the run that it is compared with; None if unknown."""
    lists = result.run_lists(run)
    if lists is None or result.folder is None or result.policies is None:
        return None
    from steelyard.bench.folder import read_qrels

    runs, options = {RUN: lists}, Options(**result.policies)
    other = None if baseline is None or baseline_run is None else baseline.run_lists(baseline_run)
    if other is not None and baseline is not None:
        runs[BASELINE] = other
        if baseline.list_depth is not None:
            depth = min(baseline.list_depth, options.depth or baseline.list_depth)
            options = replace(options, depth=depth)
    qrels = read_qrels(result.folder)
    alignments = {
        name: options.lists(align(qrels, each, options.ordering).alignment) for name, each in runs.items()
    }
    return JudgedDocuments(qrels, _Runs(runs), alignments, options, seed)


def stored_lists(source: GateInput, run: str) -> tuple[int, dict[str, list[str]]] | None:
    """The first documents of a run for a baseline, and how many ranks that are; None if no rule needs them.

    They are needed if some of them are unjudged, unless the qrels have only relevant documents and do not look as if
    they were made from this run.
    """
    import polars as pl

    judged = judged_documents(source, run, None, None)
    if judged is None:
        return None
    parts = {key: source.parts(key) for key in source.keys}
    shares = [judged.share(each, RUN) for each in parts.values() if each]
    unjudged = any(share is not None and share < 1 for share in shares)
    if not judged.edges and (not unjudged or not judged.informative):
        return None
    measures = [part.measure for each in parts.values() for part in each if not is_fixed(part.measure)]
    depth = max(min(max((rank_cutoff(m) or MOST_RANKS for m in measures), default=0), MOST_RANKS), MAX_DEPTH)
    rows = ranked_rows(judged.source.run(RUN), judged.options.ordering).filter(pl.col("rank") <= depth)
    grouped = rows.drop_nulls("doc_id").sort("rank").group_by("query_id", maintain_order=True).agg("doc_id")
    found = dict(grouped.iter_rows())
    return depth, {query: found[query] for query in source.scores.queries if query in found}


def with_judged(
    row: Row, case: RuleCase, judged: JudgedDocuments, parts: list[Part], plan: GatePlan, tests: int
) -> Row:
    """The row with the judged share, the bounds, and whether its outcome depends on unjudged documents."""
    kept = _kept(case, judged)
    share = judged.share(parts, RUN, kept)
    if share is None:
        return row
    compared = case.rule.needs_baseline and BASELINE in judged.alignments
    known = Conventions(judged_run=share)
    if compared:
        known = judged.conventions(parts, RUN, BASELINE, kept, whole=not (case.rule.tested and row.passed))
        if _depends(row, case, known, set(judged.edges), plan, tests):
            row = replace(row, undecided=True)
    shares = [share, known.judged_baseline]
    if not judged.informative or min(each for each in shares if each is not None) >= ALL_JUDGED:
        return row
    low, high = known.bound_low, known.bound_high
    if not case.rule.needs_baseline:
        low, high = judged.value_bounds(parts, RUN, kept) or (None, None)
    row = replace(
        row,
        judged=share,
        judged_baseline=known.judged_baseline,
        bound_low=low,
        bound_high=high,
        unjudged=known.unjudged,
    )
    return replace(row, why=f"{row.why}; {_said(row)}")


def _said(row: Row) -> str:
    """The judged shares and the bounds of a row, as a part of its sentence."""
    baseline = "" if row.judged_baseline is None else f" (baseline {row.judged_baseline:.0%})"
    text = f"{row.judged:.0%} of the documents judged{baseline}"
    if row.bound_low is None or row.bound_high is None:
        return text
    what, sign = ("the difference", "+") if row.rule.needs_baseline else (row.measure, "")
    ends = f"{row.bound_low:{sign}.4f} and {row.bound_high:{sign}.4f}"
    return f"{text}; depending on the others, {what} is between {ends}"


def _kept(case: RuleCase, judged: JudgedDocuments) -> Bools:
    """The queries of a rule among those of the qrels."""
    own = set(case.queries)
    return np.array([query in own for query in judged.qrels.judged.query_ids], dtype=bool)


def _depends(
    row: Row, case: RuleCase, known: Conventions, edges: set[str], plan: GatePlan, tests: int
) -> bool:
    """Whether the outcome of a rule depends on unjudged documents."""
    rule = case.rule
    if rule.tested and row.passed:
        return False
    favoured = {RUN, BASELINE} if rule.kind == "equivalent" else {RUN} if row.passed else {BASELINE}
    if favoured & edges:
        return True
    if known.imputed is None or known.imputed_p is None:
        return False
    if rule.tested:
        worse = (known.imputed < 0) == (rule.kind == "drop")
        p = known.imputed_p / 2 if worse else 1 - known.imputed_p / 2
        # The p-value of the estimate is corrected by the same factor as that of the plain test.
        factor = row.p_adjusted / row.p if row.p and row.p_adjusted else float(tests)
        return not p * factor < plan.alpha
    if rule.margin:
        low, high = known.imputed_low, known.imputed_high
        assert low is not None
        assert high is not None
        again = within_margin(low, high, rule.number)
        if rule.kind == "not worse":
            again = not_worse(low, high, rule.number, case.column.better)
        return again != row.passed
    return rule.kept(case.reference + known.imputed, case.reference + rule.number) != row.passed


def unjudged_notes(
    rows: list[Row], documents: dict[str, JudgedDocuments | None], baseline_runs: dict[str, str], strict: bool
) -> list[Note]:
    """Notes on undecided rules, on qrels made from a run, and on a baseline whose lists are not known."""
    notes = []
    for run, judged in documents.items():
        if judged is None:
            continue
        own = [row for row in rows if row.run == run and row.rule.needs_baseline]
        names = {RUN: run, BASELINE: f"{baseline_runs.get(run)} of the baseline"}
        if own:
            notes += [
                note("qrels-made-from-run", run=names[name], depth=edge.depth)
                for name, edge in judged.edges.items()
            ]
        if any(row.judged is not None for row in own) and BASELINE not in judged.alignments:
            notes.append(note("gate-lists-unknown", run=run))
    undecided = [row for row in rows if row.undecided]
    if undecided:
        notes.append(
            note(
                "gate-undecided",
                rules=[(row.rule.text, row.run) for row in undecided],
                documents=max(row.unjudged for row in undecided),
                strict=strict,
            )
        )
    return notes
