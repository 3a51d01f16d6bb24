"""fuse(): several runs in, one run out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.checks import is_whole
from steelyard.errors import InputError
from steelyard.fusion.candidates import PooledRuns, label, pool_runs
from steelyard.fusion.methods import Recipe, recipe
from steelyard.ids import kind_of
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
    """Fuse runs: one list a query, made of all its lists.

    `runs` are two or more Runs, paths, mappings or frames. `method` is one of rrf (k=60), combsum,
    wsum, combmnz, combanz, combmax, combmin, combmed, borda, isr, logn-isr (sigma=0.01), rbc (phi=0.8)
    and condorcet. Methods that read scores normalise them first, list by list: `norm` is min-max
    unless it is max, sum, z, rank or none. `weights` (rrf, wsum, borda, isr, logn-isr, rbc, condorcet)
    are one a run; a run of weight 0 takes no part. `depth` cuts the fused lists.

    The fused run carries scores; equal ones are ranked by the tie rule of `evaluate`. A query that some
    runs lack is fused from those that have it, and `notes` counts such queries.

    >>> a, b = Run({"q": {"x": 3, "y": 2, "z": 1}}, "a"), Run({"q": ["y", "w"]}, "b")
    >>> fused = fuse([a, b], method="rrf", k=60)
    >>> fused.name, fused.frame["doc_id"].to_list()
    ('rrf(a,b)', ['y', 'x', 'w', 'z'])
    >>> round(1 / 62 + 1 / 61, 6) == fused.frame["score"].round(6)[0]
    True
    """
    held = held_runs(runs)
    made = recipe(len(held), method, norm, weights, **parameters)
    _check_depth(depth)
    pooled = pool_runs(held, made.reads_scores)
    score = made.scores(pooled.pool) if pooled.queries else np.zeros(0)
    notes = pooled.notes + _weight_notes(held, made)
    return fused_run(held, pooled, score, name or fused_name(held, made), notes, depth)


def held_runs(runs: Sequence[Any] | Mapping[str, Any]) -> list[Run]:
    """The runs to fuse, read; fewer than two are an error."""
    if isinstance(runs, Mapping):
        held = [Run.of(run, name=str(name)) for name, run in runs.items()]
    elif isinstance(runs, Sequence) and not isinstance(runs, (str, bytes)):
        held = [Run.of(run) for run in runs]
    else:
        raise InputError(
            f"the runs to fuse are {kind_of(runs)}; expected a list of runs, as in fuse([a, b])."
        )
    if len(held) < 2:
        count = "one run" if held else "no run"
        raise InputError(f"there is {count} to fuse; give two or more.")
    return held


def fused_run(
    runs: Sequence[Run],
    pooled: PooledRuns,
    score: Floats,
    name: str,
    notes: tuple[str, ...] = (),
    depth: int | None = None,
) -> Run:
    """The run of fused scores, each query's best first; a candidate whose score is NaN is not in it."""
    import polars as pl

    order = pooled.pool.best_first(score)
    if depth is not None:
        order = order[pooled.pool.places(order) <= depth]
    query = pooled.pool.query[order]
    answered = set(np.unique(query).tolist())
    bare = [*pooled.empty, *(q for number, q in enumerate(pooled.queries) if number not in answered)]
    rows = pl.DataFrame(
        {
            "query_id": pl.Series(pooled.queries, dtype=pl.String).gather(query),
            "doc_id": pooled.documents.gather(order),
            "score": score[order],
        }
    )
    unanswered = pl.DataFrame({"query_id": bare}, schema={"query_id": pl.String})
    fused = Run(
        pl.concat([rows, unanswered], how="diagonal"),
        name=name,
        tokens=_merged([run.tokens for run in runs]),
        texts=_merged([run.texts for run in runs]),
    )
    fused.notes = notes
    return fused


def _check_depth(depth: int | None) -> None:
    if depth is not None and not is_whole(depth, 1):
        raise InputError(f"depth is {depth!r}; expected a whole number of documents, 1 or more.")


def fused_name(runs: Sequence[Run], made: Recipe) -> str:
    """The method and the names of the runs."""
    of = ",".join(run.name for run in runs) if len(runs) <= 4 else f"{len(runs)} runs"
    return f"{made.method.name}({of})"


def _weight_notes(runs: Sequence[Run], made: Recipe) -> tuple[str, ...]:
    idle = [column for column, weight in enumerate(made.weights or ()) if weight == 0]
    return tuple(f"{label(runs, column)} has weight 0 and takes no part" for column in idle)


def _merged(carried: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """What the runs know of documents, together; of two that differ, the first run's."""
    known = [held for held in carried if held is not None]
    return {doc: value for held in reversed(known) for doc, value in held.items()} if known else None
