"""Groups of tied documents: where they stand, and what their first ranks may hold.

Every order of a group is as likely as any other, groups do not depend on each other, and a cutoff
falls within one group of a list at most: the split group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import comb, prod
from typing import Any, Literal

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.errors import MeasureError
from steelyard.measures import binary, graded, user_models
from steelyard.measures.binary import capped, f_of, share
from steelyard.measures.counts import weighed
from steelyard.measures.grammar import parse
from steelyard.measures.registry import GainTable, Weights, expected

MOST_STATES = 1 << 16
"""How many different contents of a split group are averaged over before a mean is refused."""


@dataclass(frozen=True)
class Groups:
    """The groups of equal score that hold hits, sorted by query and rank; `of_hit` is each hit's group.

    `before` is how many chosen hits stand in the groups above of the same query, `chosen` how many in the
    group itself, and `inside` how many of its ranks are within the cutoff. `start` is its first hit.
    """

    of_hit: Ints
    start: Ints
    query: Ints
    first: Ints
    size: Ints
    inside: Ints
    chosen: Ints
    before: Ints

    @property
    def split(self) -> Bools:
        """The groups that the cutoff falls into."""
        return (self.inside > 0) & (self.inside < self.size)


def groups_of(a: Alignment, chosen: Bools, k: int | None) -> Groups:
    """The tie groups of an alignment, the chosen hits counted."""
    new = np.ones(len(a.query), dtype=bool)
    new[1:] = (a.query[1:] != a.query[:-1]) | (a.tie_first[1:] != a.tie_first[:-1])
    starts = np.flatnonzero(new)
    of_hit = np.cumsum(new) - 1
    query, first, size = a.query[starts], a.tie_first[starts], a.tie_size[starts]
    counts = np.bincount(of_hit[chosen], minlength=len(starts)).astype(np.int64)
    above = np.cumsum(counts) - counts
    return Groups(
        of_hit=of_hit,
        start=starts,
        query=query,
        first=first,
        size=size,
        inside=size if k is None else np.clip(k - first + 1, 0, size),
        chosen=counts,
        before=above - above[np.searchsorted(query, query)],
    )


def chance_inside(a: Alignment, k: int | None) -> Floats:
    """The chance that each hit is in the first k."""
    if k is None:
        return np.ones(len(a.query))
    return np.clip(k - a.tie_first + 1, 0, a.tie_size) / a.tie_size


def mean_over_ranks(a: Alignment, k: int | None, worth: Callable[[Ints], Floats]) -> Floats:
    """The mean of what a rank is worth over the ranks of each hit's group; nothing beyond k."""
    last = a.tie_first + a.tie_size - 1
    within = last if k is None else np.minimum(last, k)
    through = np.concatenate([[0.0], np.cumsum(worth(np.arange(1, int(last.max(initial=0)) + 1)))])
    spread = (through[np.maximum(within, a.tie_first - 1)] - through[a.tie_first - 1]) / a.tie_size
    alone = np.where(a.within(k), worth(a.rank), 0.0)
    return np.where(a.tie_size == 1, alone, spread)


def chance_of_none(a: Alignment, chosen: Bools, k: int | None) -> Floats:
    """The chance that no chosen hit of a query is in the first k."""
    g = groups_of(a, chosen, k)
    held = g.chosen > 0
    none = np.ones(a.size)
    np.multiply.at(none, g.query[held], each(_chance_of_zero, g.size[held], g.inside[held], g.chosen[held]))
    return none


def each(function: Callable[..., float], *columns: Ints) -> Floats:
    """A function of whole numbers, row by row, worked out once for rows that are equal."""
    rows, which = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    values = np.array([function(*row) for row in rows.tolist()], dtype=np.float64)
    return values[which.ravel()] if len(values) else np.zeros(0)


def chance_of(found: int, size: int, inside: int, chosen: int) -> float:
    """The chance that so many of the chosen are among the first ranks of a group."""
    return comb(chosen, found) * comb(size - chosen, inside - found) / comb(size, inside)


def _chance_of_zero(size: int, inside: int, chosen: int) -> float:
    return chance_of(0, size, inside, chosen)


def mean_first(first: int, size: int, inside: int, chosen: int) -> float:
    """The mean of 1 / the rank of the first chosen member of a group, 0 where it is not inside."""
    offset = np.arange(inside)
    others = (size - chosen - offset[:-1]) / (size - offset[:-1])
    passed = np.cumprod(np.concatenate([[1.0], others])[:inside])
    return float(np.sum(passed * chosen / (size - offset) / (first + offset)))


def mean_precisions(first: Ints, size: Ints, inside: Ints, chosen: Ints, before: Ints) -> Floats:
    """The mean sum of precision at the relevant ranks inside a group.

    A rank holds a relevant document with chance chosen / size; each rank of the group above it then
    does with chance (chosen - 1) / (size - 1). Over the ranks that adds up to harmonic numbers.
    """
    last = first + inside - 1
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(last.max(initial=0)) + 1))])
    others = (chosen - 1) / np.maximum(1, size - 1)
    spread = others * inside + (before + 1 - others * first) * (harmonic[last] - harmonic[first - 1])
    precisions = np.where(inside == 1, (before + 1) / first, spread)
    return np.where((chosen > 0) & (inside > 0), chosen / size * precisions, 0.0)


@dataclass(frozen=True)
class States:
    """What the first k of each query can hold: with what chance, how many documents and targets."""

    query: Ints
    chance: Floats
    documents: Floats
    targets: Floats

    def mean(self, values: Floats, size: int) -> Floats:
        """The mean of a value of each state, query by query."""
        return sums(self.query, self.chance * values, size)


def contents(a: Alignment, k: int | None, rel: float) -> States:
    """Every number of relevant documents and of targets that the first k of a query can hold."""
    relevant = a.grade >= rel
    g = groups_of(a, relevant, k)
    split = g.split & (g.chosen > 0)
    sure = (g.inside == g.size)[g.of_hit]
    hit, target, grade = a.hit_targets
    satisfies = grade >= rel
    met = np.unique(target[satisfies & sure[hit]])
    documents = a.per_query(relevant & sure)
    found = sums(a.targets.query[met], np.ones(len(met)), a.size)
    open_pairs = satisfies & split[g.of_hit[hit]] & ~np.isin(target, met)
    needs: dict[int, list[int]] = {}
    for member, need in zip(hit[open_pairs].tolist(), target[open_pairs].tolist(), strict=True):
        needs.setdefault(member, []).append(need)
    rows: list[tuple[int, float, float, float]] = []
    for number in np.flatnonzero(split).tolist():
        query, size, inside = int(g.query[number]), int(g.size[number]), int(g.inside[number])
        stop = g.start[number + 1] if number + 1 < len(g.start) else len(g.of_hit)
        members = [hit for hit in range(int(g.start[number]), int(stop)) if relevant[hit]]
        choices = _choices([frozenset(needs.get(member, ())) for member in members], a, query)
        for (taken, gained), ways in choices.items():
            blank = inside - taken
            if 0 <= blank <= size - len(members):
                chance = ways * comb(size - len(members), blank) / comb(size, inside)
                rows.append((query, chance, documents[query] + taken, found[query] + gained))
    certain = np.setdiff1d(np.arange(a.size), g.query[split])
    columns = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return States(
        query=np.concatenate([certain, columns[:, 0].astype(np.int64)]),
        chance=np.concatenate([np.ones(len(certain)), columns[:, 1]]),
        documents=np.concatenate([documents[certain], columns[:, 2]]),
        targets=np.concatenate([found[certain], columns[:, 3]]),
    )


def _choices(documents: list[frozenset[int]], a: Alignment, query: int) -> dict[tuple[int, int], int]:
    """In how many ways so many of the documents reach so many targets.

    Documents that share no target, even through others, are counted apart and put together after.
    """
    total = {(0, 0): 1}
    for family in _families(documents):
        reached: dict[tuple[int, frozenset[int]], int] = {(0, frozenset()): 1}
        for needs in family:
            for (taken, met), ways in list(reached.items()):
                more = (taken + 1, met | needs)
                reached[more] = reached.get(more, 0) + ways
            refuse_many_states(len(reached), a, query)
        joined: dict[tuple[int, int], int] = {}
        for (taken, gained), ways in total.items():
            for (added, met), times in reached.items():
                both = (taken + added, gained + len(met))
                joined[both] = joined.get(both, 0) + ways * times
        total = joined
    return total


def _families(documents: list[frozenset[int]]) -> list[list[frozenset[int]]]:
    """The documents parted so that those in different parts share no target."""
    families: list[tuple[frozenset[int], list[frozenset[int]]]] = []
    for needs in documents:
        touching = [family for family in families if family[0] & needs]
        families = [family for family in families if not family[0] & needs]
        needed = needs.union(*(family[0] for family in touching))
        families.append((needed, [needs, *(one for family in touching for one in family[1])]))
    return [members for _, members in families]


def refuse_many_states(count: int, a: Alignment, query: int) -> None:
    """An error where a mean would run over too many different contents of a group."""
    if count > MOST_STATES:
        raise MeasureError(
            f"ties=expected: the cutoff falls among tied documents of query {a.queries[query]!r} that can be "
            "ordered in too many different ways to average this measure over. "
            "Choose ties=docid-desc, docid-asc or stable, or a measure that counts documents."
        )


def sums(query: Ints, values: Any, size: int) -> Floats:
    """The sum of a number over the entries of each query."""
    return np.bincount(query, weights=values, minlength=size).astype(np.float64)


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

    Per target it is averaged over what the split group's first ranks can hold.
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
    """The chance that a relevant document is in the first k."""
    relevant = a.grade >= rel
    if budget is not None:
        _refuse_tied_budget(a, relevant, budget)
        return binary.hit(a, k, rel, budget)
    return 1 - chance_of_none(a, relevant, k)


@expected("RR")
def reciprocal_rank(
    a: Alignment, k: int | None = None, rel: float = 1, per: Literal["document", "target"] = "document"
) -> Floats:
    """The mean of 1 / the first relevant rank: it lies in the first group that holds a relevant document."""
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
    discount: Literal["log2", "reciprocal"] = "log2",
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
    discount: Literal["log2", "reciprocal"] = "log2",
    ideal: Literal["judged", "all", "retrieved", "found"] = "judged",
    per: Literal["document", "target"] = "document",
    rel: float | None = None,
) -> Floats:
    """The mean DCG over the ideal's; where the ideal list holds what was found, averaged over that."""
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
    """The sum over targets of the chance that a document of the first k satisfies it."""
    alone, owner = a.by_target(rel)
    everything = np.ones(len(alone.query), dtype=bool)
    return sums(owner, 1 - chance_of_none(alone, everything, k), a.size)


@expected("AllTargets")
def all_targets(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
    """The chance that the first k hold a document for every target."""
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
    """The mean number of judged documents in the first k, over the different documents there."""
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
    """1 less the mean weight of the judged documents, and the weight of the repeats."""
    weights = mean_over_ranks(a, k, lambda rank: user_models.rbp_weights(rank, p))
    return np.maximum(0.0, 1 - a.per_query(weights) - user_models.repeats_weight(a, k, p))


@expected("Composite")
def composite(a: Alignment, weights: Weights = ()) -> Floats:
    """The composite of the means, as it is linear."""
    from steelyard.measures.compute import values

    parts = [(parse(text), weight) for text, weight in weights]
    return weighed(
        [(part.definition.better, values(part, a, expected=True), weight) for part, weight in parts]
    )


def _precision_over_found(g: Groups, size: int) -> Floats:
    """The mean of the sum of precisions over the number found."""
    held = g.chosen > 0
    whole = held & (g.inside == g.size)
    above = np.where(whole, mean_precisions(g.first, g.size, g.inside, g.chosen, g.before), 0.0)
    total = sums(g.query, above, size)
    result = share(total, sums(g.query[whole], g.chosen[whole], size))
    split = held & g.split
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
    a: Alignment, k: int, gains: Floats, discount: Literal["log2", "reciprocal"]
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
        kinds, held = np.unique(gains[start:stop], return_counts=True)
        counts = held.tolist()
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
            "that ties with others, and how many tokens stand above it depends on their order. "
            "Choose ties=docid-desc, docid-asc or stable, or leave out the budget."
        )
