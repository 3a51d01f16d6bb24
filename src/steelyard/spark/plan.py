"""The evaluation by a shuffle of all rows: what is sent to the workers, and the frame of results that they return.

It has no limit on the number of judgments, and is used where there are too many for the driver: see `scan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import functions as sf

from steelyard.dialects import Dialect
from steelyard.io.columns import rank_column
from steelyard.io.tables import qrels_table
from steelyard.measures.grammar import Measure
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.spark.frames import collect_columns, map_in_arrow
from steelyard.spark.rows import Kind, SparkTable, by_query, check_faults, qrels_rows, run_rows, table_of
from steelyard.spark.worker import EvaluationTask, faults_of

MOST_JUDGMENTS = 10_000_000
"""Up to this many judgments are collected on the driver and sent to every worker; with more, all rows are shuffled."""
SENT_QUERIES = 1_000_000
"""Up to this many judged queries are sent to every worker, so that rows of other queries are not shuffled."""


@dataclass(frozen=True)
class Plan:
    """An evaluation on the cluster: the qrels and the run, the measures and the options.

    judgments: a Spark frame with its columns, or Qrels on the driver. rank_named: whether the caller named the rank
    column of the run; then ranks order it, not scores.
    """

    spark: Any
    judgments: SparkTable | Qrels
    run: SparkTable
    measures: dict[str, Measure]
    dialect: Dialect
    options: Options
    name: str
    rank_named: bool = False

    @cached_property
    def qrels(self) -> SparkTable:
        """The qrels as a Spark frame; those on the driver are sent."""
        if not isinstance(self.judgments, Qrels):
            return self.judgments
        table = qrels_table(self.judgments)
        kinds = {"query_id": "string", "doc_id": "string", "grade": "double", "target": "string"}
        schema = ", ".join(f"{column} {kinds[column]}" for column in table.columns)
        frame = self.spark.createDataFrame(table.cast({"grade": float}).rows(), schema)
        return table_of(frame, dict.fromkeys(kinds), "the qrels")

    def result(self) -> Any:
        """The frame of values and tallies, with the columns of `EvaluationTask.schema`; reads the qrels first."""
        qrels = qrels_rows(self.qrels)
        queries, highest = qrels.agg(
            sf.count_distinct("query_id"),
            sf.max(sf.when((sf.col("kind") == int(Kind.JUDGMENT)) & sf.col("doc_id").isNotNull(), sf.col("value"))),
        ).first()
        scored = self.run.scored
        ranks = rank_column(self.run.names, scored, self.rank_named)
        own_options = self.dialect.own_options(self.measures, self.options)
        ties = {options.ties for options in (self.options, *own_options.values())}
        run = run_rows(self.run.ranked_by(ranks), scored, ranks is not None or not scored or "stable" in ties)
        parts = [run] if queries > SENT_QUERIES else _judged_rows(run, qrels)
        task = EvaluationTask(self.measures, self.options, own_options, self.name, scored, highest or 0.0)
        return map_in_arrow(by_query(qrels, *parts), task, task.schema)


def driver_qrels(source: SparkTable | Qrels) -> Qrels | None:
    """The qrels on the driver, checked; None if they have more judgments than MOST_JUDGMENTS."""
    if isinstance(source, Qrels):
        return source if len(source) <= MOST_JUDGMENTS else None
    rows = qrels_rows(source)
    if rows.count() > MOST_JUDGMENTS:
        return None
    table = collect_columns(rows).sort("row")
    judgments = table.filter(table["kind"] == Kind.JUDGMENT)
    check_faults(faults_of(table.filter(table["kind"] != Kind.JUDGMENT), judgments), source.names, {})
    qrels = Qrels(judgments.select("query_id", "doc_id", grade="value", target="label"))
    qrels.notes = source.notes
    return qrels


def _judged_rows(run: Any, qrels: Any) -> list[Any]:
    """The rows of judged queries and faulty rows, which are reported; and the other queries, one row per query."""
    judged = qrels.select("query_id").distinct().withColumn("known", sf.lit(True))
    joined = run.join(sf.broadcast(judged), "query_id", "left")
    needed = sf.col("known").isNotNull() | (sf.col("kind") != int(Kind.RETRIEVED))
    others = joined.filter(~needed).select("query_id").distinct()
    empty = others.select("query_id", sf.lit(int(Kind.RETRIEVED)).cast("byte").alias("kind"))
    return [joined.filter(needed).drop("known"), empty]
