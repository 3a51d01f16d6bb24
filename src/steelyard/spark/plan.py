"""The Spark job: what is sent to the workers, and the frame of results that they return."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from steelyard.io.columns import rank_column
from steelyard.measures.grammar import Measure
from steelyard.options import Options
from steelyard.spark.rows import Kind, Table, by_query, empty_lists, qrels_rows, run_rows

if TYPE_CHECKING:
    import pyarrow as pa


ROWS = 1 << 18
"""Rows that a worker evaluates at a time: whole queries with about this many rows, or one longer query."""


@dataclass(frozen=True)
class Task:
    """The function that Spark calls on every worker, with the measures and the options.

    own_options: those of measures that order equal scores in another way. scored: whether the run has scores.
    highest: the highest grade of the qrels.
    """

    measures: dict[str, Measure]
    options: Options
    own_options: dict[str, Options]
    name: str
    scored: bool
    highest: float
    rows: int = ROWS

    @property
    def schema(self) -> str:
        """The columns of the result: a query, its position in the qrels and its values; or a tally."""
        values = "".join(f", m{number} double" for number in range(len(self.measures)))
        return f"query_id string, place long{values}, tally string"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The values of every query, and one tally per block of queries. The rows are sorted by query."""
        # Spark starts one worker per core, so a worker uses one thread.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from steelyard.spark.worker import evaluate_rows, query_blocks

        for rows in query_blocks(batches, self.rows):
            yield from evaluate_rows(rows, self)


SENT_QUERIES = 1_000_000
"""Up to this many judged queries are sent to every worker, so that rows of other queries are not shuffled."""


@dataclass(frozen=True)
class Plan:
    """An evaluation on the cluster: the two frames, the measures and the options.

    own_options: those of measures that order equal scores in another way. rank_named: whether the caller named the
    rank column of the run; then ranks order it, not scores.
    """

    qrels: Table
    run: Table
    measures: dict[str, Measure]
    options: Options
    own_options: dict[str, Options]
    name: str
    rank_named: bool = False

    def result(self) -> Any:
        """The frame of values and tallies, with the columns of `Task.schema`. The qrels are read first."""
        qrels = qrels_rows(self.qrels)
        queries, highest = qrels.agg(
            sf.count_distinct("query_id"),
            sf.max(
                sf.when(
                    (sf.col("kind") == int(Kind.JUDGMENT)) & sf.col("doc_id").isNotNull(), sf.col("value")
                )
            ),
        ).first()
        scored = self._scored()
        ranks = rank_column(self.run.names, scored, self.rank_named)
        ties = {each.ties for each in (self.options, *self.own_options.values())}
        in_order = ranks is not None or not scored or "stable" in ties
        run = run_rows(self.run.ranked_by(ranks), scored, in_order)
        parts = [run] if queries > SENT_QUERIES else _judged_rows(run, qrels)
        task = Task(
            self.measures,
            self.options,
            self.own_options,
            self.name,
            scored,
            0.0 if highest is None else highest,
        )
        return map_in_arrow(by_query(qrels, *parts), task, task.schema)

    def _scored(self) -> bool:
        """Whether any document has a score. Usually the first row decides it."""
        if "score" not in self.run.names:
            return False
        score = self.run.column("score")
        return not self.run.frame.select(score).filter(score.isNotNull()).isEmpty()


def _judged_rows(run: Any, qrels: Any) -> list[Any]:
    """The rows of judged queries and faulty rows, which are reported; and the other queries, one row per query."""
    known = qrels.select("query_id").distinct().withColumn("known", sf.lit(True))
    joined = run.join(sf.broadcast(known), "query_id", "left")
    needed = sf.col("known").isNotNull() | (sf.col("kind") != int(Kind.RETRIEVED))
    others = joined.filter(~needed).select("query_id").distinct()
    return [joined.filter(needed).drop("known"), empty_lists(others)]


def map_in_arrow(frame: Any, function: Callable[..., Any], schema: str) -> Any:
    """Spark's mapInArrow without its warning about the version of pandas: no data passes through pandas here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning)
        return frame.mapInArrow(function, schema)
