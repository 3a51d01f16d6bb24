"""Bounds of a measure, or of its difference between two runs: the extremes over all gradings of unjudged documents.

A grading gives every unjudged document of a list a grade from 0 to the highest grade in the qrels. Documents
that become relevant count in R and in the ideal list; documents outside the lists stay as they are. Two runs are
measured with the same grades: a document in both lists has one grade. Queries are graded independently, so that the
bounds of a mean are the means of the queries' bounds. Ranks are those of the alignment: with ties=expected the
bounds are those of the order that the ranks give.

For most measures a few gradings are enough, and the measure's own code gives their values. Each measure declares
(`bounded` of `@measure`) which ones, and no grading is missed for the reason given here. `inside` are the unjudged
documents in the first k (all of the list if there is no cutoff), `outside` the others.

fixed       No grading changes the measure.
additive    Every document adds to the measure by its own grade alone, so that each has the grade that adds least, or
            most. What it adds is measured with this document alone. Below a cutoff it adds nothing.
best document  The value is the highest of the values that the relevant documents have alone. Of two runs, any other
            document than the best of the run to be raised can only raise the other run. So the extremes are at
            one relevant document or none.
monotone    A higher grade never lowers the value: the extremes are at all lowest and all highest grades. ERR: the
            factor of a document's chance to satisfy is at least P (1 / rank - 1 / (rank + 1)), P that of reaching it.
counts      The value is a function of the numbers x (inside) and y (outside) of relevant documents that grows with x
            and falls with y, as (h + x) / (R + x + y) with h <= R: the extremes are at none or all of the inside with
            none or all of the outside. Two runs that divide by the same number have the difference
            (d + x - y) / D, x and y being relevant documents that only the first or only the second has inside. It
            grows with x as d <= R, and falls with y. For the documents that both or neither have inside, the sign
            of the numerator decides: all of them are relevant, or none is.
ranks       The value is a function of the ranks r(1) < r(2) < ... of the relevant documents and of R that does not
            grow with any r(i), nor with y. Of the ways to make m of the inside relevant, the first m make every
            r(i) smallest and the last m make it largest: the extremes are among these, for all m.
graded ranks   nERR. A swap that moves the higher grade up raises ERR, and the ideal is the highest of all orders, so
            that ERR / ideal is quasi-concave in each chance to satisfy and lowest at lowest or highest grades: as
            ranks, but the highest value is known only if there are two levels.
scaled grades  ScaledRBP is the sum of weight x grade over max(1, H), H the highest grade of the query. If an unjudged
            document has the highest grade g of all unjudged ones, the sum is highest if all have it and lowest if
            only the last one has it and the others have 0: for each level all documents, or only the last.
gain ratio, precision sums, R-precision   Formulas for nDCG, AP and Yaap, Rprec: see bound_formulas. Trying
            the gradings of `ranks` takes too long for long lists, and grades between 0 and the highest matter to nDCG.
relevance, any   All gradings are tried if they are few (relevance: a document is relevant or not). Otherwise the
            bounds are the range of the measure.

If nothing better is known of a difference, its bounds are the lowest value of the one run less the highest of the
other, and the reverse, which contain every difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

import steelyard.measures.bound_formulas as bound_formulas
import steelyard.measures.gradings as gradings
from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.measures.binary import capped, share
from steelyard.measures.compute import (
    averaged,
    geometric,
    has_named_targets,
    is_over_targets,
    logarithms,
    summary,
    values,
)
from steelyard.measures.grammar import Measure, with_rel
from steelyard.measures.registry import definitions

MOST_GRADINGS = 4096  # The most gradings of a query that are tried if there is no better way to find exact bounds.


@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """The lowest and the highest value of each query; NaN if it has none under any grading.

    `exact`: both are values that some grading gives; otherwise all values are between them.
    `undefined`: the query may have no value, as Accuracy if no document is relevant.
    """

    low: Floats
    high: Floats
    exact: Bools
    undefined: Bools

    def of_values(self, now: Floats, unjudged: Ints) -> Bounds:
        """The same where a query may have no value `now`: none at all without unjudged documents in its list."""
        left_out = np.isnan(now)
        none = left_out & (unjudged == 0)
        low, high = (np.where(none, np.nan, end) for end in (self.low, self.high))
        return replace(self, low=low, high=high, undefined=self.undefined | left_out)

    def where(self, kept: Bools) -> Bounds:
        """The bounds of some of the queries."""
        return Bounds(self.low[kept], self.high[kept], self.exact[kept], self.undefined[kept])

    def summary(self, measure: Measure) -> tuple[float, float]:
        """The bounds of the measure over all queries.

        Queries are graded independently of each other and the summary (a mean, a sum, a percentile ...) does
        not fall when a value rises, so the summary of the lowest values is the lowest. A query that may have
        no value counts in the mean if this lowers (raises) it.
        """
        if not np.any(self.undefined & ~np.isnan(self.low)) or not (averaged(measure) or geometric(measure)):
            return summary(measure, self.low), summary(measure, self.high)
        low, high = map(logarithms, (self.low, self.high)) if geometric(measure) else (self.low, self.high)
        ends = _lowest_mean(low, self.undefined), 0.0 - _lowest_mean(-high, self.undefined)
        return (float(np.exp(ends[0])), float(np.exp(ends[1]))) if geometric(measure) else ends


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """What is bounded: a measure of one run, or the difference of two runs, over gradings of their documents.

    `docs` are in the order of their ranks if there is one run; `levels` are the grades that they may have.
    """

    measure: Measure
    runs: Sequence[Alignment]
    docs: gradings.Unjudged
    levels: Floats

    @property
    def size(self) -> int:
        """The number of queries."""
        return self.docs.size

    def now(self) -> Floats:
        """The value, or the difference, without any grading."""
        return _difference([values(self.measure, a) for a in self.runs])

    def inside(self) -> list[Bools]:
        """For each run, which documents are in its first k."""
        return [gradings.in_first(rank, rank_cutoff(self.measure)) for rank in self.docs.ranks]

    def of_run(self, number: int) -> Case:
        """One of the runs, with the same documents to be graded."""
        return replace(self, runs=[self.runs[number]], docs=self.docs.of_run(number))


def bounds(measure: Measure, a: Alignment) -> Bounds:
    """The bounds of a measure for each query of a run.

    The value itself lies within its bounds, except if a measure passes over unjudged documents instead of
    counting them as not relevant: Bpref, infAP, condensed lists inside Counted.
    """
    return bounds_of(Case(measure, [a], gradings.unjudged(a), gradings.grade_levels(a)))


def judged_share(measure: Measure, a: Alignment) -> Floats:
    """The share of judged documents among those that a measure reads: the first k, or the whole list.

    It is Judged@k: repeats are not counted, and the share of an empty list is 0.
    """
    cutoffs = [rank_cutoff(part) for part in _parts(measure)]
    ranks = [k for k in cutoffs if k is not None]
    depth = max(ranks) if ranks and len(ranks) == len(cutoffs) else None
    return values(Measure(definitions()["Judged"], cutoff=depth), a)


def rank_cutoff(measure: Measure) -> int | None:
    """The rank at which a measure cuts a list; None if it has no cutoff, or one that is not a rank."""
    by_rank = measure.definition.cutoff_kind == "rank" and measure.cutoff is not None
    return int(measure.cutoff or 0) if by_rank else None


def bounds_of(case: Case) -> Bounds:
    """The bounds of every query: by the method that the measure declares, or by trying all gradings if few."""
    now = case.now()
    still = Bounds(now, now, np.ones(case.size, dtype=bool), np.zeros(case.size, dtype=bool))
    no_choice = len(case.levels) == 1 and not gradings.zero_counts(case.measure)
    if gradings.is_fixed(case.measure) or not len(case.docs.query) or no_choice:
        return still
    return _with_all_tried(_chosen(case.docs.counts == 0, still, _by_method(case)), case)


def _by_method(case: Case) -> Bounds:
    measure = case.measure
    if measure.name == "Composite":
        parts = [bounds_of(replace(case, measure=part)) for part, _ in measure.parts]
        return _composed(measure, parts, difference=len(case.runs) == 2)
    if measure.name == "Counted":
        return _counted(case)
    if not _can_be_graded(measure, case.runs[0]):
        return _within_budget(case) or _fallback(case)
    declared = measure.definition.bounded
    # Per target, RR and AP are means over the ranks of all relevant documents.
    per_target = measure.parameters.get("per") == "target" and declared in ("best document", "precision sums")
    method = METHODS.get("ranks" if per_target else declared)
    if declared in BINARY and not is_over_targets(measure) and _all_levels_alike(case):
        method = _monotone
    return (method and method(case)) or _fallback(case)


BINARY = ("best document", "counts", "ranks", "precision sums", "R-precision", "relevance")
"""The ways of measures to which a document is relevant or not, whatever its grade beyond that."""


def _all_levels_alike(case: Case) -> bool:
    """Whether every level is relevant or none is, so that all gradings give the same value."""
    rel = case.measure.parameters.get("rel")
    return rel is not None and not 0 < float(rel) <= case.levels[-1]


def _fallback(case: Case) -> Bounds:
    """The range of the measure; of a difference, low less high, which is exact if one of the two is fixed."""
    if len(case.runs) == 1:
        return _outer(*case.measure.range, case.size)
    one, other = bounds_of(case.of_run(0)), bounds_of(case.of_run(1))
    undefined = one.undefined | other.undefined
    constant = (one.low == one.high) | (other.low == other.high)
    exact = one.exact & other.exact & constant & ~undefined
    return Bounds(one.low - other.high, one.high - other.low, exact, undefined)


def _with_all_tried(bounds: Bounds, case: Case) -> Bounds:
    """The bounds with those that are not exact replaced by exact ones if the gradings are few."""
    measure, docs, levels = case.measure, case.docs, case.levels
    if np.all(bounds.exact) or not _can_be_graded(measure, case.runs[0]):
        return bounds
    if measure.definition.first_k_only and measure.cutoff is not None:
        docs = docs.only(np.min(docs.ranks, axis=0) <= measure.cutoff)
    if measure.definition.bounded in (*BINARY, "monotone"):
        levels = levels[[0, -1]]
    number = float(len(levels)) ** np.minimum(docs.counts, 99)
    few = ~bounds.exact & (number <= MOST_GRADINGS) & gradings.affordable(case.runs, docs, number)
    if not np.any(few):
        return bounds
    counts = np.where(few, np.minimum(number, MOST_GRADINGS), 0).astype(np.int64)
    digit = len(levels) ** np.where(few[docs.query], docs.place, 0)

    def grade(doc: Ints, number: Ints) -> Floats:
        # Grading number n gives document i the i-th digit of n, written in base len(levels).
        return np.asarray(levels[number // digit[doc] % len(levels)])

    low, high, undefined = gradings.extremes(measure, case.runs, docs, counts, grade)
    return _chosen(few, Bounds(low, high, few, undefined), bounds)


def _evaluated(case: Case, counts: Ints | int, grade: gradings.Grade) -> Bounds:
    """The extremes over some gradings, among which are those of all gradings."""
    low, high, undefined = gradings.extremes(
        case.measure, case.runs, case.docs, np.broadcast_to(counts, case.size), grade
    )
    return Bounds(low, high, np.ones(case.size, dtype=bool), undefined)


def _monotone(case: Case) -> Bounds | None:
    ends = case.levels[[0, -1]]
    if len(case.runs) == 2 and not _all_levels_alike(case):
        return None
    return _evaluated(case, 2, lambda doc, number: ends[number])


def _additive(case: Case) -> Bounds:
    everyone, first = np.arange(case.size), np.ones(case.size, dtype=np.int64)
    gains = [gradings.alone(case.measure, case.runs[0], everyone, first, level).sum() for level in case.levels]
    # The grade that adds least and the one that adds most: a table of gains may order them otherwise.
    ends = [int(np.argmin(gains)), int(np.argmax(gains))]
    least, most = case.levels[ends if ends[0] != ends[1] else [0, -1]]
    read, query = _inside_some_list(case)
    lists = list(zip(case.runs, case.docs.ranks, strict=True))
    # The value, or the difference, of each document if no other is judged.
    low, high = (
        _difference([gradings.alone(case.measure, a, query, rank[read], level) for a, rank in lists])
        for level in (least, most)
    )
    more = np.zeros(len(case.docs.query))
    more[read] = high - low

    def grade(doc: Ints, number: Ints) -> Floats:
        raised = np.where(number == 1, more[doc] > 0, more[doc] < 0)
        return np.where(raised, float(most), float(least))

    return _evaluated(case, 2, grade)


def _inside_some_list(case: Case) -> tuple[Ints, Ints]:
    """The documents in the first k of a list, and their queries; all without a cutoff, as absent ones may count too."""
    k = rank_cutoff(case.measure)
    read = np.flatnonzero(np.min(case.docs.ranks, axis=0) <= (np.inf if k is None else k))
    return read, case.docs.query[read]


def _best_document(case: Case) -> Bounds:
    (read, query), top = _inside_some_list(case), float(case.levels[-1])
    now = [values(case.measure, a) for a in case.runs]
    with_one = [
        np.maximum(value[query], gradings.alone(case.measure, a, query, rank[read], top))
        for value, a, rank in zip(now, case.runs, case.docs.ranks, strict=True)
    ]
    low, high = _difference(now).copy(), _difference(now).copy()
    np.minimum.at(low, query, _difference(with_one))
    np.maximum.at(high, query, _difference(with_one))
    return _formula(case, low, high)


def _counts(case: Case) -> Bounds | None:
    if (case.measure.parameters.get("weight") or 0) < 0:  # SetF: then it does not grow with x
        return None
    side = _difference([inside.astype(np.int64) for inside in case.inside()])

    def grade(doc: Ints, number: Ints) -> Floats:
        relevant = np.where(side[doc] == 0, number >> 1 == 1, side[doc] == np.where(number & 1, 1, -1))
        return np.where(relevant, float(case.levels[-1]), 0.0)

    k = rank_cutoff(case.measure)
    by_cutoff = k is not None and case.measure.parameters.get("denominator") != "retrieved"
    same = np.asarray(case.runs[0].returned(k) == case.runs[-1].returned(k))
    same |= case.measure.definition.tail or by_cutoff
    return _where(same, _evaluated(case, 4, grade), case)


def _ranks(case: Case) -> Bounds | None:
    """For all m the first m of the inside and none of the outside, the last m of the inside and all the outside."""
    docs = case.docs
    # Judged documents that are not in the list count if zeros do: then fewer of them may be better.
    if len(case.runs) == 2 or (case.measure.definition.zeros and np.any(docs.ranks[0] == gradings.ABSENT)):
        return None
    (inside,) = case.inside()
    number_inside = docs.per_query(inside)
    counts = 2 * (number_inside + 1)
    able = gradings.affordable(case.runs, docs, counts.astype(np.float64))

    def grade(doc: Ints, number: Ints) -> Floats:
        most = number_inside[docs.query[doc]]
        extra, last = number % (most + 1), number > most
        relevant = np.where(last, docs.place[doc] >= most - extra, docs.place[doc] < extra)
        return np.where(np.where(inside[doc], relevant, last), case.levels[-1], 0.0)

    bounds = _evaluated(case, np.where(able, counts, 0), grade)
    everything = _fallback(case)
    if case.measure.definition.bounded == "graded ranks" and len(case.levels) > 2:
        bounds = replace(bounds, high=everything.high, exact=everything.exact)
    return _chosen(able, bounds, everything)


def _scaled_grades(case: Case) -> Bounds | None:
    docs, levels = case.docs, case.levels
    last = docs.place == docs.counts[docs.query] - 1

    def grade(doc: Ints, number: Ints) -> Floats:
        return np.where((number < len(levels)) | last[doc], levels[number % len(levels)], 0.0)

    return _evaluated(case, 2 * len(levels), grade) if len(case.runs) == 1 else None


def _gain_ratio(case: Case) -> Bounds | None:
    same = bound_formulas.same_ideal(case.measure, case.runs)
    limits = bound_formulas.ndcg_limits(case.measure, case.runs, case.docs, case.levels) if np.any(same) else None
    return None if limits is None else _where(same, _formula(case, *limits), case)


def _precision_sums(case: Case) -> Bounds | None:
    measure, docs, k = case.measure, case.docs, rank_cutoff(case.measure)
    if len(case.runs) == 1:
        return _formula(case, *bound_formulas.average_precision_limits(measure, case.runs[0], docs, k))
    if measure.name == "Yaap" or measure.parameters.get("denominator") == "found":
        return None
    (low, high), exact = bound_formulas.average_precision_difference(
        measure, case.runs, docs, k, float(case.levels[-1])
    )
    apart = _fallback(case)
    return replace(apart, low=np.maximum(apart.low, low), high=np.minimum(apart.high, high), exact=apart.exact | exact)


def _r_precision(case: Case) -> Bounds | None:
    if len(case.runs) == 2:
        return None
    return _formula(case, *bound_formulas.r_precision_limits(case.measure, case.runs[0], case.docs))


METHODS: dict[str, Callable[[Case], Bounds | None]] = {
    "additive": _additive,
    "best document": _best_document,
    "monotone": _monotone,
    "counts": _counts,
    "ranks": _ranks,
    "graded ranks": _ranks,
    "scaled grades": _scaled_grades,
    "gain ratio": _gain_ratio,
    "precision sums": _precision_sums,
    "R-precision": _r_precision,
}
"""The ways to find bounds; None is returned for what they do not hold for."""


def _where(same: Bools, bounds: Bounds, case: Case) -> Bounds:
    """The bounds found if both runs have the same denominator, otherwise those of `_fallback`."""
    return bounds if len(case.runs) == 1 or np.all(same) else _chosen(same, bounds, _fallback(case))


def _formula(case: Case, low: Floats, high: Floats) -> Bounds:
    """Exact bounds from a formula; rounding does not put the value itself outside of them."""
    if not gradings.zero_counts(case.measure):
        low, high = np.minimum(low, case.now()), np.maximum(high, case.now())
    return Bounds(low, high, np.ones(case.size, dtype=bool), np.zeros(case.size, dtype=bool))


def _difference(sides: Sequence[Floats]) -> Floats:
    return sides[0] if len(sides) == 1 else sides[0] - sides[1]


def _chosen(where: Bools, one: Bounds, other: Bounds) -> Bounds:
    """The bounds of one if the condition holds, otherwise those of the other."""
    return Bounds(*(np.where(where, getattr(one, n), getattr(other, n)) for n in Bounds.__dataclass_fields__))


def _outer(low: float, high: float, size: int) -> Bounds:
    """Bounds that are not known to be exact."""
    return Bounds(np.full(size, low), np.full(size, high), np.zeros(size, dtype=bool), np.zeros(size, dtype=bool))


def _can_be_graded(measure: Measure, a: Alignment) -> bool:
    """Whether the value after a grading is known: not if it takes token counts, nor if qrels name targets.

    A document that becomes relevant is its own target if the qrels name none; if they do, it is not
    known which targets it would satisfy. Nor is it known if a measure scales grades by the highest one
    among the documents returned for all queries (Counted(known=returned) of ERR): queries are graded alone.
    """
    parts = _parts(measure)
    if "known=returned" in measure.spelled and any(part.definition.scaled for part in parts):
        return False
    if any(part.parameters.get("budget") is not None for part in parts):
        return False
    return not any(map(is_over_targets, parts)) or not has_named_targets(a)


def _composed(measure: Measure, parts: list[Bounds], difference: bool) -> Bounds:
    """The bounds of a Composite from those of its parts: the sum of the lowest, and of the highest, values.

    They are exact if no more than one part varies. A `difference` of two runs has no `1 - value`, only -value.
    """
    weights = [weight for _, weight in measure.parts]
    flipped = [part.definition.better == "less" for part, _ in measure.parts]
    one = 0.0 if difference else 1.0
    lows = [one - part.high if less else part.low for part, less in zip(parts, flipped, strict=True)]
    highs = [one - part.low if less else part.high for part, less in zip(parts, flipped, strict=True)]
    varying = sum((low != high).astype(int) for low, high in zip(lows, highs, strict=True))
    undefined = np.any([part.undefined for part in parts], axis=0)
    exact = np.all([part.exact for part in parts], axis=0) & (varying <= 1) & ~undefined
    return Bounds(_weighted(lows, weights), _weighted(highs, weights), exact, undefined)


def _weighted(parts: list[Floats], weights: list[float]) -> Floats:
    """The weighted mean of parts; an infinite part of weight 0 adds nothing."""
    pairs = zip(parts, weights, strict=True)
    terms = (weight * np.where(np.isinf(part) & (weight == 0), 0.0, part) for part, weight in pairs)
    return sum(terms, np.zeros(1)) / sum(weights)


def _within_budget(case: Case) -> Bounds | None:
    """R and Hit within a budget of tokens: exact if the judged documents show which others are within it.

    A document above a judged one that is within the budget is within it too; one below a judged one that is not within
    it is not either. Any other may be: it is taken as within for the highest value and as not within for the lowest.
    """
    (measure, given), k = (case.measure, case.measure.parameters), rank_cutoff(case.measure)
    if given.get("budget") is None or is_over_targets(measure) or len(case.runs) == 2:
        return None
    a, docs, now, never = case.runs[0], case.docs, case.now(), np.zeros(case.size, dtype=bool)
    if given["rel"] > case.levels[-1]:
        return _formula(case, now, now)
    if given["rel"] <= 0:
        return None
    sure, possible = _budgeted(a, docs, given["budget"], case.inside()[0])
    exact = sure == possible
    if measure.name == "Hit":
        return Bounds(now, np.where(possible > 0, 1.0, now), exact | (now == 1), never)
    whole = a.relevant(given["rel"])
    hits = a.per_query((a.grade >= given["rel"]) & a.within(k, given["budget"]))
    low = share(hits, capped(whole + docs.counts - sure, k, given["cap"]))
    high = share(hits + possible, capped(whole + possible, k, given["cap"]))
    return Bounds(low, np.minimum(high, 1.0), exact, never)


def _budgeted(a: Alignment, docs: gradings.Unjudged, budget: int, inside: Bools) -> tuple[Ints, Ints]:
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


def _counted(case: Case) -> Bounds:
    """The bounds of the inner measure if Counted gives its value under every grading, otherwise its range."""
    low, high = case.measure.range
    ends = (low, high) if len(case.runs) == 1 else (low - high, high - low)
    everything = replace(_outer(*ends, case.size), undefined=np.ones(case.size, dtype=bool))
    given = case.measure.parameters
    plain = np.full(case.size, given["known"] == "judged" and given["unjudged"] == "keep")
    for a in case.runs:
        plain &= (a.relevant(given["rel"]) > 0) | (given["no_relevant"] == "zero")
        plain &= (a.retrieved > 0) | (given["empty"] == "zero")
    if not np.any(plain):
        return everything
    return _chosen(plain, bounds_of(replace(case, measure=_counted_measure(case.measure))), everything)


def _counted_measure(measure: Measure) -> Measure:
    return with_rel(measure.inner, measure.parameters["rel"])


def _parts(measure: Measure) -> list[Measure]:
    """The measures that a Composite or Counted is made of; of any other measure, itself."""
    if measure.name == "Composite":
        return [inner for part, _ in measure.parts for inner in _parts(part)]
    return _parts(_counted_measure(measure)) if measure.name == "Counted" else [measure]


def _lowest_mean(low: Floats, optional: Bools) -> float:
    """The lowest mean if some of the values may be left out: those below the mean of the rest are not."""
    there = ~np.isnan(low)
    sure, others = low[there & ~optional], np.sort(low[there & optional])
    totals = np.concatenate([[0.0], np.cumsum(others)]) + sure.sum()
    numbers = np.arange(len(others) + 1) + len(sure)
    return float(np.min(totals[numbers > 0] / numbers[numbers > 0]))
