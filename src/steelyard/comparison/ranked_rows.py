"""A run's rows in the order that was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.alignment.hits import Ordering
from steelyard.runs import Run

if TYPE_CHECKING:
    import polars as pl


def ranked_rows(run: Run, ordering: Ordering) -> pl.DataFrame:
    """The rows of a run in the order that was measured: query_id, doc_id, rank, score."""
    import polars as pl

    frame = run.frame
    if not run.ordered and (ordering.ties in ("docid-asc", "stable") or ordering.single):
        score = pl.col("score").cast(pl.Float32) if ordering.single else pl.col("score")
        keys = [] if ordering.ties == "stable" else [pl.col("doc_id")]
        rising = ordering.ties == "docid-asc"
        first = pl.int_range(pl.len()).min().over("query_id")
        frame = run.table.with_columns(_query=first).sort(
            "_query",
            score,
            *keys,
            descending=[False, True, *([not rising] if keys else [])],
            maintain_order=True,
        )
    elif ordering.duplicates != "collapse":
        return frame
    if ordering.duplicates == "collapse":
        frame = frame.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    return frame.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id"))
