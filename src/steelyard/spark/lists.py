"""steelyard.spark.fuse() and pool(): the lists of several runs, query by query, without qrels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as sf

from steelyard.checks import whole_number
from steelyard.errors import InputError
from steelyard.lazy import polars as pl
from steelyard.run import Run
from steelyard.spark.frames import arrow_schema, map_in_arrow
from steelyard.spark.rows import Columns, Kind, by_query, check_faults, is_spark_frame, run_column, run_rows
from steelyard.spark.worker import faults_of, query_blocks

ROWS = 1 << 17  # Rows that a worker takes at a time: whole queries with about this many rows.
DEFAULT_DEPTH = 10


def fuse(
    runs: Any,
    method: str = "rrf",
    norm: str | None = None,
    weights: Sequence[float] | None = None,
    depth: int | None = None,
    *,
    run: str | None = None,
    **parameters: float,
) -> Any:
    """Fuse runs on a cluster: a Spark frame with query_id, doc_id and score, the same as that of `steelyard.fuse`.

    runs: a list of Spark frames, a mapping of name to frame, or one frame with a column that names the run of each row
    (`run`, or found by its usual name); its runs are in the order of their names. The other parameters are those of
    `steelyard.fuse`. A query without documents is a row without a document. The cluster works when the frame is used.
    """
    from steelyard.fusion.fuse import recipe

    frames = _frames(runs, run)
    if len(frames) < 2:
        raise InputError(f"expected two or more runs to fuse, got {'one' if frames else 'none'}.")
    recipe(len(frames), method, norm, weights, **parameters)
    if depth is not None:
        whole_number("depth", depth, 1, unit="documents")
    chosen = {"method": method, "norm": norm, "weights": weights, "depth": depth, **parameters}
    return map_in_arrow(_rows(frames), partial(fused_lists, names=tuple(frames), chosen=chosen), FUSED)


def pool(
    runs: Any, qrels: Any = None, *, depth: int = DEFAULT_DEPTH, budget: int | None = None, run: str | None = None
) -> Any:
    """Documents to judge, most useful first, by the strategy `depth` of `steelyard.pool`.

    A Spark frame: query_id, doc_id, priority (1 is judged first), runs and ranks (who returned the document, and at
    which rank). runs: as in `fuse`, one or more. qrels: a Spark frame of judgments; its documents are left out. depth,
    budget: as in `steelyard.pool`. The priorities of all documents are computed on one worker.
    """
    frames = _frames(runs, run)
    if not frames:
        raise InputError("There are no runs to pool; give at least one.")
    for name, value in (("depth", depth), ("budget", budget)):
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1, got {value}.")
    candidates = map_in_arrow(_rows(frames), partial(pooled_lists, names=tuple(frames), depth=depth), POOLED)
    if qrels is not None:
        judged = Columns().qrels_table(qrels)
        ids = [judged.column(name).cast("string").alias(name) for name in ("query_id", "doc_id")]
        candidates = candidates.join(judged.frame.select(*ids).distinct(), ["query_id", "doc_id"], "left_anti")
    order = ["best", sf.col("count").desc(), "mean", "first_run", "first_row", "doc_id"]
    if budget is not None:
        candidates = candidates.orderBy(*order).limit(budget)
    priority = sf.row_number().over(Window.orderBy(*order)).cast("long").alias("priority")
    return candidates.select("query_id", "doc_id", priority, "runs", "ranks").orderBy("priority")


def _frames(runs: Any, run: str | None) -> dict[str, Any]:
    if is_spark_frame(runs):
        column = run_column(runs, run)
        name = sf.col(f"`{column}`").cast("string")
        names = sorted(row[0] for row in runs.select(name).distinct().collect() if row[0] is not None)
        return {run_name: runs.filter(name == run_name).drop(column) for run_name in names}
    if isinstance(runs, Mapping):
        return {str(name): frame for name, frame in runs.items()}
    if isinstance(runs, Sequence) and not isinstance(runs, (str, bytes)):
        return {f"run-{place}": frame for place, frame in enumerate(runs, start=1)}
    raise InputError(f"the runs are a {type(runs).__name__}; expected a mapping or a list of Spark frames.")


def _rows(frames: Mapping[str, Any]) -> Any:
    """The rows of all runs, those of a query together; `place` is the number of the run."""
    parts = (run_rows(Columns().run_table(frame), in_order=True) for frame in frames.values())
    return by_query(*(part.withColumn("place", sf.lit(place)) for place, part in enumerate(parts)))


def _lists(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[tuple[pl.DataFrame, dict[str, Run]]]:
    """Blocks of the rows of whole queries, sorted by query, and the run of each name in the order of its rows."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    for rows in query_blocks(batches, ROWS):
        columns = {name: name for name in ("query_id", "doc_id", "score", "rank")}
        # Spark shows the message of an error where the frame is used.
        check_faults(faults_of(rows.filter(pl.col("kind") != int(Kind.RETRIEVED))), {}, columns)
        runs = {}
        for place, name in enumerate(names):
            of_run = rows.filter(pl.col("place") == place).sort("row")
            rank = "rank" if "rank" in of_run.columns and of_run["rank"].null_count() < of_run.height else None
            listed = of_run.select("query_id", "doc_id", pl.col("value").alias("score"), *([rank] if rank else []))
            runs[name] = Run(listed, name, rank=rank)
        yield rows, runs


FUSED = "query_id string, doc_id string, score double"


def fused_lists(
    batches: Iterator[pa.RecordBatch], names: Sequence[str], chosen: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    """What a worker does to fuse the lists of some queries. names: those of the runs."""
    for _, runs in _lists(batches, names):
        from steelyard.fusion.fuse import fuse as fuse_runs  # After the threads of polars were limited.

        fused = fuse_runs(list(runs.values()), **chosen)
        answered = set(fused.table["query_id"].unique().to_list())
        empty = [query for query in fused.queries if query not in answered]
        without = pl.DataFrame({"query_id": empty}, schema={"query_id": pl.String})
        whole = pl.concat([fused.table.select("query_id", "doc_id", "score"), without], how="diagonal")
        yield from whole.to_arrow().cast(arrow_schema(FUSED)).to_batches()


POOLED = (
    "query_id string, doc_id string, runs array<string>, ranks array<long>, best long, count long, mean double, "
    "first_run long, first_row long"
)


def pooled_lists(batches: Iterator[pa.RecordBatch], names: Sequence[str], depth: int) -> Iterator[pa.RecordBatch]:
    """The first documents of every list, with what orders them: one row per document."""
    kinds = arrow_schema(POOLED)
    for rows, runs in _lists(batches, names):
        from steelyard.judging.candidates import candidates_of  # After the threads of polars were limited.

        candidates = candidates_of(runs, depth)
        first = rows.sort("place", "row").unique("query_id", keep="first")
        places = {query: (run, row) for query, run, row in first.select("query_id", "place", "row").iter_rows()}
        out = []
        for query in candidates.lists:
            for doc, by_run in candidates.ranks(query).items():
                found_by, ranks = [names[run] for run in by_run], list(by_run.values())
                mean = sum(ranks) / len(ranks)
                out.append((query, doc, found_by, ranks, min(ranks), len(ranks), mean, *places[query]))
        yield pa.RecordBatch.from_pylist([dict(zip(kinds.names, row, strict=True)) for row in out], kinds)
