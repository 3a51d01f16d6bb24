"""Extremes of nDCG, AP, Yaap and Rprec over all gradings, and of differences, computed without trying the gradings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from steelyard.alignment.alignment import Alignment, starts_of
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.measures.binary import capped, share
from steelyard.measures.compute import values
from steelyard.measures.graded import discount_of, gain_of
from steelyard.measures.gradings import ABSENT, BLOCK, Unjudged, extremes, in_first
from steelyard.measures.grammar import Measure
from steelyard.measures.registry import definitions

Limits: TypeAlias = tuple[Floats, Floats]  # The lowest and the highest value of each query.

STEPS = 60  # The most steps that the search for the highest ratio takes; it ends after a few.

MOST_PAIRED = 256
"""The most unjudged documents in the first k of a query's lists for which AP is bounded by pairs of them."""

PAIRS_AT_A_TIME = 1 << 17
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class GainRatio:
    """(base + sum of weight x gain over the unjudged documents) / DCG of the ideal list, per query.

    `gains` are the gains that an unjudged document may have, ascending, none below 0; `judged_query` and
    `judged_gain` are the judged documents that the ideal list may hold, and `depth` is its length.
    """

    base: Floats
    docs: Unjudged
    weight: Floats
    gains: Floats
    judged_query: Ints
    judged_gain: Floats
    depth: Floats
    discount: Floats

    def highest(self) -> Floats:
        """The highest ratio over all gains of the unjudged documents.

        Let t be the highest ratio. A list of gains reaches it where base + sum of weight x gain - t x ideal is highest
        (Dinkelbach 1967). The gain of a document is the sum of the steps between the possible gains up to its own, and
        the DCG of the ideal list is the sum, over the steps, of the step's height times D(J + m): J judged documents
        and m unjudged ones gain at least so much, and D(n) is the sum of the first n discounts. So the steps can be
        maximised one by one, each over m, and the m documents are those of the highest weights.

        t >= 0: from one step to the next higher one J does not grow, so D(J + m) grows faster in m and the
        best m does not grow. The documents of a step are therefore among those of the step below it, as
        they must be. The search starts from the highest numerator and t rises until it stays the same.

        t < 0, where even the highest numerator is below 0: the ratio is quasi-convex in the gains, as the
        ideal DCG is convex (it is the highest of all orders' DCG). So every document has the lowest or the
        highest gain, and m is the same in all steps.

        More documents of weight 0 than the ideal list is long change nothing, and are left out.
        """
        order = np.lexsort((-self.weight, self.docs.query))
        weight, query = self.weight[order], self.docs.query[order]
        idle = np.flatnonzero(weight == 0)
        first = starts_of(query[idle], self.docs.size)
        surplus = np.arange(len(idle)) - first[query[idle]] >= self.depth[query[idle]]
        kept = np.delete(np.arange(len(weight)), idle[surplus])
        weight, query = weight[kept], query[kept]
        starts = starts_of(query, self.docs.size)
        judged = np.argsort(self.judged_query, kind="stable")
        judged_starts = starts_of(self.judged_query[judged], self.docs.size)
        result = np.zeros(self.docs.size)
        some = max(1, BLOCK // (int(np.diff(starts).max(initial=0)) + 1))
        for begin in range(0, self.docs.size, some):
            part = slice(begin, min(begin + some, self.docs.size))
            docs = slice(int(starts[part.start]), int(starts[part.stop]))
            rows = judged[judged_starts[part.start] : judged_starts[part.stop]]
            result[part] = self._highest(
                part, query[docs] - begin, weight[docs], self.judged_query[rows] - begin, self.judged_gain[rows]
            )
        return result

    def _highest(self, part: slice, query: Ints, weight: Floats, owner: Ints, gain: Floats) -> Floats:
        """The highest ratio of a block of queries; documents are sorted by query, highest weight first."""
        base, depth = self.base[part], self.depth[part]
        size, count = len(base), np.bincount(query, minlength=len(base))
        m = np.arange(int(count.max(initial=0)) + 1)
        taken = np.zeros((size, len(m)))
        taken[query, np.arange(len(query)) - starts_of(query, size)[query] + 1] = weight
        taken = np.cumsum(taken, axis=1)
        possible = m <= count[:, None]
        steps, ideals, rest = self._ideals(m, count, depth, owner, gain)
        row = np.arange(size)
        base = base + self.gains[0] * taken[row, count]

        def ratio(chosen: list[Ints]) -> Floats:
            got = base + sum(step * taken[row, n] for step, n in zip(steps, chosen, strict=True))
            return share(got, rest + sum(ideal[row, n] for ideal, n in zip(ideals, chosen, strict=True)))

        if not steps:
            return ratio([])
        useful = np.bincount(query[weight > 0], minlength=size)
        rising = base + sum(steps) * taken[row, useful] >= 0
        best = ratio([useful] * len(steps))
        for _ in range(STEPS):
            scores = (
                np.where(possible, step * taken - best[:, None] * ideal, -np.inf)
                for step, ideal in zip(steps, ideals, strict=True)
            )
            nested = np.minimum.accumulate([np.argmax(score, axis=1) for score in scores])
            better = np.maximum(best, ratio(list(nested)))
            if np.all((better <= best) | ~rising):
                break
            best = better
        got = base[:, None] + sum(steps) * taken
        whole = rest[:, None] + sum(ideals, np.zeros((1, 1)))
        corners = np.divide(got, whole, out=np.zeros_like(got), where=whole != 0)
        return np.where(rising, best, np.where(possible, corners, -np.inf).max(axis=1))

    def _ideals(
        self, m: Ints, count: Ints, depth: Floats, owner: Ints, gain: Floats
    ) -> tuple[list[float], list[Floats], Floats]:
        """The steps between possible gains, the ideal DCG of each step by m, and that of all other gains."""
        through = np.concatenate([[0.0], np.cumsum(self.discount)])
        levels = np.unique(np.concatenate([self.gains, gain, [0.0]]))
        levels = levels[levels > 0]
        steps = [float(step) for step in np.diff(self.gains)]
        ideals = [np.zeros((len(count), len(m))) for _ in steps]
        rest = np.zeros(len(count))
        for level, height in zip(levels, np.diff(levels, prepend=0.0), strict=True):
            judged = np.bincount(owner[gain >= level], minlength=len(count))
            step = int(np.searchsorted(self.gains, level))
            if 0 < step < len(self.gains):
                reached = np.minimum(judged[:, None] + m, depth[:, None])
                ideals[step - 1] += height * through[reached.astype(np.int64)]
            else:
                reached = np.minimum(judged + (count if step == 0 else 0), depth)
                rest += height * through[reached.astype(np.int64)]
        return steps, ideals, rest


def ndcg_limits(measure: Measure, runs: Sequence[Alignment], docs: Unjudged, levels: Floats) -> Limits | None:
    """The extremes of nDCG, or of its difference for queries where `same_ideal` holds; None where a gain is below 0."""
    given, k, a = measure.parameters, measure.cutoff, runs[0]
    gains = np.unique(gain_of(levels, given["gain"], given["rel"]))
    judged = gain_of(a.judged.grade, given["gain"], given["rel"])
    query = a.judged.query
    depth = np.full(a.size, np.inf if k is None or given["ideal"] == "all" else float(k))
    if given["ideal"] == "retrieved":
        depth = np.minimum(depth, a.retrieved)
    if np.any(gains < 0) or np.any(judged < 0):
        return None
    if given["ideal"] == "found":
        inside = a.within(None if k is None else int(k))
        query, judged = a.query[inside], judged[a.doc[inside]]
        docs = docs.only(in_first(docs.ranks[0], k))
    weights = [np.where(in_first(rank, k), discount_of(rank, given["discount"]), 0.0) for rank in docs.ranks]
    plain = Measure(definitions()["DCG"], cutoff=k)(gain=given["gain"], discount=given["discount"], rel=given["rel"])
    bases = [values(plain, run) for run in runs]
    longest = int(np.bincount(query, minlength=1).max(initial=0)) + int(docs.counts.max(initial=0)) + 1
    ratio = GainRatio(
        base=bases[0] if len(runs) == 1 else bases[0] - bases[1],
        docs=docs,
        weight=weights[0] if len(runs) == 1 else weights[0] - weights[1],
        gains=gains,
        judged_query=query,
        judged_gain=judged,
        depth=np.minimum(depth, longest),
        discount=discount_of(np.arange(1, longest + 1), given["discount"]),
    )
    # The lowest value is the highest of the opposite, with its sign changed.
    return 0.0 - replace(ratio, base=-ratio.base, weight=-ratio.weight).highest(), ratio.highest()


def same_ideal(measure: Measure, runs: Sequence[Alignment]) -> Bools:
    """Whether nDCG divides all runs by the DCG of the same ideal list."""
    ideal, k, (a, b) = measure.parameters["ideal"], measure.cutoff, (runs[0], runs[-1])
    if ideal == "retrieved":
        depth = np.inf if k is None else k
        return np.asarray(np.minimum(a.retrieved, depth) == np.minimum(b.retrieved, depth))
    return np.full(a.size, ideal != "found" or len(runs) == 1)


def added_precision(a: Alignment, query: Ints, rank: Ints, k: int | None, rel: float) -> Floats:
    """What a sum of precisions gains where one document in the first k alone becomes relevant; 0 below."""
    chosen = (a.grade >= rel) & a.within(k)
    hit_query, hit_rank, reached = a.query[chosen], a.rank[chosen], np.minimum(rank, a.retrieved[query] + 1)
    starts = starts_of(hit_query, a.size)
    step = int(max(hit_rank.max(initial=0), reached.max(initial=0))) + 1
    place = np.searchsorted(hit_query * step + hit_rank, query * step + reached)
    total = np.concatenate([[0.0], np.cumsum(1 / hit_rank)])
    above, below = (place - starts[query]).astype(np.float64), total[starts[query + 1]] - total[place]
    return np.where(in_first(rank, k), (above + 1) / rank + below, 0.0)


def average_precision_limits(measure: Measure, a: Alignment, docs: Unjudged, k: int | None) -> Limits:
    """AP and Yaap: functions of a sum of precisions and of R, growing with the one and falling with the other.

    The sum is that of i / r(i) over the relevant ranks r(1) < r(2) < ... in the first k. Of the ways to make m unjudged
    documents there relevant, the first m make every r(i) as small as it can be, so the sum is highest; the last m
    make every r(i) as large as it can be, so it is lowest. The documents are sorted by query and rank.
    """
    rel = measure.parameters["rel"]
    inside = docs.only(in_first(docs.ranks[0], k))
    query, rank, place = inside.query, inside.ranks[0], inside.place
    chosen = (a.grade >= rel) & a.within(k)
    none = a.per_query(np.where(chosen, a.running(chosen) / a.rank, 0.0))
    alone = added_precision(a, query, rank, k, rel)
    total = np.concatenate([[0.0], np.cumsum(1 / rank)])
    later = total[inside.starts[query + 1]] - total[np.arange(len(rank)) + 1]
    mirrored = inside.starts[query] + inside.starts[query + 1] - 1 - np.arange(len(rank))

    def through(added: Floats) -> Floats:
        """The sum of precisions with the documents of the query down to each made relevant."""
        sums = np.concatenate([[0.0], np.cumsum(added)])
        return np.asarray(none[query] + (sums[1:] - sums[inside.starts[query]]))

    first, last = through(alone + place / rank), through((alone + later)[mirrored])
    outside = docs.counts - inside.counts
    whole, hits = a.relevant(rel), a.per_query(chosen)

    def value(total: Floats, query: Ints, extra: Ints | int, others: Ints | int) -> Floats:
        relevant = whole[query] + extra + others
        if measure.name == "Yaap":
            return np.log((1 + total) / (1 + relevant - total))
        if measure.parameters.get("denominator") == "found":
            return share(total, hits[query] + extra)
        return share(total, _denominator(measure, relevant, k))

    everyone = np.arange(a.size)
    low, high = value(none, everyone, 0, outside), value(none, everyone, 0, 0)
    np.minimum.at(low, query, value(last, query, place + 1, outside[query]))
    np.maximum.at(high, query, value(first, query, place + 1, 0))
    return low, high


def _denominator(measure: Measure, relevant: Floats, k: int | None) -> Floats:
    """What AP divides a sum of precisions by."""
    return capped(relevant, k, measure.parameters.get("denominator") == "min")


def average_precision_difference(
    measure: Measure, runs: Sequence[Alignment], docs: Unjudged, k: int | None, top: float
) -> tuple[Limits, Bools]:
    """Outer bounds of a difference of AP, and whether the grading that they suggest reaches both.

    AP = N / D. D depends on the number m of documents made relevant, the same for both runs, so that the
    highest N(a) - N(b) is bounded for every m. N(a) - N(b) = N0 + sum of l(i) + sum over pairs of q(i, j).
    l(i) is what document i adds alone and q(i, j) = 1 / (lower rank of the two in a) - the same in b, each if
    both are in the first k: the upper of the two raises the precision at the lower. A pair adds no more than
    max(q(i, j), 0), half of it to each, so the difference is at most N0 + the sum of the m largest of
    l(i) + the sum over all j of max(q(i, j), 0) / 2. Queries with too many documents for these sums are not bounded.

    The lowest difference a - b is the highest difference b - a with its sign changed.
    """
    rel = measure.parameters["rel"]
    alone = [added_precision(run, docs.query, rank, k, rel) for run, rank in zip(runs, docs.ranks, strict=True)]
    add_high, add_low = alone[0] - alone[1], alone[0] - alone[1]
    either = in_first(np.min(docs.ranks, axis=0), k)
    few = docs.per_query(either) <= MOST_PAIRED
    paired = either & few[docs.query]
    more, less = _pair_sums(docs.only(paired), k)
    add_high[paired] += more / 2
    add_low[paired] += less / 2
    relevant = runs[0].relevant(rel)
    now = (values(measure, runs[0]) - values(measure, runs[1])) * _denominator(measure, relevant, k)

    def highest_sum(base: Floats, added: Floats) -> tuple[Floats, Bools]:
        """The highest (base + sum of `added` over some documents) / D, and the documents."""
        order = np.lexsort((-added, docs.query))
        total = np.concatenate([[0.0], np.cumsum(added[order])])
        query, extra = _numbers(docs)
        sums = base[query] + total[docs.starts[query] + extra] - total[docs.starts[query]]
        value = share(sums, _denominator(measure, relevant[query] + extra, k))
        highest = np.maximum.reduceat(value, np.flatnonzero(extra == 0))
        number = np.full(docs.size, len(query))
        reaching = np.flatnonzero(value == highest[query])
        np.minimum.at(number, query[reaching], extra[reaching])
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order] = docs.place < number[docs.query]
        return highest, chosen

    high, made_high = highest_sum(now, add_high)
    negative_low, made_low = highest_sum(-now, -add_low)

    def grade(doc: Ints, number: Ints) -> Floats:
        return np.where(np.where(number == 1, made_high[doc], made_low[doc]), top, 0.0)

    lowest, highest, _ = extremes(measure, runs, docs, np.full(docs.size, 2), grade)
    low = np.where(few, np.minimum(-negative_low, lowest), -np.inf)
    high = np.where(few, np.maximum(high, highest), np.inf)
    return (low, high), (lowest <= low + ROUNDING) & (highest >= high - ROUNDING)


def _numbers(docs: Unjudged) -> tuple[Ints, Ints]:
    """All numbers of documents from 0 to all of them, as (query, number)."""
    query = np.repeat(np.arange(docs.size), docs.counts + 1)
    return query, np.arange(len(query)) - (docs.starts[:-1] + np.arange(docs.size))[query]


def _pair_sums(docs: Unjudged, k: int | None) -> tuple[Floats, Floats]:
    """Per document i the sum over j of max(q(i, j), 0), and that of min(q(i, j), 0)."""
    inverse = [np.where(in_first(rank, k), 1 / rank, 0.0) for rank in docs.ranks]
    width = max(1, int(docs.counts.max(initial=0)))
    some = max(1, PAIRS_AT_A_TIME // width**2)
    more, less = np.zeros(len(docs.query)), np.zeros(len(docs.query))
    for begin in range(0, docs.size, some):
        here = slice(int(docs.starts[begin]), int(docs.starts[min(begin + some, docs.size)]))
        row, column = docs.query[here] - begin, docs.place[here]
        padded = np.zeros((2, some, width))
        padded[:, row, column] = [side[here] for side in inverse]
        lower = np.minimum(padded[:, :, :, None], padded[:, :, None, :])
        pairs = lower[0] - lower[1]
        pairs[:, np.arange(width), np.arange(width)] = 0.0
        total = pairs.sum(axis=2)
        positive = np.maximum(pairs, 0.0, out=pairs).sum(axis=2)
        more[here], less[here] = positive[row, column], (total - positive)[row, column]
    return more, less


def r_precision_limits(measure: Measure, a: Alignment, docs: Unjudged) -> Limits:
    """The extremes of precision at a depth that is a function of R, over all numbers m of relevant documents.

    m fixes the depth. Of the m documents as many as possible are within it for the highest value, and as
    few as possible for the lowest: m less the number of documents that are not within it.
    """
    rel = measure.parameters["rel"]
    query, extra = _numbers(docs)
    depth = a.relevant(rel)[query] + extra
    if measure.cutoff is not None:
        depth = np.floor(float(measure.cutoff) * depth + 0.9)  # RprecMult, as trec_eval rounds it
    chosen = a.grade >= rel
    hits = _within(a.query[chosen], a.rank[chosen], a.size, query, depth)
    inside = _within(docs.query, docs.ranks[0], a.size, query, depth)
    most = share((hits + np.minimum(extra, inside)).astype(np.float64), depth)
    forced = np.maximum(0, extra - docs.counts[query] + inside)
    least = share((hits + forced).astype(np.float64), depth)
    starts = np.flatnonzero(extra == 0)
    return np.minimum.reduceat(least, starts), np.maximum.reduceat(most, starts)


def _within(entry_query: Ints, rank: Ints, size: int, query: Ints, depth: Floats) -> Ints:
    """How many entries of each given query have a rank of at most the depth."""
    step = int(rank[rank < ABSENT].max(initial=0)) + 2
    entries = entry_query * step + np.minimum(rank, step - 1)
    wanted = query * step + np.minimum(depth, step - 2).astype(np.int64)
    return np.searchsorted(entries, wanted, side="right") - starts_of(entry_query, size)[query]
