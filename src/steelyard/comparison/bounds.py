"""Bounds of the difference of two runs over gradings of the unjudged documents that are in either list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats, Ints
from steelyard.errors import MeasureError
from steelyard.measures.bounds import Bounds, Case, bounds_of
from steelyard.measures.gradings import ABSENT, Unjudged, grade_levels, unjudged
from steelyard.measures.grammar import Measure


@dataclass(frozen=True, eq=False, repr=False)
class SharedUnjudged:
    """The unjudged documents that are in the lists of both runs: the query and the rank in each list."""

    query: Ints
    rank_a: Ints
    rank_b: Ints


def pair_bounds(
    measure: Measure, a: Alignment, b: Alignment, shared: SharedUnjudged, levels: Sequence[float] | Floats | None = None
) -> Bounds:
    """The bounds of the difference a - b of a measure for each query of two runs with the same qrels."""
    return bounds_of(Case(measure, [a, b], unjudged_in_either(a, b, shared), grade_levels(a, levels)))


def unjudged_in_either(a: Alignment, b: Alignment, shared: SharedUnjudged) -> Unjudged:
    """The unjudged documents that are in one list or in both, with their rank in each."""
    if a.size != b.size:
        raise MeasureError("the two runs have different queries; align both with the same qrels.")
    in_a, in_b = unjudged(a), unjudged(b)
    place_a = _places(in_a, shared.query, shared.rank_a)
    place_b = _places(in_b, shared.query, shared.rank_b)
    rank_b = np.full(len(in_a.query), ABSENT)
    rank_b[place_a] = shared.rank_b
    only_b = np.ones(len(in_b.query), dtype=bool)
    only_b[place_b] = False
    query = np.concatenate([in_a.query, in_b.query[only_b]])
    order = np.argsort(query, kind="stable")
    ranks_a = np.concatenate([in_a.ranks[0], np.full(int(only_b.sum()), ABSENT)])
    ranks_b = np.concatenate([rank_b, in_b.ranks[0][only_b]])
    return Unjudged(query[order], (ranks_a[order], ranks_b[order]), a.size)


def _places(docs: Unjudged, query: Ints, rank: Ints) -> Ints:
    """The numbers of the unjudged documents at some ranks; it is an error where there is none."""
    step = int(max(docs.ranks[0].max(initial=0), rank.max(initial=0))) + 1
    keys, wanted = docs.query * step + docs.ranks[0], query * step + rank
    place = np.searchsorted(keys, wanted)
    if np.any(np.append(keys, -1)[np.minimum(place, len(keys))] != wanted):
        raise MeasureError("a shared document has a rank at which its list has no unjudged document.")
    return place
