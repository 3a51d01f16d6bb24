"""Measures of binary relevance: precision, recall, F, reciprocal rank, average precision, hit."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

import steelyard.measures.tie_groups as tie_groups
from steelyard.alignment.alignment import Alignment, starts_of, sums
from steelyard.alignment.hits import Floats
from steelyard.measures.registry import measure

_KENT = "Kent et al., Machine literature searching VIII, American Documentation 6(2), 1955"
_RIJSBERGEN = "van Rijsbergen, Information Retrieval, 1979"
_KANTOR_2000 = "Kantor and Voorhees, The TREC-5 confusion track, Information Retrieval 2, 2000"
_HARMAN_1992 = "Harman, Evaluation issues in information retrieval, IP&M 28(4), 1992"

Per: TypeAlias = Literal["document", "target"]
PrecisionOver: TypeAlias = Literal["k", "retrieved"]
AveragedOver: TypeAlias = Literal["relevant", "min", "found"]


def share(part: Floats, whole: Floats) -> Floats:
    """Part divided by whole; 0 if the whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=np.asarray(whole) != 0)


def capped(whole: Floats, k: int | None, cap: bool) -> Floats:
    """The denominator of recall or average precision: the whole, or with `cap` at most k."""
    return np.minimum(whole, k) if cap and k is not None else whole


def f_of(p: Floats, r: Floats, beta: float) -> Floats:
    """The harmonic mean of precision and recall, with recall weighted beta times as much."""
    return share((1 + beta**2) * p * r, beta**2 * p + r)


@measure("P", aliases=("Precision", "precision_score"), tail=False, cites=_KENT, bounded="additive", expected="linear")
def precision(a: Alignment, k: int | None = None, rel: float = 1, denominator: PrecisionOver = "k") -> Floats:
    """Share of the first k that is relevant.

    P@k = |relevant in the first k| / the denominator below.

    denominator=k: divided by k, even if fewer were retrieved; without a cutoff, by the number retrieved.
    denominator=retrieved: divided by the number retrieved, at most k.
    Empty list: 0.
    """
    hits = a.per_query((a.grade >= rel) * a.within(k))
    return hits / k if denominator == "k" and k is not None else share(hits, a.returned(k))


def mean_recall(
    a: Alignment, k: int | None, rel: float, per: Per = "document", cap: bool = False, budget: int | None = None
) -> Floats:
    """The mean number of relevant documents, or of targets, in the first k, over the same denominator."""
    if budget is not None:
        tie_groups.refuse_tied_budget(a, a.grade >= rel, budget)
        return recall(a, k, rel, per, cap, budget)
    if per == "target":
        return share(tie_groups.mean_targets_found(a, k, rel), capped(a.target_counts(rel), k, cap))
    return recall(tie_groups.over_orders(a), k, rel, per, cap)


@measure(
    "R",
    aliases={"Recall": {}, "R_cap": {"cap": True}, "capped_recall": {"cap": True}},
    ideal=1.0,
    cites=_KENT,
    bounded="counts",
    expected=mean_recall,
)
def recall(
    a: Alignment,
    k: int | None = None,
    rel: float = 1,
    per: Per = "document",
    cap: bool = False,
    budget: int | None = None,
) -> Floats:
    """Share of the relevant documents that are in the first k.

    R@k = |relevant in the first k| / R, R the number of relevant documents.

    per=document: counts relevant documents.
    per=target: counts targets: those that a document in the first k satisfies, out of all of the query.
    cap: divided by min(R, k) instead of R, so that k documents can reach 1.
    Nothing relevant, or an empty list: 0.
    """
    if per == "target":
        alone, owner = a.by_target(rel)
        hits = sums(owner, alone.per_query(alone.within(k, budget)) > 0, a.size)
        return share(hits, capped(a.target_counts(rel), k, cap))
    return share(a.per_query((a.grade >= rel) * a.within(k, budget)), capped(a.relevant(rel), k, cap))


def _mean_f(
    a: Alignment, k: int | None, beta: float, rel: float, denominator: PrecisionOver, per: Per, cap: bool
) -> Floats:
    """F is linear per document; per target it is averaged over what the first ranks of the split group may contain."""
    if per == "document":
        return f_measure(tie_groups.over_orders(a), k, beta, rel, denominator, per, cap)
    states = tie_groups.contents(a, k, rel)
    whole = capped(a.target_counts(rel), k, cap)
    out_of = np.full(a.size, float(k)) if denominator == "k" and k is not None else a.returned(k)
    p = share(states.documents, out_of[states.query])
    r = share(states.targets, whole[states.query])
    return states.mean(f_of(p, r, beta), a.size)


@measure("F", aliases=("F1", "F_score", "F1_score"), tail=False, cites=_RIJSBERGEN, bounded="counts", expected=_mean_f)
def f_measure(
    a: Alignment,
    k: int | None = None,
    beta: float = 1,
    rel: float = 1,
    denominator: PrecisionOver = "k",
    per: Per = "document",
    cap: bool = False,
) -> Floats:
    """Harmonic mean of precision and recall.

    F@k = (1 + beta^2) P R / (beta^2 P + R), with P@k and R@k of the same parameters.

    beta: how many times recall is weighted as much as precision.
    denominator=k: precision divides by k; without a cutoff, by the number retrieved.
    denominator=retrieved: precision divides by the number retrieved, at most k.
    per=document: recall counts relevant documents.
    per=target: recall counts targets.
    cap: recall divides by min(R, k).
    Both 0: 0.
    """
    return f_of(precision(a, k, rel, denominator), recall(a, k, rel, per, cap), beta)


def _mean_reciprocal_rank(a: Alignment, k: int | None, rel: float, per: Per) -> Floats:
    """The mean of 1 / the first relevant rank: it lies in the first group with a relevant document."""
    if per == "target":
        return a.mean_over_targets(rel, lambda alone: _mean_reciprocal_rank(alone, k, rel, "document"))
    g = tie_groups.groups_of(a, a.grade >= rel, k)
    leading = (g.chosen > 0) & (g.before == 0)
    result = np.zeros(a.size)
    columns = (g.first[leading], g.size[leading], g.inside[leading], g.chosen[leading])
    result[g.query[leading]] = tie_groups.row_by_row(tie_groups.mean_first, *columns)
    return result


@measure(
    "RR",
    aliases=("MRR", "recip_rank", "reciprocal_rank", "mean_reciprocal_rank"),
    ideal=1.0,
    cites=_KANTOR_2000,
    bounded="best document",
    expected=_mean_reciprocal_rank,
)
def reciprocal_rank(a: Alignment, k: int | None = None, rel: float = 1, per: Per = "document") -> Floats:
    """One over the rank of the first relevant document.

    RR@k = 1 / rank of the first relevant document in the first k.

    per=document: the first relevant document of the query.
    per=target: for each target 1 / rank of the first document that satisfies it, averaged over targets.
    None found: 0.
    """
    if per == "target":
        return a.mean_over_targets(rel, lambda alone: reciprocal_rank(alone, k, rel))
    return 1 / a.first((a.grade >= rel) & a.within(k))


def mean_average_precision(
    a: Alignment, k: int | None, rel: float, denominator: AveragedOver = "relevant", per: Per = "document"
) -> Floats:
    """The mean of the precisions at relevant ranks; over the number found, averaged given that number."""
    if per == "target":
        return a.mean_over_targets(rel, lambda alone: mean_average_precision(alone, k, rel, denominator))
    g = tie_groups.groups_of(a, a.grade >= rel, k)
    if denominator == "found":
        return _mean_precision_over_found(g, a.size)
    total = sums(g.query, tie_groups.mean_precisions(g.first, g.size, g.inside, g.chosen, g.before), a.size)
    return share(total, capped(a.relevant(rel), k, denominator == "min"))


def _mean_precision_over_found(g: tie_groups.Groups, size: int) -> Floats:
    """The mean of the sum of precisions over the number found."""
    some = g.chosen > 0
    whole = some & (g.inside == g.size)
    above = np.where(whole, tie_groups.mean_precisions(g.first, g.size, g.inside, g.chosen, g.before), 0.0)
    total = sums(g.query, above, size)
    result = share(total, sums(g.query[whole], g.chosen[whole], size))
    split = some & g.split
    most = np.minimum(g.chosen[split], g.inside[split])
    of = np.repeat(np.flatnonzero(split), most + 1)
    taken = np.arange(len(of)) - np.repeat(np.cumsum(most + 1) - most - 1, most + 1)
    chance = tie_groups.row_by_row(tie_groups.chance_of, taken, g.size[of], g.inside[of], g.chosen[of])
    here = tie_groups.mean_precisions(g.first[of], g.inside[of], g.inside[of], taken, g.before[of])
    over_found = share(total[g.query[of]] + here, (g.before[of] + taken).astype(np.float64))
    result[g.query[split]] = 0.0
    np.add.at(result, g.query[of], chance * over_found)
    return result


@measure(
    "AP",
    aliases=("MAP", "average_precision", "mean_average_precision"),
    ideal=1.0,
    cites=_HARMAN_1992,
    bounded="precision sums",
    expected=mean_average_precision,
)
def average_precision(
    a: Alignment, k: int | None = None, rel: float = 1, denominator: AveragedOver = "relevant", per: Per = "document"
) -> Floats:
    """Precision at the rank of each relevant document, averaged.

    AP@k = sum of P@rank over the relevant documents in the first k / the denominator below.

    denominator=relevant: divided by R, the number of relevant documents.
    denominator=min: divided by min(R, k).
    denominator=found: divided by the number of relevant documents found in the first k.
    per=document: over the relevant documents of the query.
    per=target: computed for each target, with its documents as the relevant ones, and averaged.
    None found: 0.
    """
    if per == "target":
        return a.mean_over_targets(rel, lambda alone: average_precision(alone, k, rel, denominator))
    chosen = np.flatnonzero((a.grade >= rel) & a.within(k))
    query = a.query[chosen]
    hits = np.arange(1, len(query) + 1) - starts_of(query, a.size)[query]
    total = sums(query, hits / a.rank[chosen], a.size)
    if denominator == "found":
        return share(total, np.bincount(query, minlength=a.size).astype(np.float64))
    return share(total, capped(a.relevant(rel), k, denominator == "min"))


@measure("ARR", aliases=("average_reciprocal_rank",), bounded="ranks")
def average_reciprocal_rank(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """One over the rank of each relevant document found, averaged.

    ARR@k = sum of 1 / rank over the relevant documents in the first k / their number. Another
    relevant document further down lowers it: the best list has one.

    None found: 0.
    """
    chosen = (a.grade >= rel) & a.within(k)
    return share(a.per_query(np.where(chosen, 1 / a.rank, 0.0)), a.per_query(chosen))


@measure("AR", aliases=("MAR", "average_recall", "mean_average_recall"), bounded="ranks")
def average_recall(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Recall at the rank of each relevant document, averaged.

    AR@k = sum of R@rank over the relevant documents in the first k / R. It does not depend on the ranks: with m
    found it is m (m + 1) / (2 R^2), and (R + 1) / (2 R) at best.

    None found: 0.
    """
    chosen = (a.grade >= rel) & a.within(k)
    return share(a.per_query(np.where(chosen, a.running(chosen), 0.0)), a.relevant(rel) ** 2)


def _mean_hit(a: Alignment, k: int | None, rel: float, budget: int | None) -> Floats:
    """The probability that a relevant document is in the first k."""
    relevant = a.grade >= rel
    if budget is not None:
        tie_groups.refuse_tied_budget(a, relevant, budget)
        return hit(a, k, rel, budget)
    return 1 - tie_groups.chance_of_none(a, relevant, k)


@measure(
    "Hit",
    aliases=("HitRate", "Success", "hits", "hit_ratio"),
    ideal=1.0,
    bounded="best document",
    first_k_only=True,
    expected=_mean_hit,
)
def hit(a: Alignment, k: int | None = None, rel: float = 1, budget: int | None = None) -> Floats:
    """Whether a relevant document is in the first k.

    Hit@k = 1 if a relevant document is in the first k, otherwise 0. Its mean is the hit rate.
    """
    return (a.per_query((a.grade >= rel) & a.within(k, budget)) > 0).astype(np.float64)
