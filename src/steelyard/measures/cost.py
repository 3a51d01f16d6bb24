"""Measures of what an answer costs, and of knowing when not to answer."""

from __future__ import annotations

from typing import Literal

import numpy as np

from steelyard.alignment.alignment import Alignment, MissingDataError
from steelyard.alignment.hits import Floats
from steelyard.measures.registry import measure


@measure(
    "Latency", cutoff="none", summary="stat", better="less", high=np.inf, empty=np.nan, needs_relevant=False
)
def latency(a: Alignment, stat: Literal["mean", "p50", "p95", "p99", "max"] = "mean") -> Floats:
    """Seconds a query took, from the run's own timings. Less is better.

    stat=mean: queries are summed up by their mean.
    stat=p50: by their median.
    stat=p95: by the time that 95 % of them stayed under.
    stat=p99: by the time that 99 % of them stayed under.
    stat=max: by the slowest.
    A query without a timing is left out.
    """
    if a.seconds is None:
        raise MissingDataError("seconds")
    return a.seconds


@measure("Abstain", cutoff="none", empty=np.nan, needs_relevant=False, needs="unanswerable")
def abstain(a: Alignment, threshold: float | None = None, rel: float = 1) -> Floats:
    """Whether nothing was returned for a query that has no relevant document.

    Abstain = 1 if no document scores above the threshold, else 0; queries that have a relevant
    document are left out. An empty list abstains; a query that the run does not have is missing, and
    counts as 0.

    threshold: a score that a document must exceed to count as returned; None: any document counts.
    rel: the lowest grade that counts as relevant.
    """
    silent = a.answered & (a.retrieved == 0)
    if threshold is not None:
        if a.judged_only:
            raise MissingDataError("scores kept")
        if np.any(np.isnan(a.top_score) & (a.retrieved > 0)):
            raise MissingDataError("scores")
        silent = silent | (a.top_score <= threshold)
    return np.where(a.relevant(rel) > 0, np.nan, silent.astype(np.float64))
