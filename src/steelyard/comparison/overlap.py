"""Verdicts on chunkers that depend on how much of a passage a chunk must contain to be relevant.

A span that a chunk boundary splits counts by one of three rules: a chunk must contain any of it, a majority, or the
whole. Which chunker is better can depend on the rule, so every pair is tested by all three, and a pair on whose
verdict they do not agree is undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from steelyard.comparison.pairs import Pair, PairTest, tested_pairs
from steelyard.comparison.scores import ScoreTable
from steelyard.comparison.testing import ComparisonPlan
from steelyard.notes import Note, note

DEPENDS = "depends on how much of a passage a chunk must contain"
"""How the reason of such a pair starts; the difference by each rule follows."""

Rules = Mapping[str, Sequence[ScoreTable]]  # The score tables by each rule; the rule of the bench is one of them.


def by_every_rule(pairs: Sequence[Pair], tests: Sequence[PairTest], rules: Rules, plan: ComparisonPlan) -> list[Pair]:
    """The pairs; undecided, with the difference by each rule, where the rules do not agree on the verdict."""
    by_rule = {}
    for rule, tables in rules.items():
        at = {table.k: table for table in tables}
        by_rule[rule] = tested_pairs([replace(test, table=at[test.table.k]) for test in tests], plan)
    updated_pairs = []
    for place, pair in enumerate(pairs):
        views = {rule: others[place] for rule, others in by_rule.items()}
        if len({"not significant" if view.verdict == "equal" else view.verdict for view in views.values()}) > 1:
            reason = dependence({rule: f"{p.difference:+.4f}{p.stars.removeprefix('ns')}" for rule, p in views.items()})
            sentence = f"Undecided: {reason}."
            pair = replace(pair, verdict="undecided", stars="", equivalent=None, reason=reason, sentence=sentence)
        updated_pairs.append(pair)
    return updated_pairs


def dependence(outcomes: Mapping[str, str]) -> str:
    """The reason why something is undecided, with the outcome by each rule.

    >>> dependence({"any": "+0.1610***", "whole": "-0.4530***"})
    'depends on how much of a passage a chunk must contain (any +0.1610***, whole -0.4530***)'
    """
    return f"{DEPENDS} ({', '.join(f'{rule} {outcome}' for rule, outcome in outcomes.items())})"


def outcomes(reason: str) -> str:
    """The outcomes by each rule in a reason of `dependence`; empty for other reasons.

    >>> outcomes(dependence({"any": "+0.1610***", "whole": "-0.4530***"}))
    'any +0.1610***, whole -0.4530***'
    """
    return reason.removeprefix(f"{DEPENDS} (").removesuffix(")") if reason.startswith(DEPENDS) else ""


def overlap_notes(pairs: Sequence[Pair]) -> list[Note]:
    """A note on the pairs that depend on the rule; it names the first."""
    depending = [pair for pair in pairs if pair.reason.startswith(DEPENDS)]
    if not depending:
        return []
    first = depending[0]
    measures = list(dict.fromkeys(pair.label for pair in depending))
    return [note("depends-on-overlap", pairs=len(depending), measures=measures, **first.named, reason=first.reason)]
