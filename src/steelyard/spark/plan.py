"""How the data flows: what is cut before the shuffle, the one shuffle, and what comes back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as sf

from steelyard.formats.columns import rank_column
from steelyard.measures.grammar import Measure
from steelyard.policies import Policies
from steelyard.spark.faults import Kind
from steelyard.spark.rows import Table, empty_lists, judgment_rows, run_rows, together
from steelyard.spark.task import Task

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
    rules: Policies
    rel: float | None
    depth: int | None
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
        in_order = ranks is not None or not scored or self.rules.ties == "stable"
        run = run_rows(self.listed.ranked_by(ranks), scored, in_order)
        parts = [run] if queries > SENT_QUERIES else _cut(run, judgments)
        task = Task(
            self.wanted,
            self.rules,
            self.rel,
            self.depth,
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
