"""Counts and shares of what was judged, returned, repeated or known to mislead; and which queries count."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from steelyard.alignment.alignment import Alignment, Judged, MissingDataError
from steelyard.alignment.hits import Floats
from steelyard.errors import MeasureError
from steelyard.measures.binary import share
from steelyard.measures.grammar import parse
from steelyard.measures.registry import Weights, measure


@measure(
    "Confusion",
    aliases=("ConfusionRate", "confusion_rate"),
    better="less",
    tail=False,
    needs_relevant=False,
    needs="distractors",
)
def confusion(
    a: Alignment, k: int | None = None, denominator: Literal["retrieved", "distractors"] = "retrieved"
) -> Floats:
    """Share of the first k that are distractors: documents known to mislead (graded below 0).

    Confusion@k = |distractors in the first k| / the denominator below. Less is better.

    denominator=retrieved: divided by what came back, no more than k.
    denominator=distractors: divided by the number of the query's distractors.
    No distractors, or an empty list: 0.
    """
    found = a.per_query((a.grade < 0) & a.within(k))
    return share(
        found, a.returned(k) if denominator == "retrieved" else a.judged_per_query(a.judged.grade < 0)
    )


@measure("Judged", tail=False, needs_relevant=False)
def judged(a: Alignment, k: int | None = None) -> Floats:
    """Share of the first k that was judged, whatever the grade.

    Judged@k = |judged in the first k| / |different documents in the first k|.
    A document that comes again holds its rank and is not counted again. Empty list: 0.
    """
    return share(a.per_query(a.within(k)), a.different(k))


@measure("Unjudged", aliases=("Hole",), better="less", tail=False, needs_relevant=False)
def unjudged(
    a: Alignment, k: int | None = None, denominator: Literal["retrieved", "k"] = "retrieved"
) -> Floats:
    """Share of the first k that was never judged.

    Unjudged@k = |unjudged in the first k| / the denominator below.

    denominator=retrieved: divided by the different documents in the first k.
    denominator=k: divided by k, also where fewer came back.
    A document that comes again holds its rank and is not counted again. Empty list: 0.
    """
    blank = a.different(k) - a.per_query(a.within(k))
    return blank / k if denominator == "k" and k is not None else share(blank, a.different(k))


@measure(
    "NumRet",
    aliases=("num_ret",),
    cutoff="none",
    summary="sum",
    better="neither",
    high=np.inf,
    tail=False,
    needs_relevant=False,
)
def num_ret(a: Alignment) -> Floats:
    """Number of documents returned, summed over queries."""
    return a.returned()


@measure(
    "NumRel",
    aliases=("num_rel",),
    cutoff="none",
    summary="sum",
    better="neither",
    high=np.inf,
    empty=np.nan,
    needs_relevant=False,
)
def num_rel(a: Alignment, rel: float = 1) -> Floats:
    """Number of documents judged relevant, summed over queries.

    rel: the lowest grade that counts as relevant.
    """
    return a.relevant(rel)


@measure("NumRelRet", aliases=("num_rel_ret",), summary="sum", high=np.inf, needs_relevant=False)
def num_rel_ret(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Number of relevant documents returned (in the first k), summed over queries.

    rel: the lowest grade that counts as relevant.
    """
    return a.per_query((a.grade >= rel) & a.within(k))


@measure("Found", high=np.inf, needs_relevant=False)
def found(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Number of relevant documents in the first k, averaged over queries (NumRelRet sums the same number).

    rel: the lowest grade that counts as relevant.
    """
    return num_rel_ret(a, k, rel)


@measure(
    "NumQ",
    aliases=("num_q",),
    cutoff="none",
    summary="sum",
    better="neither",
    empty=1.0,
    needs_relevant=False,
)
def num_q(a: Alignment) -> Floats:
    """Number of queries: 1 each, summed."""
    return np.ones(a.size)


@measure("Repeats", better="less", tail=False, needs_relevant=False)
def repeats(a: Alignment, k: int | None = None, near: bool | None = None) -> Floats:
    """Share of the first k that repeat an earlier document of the list, or (with texts) nearly repeat it.

    Repeats@k = |repeats in the first k| / min(k, returned). Less is better. Empty list: 0.
    A text nearly repeats another when nine tenths of their word 3-grams are the same.

    near: whether near-repeats count, for which the run must carry texts; None: where it does.
    """
    if a.judged_only and near is not False and (near or a.near_repeats is not None):
        raise MissingDataError("texts kept")
    if near and a.near_repeats is None:
        raise MissingDataError("texts")
    chosen = a.repeats if near is False or a.near_repeats is None else a.near_repeats
    inside = chosen.query if k is None else chosen.query[chosen.rank <= k]
    return share(np.bincount(inside, minlength=a.size).astype(np.float64), a.returned(k))


@measure("Counted", cutoff="none", low=-np.inf, high=np.inf)
def counted(
    a: Alignment,
    of: str = "R",
    rel: float = 1,
    known: Literal["judged", "returned"] = "judged",
    empty: Literal["zero", "skip"] = "zero",
    no_relevant: Literal["zero", "silent", "skip"] = "zero",
    unjudged: Literal["keep", "remove"] = "keep",
) -> Floats:
    """Another measure, over other judgments, other lists or other queries than all.

    Counted = the value of the measure `of`; the clauses say what is known to it and which queries count.

    of: the measure, as in P(denominator=retrieved)@5.
    rel: the lowest grade that counts as relevant, also in that measure where it does not say.
    known=judged: every judged document.
    known=returned: only documents that came back, at any rank, as where a tool is given lists alone.
    empty=zero: a query with an empty list has the measure's own value, 0 as a rule.
    empty=skip: a query with an empty list is left out.
    no_relevant=zero: a query with no relevant document known has the measure's own value, 0 as a rule.
    no_relevant=silent: it counts as 1 if nothing came back either, else as 0.
    no_relevant=skip: it is left out.
    unjudged=keep: the lists as they came back.
    unjudged=remove: condensed lists: judged documents alone, the ranks below closing up.
    """
    from steelyard.measures.compute import values

    inner = parse(of)
    level = inner.definition.parameter("rel")
    if level is not None and level.default is not None and "rel" not in dict(inner.given):
        inner = inner(rel=rel)
    seen = a.without_unjudged() if unjudged == "remove" else a
    seen = _knowing_returned(seen) if known == "returned" else seen
    value = values(inner, seen)
    if no_relevant != "zero":
        instead = np.nan if no_relevant == "skip" else (a.retrieved == 0).astype(np.float64)
        value = np.where(seen.relevant(rel) > 0, value, instead)
    return np.where(a.retrieved > 0, value, np.nan) if empty == "skip" else value


def _knowing_returned(a: Alignment) -> Alignment:
    """The same run, its judgments those of the documents that came back alone."""
    place = np.full(len(a.judged.query), -1, dtype=np.int64)
    place[a.doc] = np.arange(len(a.doc))
    kept = np.flatnonzero(place[a.targets.doc] >= 0)
    targets = replace(
        a.targets, doc=place[a.targets.doc[kept]], target=a.targets.target[kept], grade=a.targets.grade[kept]
    )
    ids = [a.doc_ids[doc] for doc in a.doc.tolist()]
    judged = Judged(a.query, a.grade, None if a.judged.highest is None else np.nan)
    return replace(a, doc=np.arange(len(a.doc)), judged=judged, targets=targets, doc_ids=ids)


@measure(
    "Latency", cutoff="none", summary="stat", better="less", high=np.inf, empty=np.nan, needs_relevant=False
)
def latency(a: Alignment, stat: Literal["mean", "p50", "p95", "p99", "max"] = "mean") -> Floats:
    """Seconds a query took, from the run's own timings. Less is better.

    stat=mean: queries are summed up by their mean.
    stat=p50: by their median.
    stat=p95: by the time that 95 % of them stayed under.
    stat=p99: by the time that 99 % of them stayed under.
    stat=max: by the slowest.
    A query without a timing is left out.
    """
    if a.seconds is None:
        raise MissingDataError("seconds")
    return a.seconds


@measure("Abstain", cutoff="none", empty=np.nan, needs_relevant=False, needs="unanswerable")
def abstain(a: Alignment, threshold: float | None = None, rel: float = 1) -> Floats:
    """Whether nothing was returned for a query that has no relevant document.

    Abstain = 1 if no document scores above the threshold, else 0; queries that have a relevant
    document are left out. An empty list abstains; a query that the run does not have is missing, and
    counts as 0.

    threshold: a score that a document must exceed to count as returned; None: any document counts.
    rel: the lowest grade that counts as relevant.
    """
    silent = a.answered & (a.retrieved == 0)
    if threshold is not None:
        if a.judged_only:
            raise MissingDataError("scores kept")
        if np.any(np.isnan(a.top_score) & (a.retrieved > 0)):
            raise MissingDataError("scores")
        silent = silent | (a.top_score <= threshold)
    return np.where(a.relevant(rel) > 0, np.nan, silent.astype(np.float64))


@measure("Composite", cutoff="none", low=-np.inf, high=np.inf, tail=False, empty=np.nan)
def composite(a: Alignment, weights: Weights = ()) -> Floats:
    """Weighted mean of other measures.

    Composite = sum of weight x value / sum of weights; where less is better, 1 - value enters.

    weights: a table of measure and weight, as in {nDCG@10: 0.5, Confusion@3: 0.1}; none below 0, not all 0.
    """
    from steelyard.measures.compute import values

    return weighed(
        [(parse(text).definition.better, values(parse(text), a), weight) for text, weight in weights]
    )


def weighed(parts: list[tuple[str, Floats, float]]) -> Floats:
    """The weighted mean of (better, values, weight) parts."""
    total = sum(weight for _, _, weight in parts)
    if not parts or total <= 0 or any(weight < 0 for _, _, weight in parts):
        raise MeasureError(
            "a composite needs weights of 0 or more that are not all 0, as in {nDCG@10: 0.5, RR@10: 0.5}."
        )
    return (
        sum(
            (weight * (1 - value if better == "less" else value) for better, value, weight in parts),
            np.zeros(1),
        )
        / total
    )
