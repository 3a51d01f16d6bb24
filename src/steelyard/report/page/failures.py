"""How each run fails on each query: named, so that queries can be filtered by it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Ints
from steelyard.comparison.result import Comparison

UNANSWERED, MISSED, LOW, DISTRACTED, REPEATED, UNJUDGED, NOTHING, PARTLY = (1 << bit for bit in range(8))
"""Bits of a failure: the scripts of the page read the same ones."""

DEFAULT_CUTOFF = 10


@dataclass(frozen=True)
class Look:
    """A run joined with its judgments: its failures by query, and the rank of its first relevant document."""

    alignment: Alignment
    failures: Ints
    first: Ints


def looks_of(comparison: Comparison) -> list[Look]:
    """A look at every run of a comparison, in its order; none where it was made from scores alone."""
    source = comparison.source
    if source is None:
        return []
    cutoff = low_cutoff(comparison)
    return [look(source.alignments[name], cutoff) for name in comparison.runs]


def low_cutoff(comparison: Comparison) -> int:
    """Below which rank a relevant document is ranked low: the cutoff of the first measure that has one."""
    board = comparison.boards[0]
    if board.k is not None:
        return board.k
    cutoffs = [c.measure.cutoff for c in board.columns if c.measure is not None and c.measure.cutoff]
    whole = [int(cutoff) for cutoff in cutoffs if cutoff >= 1]
    return whole[0] if whole else DEFAULT_CUTOFF


def look(a: Alignment, cutoff: int) -> Look:
    """Name the failures of one run.

    Missed: no relevant document in the whole list. Low: the first one stands below the cutoff.
    Partly: some of the relevant ones are not within the cutoff. Distracted: a distractor stands
    above the first relevant one. Repeated: a document comes again within the cutoff. Unjudged:
    the first document was never judged.
    """
    relevant, distractor = a.grade > 0, a.grade < 0
    wanted = a.judged_per_query(a.judged.grade > 0)
    first = a.first(relevant)
    found = a.per_query(relevant & (a.rank <= cutoff))
    judged_top = np.zeros(a.size, dtype=bool)
    judged_top[a.query[a.rank == 1]] = True
    again = np.zeros(a.size, dtype=bool)
    again[a.repeats.query[a.repeats.rank <= cutoff]] = True
    silent, barren = a.retrieved == 0, wanted == 0
    missed = np.isinf(first) & ~silent & ~barren
    failures = (
        UNANSWERED * silent
        | MISSED * missed
        | LOW * (np.isfinite(first) & (first > cutoff))
        | DISTRACTED * (a.first(distractor) < np.minimum(first, cutoff + 1))
        | REPEATED * again
        | UNJUDGED * (~judged_top & ~silent)
        | NOTHING * barren
        | PARTLY * ((found > 0) & (found < wanted))
    )
    rank = np.where(np.isfinite(first), first, 0)
    return Look(a, failures.astype(np.int64), np.minimum(rank, 65535).astype(np.int64))
