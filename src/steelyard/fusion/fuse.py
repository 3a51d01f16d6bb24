"""fuse(): combines several runs into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.checks import whole_number
from steelyard.errors import InputError
from steelyard.fusion.candidates import PooledRuns, label, pool_runs
from steelyard.fusion.methods import Recipe, recipe
from steelyard.ids import kind_of
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.run import Run


def fuse(
    runs: Sequence[Any] | Mapping[str, Any],
    method: str = "rrf",
    norm: str | None = None,
    weights: Sequence[float] | None = None,
    name: str | None = None,
    depth: int | None = None,
    **parameters: float,
) -> Run:
    """Fuse runs: one list per query, from the lists of all runs.

    `runs` are two or more Runs, paths, mappings or frames. `method` is one of rrf (k=60), combsum, wsum, combmnz,
    combanz, combmax, combmin, combmed, borda, isr, logn-isr (sigma=0.01), rbc (phi=0.8) and condorcet. Methods on
    scores normalise each list first: `norm` is min-max (the default), max, sum, z, rank or none. `weights` (rrf, wsum,
    borda, isr, logn-isr, rbc, condorcet) are one per run; a run of weight 0 is not used. `depth` cuts the fused lists.

    The fused run has scores; equal ones are ordered by the tie policy of `evaluate`. A query that is missing from
    some runs is fused from the others, and `notes` has the number of such queries.

    >>> a, b = Run({"q": {"x": 3, "y": 2, "z": 1}}, "a"), Run({"q": ["y", "w"]}, "b")
    >>> fused = fuse([a, b], method="rrf", k=60)
    >>> fused.name, fused.frame["doc_id"].to_list()
    ('rrf(a,b)', ['y', 'x', 'w', 'z'])
    >>> round(1 / 62 + 1 / 61, 6) == fused.frame["score"].round(6)[0]
    True
    """
    read = read_runs(runs)
    chosen = recipe(len(read), method, norm, weights, **parameters)
    cut = None if depth is None else whole_number("depth", depth, 1, unit="documents")
    pooled = pool_runs(read, chosen.reads_scores)
    score = chosen.scores(pooled.pool) if pooled.queries else np.zeros(0)
    unused = [column for column, weight in enumerate(chosen.weights or ()) if weight == 0]
    notes = (*pooled.notes, *(note("fused-weight-0", run=label(read, column)) for column in unused))
    return fused_run(read, pooled, score, name or fused_name(read, chosen), notes, cut)


def read_runs(runs: Sequence[Any] | Mapping[str, Any]) -> list[Run]:
    """The runs to fuse; fewer than two are an error."""
    if isinstance(runs, Mapping):
        read = [Run.of(run, name=str(name)) for name, run in runs.items()]
    elif isinstance(runs, Sequence) and not isinstance(runs, (str, bytes)):
        read = [Run.of(run) for run in runs]
    else:
        raise InputError(f"the runs to fuse are {kind_of(runs)}; expected a list of runs, as in fuse([a, b]).")
    if len(read) < 2:
        raise InputError(f"expected two or more runs to fuse, got {'one' if read else 'none'}.")
    return read


def fused_run(
    runs: Sequence[Run], pooled: PooledRuns, score: Floats, name: str, notes: tuple[Note, ...], depth: int | None = None
) -> Run:
    """The run of the fused scores; candidates with a score of NaN are left out."""
    order = pooled.pool.best_first(score)
    rank = pooled.pool.ranks(order)
    if depth is not None:
        order, rank = order[rank <= depth], rank[rank <= depth]
    counts = pooled.pool.counts(order)
    empty = [*pooled.empty, *(q for q, count in zip(pooled.queries, counts.tolist(), strict=True) if not count)]
    queries = pl.Series(pooled.queries, dtype=pl.String).gather(np.repeat(np.arange(len(counts)), counts))
    rows = pl.DataFrame({"query_id": queries, "doc_id": pooled.documents(order), "score": score[order]})
    unanswered = pl.DataFrame({"query_id": empty}, schema={"query_id": pl.String})
    tokens, texts = _merged([run.tokens for run in runs]), _merged([run.texts for run in runs])
    fused = Run(pl.concat([rows, unanswered], how="diagonal"), name=name, tokens=tokens, texts=texts)
    # The rows are in the order of `frame` already.
    fused.__dict__["frame"] = rows.select("query_id", "doc_id", pl.Series("rank", rank), "score")
    fused.notes = notes
    return fused


def fused_name(runs: Sequence[Run], chosen: Recipe) -> str:
    """The method and the names of the runs."""
    of = ",".join(run.name for run in runs) if len(runs) <= 4 else f"{len(runs)} runs"
    return f"{chosen.method.name}({of})"


def _merged(values: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Values by document (lengths or texts) of all runs; where they differ, the first run's."""
    available = [by_doc for by_doc in values if by_doc is not None]
    return {doc: value for by_doc in reversed(available) for doc, value in by_doc.items()} if available else None
