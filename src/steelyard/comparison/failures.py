"""How each run fails on each query: nothing relevant retrieved, ranked low, a distractor above, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Ints
from steelyard.comparison.data import ComparisonData

UNANSWERED, MISSED, LOW, DISTRACTED, REPEATED, UNJUDGED, NOTHING, PARTLY = (1 << bit for bit in range(8))
"""Bits of a failure, as in the scripts of the page (data.js)."""

DEFAULT_CUTOFF = 10


@dataclass(frozen=True)
class RunFailures:
    """A run joined with its qrels, by query: its failures, the rank of its first relevant document (0: none), the
    number of relevant documents within the cutoff and of all; the lowest relevant grade (None: any above 0)."""

    alignment: Alignment
    failures: Ints
    first: Ints
    found: Ints
    relevant: Ints
    level: float | None = None


def run_failures(comparison: ComparisonData) -> list[RunFailures]:
    """The failures of every run of a comparison, in its order; empty where it was made from scores alone."""
    source = comparison.source
    if source is None:
        return []
    cutoff, options = low_cutoff(comparison), comparison.options
    level = None if options is None else options.rel
    if level is None and comparison.dialect == "steelyard":
        level = source.qrels.relevant_from
    return [failures_of(source.alignments[name], cutoff, level) for name in comparison.runs]


def low_cutoff(comparison: ComparisonData) -> int:
    """The rank below which a relevant document is ranked low: the cutoff of the first measure that has one."""
    scores = comparison.score_tables[0]
    if scores.k is not None:
        return scores.k
    cutoffs = [c.measure.cutoff for c in scores.columns if c.measure is not None and c.measure.cutoff]
    return next((int(cutoff) for cutoff in cutoffs if cutoff >= 1), DEFAULT_CUTOFF)


def failures_of(a: Alignment, cutoff: int, level: float | None = None) -> RunFailures:
    """The failures of one run; `level` is the lowest relevant grade.

    Unanswered: the list is empty. Missed: no relevant document in the whole list. Low: the first one is below the
    cutoff. Partly: fewer are within the cutoff than could be. Distracted: a distractor is above the first one.
    Repeated: a document is, within the cutoff. Unjudged: the first document is. Nothing: no document is relevant.
    """
    distractor = a.grade < 0
    relevant, judged = ((g > 0) & (g >= (level or 0)) for g in (a.grade, a.judged.grade))
    total = a.judged_per_query(judged)
    first = a.first(relevant)
    retrieved = a.per_query(relevant & (a.rank <= cutoff))
    queries = np.arange(a.size)
    judged_top = np.isin(queries, a.query[a.rank == 1])
    repeated = np.isin(queries, a.repeats.query[a.repeats.rank <= cutoff])
    empty, nothing = a.retrieved == 0, total == 0
    failures = (
        UNANSWERED * empty
        | MISSED * (np.isinf(first) & ~empty & ~nothing)
        | LOW * (np.isfinite(first) & (first > cutoff))
        | DISTRACTED * ((a.first(distractor) < np.minimum(first, cutoff + 1)) & ~nothing)
        | REPEATED * repeated
        | UNJUDGED * (~judged_top & ~empty)
        | NOTHING * nothing
        | PARTLY * ((retrieved > 0) & (retrieved < np.minimum(total, cutoff)))
    )
    rank = np.where(np.isfinite(first), first, 0)
    first_rank, hits, relevant_total = (np.minimum(array, 65535).astype(np.int64) for array in (rank, retrieved, total))
    return RunFailures(a, failures.astype(np.int64), first_rank, hits, relevant_total, level)


def places_of(failures: Sequence[RunFailures], names: Sequence[str]) -> Ints:
    """The positions of queries in the failures."""
    place = {query: number for number, query in enumerate(failures[0].alignment.queries)}
    return np.array([place[name] for name in names], dtype=np.int64)
