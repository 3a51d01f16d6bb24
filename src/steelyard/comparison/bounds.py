"""Bounds of the difference of two runs over gradings of the unjudged documents that both lists share.

A grading gives a grade to every document that is in one of the two lists and not judged. Both runs are
measured with the same grades: a document in both lists has one grade, and one that becomes relevant counts
in R and in the ideal list of both runs. Queries are graded independently, so that the bounds of the mean
difference are the means of the queries' bounds (`Bounds.summary`).

How the bounds are found. Where nothing else is known, they are the lowest value of the one less the highest
of the other and the reverse, which contain every difference.

SEPARATE    each document adds (weight in a - weight in b) x gain, whatever the other grades: it has the
            highest grade where that raises (or lowers) the difference, otherwise the lowest.
RR, Hit     the value is the highest weight of a relevant document. Of the documents graded relevant only the
            one that sets the value of the run to be raised is needed; any other can only raise the other
            run's value. So the extremes are at one relevant document or none.
SHARED      R, F and others divide both runs' counts by the same D, which grows with the relevant documents:
            (d + x - y) / D, x and y being relevant documents that only a or only b has in its first k. It
            grows with x as d <= R, and falls with y. For the documents that both or none have there, the
            sign of the numerator decides: all of them are relevant, or none is.
nDCG        one ratio with the same ideal list for both runs: see GainRatio.
AP          an outer bound: see _average_precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.errors import MeasureError
from steelyard.measures.binary import share
from steelyard.measures.bound_formulas import (
    added_precision,
    gain_ratio,
    ndcg_extremes,
    precision_sums,
    same_ideal,
)
from steelyard.measures.bounds import (
    Bounds,
    bounds_over,
    can_be_graded,
    chosen,
    composed,
    counted_measure,
    counts_plainly,
    end_levels,
    gradings_are_alike,
    outer,
    rank_cutoff,
    value_range,
    with_all_tried,
)
from steelyard.measures.compute import values
from steelyard.measures.gradings import (
    ABSENT,
    Grade,
    Unjudged,
    extremes,
    grade_levels,
    in_first,
    is_fixed,
    unjudged,
    zero_counts,
)
from steelyard.measures.grammar import Measure, parse

BY_RANK = frozenset(("DCG", "RBP", "SDCG", "INSQ"))
"""Measures that add each document's gain times a weight that falls with the rank."""
BY_COUNT = frozenset(
    ("P", "SetP", "NumRelRet", "Found", "NumRel", "NumNonrelJudgedRet", "Utility", "Diversity")
)
"""Measures that add the same for every relevant document in the first k."""
SHARED = frozenset(("R", "F", "SetR", "SetF", "DR", "StRecall", "AllTargets", "P_IA"))
MOST_PAIRED = 256
"""The most unjudged documents in the first k of a query's lists for which AP is bounded by pairs of them."""
PAIRS_AT_A_TIME = 1 << 17
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class SharedUnjudged:
    """The unjudged documents that are in the lists of both runs: the query and the rank in each list."""

    query: Ints
    rank_a: Ints
    rank_b: Ints


def pair_bounds(
    measure: Measure,
    a: Alignment,
    b: Alignment,
    shared: SharedUnjudged,
    levels: Sequence[float] | Floats | None = None,
) -> Bounds:
    """The bounds of the difference a - b of a measure for each query of two runs with the same qrels."""
    return _over(measure, a, b, unjudged_in_either(a, b, shared), grade_levels(a, levels))


def unjudged_in_either(a: Alignment, b: Alignment, shared: SharedUnjudged) -> Unjudged:
    """The unjudged documents that are in one list or in both, with their rank in each."""
    if a.size != b.size:
        raise MeasureError("the two runs have different queries; align both with the same qrels.")
    in_a, in_b = unjudged(a), unjudged(b)
    place_a = _places(in_a, shared.query, shared.rank_a)
    place_b = _places(in_b, shared.query, shared.rank_b)
    rank_b = np.full(len(in_a.query), ABSENT)
    rank_b[place_a] = shared.rank_b
    only_b = np.ones(len(in_b.query), dtype=bool)
    only_b[place_b] = False
    query = np.concatenate([in_a.query, in_b.query[only_b]])
    order = np.argsort(query, kind="stable")
    ranks_a = np.concatenate([in_a.ranks[0], np.full(int(only_b.sum()), ABSENT)])
    ranks_b = np.concatenate([rank_b, in_b.ranks[0][only_b]])
    return Unjudged(query[order], (ranks_a[order], ranks_b[order]), a.size)


def _places(docs: Unjudged, query: Ints, rank: Ints) -> Ints:
    """The numbers of the unjudged documents at some ranks; it is an error where there is none."""
    step = int(max(docs.ranks[0].max(initial=0), rank.max(initial=0))) + 1
    keys, wanted = docs.query * step + docs.ranks[0], query * step + rank
    place = np.searchsorted(keys, wanted)
    if np.any(np.append(keys, -1)[np.minimum(place, len(keys))] != wanted):
        raise MeasureError("a shared document has a rank at which its list has no unjudged document.")
    return place


def _over(measure: Measure, a: Alignment, b: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    now = values(measure, a) - values(measure, b)
    still = Bounds(now, now, np.ones(a.size, dtype=bool), np.zeros(a.size, dtype=bool))
    if is_fixed(measure) or not len(docs.query) or (len(levels) == 1 and not zero_counts(measure)):
        return still
    found = chosen(docs.counts == 0, still, _by_family(measure, a, b, docs, levels))
    return with_all_tried(found, measure, [a, b], docs, levels)


def _by_family(measure: Measure, a: Alignment, b: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    name, given = measure.name, measure.parameters
    if name == "Composite":
        parts = [_over(parse(text), a, b, docs, levels) for text, _ in given["weights"]]
        return composed(measure, parts, difference=True)
    if name == "Counted":
        return _counted(measure, a, b, docs, levels)
    if not can_be_graded(measure, a):
        return _apart(measure, a, b, docs, levels)
    if name == "nDCG":
        return _ndcg(measure, a, b, docs, levels)
    if gradings_are_alike(measure, levels) or name == "Abstain":
        ends = levels[[0, -1]]
        return _evaluated(measure, a, b, docs, 2, lambda doc, number: ends[number])
    per_document = given.get("per") != "target"
    if name in BY_RANK | BY_COUNT:
        return _evaluated(measure, a, b, docs, 2, _by_weight(measure, a, b, docs, levels))
    if name in ("RR", "Hit") and per_document:
        return _highest_weight(measure, a, b, docs)
    if name in SHARED and (given.get("weight") or 0) >= 0 and (name != "F" or per_document):
        found = _evaluated(measure, a, b, docs, 4, _one_sided(measure, docs, levels[-1]))
        return _where(_same_denominator(measure, a, b), found, measure, a, b, docs, levels)
    if name in ("AP", "GMAP") and per_document and given.get("denominator") != "found":
        return _average_precision(measure, a, b, docs, levels)
    return _apart(measure, a, b, docs, levels)


def _apart(measure: Measure, a: Alignment, b: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    """The lowest value of one run less the highest of the other, and the reverse.

    They are exact where one of the two values does not change.
    """
    one = bounds_over(measure, a, docs.of_run(0), levels)
    other = bounds_over(measure, b, docs.of_run(1), levels)
    undefined = one.undefined | other.undefined
    constant = (one.low == one.high) | (other.low == other.high)
    exact = one.exact & other.exact & constant & ~undefined
    return Bounds(one.low - other.high, one.high - other.low, exact, undefined)


def _where(
    same: Bools, found: Bounds, measure: Measure, a: Alignment, b: Alignment, docs: Unjudged, levels: Floats
) -> Bounds:
    """The bounds found where both runs have the same denominator, and those of `_apart` elsewhere."""
    return found if np.all(same) else chosen(same, found, _apart(measure, a, b, docs, levels))


def _ndcg(measure: Measure, a: Alignment, b: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    same = same_ideal(measure, a, b)
    ratio = gain_ratio(measure, [a, b], docs, levels) if np.any(same) else None
    if ratio is None:
        return _apart(measure, a, b, docs, levels)
    found = _around(measure, a, b, *ndcg_extremes(ratio))
    return _where(same, found, measure, a, b, docs, levels)


def _by_weight(measure: Measure, a: Alignment, b: Alignment, docs: Unjudged, levels: Floats) -> Grade:
    """Two gradings: the highest grade for the documents that weigh more in b, and for those that do in a."""
    ends = end_levels(measure, levels)
    more = _weight(measure, a, docs.query, docs.ranks[0]) - _weight(measure, b, docs.query, docs.ranks[1])

    def grade(doc: Ints, number: Ints) -> Floats:
        given: Floats = ends[np.where(np.where(number == 1, more[doc] > 0, more[doc] < 0), 1, 0)]
        return given

    return grade


def _weight(measure: Measure, a: Alignment, query: Ints, rank: Ints) -> Floats:
    """What a document adds where it is relevant; of BY_RANK, a number that grows where this does."""
    given, k = measure.parameters, rank_cutoff(measure)
    inside = in_first(rank, k)
    if measure.name in BY_RANK:
        by_rank: Floats = np.where(inside, 1 / rank, 0.0)
        return by_rank
    if measure.name == "NumRel":
        return np.where(a.answered[query] | (given["queries"] == "judged"), 1.0, 0.0)
    if measure.name == "Utility":
        within, beyond = given["found"] - given["wrong"], given["missed"] - given["spared"]
        return np.where(inside, float(within), float(beyond))
    if measure.name == "SetP" or (measure.name == "P" and (k is None or given["denominator"] == "retrieved")):
        return share(inside.astype(np.float64), a.returned(k)[query])
    return np.where(inside, -1.0 if measure.name == "NumNonrelJudgedRet" else 1.0, 0.0)


def _highest_weight(measure: Measure, a: Alignment, b: Alignment, docs: Unjudged) -> Bounds:
    """RR and Hit, with one relevant document or none."""
    bases = [values(measure, a), values(measure, b)]
    sides = []
    for base, rank in zip(bases, docs.ranks, strict=True):
        weight = np.where(in_first(rank, measure.cutoff), 1 / rank if measure.name == "RR" else 1.0, 0.0)
        sides.append(np.maximum(base[docs.query], weight))
    low = bases[0] - bases[1]
    high = low.copy()
    np.minimum.at(low, docs.query, sides[0] - sides[1])
    np.maximum.at(high, docs.query, sides[0] - sides[1])
    return _around(measure, a, b, low, high)


def _one_sided(measure: Measure, docs: Unjudged, top: float) -> Grade:
    """Four gradings: what only a (or only b) has in its first k is relevant, the rest all is or none is."""
    k = rank_cutoff(measure)
    in_a, in_b = (in_first(rank, k) for rank in docs.ranks)
    side = in_a.astype(np.int64) - in_b

    def grade(doc: Ints, number: Ints) -> Floats:
        wanted = np.where(number & 1, 1, -1)
        return np.where(side[doc] == 0, number >> 1, side[doc] == wanted) * top

    return grade


def _same_denominator(measure: Measure, a: Alignment, b: Alignment) -> Bools:
    """Whether the counts of both runs are divided by the same number."""
    k = rank_cutoff(measure)
    by_list = measure.name in ("SetF", "P_IA") or measure.parameters.get("denominator") == "retrieved"
    if measure.name == "F" and k is None:
        by_list = True
    if not by_list or (measure.name == "P_IA" and k is not None):
        return np.ones(a.size, dtype=bool)
    same: Bools = a.returned(k) == b.returned(k)
    return same


def _average_precision(
    measure: Measure, a: Alignment, b: Alignment, docs: Unjudged, levels: Floats
) -> Bounds:
    """Outer bounds of a difference of AP, exact where the grading that they suggest reaches both.

    AP = N / D. D depends on the number m of documents made relevant, the same for both runs, so that the
    highest N(a) - N(b) is bounded for every m, in two ways, of which the lower counts:

    1. N(a) is at most that of the first m documents of a's list; N(b) is at least that of the last of b's
       list, and only where there are fewer than m other documents.
    2. N(a) - N(b) = N0 + sum of l(i) + sum over pairs of q(i, j). l(i) is what document i adds alone and
       q(i, j) = 1 / (lower rank of the two in a) - the same in b, each where both are in the first k: the
       upper of the two raises the precision at the lower. A pair adds no more than max(q(i, j), 0), half of
       it to each, so the difference is at most N0 + the sum of the m largest of
       l(i) + the sum over all j of max(q(i, j), 0) / 2.

    The lowest difference a - b is the highest difference b - a with its sign changed.
    """
    turned = Unjudged(docs.query, docs.ranks[::-1], docs.size)
    low, high = -_bounded_by_number(measure, b, a, turned), _bounded_by_number(measure, a, b, docs)
    add_high, add_low, few = _added(measure, a, b, docs)
    everyone = np.arange(a.size)
    now = (values(measure, a) - values(measure, b)) * _denominator(measure, a, everyone, 0 * everyone)
    by_pairs_high, made_high = _bounded_by_terms(measure, a, docs, now, add_high)
    by_pairs_low, made_low = _bounded_by_terms(measure, a, docs, -now, -add_low)
    low = np.where(few, np.maximum(low, -by_pairs_low), low)
    high = np.where(few, np.minimum(high, by_pairs_high), high)

    def grade(doc: Ints, number: Ints) -> Floats:
        return np.where(np.where(number == 1, made_high[doc], made_low[doc]), levels[-1], 0.0)

    reached = extremes(measure, [a, b], docs, np.full(a.size, 2), grade)
    exact = (reached.low <= low + ROUNDING) & (reached.high >= high - ROUNDING)
    found = outer(np.minimum(low, reached.low), np.maximum(high, reached.high), a.size)
    return replace(found, exact=exact)


def _numbers(docs: Unjudged) -> tuple[Ints, Ints]:
    """All numbers of documents from 0 to all of them, as (query, number)."""
    query = np.repeat(np.arange(docs.size), docs.counts + 1)
    return query, np.arange(len(query)) - (docs.starts[:-1] + np.arange(docs.size))[query]


def _denominator(measure: Measure, a: Alignment, query: Ints, made: Ints) -> Floats:
    """What AP divides a sum of precisions by, with some documents made relevant."""
    relevant = a.relevant(measure.parameters["rel"])[query] + made
    k = rank_cutoff(measure)
    return np.minimum(relevant, k) if k and measure.parameters.get("denominator") == "min" else relevant


def _bounded_by_number(measure: Measure, a: Alignment, b: Alignment, docs: Unjudged) -> Floats:
    """The first bound of a difference of AP."""
    rel, k = measure.parameters["rel"], rank_cutoff(measure)
    best, worst = precision_sums(a, docs.of_run(0), k, rel), precision_sums(b, docs.of_run(1), k, rel)
    query, made = _numbers(docs)
    forced = np.maximum(0, made - (docs.counts - worst.counts)[query])
    total = best.at(best.first, query, made) - worst.at(worst.last, query, forced)
    return np.maximum.reduceat(share(total, _denominator(measure, a, query, made)), np.flatnonzero(made == 0))


def _bounded_by_terms(
    measure: Measure, a: Alignment, docs: Unjudged, base: Floats, added: Floats
) -> tuple[Floats, Bools]:
    """The second bound of a difference of AP, and the documents that it takes as relevant."""
    order = np.lexsort((-added, docs.query))
    total = np.concatenate([[0.0], np.cumsum(added[order])])
    query, made = _numbers(docs)
    sums = base[query] + total[docs.starts[query] + made] - total[docs.starts[query]]
    value = share(sums, _denominator(measure, a, query, made))
    highest = np.maximum.reduceat(value, np.flatnonzero(made == 0))
    number = np.full(docs.size, len(query))
    reaching = np.flatnonzero(value == highest[query])
    np.minimum.at(number, query[reaching], made[reaching])
    relevant = np.zeros(len(order), dtype=bool)
    relevant[order] = docs.place < number[docs.query]
    return highest, relevant


def _added(measure: Measure, a: Alignment, b: Alignment, docs: Unjudged) -> tuple[Floats, Floats, Bools]:
    """Per document l(i) + half the sum over j of max(q(i, j), 0), and the same with min.

    Also whether the documents of each query are few enough for these sums.
    """
    rel, k = measure.parameters["rel"], rank_cutoff(measure)
    alone = [
        added_precision(run, docs.query, rank, k, rel) for run, rank in zip((a, b), docs.ranks, strict=True)
    ]
    highest, lowest = alone[0] - alone[1], alone[0] - alone[1]
    either = in_first(np.min(docs.ranks, axis=0), k)
    few = docs.per_query(either) <= MOST_PAIRED
    paired = either & few[docs.query]
    more, less = _pair_sums(docs.only(paired), k)
    highest[paired] += more / 2
    lowest[paired] += less / 2
    return highest, lowest, few


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


def _counted(measure: Measure, a: Alignment, b: Alignment, docs: Unjudged, levels: Floats) -> Bounds:
    """The bounds of the inner measure where Counted gives its value under every grading, otherwise its range."""
    low, high = value_range(measure)
    everything = replace(outer(low - high, high - low, a.size), undefined=np.ones(a.size, dtype=bool))
    plain = counts_plainly(measure, a) & counts_plainly(measure, b)
    if not np.any(plain):
        return everything
    return chosen(plain, _over(counted_measure(measure), a, b, docs, levels), everything)


def _evaluated(
    measure: Measure, a: Alignment, b: Alignment, docs: Unjudged, number: int, grade: Grade
) -> Bounds:
    found = extremes(measure, [a, b], docs, np.full(a.size, number), grade)
    return Bounds(found.low, found.high, np.ones(a.size, dtype=bool), found.undefined)


def _around(measure: Measure, a: Alignment, b: Alignment, low: Floats, high: Floats) -> Bounds:
    """Exact bounds from a formula; rounding does not put the difference itself outside of them."""
    if not zero_counts(measure):
        now = values(measure, a) - values(measure, b)
        low, high = np.minimum(low, now), np.maximum(high, now)
    return Bounds(low, high, np.ones(a.size, dtype=bool), np.zeros(a.size, dtype=bool))
