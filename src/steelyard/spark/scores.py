"""SparkScores: the result of steelyard.spark.evaluate(), also with too many judgments for the driver.

Then all rows of the qrels and the run are shuffled, which has no limit on the number of judgments; if not, see `scan`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import functions as sf

from steelyard import errors
from steelyard.alignment.ranking import repeat_error
from steelyard.coverage import Coverage, Levels, unknown_documents_note
from steelyard.dialects import Dialect
from steelyard.evaluation import judged_qrels, missing_error, no_grades_error
from steelyard.io.tables import qrels_table
from steelyard.measures.compute import summary
from steelyard.measures.grammar import Measure
from steelyard.notes import note
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.scores import Scores, key_of
from steelyard.spark.frames import collect, collect_columns, map_in_arrow, send_columns
from steelyard.spark.rows import Kind, SparkTable, by_query, check_faults, qrels_rows, run_rows, table_of
from steelyard.spark.scan import RunScan
from steelyard.spark.worker import EvaluationTally, EvaluationTask, cluster_means, faults_of, total
from steelyard.wording import counted

MOST_JUDGMENTS = 10_000_000
"""Up to this many judgments are collected on the driver and sent to every worker; with more, all rows are shuffled."""
SENT_QUERIES = 1_000_000
"""Up to this many judged queries are sent to every worker, so that rows of other queries are not shuffled."""
MOST_QUERIES = 10_000_000
"""The values of up to this many queries are averaged on the driver, those of more on the cluster."""


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


@dataclass(frozen=True, eq=False, repr=False)
class SparkScores:
    """The result of steelyard.spark.evaluate(). The cluster starts to work when a value is first needed.

    The driver computes the values from what the workers found. With too many judgments for that, all rows are
    shuffled: the values stay on the cluster, persisted by Spark, and counts and means go to the driver.

    measures: keyed as the caller wrote them. _judgments: a Spark frame with its columns, or Qrels on the driver.
    """

    name: str
    measures: dict[str, Measure]
    _spark: Any
    _judgments: SparkTable | Qrels
    _run: SparkTable
    _dialect: Dialect
    _options: Options

    @property
    def dialect(self) -> str:
        """The name of the dialect."""
        return self._dialect.name

    @cached_property
    def per_query(self) -> Any:
        """A Spark frame: query_id, then one column per measure; null where the measure does not apply."""
        scores, columns = self._scores, self._columns
        if scores is None:
            return self._values("query_id", *columns).toDF("query_id", *self.measures)
        values = [pl.Series(name, row).fill_nan(None) for name, row in zip(columns, scores.matrix, strict=True)]
        table = pl.DataFrame([pl.Series("query_id", list(scores.queries), dtype=pl.String), *values])
        schema = ", ".join(["query_id string", *(f"{name} double" for name in columns)])
        return send_columns(self._spark, table, schema).toDF("query_id", *self.measures)

    @cached_property
    def means(self) -> dict[str, float]:
        """Each measure over all queries: the mean, or the sum of a count.

        Up to MOST_QUERIES values are added on the driver, in the order of the qrels. Sums of more are computed on the
        cluster without rounding, so that no order matters, and rounded once.
        """
        if self._scores is not None:
            return self._scores.means
        if self.coverage.queries > MOST_QUERIES:
            return cluster_means(self._values(*self._columns), self.measures)
        values = collect_columns(self._values("place", *self._columns)).sort("place")
        measures = zip(self.measures.items(), self._columns, strict=True)
        return {key: summary(measure, _floats(values[column])) for (key, measure), column in measures}

    def __getitem__(self, measure: str | Measure) -> float:
        return self.means[key_of(measure, self.measures)]

    @property
    def policies(self) -> dict[str, Any]:
        """The options in force, as in Scores.policies."""
        return vars(self._options).copy()

    @cached_property
    def coverage(self) -> Coverage:
        """Counts of missing queries, unjudged and repeated documents, and ties, as in Scores.coverage."""
        if self._scores is not None:
            return self._scores.coverage
        tally, measures, options = self._computed[1], self.measures, self._options
        counts = tally.counts
        if not counts.get("queries"):
            raise no_grades_error()
        notes = list(dict.fromkeys([*self._qrels.notes, *self._run.notes]))
        if not counts["answered"] and counts["without_judgments"]:
            notes.insert(0, note("no-shared-query", run=tally.run_only, qrels=[query for _, query in tally.judged]))
        held = counts["repeated"] if options.duplicates == "hold" else 0
        if tally.retrieved and tally.known and counts["documents"] == counts["unjudged"] + held:
            notes.insert(0, unknown_documents_note(tally.retrieved, tally.known))
        levels = Levels.of(measures, options.rel)
        coverage = Coverage(**counts, policies=options, notes=(), levels=levels)
        notes += levels.notes(coverage, tally.lowest_grade)
        notes += [*tally.lengths.notes(measures, options.depth), *tally.traits.notes(measures)]
        notes.append(note("rows-shuffled", most=MOST_JUDGMENTS))
        return replace(coverage, notes=tuple(notes))

    def to_scores(self) -> Scores:
        """All values as Scores on the driver: for intervals, comparisons and reports."""
        if self._scores is not None:
            return self._scores
        values = collect_columns(self._values("place", "query_id", *self._columns)).sort("place")
        matrix = np.array([_floats(values[column]) for column in self._columns])
        return Scores(self.name, self.dialect, self.measures, values["query_id"].to_list(), matrix, self.coverage)

    def unpersist(self) -> None:
        """Release the values that Spark keeps. They are computed again if they are needed later."""
        if "_computed" in self.__dict__:
            self._computed[0].unpersist()

    def __repr__(self) -> str:
        if "means" not in self.__dict__:
            return f"SparkScores of {self.name!r}: {', '.join(self.measures)} (not computed yet)"
        width = max(map(len, self.measures))
        lines = [f"  {key:<{width}}  {value:.4f}" for key, value in self.means.items()]
        head = f"SparkScores of {self.name!r} over {counted(self.coverage.queries, 'query', 'queries')}"
        return "\n".join([head, *lines, f"  {self.coverage}"])

    @cached_property
    def _scores(self) -> Scores | None:
        """The scores, by one pass over the run; None with too many judgments for that."""
        qrels = driver_qrels(self._judgments)
        if qrels is None:
            return None
        scan = RunScan(self._spark, judged_qrels(qrels), self._run, self.name)
        return scan.scores(self.measures, self._dialect, self._options)[self.name]

    @property
    def _columns(self) -> list[str]:
        return [f"m{number}" for number in range(len(self.measures))]

    def _values(self, *columns: str) -> Any:
        return self._computed[0].filter(sf.col("tally").isNull()).select(*columns)

    @cached_property
    def _computed(self) -> tuple[Any, EvaluationTally]:
        """The frame of values and tallies, persisted by Spark, and the sum of the tallies."""
        frame = self._shuffled().persist()
        try:
            rows = collect(frame.filter(sf.col("tally").isNotNull()).select("tally"))
            self._check(tally := total([row["tally"] for row in rows]))
        except Exception:
            frame.unpersist()
            raise
        return frame, tally

    def _check(self, tally: EvaluationTally) -> None:
        """Raise the error that the workers found, if any."""
        check_faults(tally.faults, self._qrels.names, self._run.names)
        if tally.error is not None:
            kind, text = tally.error
            raise getattr(errors, kind, errors.SteelyardError)(text)
        if tally.repeated is not None:
            raise repeat_error(tally.counts["repeated"], *tally.repeated[1:])
        if self._options.missing == "error" and tally.missing:
            missing = [query for _, query in tally.missing]
            raise missing_error(missing, tally.counts["missing"], tally.counts["queries"], self.name)

    @cached_property
    def _qrels(self) -> SparkTable:
        """The qrels as a Spark frame; those on the driver are sent."""
        if not isinstance(self._judgments, Qrels):
            return self._judgments
        table = qrels_table(self._judgments)
        kinds = {"query_id": "string", "doc_id": "string", "grade": "double", "target": "string"}
        schema = ", ".join(f"{column} {kinds[column]}" for column in table.columns)
        frame = self._spark.createDataFrame(table.cast({"grade": float}).rows(), schema)
        return table_of(frame, dict.fromkeys(kinds), "the qrels")

    def _shuffled(self) -> Any:
        """The frame of values and tallies, with the columns of `EvaluationTask.schema`; reads the qrels first."""
        qrels = qrels_rows(self._qrels)
        queries, highest = qrels.agg(
            sf.count_distinct("query_id"),
            sf.max(sf.when((sf.col("kind") == int(Kind.JUDGMENT)) & sf.col("doc_id").isNotNull(), sf.col("value"))),
        ).first()
        own_options = self._dialect.own_options(self.measures, self._options)
        ties = {options.ties for options in (self._options, *own_options.values())}
        run = run_rows(self._run, self._run.ordered or "stable" in ties)
        parts = [run] if queries > SENT_QUERIES else _judged_rows(run, qrels)
        task = EvaluationTask(self.measures, self._options, own_options, self.name, self._run.scored, highest or 0.0)
        return map_in_arrow(by_query(qrels, *parts), task, task.schema)


def _floats(values: pl.Series) -> Any:
    return values.fill_null(float("nan")).to_numpy()
