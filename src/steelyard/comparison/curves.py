"""What charts show beyond the score tables: measures at every cutoff, and the overlap of the runs' first documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.comparison.data import ComparisonData
from steelyard.comparison.movers import ranked_rows
from steelyard.errors import MeasureError
from steelyard.evaluation import measure_values
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
OVERLAP_DEPTH = 10


def values_by_cutoff(
    comparison: ComparisonData, alignments: Sequence[Alignment], measure: Measure
) -> list[tuple[int, list[Floats]]]:
    """For every cutoff up to the longest list, the compared values of the runs; empty if one cannot be computed."""
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
    tops = pl.concat(
        ranked_rows(source.run(name), options.ordering)
        .filter(pl.col("rank") <= OVERLAP_DEPTH)
        .select(
            run=pl.lit(number, pl.Int64), query=pl.col("query_id").hash(), both=pl.struct("query_id", "doc_id").hash()
        )
        for number, name in enumerate(runs)
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
