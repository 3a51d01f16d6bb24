"""Measures over targets (subtopics): how many of the things that a query needs are found, and how early.

The diversity measures are defined as in ndeval, the tool of the TREC Web tracks, at any cutoff.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from steelyard.alignment.alignment import Alignment, sums
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.alignment.ranking import first_of_group
from steelyard.errors import MeasureError
from steelyard.measures.binary import average_precision, capped, mean_average_precision, mean_recall, recall, share
from steelyard.measures.graded import discount_of
from steelyard.measures.registry import measure
from steelyard.measures.tie_groups import contents, mean_targets_found

_CLARKE_2008 = "Clarke et al., Novelty and diversity in information retrieval evaluation, SIGIR 2008"
_CHAPELLE_2011 = "Chapelle et al., Intent-based diversification of web search results, Information Retrieval, 2011"
_CLARKE_2009 = "Clarke et al., An effectiveness measure for ambiguous and underspecified queries, ICTIR 2009"
_AGRAWAL = "Agrawal et al., Diversifying search results, WSDM 2009"
_ZHAI_2003 = "Zhai, Cohen and Lafferty, Beyond independent relevance, SIGIR 2003"

Discount: TypeAlias = Callable[[Ints], Floats]

over_targets = partial(measure, over_targets=True, bounded="ranks")  # Registers a measure of this family.


def _mean_target_recall(a: Alignment, k: int | None, rel: float) -> Floats:
    return mean_recall(a, k, rel, per="target")


@over_targets(
    "DR",
    aliases=("deduplicated_recall", "deduplicate_recall", "DedupRecall"),
    ideal=1.0,
    bounded="counts",
    expected=_mean_target_recall,
)
def deduplicated_recall(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """De-duplicated recall: documents projected on distinct targets, then recall.

    DR@k = |targets with a document in the first k| / |targets|: R(per=target)@k.

    No target, or an empty list: 0.
    """
    return recall(a, k, rel, per="target")


@over_targets(
    "Diversity",
    aliases=("DiversityCount", "diversity_count"),
    high=np.inf,
    bounded="additive",
    expected=mean_targets_found,
)
def diversity(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Number of distinct targets found in the first k."""
    hit, target, grade = a.hit_targets
    targets = np.unique(target[(grade >= rel) & a.within(k)[hit]])
    return np.bincount(a.targets.query[targets], minlength=a.size).astype(np.float64)


def _chance_of_all(a: Alignment, k: int | None, rel: float) -> Floats:
    """The probability that the first k contain a document for every target."""
    states = contents(a, k, rel)
    needed = a.target_counts(rel)
    complete = (states.targets == needed[states.query]) & (needed[states.query] > 0)
    return states.mean(complete.astype(np.float64), a.size)


@over_targets("AllTargets", aliases=("all_hops", "AllHops"), ideal=1.0, bounded="counts", expected=_chance_of_all)
def all_targets(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Whether every target is found in the first k ('all hops').

    AllTargets@k = 1 if each of the query's targets has a document in the first k, otherwise 0.

    No target: 0.
    """
    needed = a.target_counts(rel)
    return np.where((diversity(a, k, rel) == needed) & (needed > 0), 1.0, 0.0)


@over_targets("NewTargets", aliases=("new_targets",), high=np.inf)
def new_targets(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Sum over ranks of the new targets divided by the rank, over the number of targets.

    NewTargets@k = sum over ranks r up to k of (targets first found at r) / r, / min(|T|, k). A document
    with several new targets gains for each; one without a new target gains nothing. The best value is 1
    if one document has all targets, and above 1 if there are more than k.

    No target, or none found: 0.
    """
    alone, owner = a.by_target(rel)
    return share(sums(owner, 1 / alone.first(alone.within(k)), a.size), capped(a.target_counts(rel), k, cap=True))


@over_targets("alpha_DCG", aliases=("α_DCG",), cutoff="required", cites=_CLARKE_2008)
def alpha_dcg(a: Alignment, k: int, alpha: float = 0.5, rel: float = 1) -> Floats:
    """Discounted gain of the first k, each target gaining less each time it is repeated.

    alpha_DCG@k = sum of gain / log2(rank + 1) over the first k, out of the same sum if every
    document satisfied every target.
    gain = sum of (1 - alpha)^n over the document's targets; n documents above it satisfy the target too.

    No target, or an empty list: 0. ndeval leaves the value at k = 1 undivided.
    """
    return share(_gained(a, k, alpha, rel, _log), _most_possible(a, k, alpha, rel, _log))


@over_targets("alpha_nDCG", aliases=("α_nDCG",), high=np.inf, ideal=1.0, cites=_CLARKE_2008)
def alpha_ndcg(a: Alignment, k: int | None = None, alpha: float = 0.5, rel: float = 1) -> Floats:
    """Discounted gain of the first k, each target gaining less each time it is repeated, over that of the ideal list.

    alpha_nDCG@k = sum of gain / log2(rank + 1) over the first k / the same sum of the ideal list
    gain = sum of (1 - alpha)^n over the document's targets; n documents above it satisfy the target too.
    The ideal list is built greedily, as in ndeval: at each rank the judged document that gains most;
    of equal ones, the one with the largest id. A greedy list need not be the best: the value can exceed 1.

    No target, or an empty list: 0.
    """
    return share(_gained(a, k, alpha, rel, _log), _ideal(a, k, alpha, rel, _log))


@over_targets("ERR_IA", aliases=("intent_aware_ERR",), cutoff="required", cites=_CHAPELLE_2011)
def err_ia(a: Alignment, k: int, alpha: float = 0.5, rel: float = 1) -> Floats:
    """Expected reciprocal rank averaged over targets: a document satisfies each of its targets with probability alpha.

    ERR_IA@k = sum of gain / rank over the first k, out of the same sum if every document satisfied
    every target.
    gain = sum of (1 - alpha)^n over the document's targets; n documents above it satisfy the target too.

    No target, or an empty list: 0. ndeval leaves the value at k = 1 undivided.
    """
    return share(_gained(a, k, alpha, rel, _one_over), _most_possible(a, k, alpha, rel, _one_over))


@over_targets("nERR_IA", aliases=("normalized_intent_aware_ERR",), high=np.inf, ideal=1.0, cites=_CHAPELLE_2011)
def nerr_ia(a: Alignment, k: int | None = None, alpha: float = 0.5, rel: float = 1) -> Floats:
    """Expected reciprocal rank averaged over targets, over that of the ideal list.

    nERR_IA@k = sum of gain / rank over the first k / the same sum of the ideal list
    gain = sum of (1 - alpha)^n over the document's targets; n documents above it satisfy the target too.
    The ideal list is that of alpha_nDCG. A greedy list need not be the best: the value can exceed 1.

    No target, or an empty list: 0.
    """
    return share(_gained(a, k, alpha, rel, _one_over), _ideal(a, k, alpha, rel, _one_over))


@over_targets("NRBP", cutoff="none", cites=_CLARKE_2009)
def nrbp(a: Alignment, alpha: float = 0.5, beta: float = 0.5, rel: float = 1) -> Floats:
    """Novelty- and rank-biased precision: targets found by a user who continues with probability beta.

    NRBP = (1 - (1 - alpha) beta) / |targets| x sum of gain x beta^(rank - 1)
    gain = sum of (1 - alpha)^n over the document's targets; n documents above it satisfy the target too.

    beta: the probability that the user continues, from 0 to 1.
    No target, or an empty list: 0.
    """
    return (1 - (1 - alpha) * beta) * share(_gained(a, None, alpha, rel, _fading(beta)), a.target_counts(rel))


@over_targets("nNRBP", cutoff="none", high=np.inf, ideal=1.0, cites=_CLARKE_2009)
def nnrbp(a: Alignment, alpha: float = 0.5, beta: float = 0.5, rel: float = 1) -> Floats:
    """Novelty- and rank-biased precision over that of the ideal list.

    nNRBP = NRBP / NRBP of the ideal list
    The ideal list is that of alpha_nDCG. A greedy list need not be the best: the value can exceed 1.

    beta: the probability that the user continues, from 0 to 1.
    No target, or an empty list: 0.
    """
    fading = _fading(beta)
    return share(_gained(a, None, alpha, rel, fading), _ideal(a, None, alpha, rel, fading))


def _mean_target_precision(a: Alignment, k: int | None, rel: float) -> Floats:
    return mean_average_precision(a, k, rel, per="target")


@over_targets("AP_IA", aliases=("MAP_IA", "intent_aware_AP"), cites=_AGRAWAL, expected=_mean_target_precision)
def ap_ia(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Average precision of each target, averaged over targets: AP(per=target).

    AP_IA@k = mean over targets of AP@k, with the documents that satisfy the target as the relevant ones.

    No target, or an empty list: 0.
    """
    return average_precision(a, k, rel, per="target")


@over_targets(
    "P_IA", aliases=("intent_aware_P", "Precision_IA"), tail=False, cites=_AGRAWAL, bounded="counts", expected="linear"
)
def p_ia(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Precision of each target, averaged over targets.

    P_IA@k = |pairs of a document in the first k and a target it satisfies| / (k x |targets|)

    Without a cutoff, divided by the number retrieved instead of k. No target, or an empty list: 0.
    """
    hit, _, grade = a.hit_targets
    pairs = sums(a.query[hit], (grade >= rel) * a.within(k)[hit], a.size)
    return share(pairs, a.target_counts(rel) * (a.returned() if k is None else k))


@over_targets(
    "StRecall",
    aliases=("strec", "subtopic_recall", "S_Recall"),
    ideal=1.0,
    cites=_ZHAI_2003,
    bounded="counts",
    expected=_mean_target_recall,
)
def subtopic_recall(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """Share of the targets that a document of the first k satisfies: R(per=target).

    StRecall@k = |targets with a document in the first k| / |targets|

    No target, or an empty list: 0.
    """
    return recall(a, k, rel, per="target")


_log: Discount = partial(discount_of, discount="log2")
_one_over: Discount = partial(discount_of, discount="reciprocal")


def _fading(beta: float) -> Discount:
    _check("beta", beta)
    return lambda rank: np.power(float(beta), rank - 1.0)


def _check(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise MeasureError(f"{name} is {value}; expected a number from 0 to 1, as in {name}=0.5.")


def _gained(a: Alignment, k: int | None, alpha: float, rel: float, discount: Discount) -> Floats:
    """Per query the discounted gain of the first k."""
    _check("alpha", alpha)
    hit, target, grade = a.hit_targets
    pairs = np.flatnonzero((grade >= rel) & a.within(k)[hit])
    pairs = pairs[np.argsort(target[pairs], kind="stable")]
    return sums(a.query[hit[pairs]], _after(target[pairs], alpha) * discount(a.rank[hit[pairs]]), a.size)


def _most_possible(a: Alignment, k: int, alpha: float, rel: float, discount: Discount) -> Floats:
    """Per query the discounted gain of k documents that satisfy every target."""
    ranks = np.arange(1, k + 1)
    return a.target_counts(rel) * float(np.sum(np.power(1.0 - alpha, ranks - 1) * discount(ranks)))


def _ideal(a: Alignment, k: int | None, alpha: float, rel: float, discount: Discount) -> Floats:
    """Per query the discounted gain of the first k of the greedy list of judged documents."""
    pairs = np.flatnonzero(a.targets.grade >= rel)
    target, doc = a.targets.target[pairs], a.targets.doc[pairs]
    query = a.targets.query[target]
    crowded = np.zeros(a.size, dtype=bool)
    crowded[query[np.bincount(doc, minlength=1)[doc] > 1]] = True
    apart = ~crowded[query]
    total = np.zeros(a.size)
    for owner, rank, gain in (
        _one_target_each(query[apart], target[apart], alpha),
        _greedy(query[~apart], _by_id(a, doc[~apart]), target[~apart], alpha, k),
    ):
        inside: Bools = np.ones(len(rank), dtype=bool) if k is None else rank <= k
        total += sums(owner[inside], gain[inside] * discount(rank[inside]), a.size)
    return total


def _one_target_each(query: Ints, target: Ints, alpha: float) -> tuple[Ints, Ints, Floats]:
    """The greedy lists, as (query, rank, gain), if no document satisfies two targets."""
    order = np.lexsort((target, query))
    query, gains = query[order], _after(target[order], alpha)
    order = np.lexsort((-gains, query))
    return query[order], _place(query[order]) + 1, gains[order]


def _greedy(query: Ints, doc: Ints, target: Ints, alpha: float, k: int | None) -> tuple[Ints, Ints, Floats]:
    """The greedy lists, as (query, rank, gain): rank by rank, for all queries with documents left."""
    order = np.lexsort((doc, query))
    query, doc, target = query[order], doc[order], target[order]
    left = np.ones(int(target.max(initial=-1)) + 1)
    queries, ranks, gains = [query[:0]], [query[:0]], [left[:0]]
    rank = 0
    while len(doc) and (k is None or rank < k):
        rank += 1
        docs = np.flatnonzero(_place(doc) == 0)
        owners = query[docs]
        starts = np.flatnonzero(_place(owners) == 0)
        gain = np.add.reduceat(left[target], docs)
        best = np.maximum.reduceat(gain, starts)
        top = gain == np.repeat(best, np.diff(np.append(starts, len(owners))))
        chosen = np.maximum.reduceat(np.where(top, np.arange(len(owners)), -1), starts)
        queries.append(owners[starts])
        ranks.append(np.full(len(starts), rank))
        gains.append(best)
        taken = np.isin(doc, doc[docs[chosen]])
        left[target[taken]] *= 1 - alpha
        query, doc, target = query[~taken], doc[~taken], target[~taken]
    return np.concatenate(queries), np.concatenate(ranks), np.concatenate(gains)


def _by_id(a: Alignment, doc: Ints) -> Ints:
    """The documents numbered in the order of their ids, so that the order of the qrels does not matter."""
    # Equal ids of different queries are not confused: each judged document has its own number.
    ordered = sorted(set(doc.tolist()), key=lambda number: a.doc_ids[number])
    place = {number: rank for rank, number in enumerate(ordered)}
    return np.array([place[number] for number in doc.tolist()], dtype=np.int64)


def _after(group: Ints, alpha: float) -> Floats:
    """(1 - alpha)^n, with n the number of entries of the same group before each. Groups are sorted."""
    return np.power(1.0 - alpha, _place(group))


def _place(group: Ints) -> Ints:
    """The number of entries of the same group before each; groups are sorted."""
    return np.arange(len(group)) - first_of_group(group)
