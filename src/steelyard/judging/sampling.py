"""Sampling: documents drawn for judging with known probabilities; `estimates` has the scores estimated from them.

The documents of a query are divided into two strata by their best rank: the first quarter of the depth, and the
rest. Each is sampled at random without replacement, the second at half the rate of the first, so that documents
at good ranks, which matter most, are drawn most often. More strata would give smaller errors, but fewer documents
in each, and then the errors cannot be estimated well. Documents that are judged already are a stratum of their own
(number 0), drawn with probability 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from steelyard.errors import InputError
from steelyard.judging.candidates import Candidates, Judged, Pairs

SMALLEST_DRAW = 4  # Documents drawn from every stratum at least, so that the jackknife can estimate bias and variance.


@dataclass(frozen=True)
class Design:
    """A stratified sample of the documents of every query.

    strata: for every query its strata, each a list of document ids; the first holds those judged already.
    drawn: for every query the number of documents drawn from each stratum.
    """

    strata: Mapping[str, Sequence[Sequence[str]]]
    drawn: Mapping[str, Sequence[int]]

    def of(self, query: str, doc: str) -> tuple[float, int]:
        """The probability that the document was drawn, and its stratum."""
        stratum = self._stratum[query][doc]
        return self.drawn[query][stratum] / len(self.strata[query][stratum]), stratum

    @cached_property
    def _stratum(self) -> dict[str, dict[str, int]]:
        return {
            query: {doc: number for number, docs in enumerate(strata) for doc in docs}
            for query, strata in self.strata.items()
        }


def draw_queries(queries: Sequence[str], count: int, seed: int) -> tuple[str, ...]:
    """`count` of the queries, drawn at random without replacement, in the order given.

    The draw depends on the query ids and the seed, not on the order of the queries. A larger draw with the same seed
    contains the smaller one, so that a sample can be extended.
    """
    if count > len(queries):
        raise InputError(f"queries={count}, but the runs have {len(queries)} queries; give at most that.")
    drawn = np.random.default_rng([seed, 1]).permutation(len(queries))[:count]
    ordered = sorted(queries)
    chosen = {ordered[place] for place in drawn}
    return tuple(query for query in queries if query in chosen)


def draw_documents(
    found: Candidates, judged: Judged, depth: int, budget: int | None, seed: int
) -> tuple[Design, Pairs]:
    """A stratified sample of `budget` unjudged documents (all by default), and its documents in random order."""
    bounds = sorted({math.ceil(depth / 4), depth})
    strata: dict[str, list[list[str]]] = {}
    for query in found.lists:
        # Documents judged already, then the others by best rank.
        strata[query] = [[] for _ in range(len(bounds) + 1)]
        for doc, ranks in sorted(found.ranks(query).items()):
            place = 0 if doc in judged.get(query, {}) else 1 + int(np.searchsorted(bounds, min(ranks.values())))
            strata[query][place].append(doc)
    sizes = np.array([[len(docs) for docs in of_query[1:]] for of_query in strata.values()], dtype=np.int64)
    counts = allocation(sizes.reshape(len(strata), len(bounds)), budget)
    rng = np.random.default_rng([seed, 2])
    order: Pairs = []
    drawn: dict[str, list[int]] = {}
    for (query, of_query), row in zip(strata.items(), counts.tolist(), strict=True):
        drawn[query] = [len(of_query[0]), *row]
        for docs, count in zip(of_query[1:], row, strict=True):
            order += [(query, docs[place]) for place in rng.choice(len(docs), count, replace=False)]
    return Design(strata, drawn), [order[place] for place in rng.permutation(len(order))]


def allocation(sizes: npt.NDArray[np.int64], budget: int | None) -> npt.NDArray[np.int64]:
    """How many documents to draw from each stratum (rows: queries) so that the sum is the budget.

    The rate halves from stratum to stratum; no rate is above 1, and at least `SMALLEST_DRAW` documents
    are drawn from each.

    >>> allocation(np.array([[10, 20, 40]]), 30).tolist()
    [[10, 10, 10]]
    """
    if budget is None or budget >= sizes.sum():
        return sizes
    least = np.minimum(sizes, SMALLEST_DRAW)
    if budget < least.sum():
        raise InputError(
            f"A sample needs {SMALLEST_DRAW} documents of both strata of every query, {least.sum():,} in all; "
            f"budget={budget:,} is less. Raise the budget, or draw fewer queries with queries=N."
        )
    wanted = sizes * 0.5 ** np.arange(sizes.shape[1])
    low, high = 0.0, 2.0 ** sizes.shape[1]
    for _ in range(60):
        middle = (low + high) / 2.0
        over = np.clip(np.floor(middle * wanted), least, sizes).sum() > budget
        low, high = (low, middle) if over else (middle, high)
    counts = np.clip(np.floor(low * wanted), least, sizes).astype(np.int64)
    missing = np.where(counts < sizes, low * wanted - counts, -np.inf)
    largest = np.argsort(-missing, axis=None, kind="stable")[: budget - int(counts.sum())]
    counts.ravel()[largest] += 1
    return counts
