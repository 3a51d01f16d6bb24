"""Measures from models of how a user reads a list: how far, and what each step is worth."""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from steelyard.alignment.alignment import Alignment, starts_of, sums
from steelyard.alignment.hits import Floats, Ints
from steelyard.errors import MeasureError
from steelyard.lazy import special
from steelyard.measures.binary import share
from steelyard.measures.graded import discount_of
from steelyard.measures.gradings import highest_judged
from steelyard.measures.registry import fixed, measure
from steelyard.measures.tie_groups import worth_of_ranks

_ERR = "Chapelle et al., Expected reciprocal rank for graded relevance, CIKM 2009"
MOFFAT = "Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, TOIS 27, 2008"
_MOFFAT_2012 = "Moffat, Scholer and Thomas, Models and metrics: IR evaluation as a user process, ADCS 2012"
_BAILEY = "Bailey et al., User variability and IR system evaluation, SIGIR 2015"
_ZHANG = "Zhang et al., Evaluating web search with a bejeweled player model, SIGIR 2017"
_AZZOPARDI_2019 = "Azzopardi, Thomas and Moffat, cwl_eval: an evaluation tool for information retrieval, SIGIR 2019"
_CLARKE_2021 = "Clarke, Vtyurina and Smucker, Assessing top-k preferences, TOIS 39(3), 2021"

RBPGain: TypeAlias = Literal["binary", "linear", "grade"]

READ = 1000  # The last rank that the users of INST and INSQ read, as in cwl_eval.
NEARLY = 1e-6  # Gains within this distance of a goal have reached it.

on_scale = partial(measure, scaled=True)
"""Registers a measure that may divide grades by the highest one in the qrels."""


@on_scale("ERR", aliases=("expected_reciprocal_rank",), cites=_ERR, bounded="monotone", first_k_only=True)
def expected_reciprocal_rank(a: Alignment, k: int | None = None, max_grade: float | None = None) -> Floats:
    """Expected reciprocal rank: 1 / the rank at which a user who reads from the top is satisfied.

    ERR@k = sum over the first k of stop(rank) x product of (1 - stop) over the ranks above / rank
    stop(rank) = (2^grade - 1) / 2^max_grade, the probability that the document there satisfies the user.

    Grades below 0 count as 0. Nothing relevant, or an empty list: 0.
    """
    return _satisfied(a.query, a.rank, np.where(a.within(k), _stops(a, a.grade, max_grade), 0.0), a.size)


@on_scale("nERR", aliases=("normalized_expected_reciprocal_rank",), ideal=1.0, cites=_ERR, bounded="graded ranks")
def normalized_expected_reciprocal_rank(a: Alignment, k: int | None = None, max_grade: float | None = None) -> Floats:
    """Expected reciprocal rank as a share of the best possible.

    nERR@k = ERR@k / ERR@k of all judged documents, best first.

    Grades below 0 count as 0. Nothing relevant, or an empty list: 0.
    """
    query, rank, stops = a.best_first(_stops(a, a.judged.grade, max_grade))
    if k is not None:
        stops = np.where(rank <= k, stops, 0.0)
    return share(expected_reciprocal_rank(a, k, max_grade), _satisfied(query, rank, stops, a.size))


@on_scale(
    "RBP",
    aliases=("rank_biased_precision",),
    companion="RBPResidual",
    cites=MOFFAT,
    bounded="additive",
    expected="linear",
)
def rank_biased_precision(
    a: Alignment, k: int | None = None, p: float = 0.8, rel: float = 1, gain: RBPGain = "binary"
) -> Floats:
    """Rank-biased precision: the gain of a user who continues to the next document with probability p.

    RBP@k = (1 - p) x sum of gain x p^(rank - 1) over the first k.
    RBPResidual is how much unjudged documents could add; it is reported beside RBP.

    rel: the lowest grade that counts as relevant; documents graded below it gain nothing.
    gain=binary: 1 for a relevant document.
    gain=linear: grade / the highest grade in the qrels, so that the value stays within 0 and 1.
    gain=grade: the grade itself, as in ranx, so that the value may exceed 1.
    Nothing relevant, or an empty list: 0.
    """
    gains = (a.grade >= rel).astype(np.float64)
    if gain != "binary":
        gains = np.where(a.grade >= rel, a.grade if gain == "grade" else scaled(a, 0.0, None), 0.0)
    return a.per_query(gains * worth_of_ranks(a, k, lambda rank: rbp_weights(rank, p)))


@fixed(
    "RBPResidual", aliases=("rbp_resid", "rbp_residual"), better="neither", empty=1.0, cites=MOFFAT, expected="linear"
)
def rank_biased_residual(a: Alignment, k: int | None = None, p: float = 0.8) -> Floats:
    """Uncertainty of RBP: the weight of the unjudged ranks and of all ranks below the list.

    RBPResidual@k = 1 - (1 - p) x sum of p^(rank - 1) over the judged documents (and repeats) in the first k.
    With complete judgments, RBP would be between RBP and RBP + RBPResidual.

    A repeated document keeps its rank and gains nothing, so this rank is known. Empty list: 1.
    """
    residual = 1 - a.per_query(worth_of_ranks(a, k, lambda rank: rbp_weights(rank, p)))
    if a.repeats.held:
        rank = a.repeats.rank
        weights = np.where(rank <= (np.inf if k is None else k), rbp_weights(rank, p), 0.0)
        residual = residual - sums(a.repeats.query, weights, a.size)
    return np.maximum(0.0, residual)


def rbp_weights(rank: Ints, p: float) -> Floats:
    """The weight of each rank in rank-biased precision."""
    if not 0 <= p < 1:
        raise MeasureError(f"p is {p}; expected the probability of continuing, from 0 to below 1, as in RBP(p=0.8).")
    return np.asarray((1 - p) * np.power(float(p), rank - 1.0))


@on_scale("INST", cutoff="none", cites=_BAILEY)
def inst(a: Alignment, T: float = 1, min_rel: float = 0, max_rel: float | None = None) -> Floats:
    """Gain per document read, by a user who wants a gain of T and is less likely to continue the more was found.

    INST = sum of gain(rank) x W(rank) / sum of W(rank), over ranks 1 to 1000
    W(1) = 1, W(i + 1) = W(i) x ((i + T + T(i) - 1) / (i + T + T(i)))^2
    T(i) = T - the gain of the first i
    gain = (grade - min_rel) / (max_rel - min_rel), kept within 0 and 1.

    Unjudged documents, and the ranks below a short list, gain nothing. Empty list: 0.
    """
    _check_goal(T)
    gains = scaled(a, min_rel, max_rel)
    chosen = (gains > 0) & (a.rank <= READ)
    total, weight = _inst_sums(a.query[chosen], a.rank[chosen].astype(np.float64), gains[chosen], T, a.size)
    return share(total, weight)


@on_scale("INSQ", cutoff="none", cites=_MOFFAT_2012, bounded="additive")
def insq(a: Alignment, T: float = 1, min_rel: float = 0, max_rel: float | None = None) -> Floats:
    """Gain per document read, by a user who wants a gain of T and is more likely to continue further down.

    INSQ = sum of gain(rank) x W(rank) / sum of W(rank), over ranks 1 to 1000
    W(rank) = 1 / (rank + 2T - 1)^2
    gain = (grade - min_rel) / (max_rel - min_rel), kept within 0 and 1.

    Unjudged documents, and the ranks below a short list, gain nothing. Empty list: 0.
    """
    _check_goal(T)
    weights = (np.arange(1, READ + 1) + 2 * T - 1) ** -2.0
    worth = scaled(a, min_rel, max_rel) * weights[np.minimum(a.rank, READ) - 1]
    return a.per_query(np.where(a.rank <= READ, worth, 0.0)) / float(weights.sum())


@on_scale("BPM", aliases=("bejeweled_player_model",), cutoff="required", cites=_ZHANG, first_k_only=True)
def bejeweled_player_model(
    a: Alignment, k: int, T: float = 1, min_rel: float = 0, max_rel: float | None = None
) -> Floats:
    """Gain per document read, by a user who stops at a gain of T, or after k documents.

    BPM@k = gain of the first s / s; s = the first rank with a total gain of T, or k if that is smaller
    gain = (grade - min_rel) / (max_rel - min_rel), kept within 0 and 1.

    Unjudged documents, and the ranks below a short list, gain nothing. Empty list: 0.
    """
    _check_goal(T)
    gains = np.where(a.within(k), scaled(a, min_rel, max_rel), 0.0)
    last = np.minimum(a.first(running(np.add, a.query, gains) >= T - NEARLY), k)
    return a.per_query(np.where(a.rank <= last[a.query], gains, 0.0)) / last


@on_scale(
    "SDCG", aliases=("scaled_discounted_cumulative_gain",), cutoff="required", cites=_AZZOPARDI_2019, bounded="additive"
)
def scaled_dcg(
    a: Alignment, k: int, dcg: Literal["log2"] = "log2", min_rel: float = 0, max_rel: float | None = None
) -> Floats:
    """Discounted gain of the first k as a share of k documents of the highest grade.

    SDCG@k = sum of gain x discount(rank) over the first k / sum of discount(rank) over the first k
    gain = (grade - min_rel) / (max_rel - min_rel), kept within 0 and 1.

    dcg=log2: discount(rank) = 1 / log2(rank + 1).
    It reaches 1 only if k documents of the highest grade exist. Empty list: 0.
    """
    worth = scaled(a, min_rel, max_rel) * discount_of(a.rank, dcg)
    whole = float(discount_of(np.arange(1, k + 1), dcg).sum())
    return a.per_query(np.where(a.within(k), worth, 0.0)) / whole


@measure("Compat", aliases=("Compatibility",), cutoff="none", tail=False, ideal=1.0, cites=_CLARKE_2021)
def compatibility(
    a: Alignment, p: float = 0.95, normalize: bool = True, order: Literal["list", "qrels"] = "list"
) -> Floats:
    """Compatibility: the rank-biased overlap of the list with the ideal list that is most similar to it.

    Compat = sum of p^(d-1) x overlap(d) / d over depths d / sum of p^(d-1)
    overlap(d) = |documents in the first d of both|; d from 1 to the length of the longer list.
    The ideal list contains the documents graded above 0, best first; equal grades in the order of the list.

    p: the weight of each depth relative to the one above it, from 0 to 1.
    normalize: divided by the overlap of the ideal list with itself, so that the ideal list scores 1.
    order=list: documents of equal grade and equal score are in the order of the list, which is most similar to it.
    order=qrels: they are in the order of the qrels, as in ir_measures.
    Nothing relevant, or an empty list: 0.
    """
    if not 0 <= p <= 1:
        raise MeasureError(f"p is {p}; expected a number from 0 to 1, as in Compat(p=0.95).")
    ranks = np.full(len(a.judged.grade), np.inf)
    ranks[a.doc] = a.rank
    tied = ranks
    if order == "qrels":
        tied = np.full(len(ranks), np.inf)
        tied[a.doc] = a.tie_first
    relevant = np.flatnonzero(a.judged.grade > 0)
    relevant = relevant[np.lexsort((tied[relevant], -a.judged.grade[relevant], a.judged.query[relevant]))]
    query = a.judged.query[relevant]
    size = np.bincount(query, minlength=a.size)
    place = np.arange(len(query)) - (np.cumsum(size) - size)[query] + 1
    shared = np.maximum(place, ranks[relevant])
    depth = np.maximum(a.retrieved, size)

    deepest = int(depth.max(initial=0))
    weights = np.power(float(p), np.arange(deepest))
    through = np.concatenate([[0.0], np.cumsum(weights / np.arange(1, deepest + 1))])
    to_the_end = through[depth[query]]
    never = deepest + 1.0
    above = through[np.minimum(shared, never).astype(np.int64) - 1]
    overlap = sums(query, np.where(shared < never, to_the_end - above, 0.0), a.size)
    if normalize:
        return share(overlap, sums(query, to_the_end - through[place - 1], a.size))
    return share(overlap, np.concatenate([[0.0], np.cumsum(weights)])[depth])


@measure("Accuracy", tail=False, ideal=1.0, empty=np.nan, bounded="ranks")
def accuracy(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Probability that a relevant document in the first k is ranked above a non-relevant one.

    Accuracy@k = |pairs of the first k, relevant above not relevant| / |pairs of a relevant and a non-relevant one|

    rel: the lowest grade that counts as relevant; unjudged documents are not relevant.
    Only relevant documents in the first k: 1.
    No relevant document there, or an empty list: undefined, and left out of the mean.
    """
    chosen = (a.grade >= rel) & a.within(k)
    hits = a.per_query(chosen)
    above = a.per_query(np.where(chosen, a.rank - a.running(chosen), 0.0))
    return np.where(hits > 0, 1 - share(above, (a.returned(k) - hits) * hits), np.nan)


def highest_grade(a: Alignment) -> float:
    """The highest grade in the qrels; 0 if none is above 0."""
    if a.judged.highest is not None and np.isnan(a.judged.highest):
        problem = "the highest grade of the retrieved documents is unknown if the run is read in parts, as on Spark;"
        raise MeasureError(f"{problem} state the highest grade of the scale, as in ERR(max_grade=3).")
    return highest_judged(a)


def scaled(a: Alignment, min_rel: float, max_rel: float | None) -> Floats:
    """The grades of the hits on a scale from 0 to 1; grades below 0 count as 0."""
    if max_rel is not None and max_rel <= min_rel:
        raise MeasureError(f"max_rel is {max_rel} and min_rel is {min_rel}; expected max_rel to be higher.")
    top = highest_grade(a) if max_rel is None else max_rel
    if top <= min_rel:
        return np.zeros(len(a.grade))
    return (np.clip(np.maximum(a.grade, 0.0), min_rel, top) - min_rel) / (top - min_rel)


def _stops(a: Alignment, grades: Floats, max_grade: float | None) -> Floats:
    """The probability that a document of each grade satisfies the user."""
    if max_grade is not None and max_grade <= 0:
        raise MeasureError(f"max_grade is {max_grade}; expected the highest grade of the scale, above 0.")
    top = highest_grade(a) if max_grade is None else max_grade
    return np.asarray(np.exp2(np.clip(grades, 0.0, top) - top) - np.exp2(-top))


def _satisfied(query: Ints, rank: Ints, stops: Floats, size: int) -> Floats:
    """The expected value of 1 / the rank at which the user stops. Lists are sorted by query and rank."""
    passed = running(np.multiply, query, 1 - stops)
    arriving = np.ones(len(query))
    arriving[1:] = np.where(query[1:] == query[:-1], passed[:-1], 1.0)
    return sums(query, stops * arriving / rank, size)


def running(combine: np.ufunc, query: Ints, values: Floats) -> Floats:
    """The running sum or product of the entries of each query; entries are sorted by query.

    Combines entries 1, 2, 4 ... places apart and never crosses queries, so that rounding errors do not add up.
    """
    result: Floats = values.copy()
    entry = np.arange(len(query))
    place = entry - np.searchsorted(query, query)
    step = 1
    while step <= place.max(initial=0):
        reach = entry[place >= step]
        result[reach] = combine(result[reach - step], result[reach])
        step *= 2
    return result


def _inst_sums(query: Ints, rank: Floats, gains: Floats, T: float, size: int) -> tuple[Floats, Floats]:
    """Per query the sum of gain x W and the sum of W, over ranks 1 to READ.

    Between two gains the factors of W telescope: with c = T + T(i), from rank a to rank b it falls by
    ((a + c - 1) / (b - 1 + c))^2, and the W of the ranks between them sum to a difference of zeta(2, .).
    """
    starts = starts_of(query, size)
    first = np.zeros(len(query), dtype=bool)
    first[starts[:-1][np.diff(starts) > 0]] = True
    after = 2 * T - running(np.add, query, gains)
    above = np.concatenate([rank[:1], rank[:-1]])
    wanting = np.concatenate([after[:1], after[:-1]])
    fall = np.where(first, 2 * T / (rank - 1 + 2 * T), (above + wanting - 1) / (rank - 1 + wanting)) ** 2
    weight = running(np.multiply, query, fall)

    below = np.full(len(query), float(READ))
    below[:-1] = np.where(first[1:], float(READ), rank[1:])
    between = weight * (rank + after - 1) ** 2 * (special.zeta(2, rank + after) - special.zeta(2, below + after))
    reached = np.full(size, float(READ))
    reached[query[first]] = rank[first]
    before = 4 * T**2 * (special.zeta(2, 2 * T) - special.zeta(2, reached + 2 * T))
    return sums(query, gains * weight, size), before + sums(query, between, size)


def _check_goal(T: float) -> None:
    if not T > 0:
        raise MeasureError(f"T is {T}; expected the gain that the user wants, above 0, as in INST(T=1).")
