"""Counts and shares (judged, unjudged, retrieved, repeated, misleading), latency, abstention and composites."""

from __future__ import annotations

from typing import Literal

import numpy as np

from steelyard.alignment.alignment import Alignment, MissingDataError
from steelyard.alignment.hits import Floats
from steelyard.errors import MeasureError
from steelyard.measures.binary import share
from steelyard.measures.compute import values
from steelyard.measures.grammar import parse, with_rel
from steelyard.measures.registry import Weights, fixed, measure, summed


@fixed(
    "Confusion",
    aliases=("ConfusionRate", "confusion_rate"),
    better="less",
    tail=False,
    needs="distractors",
    expected="linear",
)
def confusion(
    a: Alignment, k: int | None = None, denominator: Literal["retrieved", "distractors"] = "retrieved"
) -> Floats:
    """Share of the first k that are distractors: documents known to mislead (graded below 0).

    Confusion@k = |distractors in the first k| / the denominator below. Lower is better.

    denominator=retrieved: divided by the number retrieved, at most k.
    denominator=distractors: divided by the number of the query's distractors.
    No distractors, or an empty list: 0.
    """
    distractors = a.per_query((a.grade < 0) * a.within(k))
    return share(distractors, a.returned(k) if denominator == "retrieved" else a.judged_per_query(a.judged.grade < 0))


@fixed("Judged", tail=False, expected="linear")
def judged(a: Alignment, k: int | None = None) -> Floats:
    """Share of the first k that is judged, whatever the grade.

    Judged@k = |judged in the first k| / |distinct documents in the first k|.
    A repeated document keeps its rank and is not counted again. Empty list: 0.
    """
    return share(a.per_query(a.within(k)), a.different(k))


@fixed("Unjudged", aliases=("Hole",), better="less", tail=False, expected="linear")
def unjudged(a: Alignment, k: int | None = None, denominator: Literal["retrieved", "k"] = "retrieved") -> Floats:
    """Share of the first k that is unjudged.

    Unjudged@k = |unjudged in the first k| / the denominator below.

    denominator=retrieved: divided by the number of distinct documents in the first k.
    denominator=k: divided by k, even if fewer were retrieved.
    A repeated document keeps its rank and is not counted again. Empty list: 0.
    """
    blank = a.different(k) - a.per_query(a.within(k))
    return blank / k if denominator == "k" and k is not None else share(blank, a.different(k))


@summed("NumRet", aliases=("num_ret",), tail=False, bounded="fixed", expected="same")
def num_ret(a: Alignment) -> Floats:
    """Number of retrieved documents, summed over queries."""
    return a.returned()


@summed("NumRel", aliases=("num_rel",), empty=np.nan, bounded="additive", expected="same")
def num_rel(a: Alignment, rel: float = 1, queries: Literal["judged", "answered"] = "judged") -> Floats:
    """Number of documents judged relevant, summed over queries.

    queries=judged: of all queries.
    queries=answered: of those that are in the run.
    """
    return np.where(a.answered, a.relevant(rel), 0.0) if queries == "answered" else a.relevant(rel)


@summed("NumRelRet", aliases=("num_rel_ret",), cutoff="optional", better="more", bounded="additive", expected="linear")
def num_rel_ret(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Number of relevant documents retrieved (in the first k), summed over queries."""
    return a.per_query((a.grade >= rel) * a.within(k))


@measure("Found", high=np.inf, needs_relevant=False, bounded="additive", expected="linear")
def found(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Number of relevant documents in the first k, averaged over queries (NumRelRet sums the same number)."""
    return num_rel_ret(a, k, rel)


@summed("NumQ", aliases=("num_q",), high=1.0, empty=1.0, bounded="fixed", expected="same")
def num_q(a: Alignment, queries: Literal["judged", "answered"] = "judged") -> Floats:
    """Number of queries: 1 each, summed.

    queries=judged: all queries.
    queries=answered: those that are in the run.
    """
    return a.answered.astype(np.float64) if queries == "answered" else np.ones(a.size)


@fixed("Repeats", better="less", tail=False)
def repeats(a: Alignment, k: int | None = None, near: bool | None = None) -> Floats:
    """Share of the first k that repeat an earlier document of the list, or (with texts) nearly repeat it.

    Repeats@k = |repeats in the first k| / min(k, retrieved). Lower is better. Empty list: 0.
    A text nearly repeats another if nine tenths of their word 3-grams are the same. With duplicates=collapse the list
    has no repeats, only near-repeats.

    near: whether near-repeats count, which needs the texts of the run; None: if it has them.
    """
    if a.judged_only and near is not False and (near or a.near_repeats is not None):
        raise MissingDataError("texts kept")
    if near and a.near_repeats is None:
        raise MissingDataError("texts")
    chosen = a.repeats if near is False or a.near_repeats is None else a.near_repeats
    if not chosen.held:
        return np.zeros(a.size)
    inside = chosen.query if k is None else chosen.query[chosen.rank <= k]
    return share(np.bincount(inside, minlength=a.size).astype(np.float64), a.returned(k))


@measure("Counted", cutoff="none", low=-np.inf, high=np.inf, zeros=True)
def counted(
    a: Alignment,
    of: str = "R",
    rel: float = 1,
    known: Literal["judged", "returned"] = "judged",
    empty: Literal["zero", "skip"] = "zero",
    no_relevant: Literal["zero", "silent", "skip"] = "zero",
    unjudged: Literal["keep", "remove", "remove_negative"] = "keep",
) -> Floats:
    """Another measure, over a part of the judgments, of the lists or of the queries.

    Counted = the value of the measure `of`; the parameters state which judgments it sees and which queries count.

    of: the measure, as in P(denominator=retrieved)@5.
    rel: the lowest grade that counts as relevant, also in that measure unless it states its own.
    known=judged: all judgments.
    known=returned: only those of retrieved documents, at any rank, as in tools that see nothing but lists.
    empty=zero: a query with an empty list has the measure's own value, usually 0.
    empty=skip: a query with an empty list is left out.
    no_relevant=zero: a query with no relevant document known has the measure's own value, usually 0.
    no_relevant=silent: it counts as 1 if its list is empty, otherwise as 0.
    no_relevant=skip: it is left out.
    unjudged=keep: the lists as retrieved.
    unjudged=remove: condensed lists: unjudged documents are removed and the ranks below them move up.
    unjudged=remove_negative: the same for documents with a grade below 0, which trec_eval -J takes as unjudged.
    """
    seen = a if unjudged == "keep" else a.without_unjudged(negative=unjudged == "remove_negative")
    seen = seen.judged_where_returned if known == "returned" else seen
    value = values(with_rel(parse(of), rel), seen)
    if no_relevant != "zero":
        instead = np.nan if no_relevant == "skip" else (a.retrieved == 0).astype(np.float64)
        value = np.where(seen.relevant(rel) > 0, value, instead)
    return np.where(a.retrieved > 0, value, np.nan) if empty == "skip" else value


@fixed("Latency", cutoff="none", summary="stat", better="less", high=np.inf, empty=np.nan, expected="same")
def latency(a: Alignment, stat: Literal["mean", "p50", "p95", "p99", "max"] = "mean") -> Floats:
    """Seconds per query, from the timings of the run. Lower is better.

    stat=mean: the mean over queries.
    stat=p50: their median.
    stat=p95: the time that 95% of them stay under.
    stat=p99: the time that 99% of them stay under.
    stat=max: the slowest.
    A query without a timing is left out.
    """
    if a.seconds is None:
        raise MissingDataError("seconds")
    return a.seconds


@measure("Abstain", cutoff="none", empty=np.nan, needs_relevant=False, needs="unanswerable", bounded="monotone")
def abstain(a: Alignment, threshold: float | None = None, rel: float = 1) -> Floats:
    """Whether nothing is returned for a query that has no relevant document.

    Abstain = 1 if no document scores above the threshold, otherwise 0; queries that have a relevant
    document are left out. An empty list abstains; a query that is missing from the run counts as 0.

    threshold: a score that a document must exceed to count as returned; None: any document counts.
    """
    silent = a.answered & (a.retrieved == 0)
    if threshold is not None:
        if a.judged_only:
            raise MissingDataError("scores kept")
        if np.any(np.isnan(a.top_score) & (a.retrieved > 0)):
            raise MissingDataError("scores")
        silent = silent | (a.top_score <= threshold)
    return np.where(a.relevant(rel) > 0, np.nan, silent.astype(np.float64))


def _mean_composite(a: Alignment, weights: Weights) -> Floats:
    """The composite of the means, as it is linear."""
    return weighed([(part.definition.better, values(part, a, expected=True), weight) for part, weight in weights])


@measure(
    "Composite", cutoff="none", low=-np.inf, high=np.inf, tail=False, empty=np.nan, zeros=True, expected=_mean_composite
)
def composite(a: Alignment, weights: Weights = ()) -> Floats:
    """Weighted mean of other measures.

    Composite = sum of weight x value / sum of weights; 1 - value for measures where lower is better. The values are
    those of each query, so GMAP counts as AP, and a sum or a percentile as the mean.

    weights: a table of measure and weight, as in {nDCG@10: 0.5, Confusion@3: 0.1}; no weight below 0, not all 0.
    """
    return weighed([(part.definition.better, values(part, a), weight) for part, weight in weights])


def weighed(parts: list[tuple[str, Floats, float]]) -> Floats:
    """The weighted mean of (better, values, weight) parts."""
    total = sum(weight for _, _, weight in parts)
    if not parts or total <= 0 or any(weight < 0 for _, _, weight in parts):
        raise MeasureError(
            "a composite needs weights of 0 or more that are not all 0, as in {nDCG@10: 0.5, RR@10: 0.5}."
        )
    terms = (weight * (1 - value if better == "less" else value) for better, value, weight in parts)
    return sum(terms, np.zeros(1)) / total
