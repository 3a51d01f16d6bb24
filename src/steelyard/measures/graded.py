"""Measures of graded relevance: cumulative gain, discounted by rank, and normalised by the ideal list."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import comb, prod
from typing import Literal, TypeAlias

import numpy as np

from steelyard.alignment.alignment import Alignment, ranked_by, sums
from steelyard.alignment.hits import Floats, Ints
from steelyard.errors import MeasureError
from steelyard.measures.binary import Per, share
from steelyard.measures.registry import GainTable, measure
from steelyard.measures.tie_groups import groups_of, over_orders, refuse_many_states, worth_of_ranks

JARVELIN = "Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 20(4), 2002"

_HIGHEST_EXPONENT = 1000  # A sum of such gains is a float, too.

Gain: TypeAlias = Literal["linear", "exp", "binary"] | GainTable
Discount: TypeAlias = Literal["log2", "reciprocal", "jk"]
Ideal: TypeAlias = Literal["judged", "all", "retrieved", "found"]


def gain_of(grades: Floats, gain: Gain, rel: float | None) -> Floats:
    """The gain of each grade; grades below `rel` gain nothing."""
    gains = np.maximum(grades, 0.0)
    if gain == "exp":
        if (highest := gains.max(initial=0.0)) > _HIGHEST_EXPONENT:
            raise MeasureError(f"gain=exp: 2^{highest:g} is too large a gain. Divide the grades, or use gain=linear.")
        gains = np.exp2(gains) - 1
    elif gain == "binary":
        gains = (gains > 0).astype(np.float64)
    elif isinstance(gain, tuple):
        for grade, worth in gain:
            gains[grades == grade] = worth
    return gains if rel is None else np.where(grades >= rel, gains, 0.0)


def discount_of(rank: Ints, discount: Discount) -> Floats:
    """The factor of a gain at a rank: 1 / log2(rank + 1), 1 / rank, or 1 / log2(rank) from rank 2 on."""
    if discount == "jk":
        return 1 / np.maximum(np.log2(np.maximum(rank, 1).astype(np.float64)), 1.0)
    return 1 / (np.log2(rank + 1.0) if discount == "log2" else rank.astype(np.float64))


def _mean_dcg(a: Alignment, k: int | None, gain: Gain, discount: Discount, rel: float | None) -> Floats:
    """The sum of each document's gain times the mean discount of its group's ranks."""
    return a.per_query(gain_of(a.grade, gain, rel) * _mean_discounts(a, k, discount))


def _mean_discounts(a: Alignment, k: int | None, discount: Discount) -> Floats:
    return worth_of_ranks(over_orders(a), k, lambda rank: discount_of(rank, discount))


@measure(
    "DCG", aliases=("discounted_cumulative_gain",), high=np.inf, cites=JARVELIN, bounded="additive", expected=_mean_dcg
)
def dcg(
    a: Alignment, k: int | None = None, gain: Gain = "linear", discount: Discount = "log2", rel: float | None = None
) -> Floats:
    """Gain of the documents in the first k, discounted by rank, not normalised.

    DCG@k = sum of gain(grade) x discount(rank) over the first k.

    rel: documents graded below it gain nothing; None: every grade above 0 gains.
    """
    hits = np.flatnonzero(a.within(k))
    return sums(a.query[hits], gain_of(a.grade[hits], gain, rel) * discount_of(a.rank[hits], discount), a.size)


def _mean_ndcg(
    a: Alignment, k: int | None, gain: Gain, discount: Discount, ideal: Ideal, per: Per, rel: float | None
) -> Floats:
    """The mean DCG over that of the ideal list; if the ideal list depends on what is found, averaged over that."""
    result = share(_mean_dcg(a, k, gain, discount, rel), ideal_dcg(a, k, gain, discount, ideal, per, rel))
    if ideal == "found" and k is not None:
        for query, value in _over_found_ideals(a, k, gain_of(a.grade, gain, rel), discount):
            result[query] = value
    return result


def _over_found_ideals(a: Alignment, k: int, gains: Floats, discount: Discount) -> Iterator[tuple[int, float]]:
    """The mean nDCG of each query whose list is cut within a group, over the gains that can be inside."""
    g = groups_of(a, np.ones(len(a.query), dtype=bool), k)
    discounts = discount_of(np.arange(1, k + 1), discount)
    worth = gains * _mean_discounts(a, k, discount)
    for number in np.flatnonzero(g.split).tolist():
        query, size, inside = int(g.query[number]), int(g.size[number]), int(g.inside[number])
        start, stop = int(g.start[number]), int(g.start[number] + g.chosen[number])
        above = slice(int(a.hit_starts[query]), start)
        sure, surely = gains[above], float(worth[above].sum())
        kinds, times = np.unique(gains[start:stop], return_counts=True)
        counts = times.tolist()
        refuse_many_states(prod(count + 1 for count in counts), a, query)
        a_place = float(discounts[int(g.first[number]) - 1 :].mean())
        unjudged = size - sum(counts)
        mean = 0.0
        for taken in product(*(range(count + 1) for count in counts)):
            blank = inside - sum(taken)
            if not 0 <= blank <= unjudged:
                continue
            ways = prod(map(comb, counts, taken)) * comb(unjudged, blank)
            here = np.repeat(kinds, taken)
            best = np.sort(np.maximum(np.concatenate([sure, here]), 0.0))[::-1]
            best_dcg = float(np.sum(best * discounts[: len(best)]))
            if best_dcg != 0:
                mean += ways / comb(size, inside) * (surely + a_place * float(here.sum())) / best_dcg
        yield query, mean


@measure(
    "nDCG",
    aliases={"NDCG": {}, "normalized_discounted_cumulative_gain": {}},
    ideal=1.0,
    cites=JARVELIN,
    bounded="gain ratio",
    expected=_mean_ndcg,
)
def ndcg(
    a: Alignment,
    k: int | None = None,
    gain: Gain = "linear",
    discount: Discount = "log2",
    ideal: Ideal = "judged",
    per: Per = "document",
    rel: float | None = None,
) -> Floats:
    """Discounted gain of the first k as a share of the best possible.

    nDCG@k = DCG@k / DCG@k of the ideal list.

    ideal=judged: all judged documents, best first, cut at k.
    ideal=all: the same, not cut, so that k documents may not reach 1.
    ideal=retrieved: cut at k and at the length of the retrieved list.
    ideal=found: only the documents in the first k, best first.
    per=document: the ideal list contains every document once.
    per=target: the ideal list contains a document once for each target it satisfies.
    rel: documents graded below it gain nothing; None: every grade above 0 gains.
    The ideal list ends where gains drop to 0. Nothing to gain, or an empty list: 0.
    """
    return share(dcg(a, k, gain, discount, rel), ideal_dcg(a, k, gain, discount, ideal, per, rel))


def ideal_dcg(
    a: Alignment, k: int | None, gain: Gain, discount: Discount, ideal: Ideal, per: Per, rel: float | None
) -> Floats:
    """The DCG of the ideal list of each query; once per qrels where it depends on nothing else."""

    def compute() -> Floats:
        if ideal == "found":
            inside = a.within(k)
            query, rank, best = ranked_by(a.query[inside], gain_of(a.grade, gain, rel)[inside], a.size)
        else:
            worth = gain_of(a.judged.grade, gain, rel)
            times = (worth > 0).astype(np.int64)
            if per == "target":
                times = np.maximum(1, np.bincount(a.targets.doc[a.targets.grade > 0], minlength=len(worth)))
            query, rank, best = a.best_first(worth, times=times)
        worth = np.maximum(best, 0.0) * discount_of(rank, discount)
        if k is not None and ideal != "all":
            worth = np.where(rank <= k, worth, 0.0)
        if ideal == "retrieved":
            worth = np.where(rank <= a.retrieved[query], worth, 0.0)
        return np.bincount(query, weights=worth, minlength=a.size).astype(np.float64)

    if ideal in ("judged", "all") and per == "document":
        return a.judged.once(("ideal DCG", k, gain, discount, ideal, rel, a.size), compute)
    return compute()
