"""The interval join: which spans overlap which chunks, without looking at every pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from steelyard.alignment.hits import Ints

BLOCK = 4_000_000
"""Candidate pairs that are in memory at once."""


@dataclass(frozen=True)
class Intervals:
    """Spans of documents, end exclusive; documents are numbered."""

    doc: Ints
    start: Ints
    end: Ints


def overlaps(spans: Intervals, chunks: Intervals) -> tuple[Ints, Ints, Ints]:
    """Every span and chunk that share a character, as (span, chunk, shared), by span and then chunk.

    Chunks are sorted by where they start, in classes of similar length: a chunk of length L to 2 L can
    overlap a span only if it starts less than 2 L before it. So two binary searches per span and
    class give candidates of which only a part near the boundary is not a pair.

    >>> one = np.array([0])
    >>> book = Intervals(np.array([0, 0]), np.array([0, 50]), np.array([50, 100]))
    >>> [part.tolist() for part in overlaps(Intervals(one, one + 40, one + 70), book)]
    [[0, 0], [0, 1], [10, 20]]
    """
    stride = 1 + max((int(part.max()) for part in (spans.end, chunks.end) if len(part)), default=0)
    starts, ends = chunks.doc * stride + chunks.start, chunks.doc * stride + chunks.end
    low, high = spans.doc * stride + spans.start, spans.doc * stride + spans.end
    length = ends - starts
    size_class = np.frexp(np.maximum(length, 1).astype(np.float64))[1]
    found: list[tuple[Ints, Ints, Ints]] = []
    for power in np.unique(size_class[length > 0]).tolist():
        members = np.flatnonzero((size_class == power) & (length > 0))
        members = members[np.argsort(starts[members], kind="stable")]
        sorted_starts = starts[members]
        first = np.searchsorted(sorted_starts, low - 2**power, side="right")
        last = np.searchsorted(sorted_starts, high, side="left")
        for span, place in ranges(first, last):
            chunk = members[place]
            shared = np.minimum(high[span], ends[chunk]) - np.maximum(low[span], starts[chunk])
            overlap = shared > 0
            found.append((span[overlap], chunk[overlap], shared[overlap]))
    empty = np.zeros(0, dtype=np.int64)
    span, chunk, shared = (
        np.concatenate([empty, *parts]) for parts in (zip(*found, strict=True) if found else ((), (), ()))
    )
    order = np.lexsort((chunk, span))
    return span[order], chunk[order], shared[order]


def ranges(first: Ints, last: Ints) -> Iterator[tuple[Ints, Ints]]:
    """The numbers from first up to last of every row, as (row, number), in blocks of bounded size."""
    counts = np.maximum(0, last - first)
    through = np.cumsum(counts)
    row = 0
    while row < len(counts):
        done = int(through[row - 1]) if row else 0
        stop = max(row + 1, int(np.searchsorted(through, done + BLOCK, side="right")))
        rows = np.repeat(np.arange(row, stop), counts[row:stop])
        if len(rows):
            offset = np.arange(len(rows)) - np.repeat(through[row:stop] - counts[row:stop] - done, counts[row:stop])
            yield rows, first[rows] + offset
        row = stop


def equal_codes(searched: Ints, codes: Ints) -> tuple[Ints, Ints]:
    """Every pair of positions with the same code, as (position in searched, position in codes)."""
    order = np.argsort(codes, kind="stable")
    sorted_codes = codes[order]
    first = np.searchsorted(sorted_codes, searched, side="left")
    last = np.searchsorted(sorted_codes, searched, side="right")
    parts = [(row, order[place]) for row, place in ranges(first, last)]
    empty = np.zeros(0, dtype=np.int64)
    left, right = (np.concatenate([empty, *side]) for side in (zip(*parts, strict=True) if parts else ((), ())))
    return left, right
