"""Gradings of unjudged documents: which documents they are, and what measures become once they are graded.

A grading gives a grade to every unjudged document of a query. The functions here build the alignment
that a grading makes and evaluate a measure over many gradings at once: each grading of a query is one
query of a larger alignment, so that the measure's own code is what computes every value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.alignment.alignment import Alignment, Judged, Targets, starts_of
from steelyard.alignment.hits import Bools, Floats, Ints, Repeats
from steelyard.measures.compute import values
from steelyard.measures.grammar import Measure

ABSENT = 1 << 40  # The rank of a document that is not in a list.
WORK = 1 << 25  # About how many documents all gradings of one call may have; every query has an equal part of it.
LEAST_WORK = 1 << 12  # How many documents the gradings of one query may have, however many queries there are.
BLOCK = 1 << 20  # How many documents are graded at a time.

MOST_WHOLE_LEVELS = 100
"""The highest grade up to which all whole numbers are taken as levels, used in the qrels or not."""

Grade: TypeAlias = Callable[[Ints, Ints], Floats]
"""The grade of each document (its number in `Unjudged`) in each numbered grading of its query."""


@dataclass(frozen=True, eq=False, repr=False)
class Unjudged:
    """The unjudged documents of each query, one entry per document, sorted by query.

    `ranks` has one array per run: the rank of each document in that run's list, ABSENT where it is not in it.
    """

    query: Ints
    ranks: tuple[Ints, ...]
    size: int

    @cached_property
    def starts(self) -> Ints:
        """Where the documents of each query start; one more entry, at the end, than there are queries."""
        return starts_of(self.query, self.size)

    @property
    def counts(self) -> Ints:
        """How many unjudged documents each query has."""
        return np.diff(self.starts)

    @cached_property
    def place(self) -> Ints:
        """The place of each document among those of its query, 0 first."""
        return np.arange(len(self.query)) - self.starts[self.query]

    def only(self, kept: Bools) -> Unjudged:
        """Some of the documents."""
        return Unjudged(self.query[kept], tuple(rank[kept] for rank in self.ranks), self.size)

    def of_run(self, number: int) -> Unjudged:
        """The same documents with the ranks of one run, in the order of these ranks; absent ones last."""
        order = np.lexsort((self.ranks[number], self.query))
        return Unjudged(self.query[order], (self.ranks[number][order],), self.size)

    def per_query(self, chosen: Bools) -> Ints:
        """How many chosen documents each query has."""
        return np.bincount(self.query[chosen], minlength=self.size)


def unjudged(a: Alignment) -> Unjudged:
    """The unjudged documents of each list: ranks that neither a judged document nor a repeat has."""
    starts = np.concatenate([[0], np.cumsum(a.retrieved)])
    free = np.ones(int(starts[-1]), dtype=bool)
    free[starts[a.query] + a.rank - 1] = False
    if a.repeats.held:
        free[starts[a.repeats.query] + a.repeats.rank - 1] = False
    query = np.repeat(np.arange(a.size), a.retrieved)[free]
    return Unjudged(query, (np.flatnonzero(free) - starts[query] + 1,), a.size)


def in_first(rank: Ints, k: int | float | None) -> Bools:
    """Which ranks are among the first k of a list; without k, which are in the list at all."""
    return rank < ABSENT if k is None else rank <= k


def highest_judged(a: Alignment) -> float:
    """The highest grade in the qrels; 0 where none is above it."""
    highest = float(a.judged.grade.max(initial=0.0)) if a.judged.highest is None else a.judged.highest
    return 0.0 if isnan(highest) else max(highest, 0.0)


def grade_levels(a: Alignment) -> Floats:
    """The grades that an unjudged document may have, in ascending order: from 0 to the highest grade in the qrels.

    They are the whole numbers and the grades used in the qrels; only the latter where some grade is not a
    whole number or the highest is above 100. 0 is always one of them.
    """
    top = highest_judged(a)
    used = np.append(a.judged.grade[a.judged.grade > 0], [0.0, top])
    whole = bool(np.all(used == np.round(used))) and top <= MOST_WHOLE_LEVELS
    return np.unique(np.append(used, np.arange(top + 1)) if whole else used)


def is_fixed(measure: Measure) -> bool:
    """Whether no grading changes a measure."""
    return is_fixed(measure.inner) if measure.name == "Counted" else measure.definition.bounded == "fixed"


def reads_zeros(measure: Measure) -> bool:
    """Whether a measure needs to know which documents are graded 0 rather than unjudged."""
    given = measure.parameters
    if measure.name == "Counted" and given["rel"] > 0:
        return given["unjudged"] != "keep" or reads_zeros(measure.inner)
    return is_fixed(measure) or zero_counts(measure)


def zero_counts(measure: Measure) -> bool:
    """Whether a document graded 0 may give another value than one without a judgment."""
    given = measure.parameters
    table, rel, lowest = given.get("gain"), given.get("rel"), given.get("min_rel")
    worth = dict(table).get(0, 0) if isinstance(table, tuple) else 0
    gains = worth != 0 or (rel is not None and rel <= 0) or (lowest is not None and lowest < 0)
    return bool(measure.definition.zeros or gains)


def extremes(
    measure: Measure, runs: Sequence[Alignment], docs: Unjudged, counts: Ints, grade: Grade
) -> tuple[Floats, Floats, Bools]:
    """The lowest and the highest value of a measure, or of its difference between two runs, over the given gradings.

    NaN if no grading gives a value. The last array is true if some grading leaves the query without a value. `counts`
    is the number of gradings of each query, and `grade` what they are. `runs` and `docs.ranks` are in the same order.
    """
    low, high = np.full(docs.size, np.inf), np.full(docs.size, -np.inf)
    undefined = np.zeros(docs.size, dtype=bool)
    for query, number in _blocks(counts, _costs(runs, docs)):
        virtual, doc = _rows(docs.starts, query)
        given = grade(doc, number[virtual])
        kept = np.ones(len(doc), dtype=bool) if zero_counts(measure) else given != 0
        virtual, doc, given = virtual[kept], doc[kept], given[kept]
        sides = [
            _value(measure, graded(a, query, virtual, rank[doc], given), a, query)
            for a, rank in zip(runs, docs.ranks, strict=True)
        ]
        value = sides[0] if len(sides) == 1 else sides[0] - sides[1]
        there = ~np.isnan(value)
        np.minimum.at(low, query[there], value[there])
        np.maximum.at(high, query[there], value[there])
        undefined[query[~there]] = True
    none = low == np.inf
    return np.where(none, np.nan, low), np.where(none, np.nan, high), undefined


def affordable(runs: Sequence[Alignment], docs: Unjudged, counts: Floats) -> Bools:
    """Whether the gradings of each query (how many is given) can be evaluated within its part of WORK."""
    return counts * _costs(runs, docs) <= max(LEAST_WORK, WORK // max(1, docs.size))


def graded(a: Alignment, query: Ints, virtual: Ints, rank: Ints, grade: Floats) -> Alignment:
    """The alignment with one query per entry of `query` (a query of `a`), some unjudged documents graded.

    The document that is graded in query `virtual` of the result has the rank and the grade given; at rank ABSENT it is
    judged and not in the list. Each document graded above 0 is its own target, and ties are not known.
    """
    hit_of, hit = _rows(a.hit_starts, query)
    judged_starts = starts_of(a.judged.query, a.size)
    judged_of, judged = _rows(judged_starts, query)
    repeat_of, repeat = _rows(starts_of(a.repeats.query, a.size), query)
    shift = starts_of(judged_of, len(query))[:-1] - judged_starts[query]
    listed = np.flatnonzero(rank < ABSENT)
    owner = np.concatenate([hit_of, virtual[listed]])
    ranks = np.concatenate([a.rank[hit], rank[listed]])
    docs = np.concatenate([a.doc[hit] + shift[hit_of], len(judged) + listed])
    order = np.argsort(owner * (int(ranks.max(initial=0)) + 1) + ranks, kind="stable")
    grades = np.concatenate([a.judged.grade[judged], grade])
    repeats = Repeats(repeat_of, a.repeats.rank[repeat], a.repeats.held)
    graded_docs = Judged(np.concatenate([judged_of, virtual]), grades, highest_judged(a))
    return _untied(a, query, owner[order], ranks[order], docs[order], graded_docs, repeats)


def graded_draws(
    runs: Sequence[Alignment], docs: Unjudged, numbers: NDArray[np.uint8], levels: Floats, zeros: bool
) -> list[Alignment]:
    """The alignments of runs with the same qrels in which the documents `docs` have drawn grades.

    `numbers` (draws x documents) are places in `levels`, the grades. Query d x size + q of a result is query q in draw
    d: what `graded` makes of all queries, once per draw. The places of the documents are the same in all draws, so
    that nothing is sorted per draw, and the runs share the judgments with what is computed from them.
    zeros: whether documents graded 0 are kept.
    """
    bases = [a if zeros else a.without_zeros() for a in runs]
    judged, draws, size = bases[0].judged, len(numbers), docs.size
    grades = np.unique(np.concatenate([levels, judged.grade, [0.0]]))
    small = np.min_scalar_type(len(grades))
    drawn = np.searchsorted(grades, levels).astype(small).take(numbers)
    nothing = np.searchsorted(grades, 0.0)

    def placed(query: Ints, rank: Ints, grade: Floats, of: Ints) -> tuple[Ints, Ints, Ints, NDArray[np.uint8]]:
        """Known documents and those of `of`, by query and rank, once per draw: draw, which one, query, level."""
        owner = np.concatenate([query, docs.query[of]])
        order = np.lexsort((rank, owner))
        known_levels = np.broadcast_to(np.searchsorted(grades, grade).astype(small), (draws, len(grade)))
        which = np.concatenate([known_levels, drawn.take(of, axis=1)], axis=1).take(order, axis=1)
        kept = np.ones(which.shape, dtype=bool) if zeros else which != nothing
        place = np.flatnonzero(kept)
        draw = np.repeat(np.arange(draws), np.count_nonzero(kept, axis=1))
        at = order.take(place - draw * len(order))
        return draw, at, draw * size + owner.take(at), which.ravel().take(place)

    every = np.arange(len(docs.query))
    width = len(judged.query) + len(every)
    draw, at, owner, level = placed(judged.query, np.zeros(width, dtype=np.int64), judged.grade, every)
    number = np.empty(draws * width, dtype=np.int64)
    number[draw * width + at] = np.arange(len(at))
    shared = Judged(owner, grades.take(level), highest_judged(runs[0]))
    query = np.tile(np.arange(size), draws)
    aligned = []
    for a, ranks in zip(bases, docs.ranks, strict=True):
        listed = np.flatnonzero(ranks < ABSENT)
        rank = np.concatenate([a.rank, ranks[listed]])
        draw, at, owner, _ = placed(a.query, rank, a.grade, listed)
        rank, document = rank.take(at), np.concatenate([a.doc, len(judged.query) + listed]).take(at)
        repeats = np.arange(draws)[:, None] * size + a.repeats.query
        repeated = Repeats(repeats.ravel(), np.tile(a.repeats.rank, draws), a.repeats.held)
        aligned.append(_untied(a, query, owner, rank, number.take(draw * width + document), shared, repeated))
    return aligned


def alone(measure: Measure, a: Alignment, query: Ints, rank: Ints, grade: float) -> Floats:
    """The values of lists as long as those of the given queries in which one document is judged, and no other is."""
    if grade == 0 and not zero_counts(measure):
        return values(measure, _one_each(a, np.arange(a.size), np.full(a.size, ABSENT), 0.0))[query]
    return values(measure, _one_each(a, query, rank, grade))


def _one_each(a: Alignment, query: Ints, rank: Ints, grade: float) -> Alignment:
    """One query per entry of `query`, with one judged document; as `graded` without judgments, and faster."""
    doc = np.flatnonzero(rank < ABSENT)
    number, nothing = np.arange(len(query)), np.zeros(0, dtype=np.int64)
    repeats = Repeats(nothing, nothing, a.repeats.held)
    judged = Judged(number, np.full(len(query), grade), highest_judged(a))
    return _untied(a, query, doc, rank[doc], doc, judged, repeats)


def _untied(
    a: Alignment, query: Ints, owner: Ints, rank: Ints, doc: Ints, judged: Judged, repeats: Repeats
) -> Alignment:
    """The alignment with these queries of `a`, the hits and the judgments given, and no ties."""
    return Alignment(
        queries=(),
        retrieved=a.retrieved[query],
        answered=a.answered[query],
        top_score=a.top_score[query],
        query=owner,
        rank=rank,
        grade=judged.grade[doc],
        doc=doc,
        tie_first=rank,
        tie_size=np.ones_like(rank),
        judged=judged,
        targets=judged.once("own targets", lambda: _own_targets(judged)),
        repeats=repeats,
        doc_ids=[""] * len(judged.grade),
        judged_only=a.judged_only,
    )


def _own_targets(judged: Judged) -> Targets:
    """The targets if each document graded above 0 is its own."""
    relevant = np.flatnonzero(judged.grade > 0)
    numbers, unnamed = np.arange(len(relevant)), [""] * len(relevant)
    return Targets(relevant, numbers, judged.grade[relevant], judged.query[relevant], unnamed)


def _costs(runs: Sequence[Alignment], docs: Unjudged) -> Ints:
    """How many documents one grading of each query has, at most."""
    judged = runs[0].judged_per_query(np.ones(len(runs[0].judged.query)))
    return (1 + judged + sum(np.diff(a.hit_starts) + docs.counts for a in runs)).astype(np.int64)


def _blocks(counts: Ints, costs: Ints) -> Iterator[tuple[Ints, Ints]]:
    """All gradings as (query, number of the grading), in blocks that fit in memory."""
    query = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
    edges = np.flatnonzero(np.diff(np.cumsum(costs[query]) // BLOCK)) + 1
    yield from zip(np.split(query, edges), np.split(number, edges), strict=True)


def _rows(starts: Ints, query: Ints) -> tuple[Ints, Ints]:
    """The entries of each query in turn: (place of the query in `query`, number of the entry)."""
    lengths = np.diff(starts)[query]
    owner = np.repeat(np.arange(len(query)), lengths)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, starts[query[owner]] + within


def _value(measure: Measure, a: Alignment, before: Alignment, query: Ints) -> Floats:
    """The values of a measure on a graded alignment; those of parts that no grading changes are from before it."""
    if is_fixed(measure):
        return values(measure, before)[query]
    if measure.name == "Composite":
        from steelyard.measures.counts import weighed

        parts = ((part.definition.better, _value(part, a, before, query), weight) for part, weight in measure.parts)
        return weighed(list(parts))
    return values(measure, a)
