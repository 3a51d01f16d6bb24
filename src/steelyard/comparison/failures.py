"""What pages show beyond the score tables: how each run fails on each query (nothing relevant retrieved, ranked low, a
distractor above, and so on), measures at every cutoff, and the overlap of the runs' first documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats, Ints
from steelyard.comparison.data import ComparisonData
from steelyard.comparison.movers import ranked_rows
from steelyard.errors import MeasureError
from steelyard.evaluation import measure_values
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure

UNANSWERED, MISSED, LOW, DISTRACTED, REPEATED, UNJUDGED, NOTHING, PARTLY = (1 << bit for bit in range(8))
"""Bits of a failure, as in the scripts of the page (data.js)."""

DEFAULT_CUTOFF = 10
CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
OVERLAP_DEPTH = 10


@dataclass(frozen=True)
class RunFailures:
    """A run joined with its qrels, by query: its failures, the rank of its first relevant document (0: none), the
    number of relevant documents within the cutoff, and the number of all relevant documents. `level` is the lowest
    relevant grade; None: any grade above 0.
    """

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
    whole = [int(cutoff) for cutoff in cutoffs if cutoff >= 1]
    return whole[0] if whole else DEFAULT_CUTOFF


def failures_of(a: Alignment, cutoff: int, level: float | None = None) -> RunFailures:
    """The failures of one run; `level` is the lowest relevant grade.

    Unanswered: the list is empty. Missed: no relevant document in the whole list. Low: the first one is below the
    cutoff. Partly: fewer relevant documents are within the cutoff than could be. Distracted: a distractor is above the
    first relevant document. Repeated: a document is repeated within the cutoff. Unjudged: the first document has no
    judgment. Nothing: no document is relevant.
    """
    distractor = a.grade < 0
    relevant, judged = ((g > 0) & (g >= (level or 0)) for g in (a.grade, a.judged.grade))
    total = a.judged_per_query(judged)
    first = a.first(relevant)
    retrieved = a.per_query(relevant & (a.rank <= cutoff))
    judged_top = np.zeros(a.size, dtype=bool)
    judged_top[a.query[a.rank == 1]] = True
    repeated = np.zeros(a.size, dtype=bool)
    repeated[a.repeats.query[a.repeats.rank <= cutoff]] = True
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
    first_rank, found, relevant_total = (np.minimum(each, 65535).astype(np.int64) for each in (rank, retrieved, total))
    return RunFailures(a, failures.astype(np.int64), first_rank, found, relevant_total, level)


def places_of(failures: Sequence[RunFailures], names: Sequence[str]) -> Ints:
    """The positions of queries in the failures."""
    place = {query: number for number, query in enumerate(failures[0].alignment.queries)}
    return np.array([place[name] for name in names], dtype=np.int64)


def values_by_cutoff(
    comparison: ComparisonData, alignments: Sequence[Alignment], measure: Measure
) -> list[tuple[int, list[Floats]]]:
    """For every cutoff up to the longest list, the values of the runs, on the queries that are compared.

    Empty where the measure cannot be computed at one of them.
    """
    depth = max((int(a.retrieved.max(initial=0)) for a in alignments), default=0)
    cutoffs = [k for k in CUTOFFS if k <= max(depth, 1) or k <= (measure.cutoff or 1)]
    try:
        return [(k, [_values(measure @ k, a, comparison) for a in alignments]) for k in cutoffs]
    except MeasureError:
        return []


def _values(measure: Measure, a: Alignment, comparison: ComparisonData) -> Floats:
    """A measure's values with the options of the comparison, on the queries that it compares."""
    assert comparison.options is not None
    values = measure_values(measure, a, comparison.options)
    if comparison.options.missing != "skip":
        return values
    first = comparison.score_tables[0]
    shared = np.flatnonzero(~np.isnan(first.compared(first.columns[0].key)).all(axis=0))
    kept = {first.queries[place] for place in shared.tolist()}
    return values[[query in kept for query in a.queries]]


def overlaps(comparison: ComparisonData, runs: Sequence[str]) -> Iterator[tuple[str, str, float | None]]:
    """For every two runs the share of their first documents that both have, on average over the queries of both."""
    source, options = comparison.source, comparison.options
    if source is None or source.chunked or options is None:
        return
    ids = {"query": pl.col("query_id").hash(), "both": pl.struct("query_id", "doc_id").hash()}
    ranked = [ranked_rows(source.run(name), options.ordering) for name in runs]
    tops = pl.concat(
        rows.filter(pl.col("rank") <= OVERLAP_DEPTH).select(run=pl.lit(number, pl.Int64), **ids)
        for number, rows in enumerate(ranked)
    )
    queries, query = np.unique(tops["query"].to_numpy(), return_inverse=True)
    documents, document = np.unique(tops["both"].to_numpy(), return_inverse=True)
    listed = np.zeros((len(runs), len(documents)), dtype=bool)
    listed[tops["run"].to_numpy(), document] = True
    query_of = np.zeros(len(documents), dtype=np.int64)
    query_of[document] = query
    sizes = np.stack([np.bincount(query_of[in_run], minlength=len(queries)) for in_run in listed])
    for i, j in combinations(range(len(runs)), 2):
        shared = np.bincount(query_of[listed[i] & listed[j]], minlength=len(queries))
        both = (sizes[i] > 0) & (sizes[j] > 0)
        shares = shared[both] / np.maximum(sizes[i], sizes[j])[both]
        yield runs[i], runs[j], float(shares.mean()) if len(shares) else None
