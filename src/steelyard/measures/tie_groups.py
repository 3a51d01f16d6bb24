"""Groups of tied documents: their ranks, and the probabilities of what their first ranks contain.

All orders of a group are equally likely, groups are independent of each other, and a cutoff falls within at most one
group of a list: the split group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from math import comb
from typing import NamedTuple

import numpy as np

from steelyard.alignment.alignment import Alignment, sums
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.alignment.ranking import group_starts
from steelyard.errors import MeasureError

MOST_STATES = 1 << 16  # The number of different contents of a split group above which a mean is refused.


class OverOrders(Alignment):
    """An alignment in which a hit is in the first k by the share of the orders that put it there, from 0 to 1.

    A measure that is linear in what is in the first k has its mean over all orders as its value.
    """

    def within(self, k: int | None = None, budget: int | None = None) -> Floats:  # type: ignore[override]
        """The probability that each hit is in the first k."""
        assert budget is None, "the number of tokens above a document is not linear"
        return (self.tie_size if k is None else np.clip(k - self.tie_first + 1, 0, self.tie_size)) / self.tie_size


def over_orders(a: Alignment) -> OverOrders:
    """The alignment seen over all orders of tied documents."""
    return OverOrders(**{field.name: getattr(a, field.name) for field in fields(Alignment)})


class Groups(NamedTuple):
    """The groups of equal score that have hits, sorted by query and rank; `of_hit` is the group of each hit.

    `before` is the number of chosen hits in the groups above of the same query, `chosen` that in the group itself,
    and `inside` how many of its ranks are within the cutoff. `start` is its first hit.
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
    """The tie groups of an alignment, with the chosen hits counted."""
    starts = group_starts(a.query, a.tie_first)
    of_hit = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(a.query)))
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


def worth_of_ranks(a: Alignment, k: int | None, worth: Callable[[Ints], Floats]) -> Floats:
    """What the rank of each hit is worth, and over all orders the mean over its group; ranks beyond k: nothing."""
    alone = np.where(a.rank <= (np.inf if k is None else k), worth(a.rank), 0.0)
    if not isinstance(a, OverOrders):
        return alone
    last = a.tie_first + a.tie_size - 1
    within = last if k is None else np.minimum(last, k)
    through = np.concatenate([[0.0], np.cumsum(worth(np.arange(1, int(last.max(initial=0)) + 1)))])
    spread = (through[np.maximum(within, a.tie_first - 1)] - through[a.tie_first - 1]) / a.tie_size
    return np.where(a.tie_size == 1, alone, spread)


def chance_of_none(a: Alignment, chosen: Bools, k: int | None) -> Floats:
    """The probability that no chosen hit of a query is in the first k."""
    g, none = groups_of(a, chosen, k), np.ones(a.size)
    np.multiply.at(none, g.query, row_by_row(partial(chance_of, 0), g.size, g.inside, g.chosen))
    return none


def mean_targets_found(a: Alignment, k: int | None, rel: float) -> Floats:
    """The sum over targets of the probability that a document of the first k satisfies it."""
    by_target, owner = a.by_target(rel)
    everything = np.ones(len(by_target.query), dtype=bool)
    return sums(owner, 1 - chance_of_none(by_target, everything, k), a.size)


def row_by_row(function: Callable[..., float], *columns: Ints) -> Floats:
    """A function of whole numbers, row by row, computed once for equal rows."""
    rows, which = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    values = np.array([function(*row) for row in rows.tolist()], dtype=np.float64)
    return values[which.ravel()] if len(values) else np.zeros(0)


def chance_of(found: int, size: int, inside: int, chosen: int) -> float:
    """The probability that `found` of the chosen documents are among the first `inside` ranks of a group."""
    return comb(chosen, found) * comb(size - chosen, inside - found) / comb(size, inside)


def mean_first(first: int, size: int, inside: int, chosen: int) -> float:
    """The mean of 1 / the rank of the first chosen member of a group, 0 if it is not inside."""
    offset = np.arange(inside)
    others = (size - chosen - offset[:-1]) / (size - offset[:-1])
    passed = np.cumprod(np.concatenate([[1.0], others])[:inside])
    return float(np.sum(passed * chosen / (size - offset) / (first + offset)))


def mean_precisions(first: Ints, size: Ints, inside: Ints, chosen: Ints, before: Ints) -> Floats:
    """The mean sum of precision at the relevant ranks inside a group.

    A rank has a relevant document with probability chosen / size; each rank of the group above it then has one with
    probability (chosen - 1) / (size - 1). The sum over the ranks is a difference of harmonic numbers.
    """
    last = first + inside - 1
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(last.max(initial=0)) + 1))])
    others = (chosen - 1) / np.maximum(1, size - 1)
    spread = others * inside + (before + 1 - others * first) * (harmonic[last] - harmonic[first - 1])
    precisions = np.where(inside == 1, (before + 1) / first, spread)
    return np.where((chosen > 0) & (inside > 0), chosen / size * precisions, 0.0)


class States(NamedTuple):
    """The possible contents of the first k of each query: their probability, documents and targets."""

    query: Ints
    chance: Floats
    documents: Floats
    targets: Floats

    def mean(self, values: Floats, size: int) -> Floats:
        """The mean of a value of each state, query by query."""
        return sums(self.query, self.chance * values, size)


def contents(a: Alignment, k: int | None, rel: float) -> States:
    """Every number of relevant documents and of targets that the first k of a query can contain."""
    relevant = a.grade >= rel
    g = groups_of(a, relevant, k)
    split = g.split & (g.chosen > 0)
    sure = (g.inside == g.size)[g.of_hit]
    hit, target, grade = a.hit_targets
    satisfies = grade >= rel
    met = np.unique(target[satisfies & sure[hit]])
    documents = a.per_query(relevant & sure)
    targets = sums(a.targets.query[met], np.ones(len(met)), a.size)
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
                rows.append((query, chance, documents[query] + taken, targets[query] + gained))
    certain = np.setdiff1d(np.arange(a.size), g.query[split])
    columns = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return States(
        query=np.concatenate([certain, columns[:, 0].astype(np.int64)]),
        chance=np.concatenate([np.ones(len(certain)), columns[:, 1]]),
        documents=np.concatenate([documents[certain], columns[:, 2]]),
        targets=np.concatenate([targets[certain], columns[:, 3]]),
    )


def _choices(documents: list[frozenset[int]], a: Alignment, query: int) -> dict[tuple[int, int], int]:
    """The ways in which n documents satisfy m targets; those that share no target are counted separately."""
    total = Counter({(0, 0): 1})
    for family in _families(documents):
        reached = Counter[tuple[int, frozenset[int]]]({(0, frozenset()): 1})
        for needs in family:
            for (taken, met), ways in list(reached.items()):
                reached[taken + 1, met | needs] += ways
            refuse_many_states(len(reached), a, query)
        joined = Counter[tuple[int, int]]()
        for (taken, gained), ways in total.items():
            for (added, met), times in reached.items():
                joined[taken + added, gained + len(met)] += ways * times
        total = joined
    return total


def _families(documents: list[frozenset[int]]) -> list[list[frozenset[int]]]:
    """The documents divided into parts that share no target."""
    families: list[tuple[frozenset[int], list[frozenset[int]]]] = []
    for needs in documents:
        touching = [family for family in families if family[0] & needs]
        families = [family for family in families if not family[0] & needs]
        needed = needs.union(*(family[0] for family in touching))
        families.append((needed, [needs, *(one for family in touching for one in family[1])]))
    return [members for _, members in families]


def refuse_tied_budget(a: Alignment, relevant: Bools, budget: int) -> None:
    """An error if a relevant document is tied: what fits in a budget of tokens depends on the order."""
    tied = np.flatnonzero(relevant & (a.tie_size > 1))
    if len(tied):
        query = a.queries[int(a.query[tied[0]])]
        raise MeasureError(
            f"ties=expected is not defined with budget={budget}: query {query!r} has a relevant document "
            "that ties with others, and the number of tokens above it depends on their order. "
            "Choose ties=docid-desc, docid-asc or stable, or leave out the budget."
        )


def refuse_many_states(count: int, a: Alignment, query: int) -> None:
    """An error if a mean would run over too many different contents of a group."""
    if count > MOST_STATES:
        raise MeasureError(
            f"ties=expected: the cutoff falls among tied documents of query {a.queries[query]!r} that can be "
            "ordered in too many different ways to average this measure over. "
            "Choose ties=docid-desc, docid-asc or stable, or a measure that counts documents."
        )
