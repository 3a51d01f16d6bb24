"""What a worker is told: it travels to every worker, and is what Spark calls there."""

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
from steelyard.spark.rows import Kind, Table, empty_lists, judgment_rows, run_rows, together

if TYPE_CHECKING:
    import pyarrow as pa


ROWS = 1 << 18
"""How many rows are measured at a time: as many whole queries as make so many, or one query that has more."""


@dataclass(frozen=True)
class Task:
    """What is measured, and how. `scored`: whether the run has scores; `highest`: the highest grade of all."""

    wanted: dict[str, Measure]
    options: Options
    name: str
    scored: bool
    highest: float
    rows: int = ROWS

    @property
    def schema(self) -> str:
        """The columns of what comes back: a query, its place among the judgments, its values; or a tally."""
        values = "".join(f", m{number} double" for number in range(len(self.wanted)))
        return f"query_id string, place long{values}, tally string"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The values of every query, and a tally for each lot of queries. The rows are sorted by query."""
        # One of many workers on a machine: it has one core, not all of them.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        from steelyard.spark.worker import measured, whole_queries

        for rows in whole_queries(batches, self.rows):
            yield from measured(rows, self)


SENT_QUERIES = 1_000_000
"""Up to so many judged queries are sent to every worker, to leave rows of other queries where they are."""


@dataclass(frozen=True)
class Plan:
    """What is asked of the cluster: the two frames, the measures and the policies.

    `rank_named`: whether the run's column of ranks was named, and so orders it.
    """

    judged: Table
    listed: Table
    wanted: dict[str, Measure]
    options: Options
    name: str
    rank_named: bool = False

    def result(self) -> Any:
        """The frame of values and tallies, as `Task.schema` has it. The judgments are looked at first."""
        judgments = judgment_rows(self.judged)
        queries, highest = judgments.agg(
            sf.count_distinct("query_id"),
            sf.max(
                sf.when(
                    (sf.col("kind") == int(Kind.JUDGMENT)) & sf.col("doc_id").isNotNull(), sf.col("value")
                )
            ),
        ).first()
        scored = self._scored()
        ranks = rank_column(self.listed.names, scored, self.rank_named)
        in_order = ranks is not None or not scored or self.options.ties == "stable"
        run = run_rows(self.listed.ranked_by(ranks), scored, in_order)
        parts = [run] if queries > SENT_QUERIES else _cut(run, judgments)
        task = Task(
            self.wanted,
            self.options,
            self.name,
            scored,
            0.0 if highest is None else highest,
        )
        return map_in_arrow(together(judgments, *parts), task, task.schema)

    def _scored(self) -> bool:
        """Whether any document has a score. As a rule the first row says so."""
        if "score" not in self.listed.names:
            return False
        score = self.listed.column("score")
        return not self.listed.frame.select(score).filter(score.isNotNull()).isEmpty()


def _cut(run: Any, judgments: Any) -> list[Any]:
    """The rows of judged queries (and faulty ones, to be told), and the other queries, each once, without their rows."""
    known = judgments.select("query_id").distinct().withColumn("known", sf.lit(True))
    joined = run.join(sf.broadcast(known), "query_id", "left")
    needed = sf.col("known").isNotNull() | (sf.col("kind") != int(Kind.LISTED))
    others = joined.filter(~needed).select("query_id").distinct()
    return [joined.filter(needed).drop("known"), empty_lists(others)]


def map_in_arrow(frame: Any, function: Callable[..., Any], schema: str) -> Any:
    """Spark's mapInArrow, without its warning on a version of pandas: no data goes through pandas here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas", category=FutureWarning)
        return frame.mapInArrow(function, schema)
