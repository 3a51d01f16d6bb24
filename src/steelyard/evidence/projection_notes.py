"""What a reader should know of evidence on a chunking, in sentences."""

from __future__ import annotations

import polars as pl

from steelyard.evidence.alternatives import shortened
from steelyard.wording import counted, worded


def target_notes(
    split: pl.DataFrame,
    unfound: pl.DataFrame,
    lost: pl.DataFrame,
    overlapping: int,
    chunks: int,
    overlap: str,
    with_documents: bool,
) -> list[str]:
    """What became of the targets: spans cut, facts and targets in no chunk; and chunks that overlap."""
    notes = []
    if split.height:
        notes.append(
            f"{counted(split.height, 'span is split by chunk borders; it counts', 'spans are split by chunk borders; they count')} "
            f"by overlap={overlap}"
        )
    nowhere = lost.filter(~pl.col("in_document").fill_null(False))
    if nowhere.height:
        where = "no document" if with_documents else "no chunk"
        what = "this fact" if nowhere.height == 1 else f"these {nowhere.height:,} facts"
        shown = [
            f"{shortened(fact)!r} (query {query!r})"
            for query, fact in nowhere.select("query_id", "fact").head(10).iter_rows()
        ]
        more = f", and {nowhere.height - 10:,} more" if nowhere.height > 10 else ""
        notes.append(f"{what} cannot be found by any retriever, being in {where}: {', '.join(shown)}{more}")
    if lost.height > nowhere.height:
        notes.append(
            f"{counted(lost.height - nowhere.height, 'fact is', 'facts are')} in a document and in no "
            "chunk: a chunk border "
            f"cuts {worded(lost.height - nowhere.height, 'it', 'them')}"
        )
    if unfound.height:
        notes.append(
            f"{counted(unfound.height, 'target is satisfied by no chunk; it stays', 'targets are satisfied by no chunk; they stay')} "
            f"in the judgments, under a stand-in, and {worded(unfound.height, 'counts', 'count')} as not "
            "found"
        )
    if overlapping:
        notes.append(
            f"{overlapping:,} of {counted(chunks, 'chunk')} {worded(overlapping, 'overlaps', 'overlap')} "
            "one before; a target found twice counts once"
        )
    return notes


def distractor_notes(known: int, lost: int, both: int) -> list[str]:
    """What became of the distractors: how many are in no chunk, and in one that is relevant too."""
    notes = []
    if lost:
        notes.append(
            f"{lost:,} of {counted(known, 'distractor')} {worded(lost, 'is', 'are')} in no chunk "
            "and cannot mislead"
        )
    if both:
        notes.append(
            f"{counted(both, 'chunk holds', 'chunks hold')} a distractor and what the same query needs; "
            f"{worded(both, 'it counts', 'they count')} as relevant"
        )
    return notes
