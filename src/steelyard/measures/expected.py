"""The measures averaged over all orders of tied documents (ties=expected)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import comb, prod
from typing import Literal

import numpy as np

from steelyard.alignment.alignment import Alignment, sums
from steelyard.alignment.hits import Bools, Floats
from steelyard.errors import MeasureError
from steelyard.measures import binary, graded, user_models
from steelyard.measures.binary import capped, f_of, share
from steelyard.measures.compute import values
from steelyard.measures.counts import weighed
from steelyard.measures.grammar import parse
from steelyard.measures.registry import GainTable, Weights, expected
from steelyard.measures.tie_groups import (
    Groups,
    chance_inside,
    chance_of,
    chance_of_none,
    contents,
    each,
    groups_of,
    mean_first,
    mean_over_ranks,
    mean_precisions,
    refuse_many_states,
)


@expected("P")
def precision(
    a: Alignment, k: int | None = None, rel: float = 1, denominator: Literal["k", "retrieved"] = "k"
) -> Floats:
    """The mean number of relevant documents in the first k, over the same denominator."""
    inside = num_rel_ret(a, k, rel)
    return inside / k if denominator == "k" and k is not None else share(inside, a.returned(k))


@expected("R")
def recall(
    a: Alignment,
    k: int | None = None,
    rel: float = 1,
    per: Literal["document", "target"] = "document",
    cap: bool = False,
    budget: int | None = None,
) -> Floats:
    """The mean number of relevant documents, or of targets, in the first k, over the same denominator."""
    if budget is not None:
        _refuse_tied_budget(a, a.grade >= rel, budget)
        return binary.recall(a, k, rel, per, cap, budget)
    if per == "target":
        inside, whole = diversity(a, k, rel), a.target_counts(rel)
    else:
        inside, whole = num_rel_ret(a, k, rel), a.relevant(rel)
    return share(inside, capped(whole, k, cap))


@expected("F")
def f_measure(
    a: Alignment,
    k: int | None = None,
    beta: float = 1,
    rel: float = 1,
    denominator: Literal["k", "retrieved"] = "k",
    per: Literal["document", "target"] = "document",
    cap: bool = False,
) -> Floats:
    """Per document F is a multiple of the number found, so that the mean of F is F of the means.

    Per target it is averaged over the possible contents of the first ranks of the split group.
    """
    if per == "document":
        return f_of(precision(a, k, rel, denominator), recall(a, k, rel, per, cap), beta)
    states = contents(a, k, rel)
    whole = capped(a.target_counts(rel), k, cap)
    out_of = np.full(a.size, float(k)) if denominator == "k" and k is not None else a.returned(k)
    p = share(states.documents, out_of[states.query])
    r = share(states.targets, whole[states.query])
    return states.mean(f_of(p, r, beta), a.size)


@expected("Hit")
def hit(a: Alignment, k: int | None = None, rel: float = 1, budget: int | None = None) -> Floats:
    """The probability that a relevant document is in the first k."""
    relevant = a.grade >= rel
    if budget is not None:
        _refuse_tied_budget(a, relevant, budget)
        return binary.hit(a, k, rel, budget)
    return 1 - chance_of_none(a, relevant, k)


@expected("RR")
def reciprocal_rank(
    a: Alignment, k: int | None = None, rel: float = 1, per: Literal["document", "target"] = "document"
) -> Floats:
    """The mean of 1 / the first relevant rank: it lies in the first group with a relevant document."""
    if per == "target":
        alone, owner = a.by_target(rel)
        return a.mean_over_targets(reciprocal_rank(alone, k, rel), owner)
    g = groups_of(a, a.grade >= rel, k)
    leading = (g.chosen > 0) & (g.before == 0)
    values = each(mean_first, g.first[leading], g.size[leading], g.inside[leading], g.chosen[leading])
    result = np.zeros(a.size)
    result[g.query[leading]] = values
    return result


@expected("AP")
def average_precision(
    a: Alignment,
    k: int | None = None,
    rel: float = 1,
    denominator: Literal["relevant", "min", "found"] = "relevant",
    per: Literal["document", "target"] = "document",
) -> Floats:
    """The mean of the precisions at relevant ranks; over the number found, averaged given that number."""
    if per == "target":
        alone, owner = a.by_target(rel)
        return a.mean_over_targets(average_precision(alone, k, rel, denominator), owner)
    g = groups_of(a, a.grade >= rel, k)
    if denominator == "found":
        return _precision_over_found(g, a.size)
    total = sums(g.query, mean_precisions(g.first, g.size, g.inside, g.chosen, g.before), a.size)
    whole = a.relevant(rel)
    return share(total, np.minimum(whole, k) if denominator == "min" and k is not None else whole)


@expected("DCG")
def dcg(
    a: Alignment,
    k: int | None = None,
    gain: Literal["linear", "exp", "binary"] | GainTable = "linear",
    discount: graded.Discount = "log2",
    rel: float | None = None,
) -> Floats:
    """The sum of each document's gain times the mean discount of its group's ranks."""
    gains = graded.gain_of(a.grade, gain, rel)
    return a.per_query(gains * mean_over_ranks(a, k, lambda rank: graded.discount_of(rank, discount)))


@expected("nDCG")
def ndcg(
    a: Alignment,
    k: int | None = None,
    gain: Literal["linear", "exp", "binary"] | GainTable = "linear",
    discount: graded.Discount = "log2",
    ideal: Literal["judged", "all", "retrieved", "found"] = "judged",
    per: Literal["document", "target"] = "document",
    rel: float | None = None,
) -> Floats:
    """The mean DCG over that of the ideal list; if the ideal list depends on what is found, averaged over that."""
    result = share(dcg(a, k, gain, discount, rel), graded.ideal_dcg(a, k, gain, discount, ideal, per, rel))
    if ideal == "found" and k is not None:
        gains = graded.gain_of(a.grade, gain, rel)
        for query, value in _over_found_ideals(a, k, gains, discount):
            result[query] = value
    return result


@expected("DR")
def deduplicated_recall(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """As recall per target."""
    return recall(a, k, rel, per="target")


@expected("StRecall")
def subtopic_recall(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """As recall per target."""
    return recall(a, k, rel, per="target")


@expected("AP_IA")
def ap_ia(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """As AP per target."""
    return average_precision(a, k, rel, per="target")


@expected("P_IA")
def p_ia(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """The mean number of pairs of a document in the first k and a target, over the same denominator."""
    hit, _, grade = a.hit_targets
    pairs = sums(a.query[hit], (grade >= rel) * chance_inside(a, k)[hit], a.size)
    return share(pairs, a.target_counts(rel) * (a.returned() if k is None else k))


@expected("Diversity")
def diversity(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """The sum over targets of the probability that a document of the first k satisfies it."""
    alone, owner = a.by_target(rel)
    everything = np.ones(len(alone.query), dtype=bool)
    return sums(owner, 1 - chance_of_none(alone, everything, k), a.size)


@expected("AllTargets")
def all_targets(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """The probability that the first k contain a document for every target."""
    states = contents(a, k, rel)
    needed = a.target_counts(rel)
    complete = (states.targets == needed[states.query]) & (needed[states.query] > 0)
    return states.mean(complete.astype(np.float64), a.size)


@expected("NumRelRet")
def num_rel_ret(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """The mean number of relevant documents in the first k."""
    return a.per_query((a.grade >= rel) * chance_inside(a, k))


@expected("Found")
def found(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """As NumRelRet."""
    return num_rel_ret(a, k, rel)


@expected("Judged")
def judged(a: Alignment, k: int | None = None) -> Floats:
    """The mean number of judged documents in the first k, over the distinct documents there."""
    return share(a.per_query(chance_inside(a, k)), a.different(k))


@expected("Unjudged")
def unjudged(
    a: Alignment, k: int | None = None, denominator: Literal["retrieved", "k"] = "retrieved"
) -> Floats:
    """The mean number of documents without a judgment in the first k, over the same denominator."""
    blank = a.different(k) - a.per_query(chance_inside(a, k))
    return blank / k if denominator == "k" and k is not None else share(blank, a.different(k))


@expected("Confusion")
def confusion(
    a: Alignment, k: int | None = None, denominator: Literal["retrieved", "distractors"] = "retrieved"
) -> Floats:
    """The mean number of distractors in the first k, over the same denominator."""
    inside = a.per_query((a.grade < 0) * chance_inside(a, k))
    if denominator == "retrieved":
        return share(inside, a.returned(k))
    return share(inside, a.judged_per_query(a.judged.grade < 0))


@expected("RBP")
def rank_biased_precision(
    a: Alignment,
    k: int | None = None,
    p: float = 0.8,
    rel: float = 1,
    gain: Literal["binary", "linear", "grade"] = "binary",
) -> Floats:
    """The sum of each document's gain times the mean weight of its group's ranks."""
    weights = mean_over_ranks(a, k, lambda rank: user_models.rbp_weights(rank, p))
    return a.per_query(user_models.rbp_gains(a, rel, gain) * weights)


@expected("RBPResidual")
def rank_biased_residual(a: Alignment, k: int | None = None, p: float = 0.8) -> Floats:
    """1 - the mean weight of the judged documents - the weight of the repeats."""
    weights = mean_over_ranks(a, k, lambda rank: user_models.rbp_weights(rank, p))
    return np.maximum(0.0, 1 - a.per_query(weights) - user_models.repeats_weight(a, k, p))


@expected("Composite")
def composite(a: Alignment, weights: Weights = ()) -> Floats:
    """The composite of the means, as it is linear."""
    parts = [(parse(text), weight) for text, weight in weights]
    return weighed(
        [(part.definition.better, values(part, a, expected=True), weight) for part, weight in parts]
    )


def _precision_over_found(g: Groups, size: int) -> Floats:
    """The mean of the sum of precisions over the number found."""
    some = g.chosen > 0
    whole = some & (g.inside == g.size)
    above = np.where(whole, mean_precisions(g.first, g.size, g.inside, g.chosen, g.before), 0.0)
    total = sums(g.query, above, size)
    result = share(total, sums(g.query[whole], g.chosen[whole], size))
    split = some & g.split
    most = np.minimum(g.chosen[split], g.inside[split])
    of = np.repeat(np.flatnonzero(split), most + 1)
    taken = np.arange(len(of)) - np.repeat(np.cumsum(most + 1) - most - 1, most + 1)
    chance = each(chance_of, taken, g.size[of], g.inside[of], g.chosen[of])
    here = mean_precisions(g.first[of], g.inside[of], g.inside[of], taken, g.before[of])
    over_found = share(total[g.query[of]] + here, (g.before[of] + taken).astype(np.float64))
    result[g.query[split]] = 0.0
    np.add.at(result, g.query[of], chance * over_found)
    return result


def _over_found_ideals(
    a: Alignment, k: int, gains: Floats, discount: graded.Discount
) -> Iterator[tuple[int, float]]:
    """The mean nDCG of each query whose list is cut within a group, over the gains that can be inside."""
    g = groups_of(a, np.ones(len(a.query), dtype=bool), k)
    discounts = graded.discount_of(np.arange(1, k + 1), discount)
    worth = gains * mean_over_ranks(a, k, lambda rank: graded.discount_of(rank, discount))
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
            ideal = float(np.sum(best * discounts[: len(best)]))
            if ideal != 0:
                mean += ways / comb(size, inside) * (surely + a_place * float(here.sum())) / ideal
        yield query, mean


def _refuse_tied_budget(a: Alignment, relevant: Bools, budget: int) -> None:
    tied = np.flatnonzero(relevant & (a.tie_size > 1))
    if len(tied):
        query = a.queries[int(a.query[tied[0]])]
        raise MeasureError(
            f"ties=expected is not defined with budget={budget}: query {query!r} has a relevant document "
            "that ties with others, and the number of tokens above it depends on their order. "
            "Choose ties=docid-desc, docid-asc or stable, or leave out the budget."
        )
