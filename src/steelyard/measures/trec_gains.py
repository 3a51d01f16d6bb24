"""trec_eval's own measures of graded relevance: points of nDCG averaged, and normalised gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from steelyard.alignment.alignment import Alignment, starts_of
from steelyard.alignment.hits import Floats, Ints
from steelyard.measures.binary import share
from steelyard.measures.graded import discount_of, gain_of
from steelyard.measures.registry import GainTable, measure


@dataclass(frozen=True)
class _Ideal:
    """The documents of each query that gain something, best first."""

    query: Ints
    rank: Ints
    gain: Floats
    starts: Ints

    @property
    def lengths(self) -> Ints:
        """How many documents of each query gain something."""
        return np.diff(self.starts)

    def drops(self) -> tuple[Ints, Ints]:
        """Where the gain drops: the query, and how many documents gain at least so much."""
        ends = np.ones(len(self.query), dtype=bool)
        ends[:-1] = (self.query[1:] != self.query[:-1]) | (self.gain[1:] != self.gain[:-1])
        return self.query[ends], self.rank[ends]

    def through(self, values: Floats, query: Ints, rank: Ints) -> Floats:
        """The sum of a value over the first `rank` of a query's ideal list."""
        totals = np.append(_running(values, self.rank - 1), 0.0)
        reached = np.minimum(rank, self.lengths[query])
        return totals[np.where(reached > 0, self.starts[query] + reached - 1, len(values))]


@measure(
    "Rndcg",
    cutoff="none",
    ideal=1.0,
    tail=False,
    cites="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 20(4), 2002",
)
def ndcg_at_levels(
    a: Alignment, gain: Literal["linear", "exp", "binary"] | GainTable = "linear", rel: float = 1
) -> Floats:
    """nDCG averaged over the depths at which the ideal list's gain drops.

    Rndcg = mean of nDCG@c over those depths c (the number of documents that gain at least so much),
    and over the whole list where more than one document came back past the last of them.

    gain=linear: the grade itself; nothing for grades below 0.
    gain=exp: 2^grade - 1; nothing for grades below 0.
    gain=binary: 1 for every grade above 0.
    gain={grade: gain}: as the table says; grades it leaves out gain themselves.
    rel: a query with no grade this high scores 0; gains do not depend on it.
    Nothing relevant, nothing to gain, or an empty list: 0.
    """
    ideal = _ideal(a, gain)
    worth = ideal.gain * discount_of(ideal.rank, "log2")
    dcg = _running(gain_of(a.grade, gain, None) * discount_of(a.rank, "log2"), _places(a))
    query, depth = ideal.drops()
    points = share(_found_through(a, dcg, query, depth), ideal.through(worth, query, depth))
    past = np.flatnonzero((ideal.lengths > 0) & (a.retrieved > ideal.lengths + 1))
    whole = share(
        _found_through(a, dcg, past, a.retrieved[past]), ideal.through(worth, past, ideal.lengths[past])
    )
    owner = np.append(query, past)
    total = np.bincount(owner, weights=np.append(points, whole), minlength=a.size)
    mean = share(total.astype(np.float64), np.bincount(owner, minlength=a.size).astype(np.float64))
    return np.where(a.relevant(rel) > 0, mean, 0.0)


@measure(
    "nDCGRel",
    aliases=("ndcg_rel",),
    cutoff="none",
    ideal=1.0,
    cites="Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 20(4), 2002",
)
def ndcg_at_relevant(a: Alignment, gain: Literal["linear", "exp", "binary"] | GainTable = "linear") -> Floats:
    """nDCG averaged over the ranks of the documents that gain something.

    nDCGRel = mean over those documents of nDCG@rank; for one not found, nDCG of the whole list.

    gain=linear: the grade itself; nothing for grades below 0.
    gain=exp: 2^grade - 1; nothing for grades below 0.
    gain=binary: 1 for every grade above 0.
    gain={grade: gain}: as the table says; grades it leaves out gain themselves.
    Nothing to gain, or an empty list: 0.
    """
    gains = gain_of(a.grade, gain, None)
    ideal = _ideal(a, gain)
    worth = ideal.gain * discount_of(ideal.rank, "log2")
    dcg = _running(gains * discount_of(a.rank, "log2"), _places(a))
    points = np.where(gains > 0, share(dcg, ideal.through(worth, a.query, a.rank)), 0.0)
    everyone = np.arange(a.size)
    whole = share(
        _found_through(a, dcg, everyone, a.retrieved), ideal.through(worth, everyone, ideal.lengths)
    )
    total = a.per_query(points) + (ideal.lengths - a.per_query(gains > 0)) * whole
    return np.maximum(share(total, ideal.lengths.astype(np.float64)), 0.0)


@measure("G", aliases=("normalized_gain",), cutoff="none")
def normalised_gain(a: Alignment, gain: Literal["linear", "exp", "binary"] | GainTable = "linear") -> Floats:
    """Gain of what was found, each document discounted by how far the list is behind the ideal.

    G = sum over the documents found of gain / log2(2 + cost - got), over the ideal list's whole gain;
    got is the gain down to the document, cost the ideal list's down to its rank, no rank costing less than 1.

    gain=linear: the grade itself; nothing for grades below 0.
    gain=exp: 2^grade - 1; nothing for grades below 0.
    gain=binary: 1 for every grade above 0.
    gain={grade: gain}: as the table says; grades it leaves out gain themselves.
    Nothing to gain, or an empty list: 0. A perfect list scores 1 where no gain is between 0 and 1.
    """
    gains = gain_of(a.grade, gain, None)
    ideal = _ideal(a, gain)
    got = _running(gains, _places(a))
    cost = ideal.through(np.maximum(ideal.gain, 1.0), a.query, a.rank)
    cost += np.maximum(a.rank - ideal.lengths[a.query], 0)
    everyone = np.arange(a.size)
    best = ideal.through(ideal.gain, everyone, ideal.lengths)
    return share(a.per_query(gains / np.log2(2 + cost - got)), best)


def _ideal(a: Alignment, gain: Literal["linear", "exp", "binary"] | GainTable) -> _Ideal:
    query, rank, best = a.best_first(gain_of(a.judged.grade, gain, None))
    useful = best > 0
    query = query[useful]
    starts = starts_of(query, a.size)
    return _Ideal(query, rank[useful], best[useful], starts)


def _places(a: Alignment) -> Ints:
    """Each hit's place among its query's hits, 0 first."""
    return np.arange(len(a.query)) - a.hit_starts[a.query]


def _running(values: Floats, place: Ints) -> Floats:
    """The sum of a value over each entry and those of its query above it.

    Adds what stands 1, 2, 4 ... places above: no sum ever crosses from one query to another, so
    nothing is lost to rounding however many queries there are.
    """
    total, step, deepest = values, 1, int(place.max(initial=0))
    while step <= deepest:
        total = total + np.where(place >= step, np.append(np.zeros(step), total[:-step]), 0.0)
        step *= 2
    return total


def _found_through(a: Alignment, running: Floats, query: Ints, rank: Ints) -> Floats:
    """A running value of the hits, read at a rank of a query; 0 above its first hit."""
    depth = int(max(a.rank.max(initial=0), rank.max(initial=0))) + 1
    last = np.searchsorted(a.query * depth + a.rank, query * depth + rank, side="right") - 1
    return np.append(running, 0.0)[np.where(last >= a.hit_starts[query], last, len(running))]
