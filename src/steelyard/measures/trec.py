"""Measures of ranked lists that only trec_eval has."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np

from steelyard.alignment.alignment import Alignment, starts_of
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.errors import MeasureError
from steelyard.measures.binary import average_precision, share
from steelyard.measures.graded import JARVELIN, Gain, discount_of, gain_of
from steelyard.measures.registry import fixed, measure
from steelyard.measures.user_models import MOFFAT, rbp_weights, running

_BUCKLEY_2005 = "Buckley and Voorhees, Retrieval system evaluation, in TREC: Experiment and Evaluation, 2005"
_BUCKLEY_2004 = "Buckley and Voorhees, Retrieval evaluation with incomplete information, SIGIR 2004"
_YILMAZ_2006 = "Yilmaz and Aslam, Estimating average precision with incomplete and imperfect judgments, CIKM 2006"
_ROBERTSON_2006 = "Robertson, On GMAP, and other transformations, CIKM 2006"
_ROBERTSON_2012 = "Robertson, On smoothing average precision, ECIR 2012"

whole_list = partial(measure, cutoff="none", ideal=1.0)
"""Registers a measure of the whole list that is 1 for the ideal one."""

EPSILON = 1e-5  # Added to the counts of infAP, as in trec_eval.


@whole_list("Rprec", aliases=("R_precision",), cites=_BUCKLEY_2005, bounded="R-precision")
def r_precision(a: Alignment, rel: float = 1) -> Floats:
    """Precision after as many documents as there are relevant ones.

    Rprec = |relevant in the first R| / R

    Nothing relevant, or an empty list: 0.
    """
    return precision_at(a, a.relevant(rel), rel)


@measure("RprecMult", aliases=("Rprec_mult",), cutoff="required", cutoff_kind="multiple", bounded="R-precision")
def r_precision_multiple(a: Alignment, r: float, rel: float = 1) -> Floats:
    """Precision at a multiple of R, the number of relevant documents.

    RprecMult@x = |relevant in the first c| / c, c = int(x R + 0.9)

    Fewer than c retrieved: divided by c nevertheless. Nothing relevant: 0.
    """
    return precision_at(a, np.floor(r * a.relevant(rel) + 0.9), rel)


@measure(
    "IPrec",
    aliases=("iprec_at_recall", "ircl_prn"),
    cutoff="required",
    cutoff_kind="recall",
    ideal=1.0,
    bounded="ranks",
)
def interpolated_precision(
    a: Alignment, r: float, rel: float = 1, rounding: Literal["nearest", "raised"] = "nearest"
) -> Floats:
    """The highest precision at a level of recall or above.

    IPrec@r = the highest precision at any rank where at least c relevant documents are found

    rounding=nearest: c is r R rounded, halves up, as in trec_eval 10.
    rounding=raised: c is int(r R + 0.9), as in trec_eval 9.
    Fewer than c found: 0.
    """
    return _interpolated(a, [r], rel, rounding)[0]


@whole_list("IPrecAvg", aliases=("11pt_avg", "eleven_point_average"), bounded="ranks")
def interpolated_average(
    a: Alignment,
    points: str = "[0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1]",
    rel: float = 1,
    rounding: Literal["nearest", "raised"] = "nearest",
) -> Floats:
    """Interpolated precision, averaged over eleven levels of recall.

    IPrecAvg = mean of IPrec@r over the points r = 0, 0.1, ... 1

    points: the levels of recall, as in [0.25,0.5,0.75].
    rounding=nearest: a level of recall is rounded to documents, as in trec_eval 10.
    rounding=raised: it is int(r R + 0.9) documents, as in trec_eval 9.
    Nothing found: 0.
    """
    levels = _levels(points)
    return sum(_interpolated(a, levels, rel, rounding), start=np.zeros(a.size)) / len(levels)


@whole_list("Bpref", needs="not relevant", cites=_BUCKLEY_2004, bounded="ranks", zeros=True)
def bpref(a: Alignment, rel: float = 1, negative: Literal["unjudged", "nonrelevant"] = "unjudged") -> Floats:
    """How rarely judged non-relevant documents are ranked above relevant ones.

    Bpref = sum over the relevant documents found of 1 - min(m, R) / min(N, R), over R;
    m of the N judged non-relevant documents of the query are above it.

    negative=unjudged: grades below 0 do not count, as in trec_eval, to which they are pooled but unjudged.
    negative=nonrelevant: a grade below 0 is a judgment as not relevant, as in ranx.
    Unjudged documents do not count.
    Nothing relevant, or none found: 0.
    """
    lowest = 0.0 if negative == "unjudged" else -np.inf
    whole = a.relevant(rel)
    bound = np.minimum(a.judged_per_query(_not_relevant(a.judged.grade, rel, lowest)), whole)
    above = np.minimum(a.running(_not_relevant(a.grade, rel, lowest)), whole[a.query])
    kept = 1 - share(above, bound[a.query])
    return share(a.per_query(np.where(a.grade >= rel, kept, 0.0)), whole)


@measure("infAP", cutoff="none", cites=_YILMAZ_2006, bounded="relevance", zeros=True)
def inferred_average_precision(a: Alignment, rel: float = 1) -> Floats:
    """Average precision inferred from judgments of a sample of the pool.

    infAP = sum over the relevant documents found of 1/k + (s + n + u)/k x (s + e)/(s + n + 2e), over R;
    k is its rank; above it are s relevant, n judged non-relevant and u pooled but unjudged; e = 0.00001.

    Grades below 0 are pooled but unjudged; a document that is not in the qrels was not pooled.
    Nothing relevant, or none found: 0.
    """
    relevant = a.grade >= rel
    unrelated = _not_relevant(a.grade, rel)
    above = a.running(relevant) - relevant
    wrong = a.running(unrelated)
    pooled = above + wrong + a.running(~relevant & ~unrelated)
    rate = (above + EPSILON) / (above + wrong + 2 * EPSILON)
    return share(a.per_query(np.where(relevant, (1 + pooled * rate) / a.rank, 0.0)), a.relevant(rel))


@whole_list("GMAP", aliases=("gm_map", "gm_ap"), summary="geometric", cites=_ROBERTSON_2006, bounded="precision sums")
def geometric_average_precision(a: Alignment, rel: float = 1) -> Floats:
    """Average precision, with a geometric mean over queries.

    GMAP = exp(mean over queries of log(max(AP, 0.00001)))

    The value of a query is its AP.
    """
    return average_precision(a, rel=rel)


@whole_list("GMBpref", summary="geometric", bounded="ranks", zeros=True)
def geometric_bpref(a: Alignment, rel: float = 1) -> Floats:
    """Bpref, with a geometric mean over queries.

    GMBpref = exp(mean over queries of log(max(Bpref, 0.00001)))

    The value of a query is its Bpref.
    """
    return bpref(a, rel)


@measure("Yaap", cutoff="none", low=-np.inf, high=np.inf, empty=np.nan, cites=_ROBERTSON_2012, bounded="precision sums")
def yaap(a: Alignment, rel: float = 1) -> Floats:
    """Average precision as log odds, which average better at the extremes.

    Yaap = log((1 + S) / (1 + R - S)), S the sum of precision at each relevant document found.

    Empty list: log(1 / (1 + R)). Nothing relevant: 0.
    """
    whole = a.relevant(rel)
    total = average_precision(a, rel=rel) * whole
    return np.log((1 + total) / (1 + whole - total))


@whole_list("BinG", bounded="ranks")
def binary_gain(a: Alignment, rel: float = 1) -> Floats:
    """Relevant documents, each discounted by the non-relevant ones above it.

    BinG = sum over the relevant documents found of 1 / log2(2 + m), over R;
    m is the number of non-relevant documents above it, judged or not.

    Nothing relevant, or none found: 0.
    """
    relevant = a.grade >= rel
    return share(a.per_query(np.where(relevant, 1 / np.log2(2 + a.rank - a.running(relevant)), 0.0)), a.relevant(rel))


@measure("ScaledRBP", cites=MOFFAT, cutoff="none", bounded="scaled grades")
def scaled_rbp(a: Alignment, p: float = 0.9) -> Floats:
    """Rank-biased precision, with the grades of each query divided by its highest.

    ScaledRBP = (1 - p) x sum of gain x p^(rank - 1)
    gain = grade / max(1, the highest grade judged for the query)

    Grades below 0 gain nothing. Empty list: 0.
    """
    highest = np.ones(a.size)
    np.maximum.at(highest, a.judged.query, a.judged.grade)
    return a.per_query(np.maximum(a.grade, 0.0) / highest[a.query] * rbp_weights(a.rank, p))


@fixed("UnjudgedRBP", cites=MOFFAT, cutoff="none", better="less", tail=False)
def unjudged_rbp(a: Alignment, p: float = 0.9) -> Floats:
    """How much rank-biased precision would rise if every unjudged document were relevant.

    UnjudgedRBP = p^n + (1 - p) x sum of p^(rank - 1) over the unjudged ones of the n retrieved documents,
    which is 1 - (1 - p) x sum of p^(rank - 1) over the judged ones.

    Grades below 0 count as unjudged. Nothing unjudged in the list: 0, as in trec_eval.
    """
    judged = a.grade >= 0
    judged_weight = a.per_query(np.where(judged, rbp_weights(a.rank, p), 0.0))
    return np.where(a.per_query(judged) < a.retrieved, 1 - judged_weight, 0.0)


@fixed("Unj", cutoff="required", better="less", tail=False)
def unjudged_share(a: Alignment, k: int) -> Floats:
    """Number of unjudged documents in the first k, divided by k.

    Unj@k = |unjudged in the first k| / k

    Grades below 0 count as unjudged. Fewer than k retrieved: divided by k nevertheless.
    """
    return (a.returned(k) - a.per_query((a.grade >= 0) & a.within(k))) / k


def precision_at(a: Alignment, depth: Floats, rel: float) -> Floats:
    """Precision of each query at a depth of its own; 0 at depth 0."""
    return share(a.per_query((a.grade >= rel) & (a.rank <= depth[a.query])), depth)


def _not_relevant(grade: Floats, rel: float, lowest: float = 0.0) -> Bools:
    """Judged and not relevant: to trec_eval a grade below 0 is unjudged."""
    return (grade >= lowest) & (grade < rel)


def _interpolated(a: Alignment, levels: list[float], rel: float, rounding: str) -> list[Floats]:
    """Interpolated precision of every query at each level of recall."""
    relevant = a.grade >= rel
    query, hits = a.query[relevant], a.running(relevant)[relevant]
    # The highest precision at each relevant document or any below it, query by query: from the last entry to the first.
    best = running(np.maximum, -query[::-1], (hits / a.rank[relevant])[::-1])[::-1]
    starts = starts_of(query, a.size)
    here, whole = np.diff(starts), a.relevant(rel)
    padded = np.append(best, 0.0)
    values = []
    for level in levels:
        documents = level * whole
        # Adding 0.5 first would round 0.49999999999999994 up.
        nearest = np.floor(documents) + (documents - np.floor(documents) >= 0.5)
        wanted = np.maximum(nearest if rounding == "nearest" else np.floor(documents + 0.9), 1).astype(np.int64)
        values.append(padded[np.where(wanted <= here, starts[:-1] + wanted - 1, len(best))])
    return values


def _levels(points: str) -> list[float]:
    try:
        levels = [float(point) for point in points.strip().removeprefix("[").removesuffix("]").split(",")]
    except ValueError:
        levels = []
    if not levels or not all(0 <= level <= 1 for level in levels):
        raise MeasureError(
            f"IPrecAvg(points={points}): expected levels of recall from 0 to 1, as in points=[0.25,0.5,0.75]."
        )
    return levels


class _Ideal:
    """The documents of each query that gain something, best first; `lengths` is their number."""

    def __init__(self, a: Alignment, gain: Gain) -> None:
        query, rank, best = a.best_first(gain_of(a.judged.grade, gain, None))
        useful = best > 0
        self.query, self.rank, self.gain = query[useful], rank[useful], best[useful]
        self.starts = starts_of(self.query, a.size)
        self.lengths = np.diff(self.starts)

    def drops(self) -> tuple[Ints, Ints]:
        """Where the gain drops: the query, and the number of documents with at least that gain."""
        ends = np.ones(len(self.query), dtype=bool)
        ends[:-1] = (self.query[1:] != self.query[:-1]) | (self.gain[1:] != self.gain[:-1])
        return self.query[ends], self.rank[ends]

    def through(self, values: Floats, query: Ints, rank: Ints) -> Floats:
        """The sum of a value over the first `rank` of a query's ideal list."""
        totals = np.append(running(np.add, self.query, values), 0.0)
        reached = np.minimum(rank, self.lengths[query])
        return totals[np.where(reached > 0, self.starts[query] + reached - 1, len(values))]


@whole_list("Rndcg", tail=False, cites=JARVELIN)
def ndcg_at_levels(a: Alignment, gain: Gain = "linear", rel: float = 1) -> Floats:
    """nDCG averaged over the depths at which the gain of the ideal list drops.

    Rndcg = mean of nDCG@c over those depths c (the number of documents that gain at least so much),
    and over the whole list if more than one document was retrieved below the last of them.

    rel: a query with no grade this high scores 0; gains do not depend on it.
    Nothing relevant, nothing to gain, or an empty list: 0.
    """
    ideal = _Ideal(a, gain)
    worth = ideal.gain * discount_of(ideal.rank, "log2")
    dcg = running(np.add, a.query, gain_of(a.grade, gain, None) * discount_of(a.rank, "log2"))
    query, depth = ideal.drops()
    points = share(_found_through(a, dcg, query, depth), ideal.through(worth, query, depth))
    past = np.flatnonzero((ideal.lengths > 0) & (a.retrieved > ideal.lengths + 1))
    whole = share(_found_through(a, dcg, past, a.retrieved[past]), ideal.through(worth, past, ideal.lengths[past]))
    owner = np.append(query, past)
    total = np.bincount(owner, weights=np.append(points, whole), minlength=a.size)
    mean = share(total.astype(np.float64), np.bincount(owner, minlength=a.size).astype(np.float64))
    return np.where(a.relevant(rel) > 0, mean, 0.0)


@whole_list("nDCGRel", aliases=("ndcg_rel",), cites=JARVELIN)
def ndcg_at_relevant(a: Alignment, gain: Gain = "linear") -> Floats:
    """nDCG averaged over the ranks of the documents that gain something.

    nDCGRel = mean over those documents of nDCG@rank; for one not found, nDCG of the whole list.

    Nothing to gain, or an empty list: 0.
    """
    gains = gain_of(a.grade, gain, None)
    ideal = _Ideal(a, gain)
    worth = ideal.gain * discount_of(ideal.rank, "log2")
    dcg = running(np.add, a.query, gains * discount_of(a.rank, "log2"))
    points = np.where(gains > 0, share(dcg, ideal.through(worth, a.query, a.rank)), 0.0)
    everyone = np.arange(a.size)
    whole = share(_found_through(a, dcg, everyone, a.retrieved), ideal.through(worth, everyone, ideal.lengths))
    total = a.per_query(points) + (ideal.lengths - a.per_query(gains > 0)) * whole
    return np.maximum(share(total, ideal.lengths.astype(np.float64)), 0.0)


@measure("G", aliases=("normalized_gain",), cutoff="none")
def normalised_gain(a: Alignment, gain: Gain = "linear") -> Floats:
    """Gain of the documents found, each discounted by how far the list is behind the ideal.

    G = sum over the documents found of gain / log2(2 + cost - got), over the whole gain of the ideal list;
    got is the gain down to the document, cost that of the ideal list down to its rank, at least 1 per rank.

    Nothing to gain, or an empty list: 0. A perfect list scores 1 if no gain is between 0 and 1.
    """
    gains = gain_of(a.grade, gain, None)
    ideal = _Ideal(a, gain)
    got = running(np.add, a.query, gains)
    cost = ideal.through(np.maximum(ideal.gain, 1.0), a.query, a.rank)
    cost += np.maximum(a.rank - ideal.lengths[a.query], 0)
    best = ideal.through(ideal.gain, np.arange(a.size), ideal.lengths)
    return share(a.per_query(gains / np.log2(2 + cost - got)), best)


def _found_through(a: Alignment, running: Floats, query: Ints, rank: Ints) -> Floats:
    """A running value of the hits, read at a rank of a query; 0 above its first hit."""
    depth = int(max(a.rank.max(initial=0), rank.max(initial=0))) + 1
    last = np.searchsorted(a.query * depth + a.rank, query * depth + rank, side="right") - 1
    return np.append(running, 0.0)[np.where(last >= a.hit_starts[query], last, len(running))]
