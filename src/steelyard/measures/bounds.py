"""Bounds of a measure: its lowest and highest value over all gradings of the unjudged documents in the lists.

A grading gives every unjudged document of a list a grade from 0 to the highest grade in the qrels. Documents
that become relevant count in R and in the ideal list; documents outside the list stay as they are. Ranks are
those of the alignment: with ties=expected the bounds are those of the order that the ranks give.

How the bounds of each measure are found, with the reason why no grading is missed. `inside` are the unjudged
documents in the first k (all of the list where there is no cutoff), `outside` the others.

FIXED       no grading changes the measure.
ENDS        every document adds to the measure by its own grade alone, or a higher grade never lowers the
            value: the extremes are at all lowest and all highest grades. ERR: the coefficient of a
            document's chance to satisfy is at least P (1 / rank - 1 / (rank + 1)), P the chance to reach it.
CORNERS     the value is a function of x (inside, relevant) and y (outside, relevant) that grows with x and
            falls with y, as (h + x) / (R + x + y) with h <= R, or is linear in both: the extremes are at
            none or all of the inside with none or all of the outside.
FIRST_OR_LAST  the value is a function of the ranks r(1) < r(2) < ... of the relevant documents and of R that
            does not grow with any r(i), nor with y. Of the ways to make m of the inside relevant, the first m
            make every r(i) smallest and the last m make it largest: the extremes are among these, for all m.
nDCG, AP, Yaap, Rprec  formulas: see bound_formulas.
others      all gradings are tried where these are few, otherwise the range of the measure is the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.measures.binary import capped, share
from steelyard.measures.bound_formulas import gain_ratio, ndcg_extremes, precision_sums, r_precision_extremes
from steelyard.measures.compute import _named_targets, averaged, summary, values
from steelyard.measures.graded import gain_of
from steelyard.measures.gradings import (
    ABSENT,
    Grade,
    Unjudged,
    affordable,
    extremes,
    grade_levels,
    in_first,
    is_fixed,
    unjudged,
    zero_counts,
)
from steelyard.measures.grammar import Measure, parse
from steelyard.measures.registry import definitions

ENDS = frozenset(
    ("P", "Hit", "RR", "DCG", "RBP", "ERR", "INSQ", "SDCG", "SetP", "NumRel", "NumRelRet", "Found")
) | {"NumNonrelJudgedRet", "Diversity", "Abstain"}
CORNERS = frozenset(
    ("R", "F", "SetR", "SetF", "SetAP", "SetRelativeP", "Utility", "DR", "StRecall", "AllTargets", "P_IA")
)
FIRST_OR_LAST = frozenset(
    ("AP", "ARR", "AR", "IPrec", "IPrecAvg", "Bpref", "GMBpref", "BinG", "Accuracy")
) | {"RR", "AP_IA", "NewTargets", "alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "nERR"}
PRECISIONS = frozenset(("AP", "GMAP", "Yaap"))
LIST_ONLY = frozenset(("Bpref", "GMBpref"))
"""FIRST_OR_LAST holds for these only where no document outside the list is graded."""
OVER_TARGETS = frozenset(
    ("DR", "StRecall", "AllTargets", "Diversity", "NewTargets", "AP_IA", "P_IA", "NRBP", "nNRBP")
) | {"alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA"}
FIRST_K_ONLY = frozenset(("BPM", "ERR", "Hit"))
"""Measures that do not depend on any document below the cutoff."""
GRADED = frozenset(
    ("DCG", "nDCG", "nERR", "RBP", "INST", "INSQ", "BPM", "SDCG", "Compat", "ScaledRBP", "G")
) | {"Rndcg", "nDCGRel", "Composite", "Counted"}
"""Measures that may have extremes at grades in between. For the others a document is relevant or not; ERR is
linear in each document's chance to satisfy, so that its extremes are at lowest or highest grades."""
SCALED = frozenset(("ERR", "nERR", "RBP", "INST", "INSQ", "BPM", "SDCG"))
"""Measures that may scale grades by the highest one in the qrels."""
MOST_GRADINGS = 4096
"""The most gradings of a query that are tried where there is no better way to find exact bounds."""


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """The lowest and the highest value of each query; NaN where it has none under any grading.

    `exact`: both are values that some grading gives; otherwise all values are between them.
    `undefined`: the query may have no value, as Accuracy where no document is relevant.
    """

    low: Floats
    high: Floats
    exact: Bools
    undefined: Bools

    def where(self, kept: Bools) -> Bounds:
        """The bounds of some of the queries."""
        return Bounds(self.low[kept], self.high[kept], self.exact[kept], self.undefined[kept])

    def summary(self, measure: Measure) -> tuple[float, float]:
        """The bounds of the measure over all queries.

        Queries are graded independently of each other and the summary (a mean, a sum, a percentile ...) does
        not fall when a value rises, so the summary of the lowest values is the lowest. A query that may have
        no value counts in the mean where this lowers (raises) it.
        """
        if averaged(measure) and np.any(self.undefined & ~np.isnan(self.low)):
            return _lowest_mean(self.low, self.undefined), -_lowest_mean(-self.high, self.undefined)
        return summary(measure, self.low), summary(measure, self.high)


def bounds(measure: Measure, a: Alignment, levels: Sequence[float] | Floats | None = None) -> Bounds:
    """The bounds of a measure for each query of a run.

    `levels` are the grades that an unjudged document may have; see `grade_levels` for the default.

    The value itself lies within its bounds, except where a measure passes over unjudged documents instead of
    counting them as not relevant: Bpref, infAP, condensed lists inside Counted.
    """
    return bounds_over(measure, a, unjudged(a), grade_levels(a, levels))


def judged_share(measure: Measure, a: Alignment) -> Floats:
    """The share of judged documents among those that a measure reads: the first k, or the whole list.

    It is Judged@k: repeats are not counted, and the share of an empty list is 0.
    """
    return values(Measure(definitions()["Judged"], cutoff=_depth_read(measure)), a)


def bounds_over(measure: Measure, a: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    """The bounds over gradings of given documents, in the order of their ranks; some may not be in the lists."""
    now = values(measure, a)
    still = Bounds(now, now, np.ones(a.size, dtype=bool), np.zeros(a.size, dtype=bool))
    if is_fixed(measure) or not len(docs.query) or (len(levels) == 1 and not zero_counts(measure)):
        return still
    found = _by_family(measure, a, docs, levels)
    found = chosen(docs.counts == 0, still, found)
    return with_all_tried(found, measure, [a], docs, levels)


def with_all_tried(
    found: Bounds, measure: Measure, runs: list[Alignment], docs: Unjudged, levels: Floats
) -> Bounds:
    """The bounds with those that are not exact replaced by exact ones where the gradings are few."""
    if np.all(found.exact) or not can_be_graded(measure, runs[0]):
        return found
    if measure.name in FIRST_K_ONLY and measure.cutoff is not None:
        docs = docs.only(np.min(docs.ranks, axis=0) <= measure.cutoff)
    if measure.name not in GRADED:
        levels = levels[[0, -1]]
    number = float(len(levels)) ** np.minimum(docs.counts, 99)
    few = ~found.exact & (number <= MOST_GRADINGS) & affordable(runs, docs, number)
    if not np.any(few):
        return found
    counts = np.where(few, np.minimum(number, MOST_GRADINGS), 0).astype(np.int64)
    digit = len(levels) ** np.where(few[docs.query], docs.place, 0)

    def grade(doc: Ints, number: Ints) -> Floats:
        given: Floats = levels[number // digit[doc] % len(levels)]
        return given

    tried = extremes(measure, runs, docs, counts, grade)
    return chosen(few, Bounds(tried.low, tried.high, few, tried.undefined), found)


def can_be_graded(measure: Measure, a: Alignment) -> bool:
    """Whether the value after a grading is known: not where it takes token counts, nor where qrels name targets.

    A document that becomes relevant is its own target where the qrels name none; where they do, it is not
    known which targets it would satisfy. Nor is it known where a measure scales grades by the highest one
    among the documents returned for all queries (Counted(known=returned) of ERR): queries are graded alone.
    """
    parts = _parts(measure)
    if "known=returned" in measure.spelled and any(part.name in SCALED for part in parts):
        return False
    if any(part.parameters.get("budget") is not None for part in parts):
        return False
    return not any(map(is_over_targets, parts)) or not _named_targets(a)


def value_range(measure: Measure) -> tuple[float, float]:
    """The range of a measure's values, whatever the list and the grades."""
    about, given = measure.definition, measure.parameters
    if measure.name == "Counted":
        low, high = value_range(counted_measure(measure))
        return min(low, 0.0), max(high, 1.0)
    table = given.get("gain")
    if isinstance(table, tuple) and any(worth < 0 for _, worth in table):
        return -inf, inf
    if measure.name == "SetF" and (given["weight"] or 0) < 0:
        return -inf, inf
    return about.low, inf if given.get("gain") == "grade" else about.high


def chosen(where: Bools, one: Bounds, other: Bounds) -> Bounds:
    """The bounds of one where the condition holds, of the other elsewhere."""
    return Bounds(*(np.where(where, getattr(one, n), getattr(other, n)) for n in Bounds.__dataclass_fields__))


def outer(low: Floats | float, high: Floats | float, size: int) -> Bounds:
    """Bounds that are not known to be exact."""
    no = np.zeros(size, dtype=bool)
    return Bounds(np.broadcast_to(low, size).astype(float), np.broadcast_to(high, size).astype(float), no, no)


def composed(measure: Measure, parts: list[Bounds], difference: bool = False) -> Bounds:
    """The bounds of a Composite from those of its parts: the sum of the lowest, and of the highest, values.

    They are exact where no more than one part varies. A `difference` of two runs has no `1 - value`, only -value.
    """
    weights = [weight for _, weight in measure.parameters["weights"]]
    flipped = [parse(text).definition.better == "less" for text, _ in measure.parameters["weights"]]
    one = 0.0 if difference else 1.0
    lows = [one - part.high if less else part.low for part, less in zip(parts, flipped, strict=True)]
    highs = [one - part.low if less else part.high for part, less in zip(parts, flipped, strict=True)]
    varying = sum((low != high).astype(int) for low, high in zip(lows, highs, strict=True))
    undefined = np.any([part.undefined for part in parts], axis=0)
    exact = np.all([part.exact for part in parts], axis=0) & (varying <= 1) & ~undefined
    return Bounds(_weighted(lows, weights), _weighted(highs, weights), exact, undefined)


def _weighted(parts: list[Floats], weights: list[float]) -> Floats:
    """The weighted mean of parts; an infinite part of weight 0 adds nothing."""
    terms = [
        np.where(np.isinf(part), 0.0, part) * 0 if weight == 0 else part * weight
        for part, weight in zip(parts, weights, strict=True)
    ]
    return sum(terms, np.zeros(1)) / sum(weights)


def _by_family(measure: Measure, a: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    name, given = measure.name, measure.parameters
    if name == "Composite":
        texts = [text for text, _ in given["weights"]]
        return composed(measure, [bounds_over(parse(text), a, docs, levels) for text in texts])
    if name == "Counted":
        return _counted_bounds(measure, a, docs, levels)
    everything = outer(*value_range(measure), a.size)
    if is_over_targets(measure) and _named_targets(a):
        return everything
    if given.get("budget") is not None:
        return _within_budget(measure, a, docs, levels)
    if name == "nDCG":
        ratio = gain_ratio(measure, [a], docs, levels)
        return everything if ratio is None else _around(measure, a, *ndcg_extremes(ratio))
    if gradings_are_alike(measure, levels):
        return _at_ends(measure, a, docs, levels)
    if name in PRECISIONS and given.get("per") != "target":
        return _precision_bounds(measure, a, docs)
    if name in ("Rprec", "RprecMult"):
        cut = partial(_r_depth, multiple=float(measure.cutoff)) if measure.cutoff is not None else np.asarray
        return _around(measure, a, *r_precision_extremes(a, docs, given["rel"], cut))
    if name == "ScaledRBP":
        return _evaluated(
            measure, a, docs, np.full(a.size, 2 * len(levels)), _levels_of_all_or_last(docs, levels)
        )
    if name in ENDS and given.get("per") != "target":
        return _at_ends(measure, a, docs, levels)
    if name in CORNERS and (name != "SetF" or (given["weight"] or 0) >= 0):
        return _evaluated(measure, a, docs, np.full(a.size, 4), _corners(_inside(measure, docs), levels[-1]))
    if name in FIRST_OR_LAST and (name not in LIST_ONLY or not np.any(docs.ranks[0] == ABSENT)):
        return _first_or_last(measure, a, docs, levels, everything)
    return everything


def _at_ends(measure: Measure, a: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    ends = end_levels(measure, levels)
    return _evaluated(measure, a, docs, np.full(a.size, 2), lambda doc, number: ends[number])


def end_levels(measure: Measure, levels: Floats) -> Floats:
    """The grade that adds least and the one that adds most: a table of gains may order them otherwise."""
    if measure.name != "DCG":
        return levels[[0, -1]]
    gains = gain_of(levels, measure.parameters["gain"], measure.parameters["rel"])
    return levels[[int(np.argmin(gains)), int(np.argmax(gains))]]


def _corners(inside: Bools, top: float) -> Grade:
    """Four gradings: the inside all at 0 or all at the top, and so the outside."""
    return lambda doc, number: np.where(number >> np.where(inside[doc], 0, 1) & 1, top, 0.0)


def _levels_of_all_or_last(docs: Unjudged, levels: Floats) -> Grade:
    """ScaledRBP is the sum of weight x grade over max(1, H), H the highest grade of the query.

    Where an unjudged document has the highest grade g of all unjudged ones, the sum is highest where all
    have it and lowest where only the last one has it and the others have 0. So for each level: all
    documents at it, or only the last.
    """
    last = docs.place == docs.counts[docs.query] - 1

    def grade(doc: Ints, number: Ints) -> Floats:
        all_of_them = number < len(levels)
        return np.where(all_of_them | last[doc], levels[number % len(levels)], 0.0)

    return grade


def _first_or_last(
    measure: Measure, a: Alignment, docs: Unjudged, levels: Floats, everything: Bounds
) -> Bounds:
    """For all m the first m of the inside and none of the outside, the last m of the inside and all the outside.

    nERR: a swap that moves the higher grade up raises ERR, the ideal is the highest of all orders, so that
    ERR / ideal is quasi-concave in each chance to satisfy and lowest at lowest or highest grades. The lowest
    value is therefore exact for any grades, the highest only where there are two levels.
    """
    inside = _inside(measure, docs)
    number_inside = docs.per_query(inside)
    counts = 2 * (number_inside + 1)
    able = affordable([a], docs, counts.astype(np.float64))
    top = levels[-1]

    def grade(doc: Ints, number: Ints) -> Floats:
        most = number_inside[docs.query[doc]]
        made, last = number % (most + 1), number > most
        relevant = np.where(last, docs.place[doc] >= most - made, docs.place[doc] < made)
        return np.where(np.where(inside[doc], relevant, last), top, 0.0)

    found = _evaluated(measure, a, docs, np.where(able, counts, 0), grade)
    if measure.name == "nERR" and len(levels) > 2:
        found = replace(found, high=everything.high, exact=everything.exact)
    return chosen(able, found, everything)


def _precision_bounds(measure: Measure, a: Alignment, docs: Unjudged) -> Bounds:
    """AP and Yaap: functions of a sum of precisions and of R, growing with the one and falling with the other."""
    rel, k = measure.parameters["rel"], rank_cutoff(measure)
    sums = precision_sums(a, docs, k, rel)
    outside = docs.counts - sums.counts
    whole, found = a.relevant(rel), a.per_query((a.grade >= rel) & a.within(k))

    def value(total: Floats, query: Ints, made: Ints | int, others: Ints | int) -> Floats:
        relevant = whole[query] + made + others
        if measure.name == "Yaap":
            return np.log((1 + total) / (1 + relevant - total))
        kind = measure.parameters.get("denominator", "relevant")
        if kind == "found":
            return share(total, found[query] + made)
        return share(total, np.minimum(relevant, k) if kind == "min" and k is not None else relevant)

    everyone = np.arange(a.size)
    low, high = value(sums.none, everyone, 0, outside), value(sums.none, everyone, 0, 0)
    np.minimum.at(low, sums.query, value(sums.last, sums.query, sums.made, outside[sums.query]))
    np.maximum.at(high, sums.query, value(sums.first, sums.query, sums.made, 0))
    return _around(measure, a, low, high)


def _r_depth(relevant: Floats, multiple: float) -> Floats:
    """The depth of RprecMult, as trec_eval rounds it."""
    return np.floor(multiple * relevant + 0.9)


def _within_budget(measure: Measure, a: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    """R and Hit within a budget of tokens: exact where the judged documents show which others are within it.

    A document above a judged one that is within the budget is within it too; one below a judged one that is
    not within it is not either. Any other may be: it is taken as within for the highest value and as not
    within for the lowest.
    """
    given, k = measure.parameters, rank_cutoff(measure)
    rel, now = given["rel"], values(measure, a)
    if rel > levels[-1]:
        return _around(measure, a, now, now)
    if rel <= 0:
        return outer(*value_range(measure), a.size)
    sure, possible = _budgeted(a, docs, given["budget"], _inside(measure, docs))
    exact = sure == possible
    if measure.name == "Hit":
        return Bounds(now, np.where(possible > 0, 1.0, now), exact | (now == 1), np.zeros(a.size, dtype=bool))
    whole = a.relevant(rel)
    found = a.per_query((a.grade >= rel) & a.within(k, given["budget"]))
    low = share(found, capped(whole + docs.counts - sure, k, given["cap"]))
    high = share(found + possible, capped(whole + possible, k, given["cap"]))
    return Bounds(low, np.minimum(high, 1.0), exact, np.zeros(a.size, dtype=bool))


def _budgeted(a: Alignment, docs: Unjudged, budget: int, inside: Bools) -> tuple[Ints, Ints]:
    """How many of the documents of each query are within a budget surely, and how many may be."""
    assert a.tokens_through is not None
    step = int(max(a.rank.max(initial=0), docs.ranks[0][inside].max(initial=0))) + 1
    query = docs.query[inside]
    place = np.searchsorted(a.query * step + a.rank, query * step + docs.ranks[0][inside])
    full = np.append(a.tokens_through, 0)
    above = np.where(place > a.hit_starts[query], full[place - 1], 0)
    below = np.where(place < a.hit_starts[query + 1], full[place], budget + 1)
    sure, possible = (np.bincount(query[x <= budget], minlength=a.size) for x in (below, above))
    return sure, possible


def _counted_bounds(measure: Measure, a: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    """The bounds of the inner measure where Counted gives its value under every grading, otherwise its range."""
    inner = counted_measure(measure)
    low, high = value_range(measure)
    everything = replace(outer(low, high, a.size), undefined=np.ones(a.size, dtype=bool))
    plain = counts_plainly(measure, a)
    return chosen(plain, bounds_over(inner, a, docs, levels), everything) if np.any(plain) else everything


def counts_plainly(measure: Measure, a: Alignment) -> Bools:
    """The queries for which Counted gives the value of its inner measure under every grading."""
    given = measure.parameters
    plain = (a.relevant(given["rel"]) > 0) | (given["no_relevant"] == "zero")
    plain &= (a.retrieved > 0) | (given["empty"] == "zero")
    return (
        plain if given["known"] == "judged" and given["unjudged"] == "keep" else np.zeros(a.size, dtype=bool)
    )


def counted_measure(measure: Measure) -> Measure:
    """The measure that Counted computes, with its level of relevance."""
    inner = parse(measure.parameters["of"])
    level = inner.definition.parameter("rel")
    if level is not None and level.default is not None and "rel" not in dict(inner.given):
        return inner(rel=measure.parameters["rel"])
    return inner


def _evaluated(measure: Measure, a: Alignment, docs: Unjudged, counts: Ints, grade: Grade) -> Bounds:
    found = extremes(measure, [a], docs, counts, grade)
    return Bounds(found.low, found.high, np.ones(a.size, dtype=bool), found.undefined)


def _around(measure: Measure, a: Alignment, low: Floats, high: Floats) -> Bounds:
    """Exact bounds from a formula; rounding does not put the value itself outside of them."""
    if not zero_counts(measure):
        now = values(measure, a)
        low, high = np.minimum(low, now), np.maximum(high, now)
    return Bounds(low, high, np.ones(a.size, dtype=bool), np.zeros(a.size, dtype=bool))


def gradings_are_alike(measure: Measure, levels: Floats) -> bool:
    """Whether every level is relevant or none is, so that all gradings give the same value."""
    rel = measure.parameters.get("rel")
    if rel is None or measure.name in GRADED or is_over_targets(measure):
        return False
    return not 0 < float(rel) <= levels[-1]


def _inside(measure: Measure, docs: Unjudged) -> Bools:
    return in_first(docs.ranks[0], rank_cutoff(measure))


def rank_cutoff(measure: Measure) -> int | None:
    by_rank = measure.definition.cutoff_kind == "rank" and measure.cutoff is not None
    return int(measure.cutoff or 0) if by_rank else None


def _depth_read(measure: Measure) -> int | None:
    """How many documents a measure reads; None: the whole list."""
    cutoffs = [rank_cutoff(part) for part in _parts(measure)]
    known = [k for k in cutoffs if k is not None]
    return max(known) if known and len(known) == len(cutoffs) else None


def _parts(measure: Measure) -> list[Measure]:
    """The measures that a Composite or Counted is made of; else the measure itself."""
    if measure.name == "Composite":
        return [part for text, _ in measure.parameters["weights"] for part in _parts(parse(text))]
    return _parts(counted_measure(measure)) if measure.name == "Counted" else [measure]


def is_over_targets(measure: Measure) -> bool:
    return measure.name in OVER_TARGETS or measure.parameters.get("per") == "target"


def _lowest_mean(low: Floats, optional: Bools) -> float:
    """The lowest mean where some of the values may be left out: those below the mean of the rest are not."""
    there = ~np.isnan(low)
    sure, others = low[there & ~optional], np.sort(low[there & optional])
    totals = np.concatenate([[0.0], np.cumsum(others)]) + sure.sum()
    numbers = np.arange(len(others) + 1) + len(sure)
    return float(np.min(totals[numbers > 0] / numbers[numbers > 0]))
