"""Measures of graded relevance: cumulative gain, discounted by rank, and normalised by the ideal list."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from steelyard.alignment.alignment import Alignment, sums
from steelyard.alignment.hits import Floats, Ints
from steelyard.measures.binary import share
from steelyard.measures.registry import GainTable, measure


def gain_of(
    grades: Floats, gain: Literal["linear", "exp", "binary"] | GainTable, rel: float | None
) -> Floats:
    """The gain of each grade; grades below `rel` gain nothing."""
    gains = np.maximum(grades, 0.0)
    if gain == "exp":
        gains = np.exp2(gains) - 1
    elif gain == "binary":
        gains = (gains > 0).astype(np.float64)
    elif isinstance(gain, tuple):
        for grade, worth in gain:
            gains[grades == grade] = worth
    return gains if rel is None else np.where(grades >= rel, gains, 0.0)


Discount: TypeAlias = Literal["log2", "reciprocal", "jk"]


def discount_of(rank: Ints, discount: Discount) -> Floats:
    """The factor of a gain at a rank: 1 / log2(rank + 1), 1 / rank, or 1 / log2(rank) from rank 2 on."""
    if discount == "jk":
        return 1 / np.maximum(np.log2(np.maximum(rank, 1).astype(np.float64)), 1.0)
    return 1 / (np.log2(rank + 1.0) if discount == "log2" else rank.astype(np.float64))


@measure(
    "DCG",
    aliases=("discounted_cumulative_gain",),
    high=np.inf,
    cites="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 20(4), 2002",
)
def dcg(
    a: Alignment,
    k: int | None = None,
    gain: Literal["linear", "exp", "binary"] | GainTable = "linear",
    discount: Discount = "log2",
    rel: float | None = None,
) -> Floats:
    """Gain of the documents in the first k, discounted by rank, not normalised.

    DCG@k = sum of gain(grade) x discount(rank) over the first k.

    gain=linear: the grade itself; nothing for grades below 0.
    gain=exp: 2^grade - 1; nothing for grades below 0.
    gain=binary: 1 for every grade above 0.
    gain={grade: gain}: as in the table; a grade that is not in it gains itself.
    discount=log2: 1 / log2(rank + 1).
    discount=reciprocal: 1 / rank.
    discount=jk: 1 / max(1, log2(rank)), as Järvelin and Kekäläinen defined it: ranks 1 and 2 are not discounted.
    rel: documents graded below it gain nothing; None: every grade above 0 gains.
    """
    hits = np.flatnonzero(a.within(k))
    worth = gain_of(a.grade[hits], gain, rel) * discount_of(a.rank[hits], discount)
    return sums(a.query[hits], worth, a.size)


@measure(
    "nDCG",
    aliases={"NDCG": {}, "normalized_discounted_cumulative_gain": {}},
    ideal=1.0,
    cites="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 20(4), 2002",
)
def ndcg(
    a: Alignment,
    k: int | None = None,
    gain: Literal["linear", "exp", "binary"] | GainTable = "linear",
    discount: Discount = "log2",
    ideal: Literal["judged", "all", "retrieved", "found"] = "judged",
    per: Literal["document", "target"] = "document",
    rel: float | None = None,
) -> Floats:
    """Discounted gain of the first k as a share of the best possible.

    nDCG@k = DCG@k / DCG@k of the ideal list.

    gain=linear: the grade itself; nothing for grades below 0.
    gain=exp: 2^grade - 1; nothing for grades below 0.
    gain=binary: 1 for every grade above 0.
    gain={grade: gain}: as in the table; a grade that is not in it gains itself.
    discount=log2: 1 / log2(rank + 1).
    discount=reciprocal: 1 / rank.
    discount=jk: 1 / max(1, log2(rank)), as Järvelin and Kekäläinen defined it: ranks 1 and 2 are not discounted.
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
    a: Alignment,
    k: int | None,
    gain: Literal["linear", "exp", "binary"] | GainTable,
    discount: Discount,
    ideal: Literal["judged", "all", "retrieved", "found"],
    per: Literal["document", "target"],
    rel: float | None,
) -> Floats:
    """The DCG of the ideal list of each query; once per qrels where it depends on nothing else."""
    if ideal in ("judged", "all") and per == "document":
        key = ("ideal DCG", k, gain, discount, ideal, rel, a.size)
        return a.judged.once(key, lambda: _ideal_dcg(a, k, gain, discount, ideal, per, rel))
    return _ideal_dcg(a, k, gain, discount, ideal, per, rel)


def _ideal_dcg(
    a: Alignment,
    k: int | None,
    gain: Literal["linear", "exp", "binary"] | GainTable,
    discount: Discount,
    ideal: Literal["judged", "all", "retrieved", "found"],
    per: Literal["document", "target"],
    rel: float | None,
) -> Floats:
    if ideal == "found":
        query, rank, best = a.found_best_first(gain_of(a.grade, gain, rel), a.within(k))
    elif per == "target":
        worth = gain_of(a.judged.grade, gain, rel)
        times = np.bincount(a.targets.doc[a.targets.grade > 0], minlength=len(worth))
        query, rank, best = a.best_first(worth, times=np.maximum(1, times))
    else:
        worth = gain_of(a.judged.grade, gain, rel)
        query, rank, best = a.best_first(worth, times=(worth > 0).astype(np.int64))
    worth = np.maximum(best, 0.0) * discount_of(rank, discount)
    if k is not None and ideal != "all":
        worth = np.where(rank <= k, worth, 0.0)
    if ideal == "retrieved":
        worth = np.where(rank <= a.retrieved[query], worth, 0.0)
    return np.bincount(query, weights=worth, minlength=a.size).astype(np.float64)
