"""Where a pair's interval and its corrected p-value say different things: which pairs, and why."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.comparison.pairs import Pair
from steelyard.comparison.plan import Plan
from steelyard.statistics import FAMILY_TESTS, shown_p
from steelyard.wording import counted, listed

MOST_NAMED = 10
"""Pairs that the note names; it counts the others."""


def disagreement(tested: Sequence[Pair], plan: Plan) -> list[str]:
    """One note that names the pairs whose interval and p disagree, and says why; none where all agree."""
    odd = [pair for pair in tested if pair.at_odds(plan.alpha)]
    if not odd:
        return []
    measures = list(dict.fromkeys(pair.measure for pair in tested))
    odd.sort(key=lambda pair: measures.index(pair.measure))
    more = f"; and {len(odd) - MOST_NAMED:,} more" if len(odd) > MOST_NAMED else ""
    return [
        f"Interval and p disagree on {counted(len(odd), 'pair')}: {_named(odd[:MOST_NAMED], plan.alpha)}{more}. "
        f"The 95 % interval is a bootstrap of each pair alone; p is by the {_tested(tested, plan)}. "
        "The verdicts go by p."
    ]


def _named(odd: Sequence[Pair], alpha: float) -> str:
    """The pairs, those of one measure and one baseline together."""
    alike: dict[tuple[bool, str, str], list[Pair]] = {}
    for pair in sorted(odd, key=lambda pair: pair.p_adjusted < alpha):
        alike.setdefault((pair.p_adjusted < alpha, pair.measure, pair.baseline), []).append(pair)
    said = []
    for (below, measure, baseline), pairs in alike.items():
        how = "the interval holds 0" if below else "the interval leaves out 0"
        runs = listed([pair.run for pair in pairs])
        each = ", ".join(shown_p(pair.p_adjusted) for pair in pairs)
        said.append(f"{runs} against {baseline} on {measure} ({how}, p is {each})")
    return "; ".join(said)


def _tested(tested: Sequence[Pair], plan: Plan) -> str:
    """The test, what it was corrected for, and alpha where the interval's level is another."""
    pairs = sum(pair.measure == tested[0].measure for pair in tested)
    said = f"paired {plan.test} test"
    if pairs > 1 and plan.test in FAMILY_TESTS:
        said += ", which corrects for all pairs of a measure"
    elif pairs > 1 and plan.correction != "none":
        said += f", corrected by {plan.correction} for the {pairs:,} pairs of a measure"
    return said if plan.alpha == 0.05 else f"{said}, and held against alpha {plan.alpha:g}"
