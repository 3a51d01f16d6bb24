"""How much of the gold spans the retrieved chunks cover, and how much of the retrieved text is gold."""

from __future__ import annotations

from typing import Literal

import numpy as np

from steelyard.alignment.alignment import Alignment, MissingDataError
from steelyard.alignment.hits import Bools, Floats
from steelyard.alignment.ranges import RetrievedRanges
from steelyard.measures.binary import share
from steelyard.measures.registry import measure

_CITES = "Smith and Troynikov 2024, Evaluating chunking strategies for retrieval"


def _retrieved(a: Alignment, k: int | None, budget: int | None) -> tuple[RetrievedRanges, Bools]:
    """The ranges of the lists, and which of them are in the first k and within a budget of tokens."""
    ranges = a.ranges
    if ranges is None:
        raise MissingDataError("ranges kept" if a.judged_only else "ranges")
    inside: Bools = np.ones(len(ranges.rank), dtype=bool) if k is None else ranges.rank <= k
    if budget is not None:
        if ranges.through is None:
            raise MissingDataError("tokens")
        inside = inside & (ranges.through <= budget)
    return ranges, inside


def _where_gold(ranges: RetrievedRanges, values: Floats) -> Floats:
    """The values of queries with a gold span; the measure does not apply to the others."""
    return np.where(ranges.gold_length > 0, values, np.nan)


@measure("SpanR", bounded="fixed", cites=_CITES)
def span_recall(
    a: Alignment, k: int | None = None, budget: int | None = None, gold: Literal["once", "each"] = "once"
) -> Floats:
    """Span recall: the share of the gold text that the first k chunks cover.

    SpanR@k = characters of the gold spans in the first k chunks / characters of the gold spans.
    A character counts once, however many chunks contain it. No rule decides how much of a span a chunk must contain.
    A query whose evidence has no span is left out. Needs qrels made from spans: `Evidence.judge(chunks)`.

    budget: the list is cut after this many tokens of context; a chunk must fit completely.
    gold=once: gold spans that overlap are counted once in the denominator.
    gold=each: their lengths are added up, as in Chroma's code.
    """
    ranges, inside = _retrieved(a, k, budget)
    whole = ranges.gold_length if gold == "once" else ranges.gold_lengths_added
    return _where_gold(ranges, share(ranges.shared_length(inside), whole))


@measure("SpanP", tail=False, bounded="fixed", cites=_CITES)
def span_precision(a: Alignment, k: int | None = None, budget: int | None = None) -> Floats:
    """Span precision: the share of the retrieved text that is gold.

    SpanP@k = characters of the gold spans in the first k chunks / the lengths of the first k chunks, added up.
    Text that two chunks share is read twice, and counts twice in the denominator. Nothing retrieved: 0.
    A query whose evidence has no span is left out. Needs qrels made from spans: `Evidence.judge(chunks)`.

    budget: the list is cut after this many tokens of context; a chunk must fit completely.
    """
    ranges, inside = _retrieved(a, k, budget)
    return _where_gold(ranges, share(ranges.shared_length(inside), ranges.retrieved_length(inside)))


@measure("SpanIoU", tail=False, bounded="fixed", cites=_CITES)
def span_iou(a: Alignment, k: int | None = None, budget: int | None = None) -> Floats:
    """Span intersection over union: gold text that was retrieved, over gold or retrieved text.

    SpanIoU@k = characters of the gold spans in the first k chunks
                / (the lengths of the first k chunks, added up + characters of the gold spans that are in none of them).
    A query whose evidence has no span is left out. Needs qrels made from spans: `Evidence.judge(chunks)`.

    budget: the list is cut after this many tokens of context; a chunk must fit completely.
    """
    ranges, inside = _retrieved(a, k, budget)
    shared = ranges.shared_length(inside)
    return _where_gold(ranges, share(shared, ranges.retrieved_length(inside) + ranges.gold_length - shared))
