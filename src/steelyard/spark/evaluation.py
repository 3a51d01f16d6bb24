"""steelyard.spark.evaluate(), evaluate_runs() and compare(): qrels and runs as Spark frames in, results out.

With too many judgments for the driver, all rows of the qrels and the run are shuffled, which has no limit on the number
of judgments; if not, see `scan`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as sf

from steelyard import errors
from steelyard.alignment.alignment import align
from steelyard.alignment.ranking import repeat_error
from steelyard.comparison.compare import compare as compare_runs
from steelyard.comparison.result import Comparison
from steelyard.coverage import Coverage, Levels, unknown_documents_note
from steelyard.dialects import Dialect
from steelyard.dialects import dialect as dialect_of
from steelyard.evaluation import judged_qrels, missing_error, no_grades_error, noted, on_scale, prepare, query_values
from steelyard.io.tables import qrels_table
from steelyard.lazy import polars as pl
from steelyard.measures.compute import summary
from steelyard.measures.grammar import Measure
from steelyard.notes import note, warn_of
from steelyard.options import Options, Policies, resolve
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.scores import Scores, key_of
from steelyard.spark import rows as spark_rows
from steelyard.spark.frames import collect, collect_columns, map_in_arrow, send_columns
from steelyard.spark.rows import Columns, Kind, SparkTable, by_query, is_spark_frame, qrels_rows, run_rows
from steelyard.spark.scan import RunScan
from steelyard.spark.worker import EvaluationTally, EvaluationTask, cluster_means, faults_of, total
from steelyard.wording import counted

if TYPE_CHECKING:
    from typing_extensions import Unpack

MOST_JUDGMENTS = 10_000_000
"""Up to this many judgments are collected on the driver and sent to every worker; with more, all rows are shuffled."""
SENT_QUERIES = 1_000_000
"""Up to this many judged queries are sent to every worker, so that rows of other queries are not shuffled."""
MOST_QUERIES = 10_000_000
"""The values of up to this many queries are averaged on the driver, those of more on the cluster."""


class Keywords(Policies, spark_rows.ColumnNames, total=False):
    """The policies, and the names of columns."""


def evaluate(
    spark: Any,
    qrels: Any,
    run: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    dialect: str | Dialect = "steelyard",
    name: str | None = None,
    **options: Unpack[Keywords],
) -> SparkScores:
    """Evaluate a run on a cluster: the same numbers as `steelyard.evaluate`, bit for bit.

    run: a Spark frame with one row per document: query_id, doc_id, and score or rank.
    qrels: a Spark frame with query_id, doc_id, grade and, optionally, target; or whatever `steelyard.evaluate`
    takes (a path, a mapping, Qrels).
    query_id, doc_id, grade, target, score, rank: the names of columns that do not have a usual name.
    The other parameters are those of `steelyard.evaluate`. Mistakes in the call are reported at once; the
    cluster starts to work when a value of the result is needed.
    """
    columns, policies = Columns.taken(options)
    dialect, chosen, named = prepare(measures, dialect, policies)
    columns.check(qrels, run)
    judgments, table = columns.qrels_source(qrels), columns.run_table(run)
    named = on_scale(named, judgments, dialect) if isinstance(judgments, Qrels) else named
    # One document is evaluated, so that a measure which this run or these options do not allow fails at once.
    document = {"query_id": "q", "doc_id": "d", "score": 1.0, "tokens": 1}
    one = Run(pl.DataFrame({role: [value] for role, value in document.items() if role in table.names}))
    a = align(Qrels({"q": {"d": 1.0}}), one, replace(chosen.ordering, duplicates="hold")).alignment
    query_values(chosen.lists(replace(a, judged=replace(a.judged, highest=1.0))), named, chosen)
    return SparkScores(name or "run", named, spark, judgments, table, dialect, chosen)


def evaluate_runs(
    spark: Any,
    qrels: Any,
    runs: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    dialect: str | Dialect = "steelyard",
    run: str | None = None,
    **options: Unpack[Keywords],
) -> dict[str, Scores]:
    """Evaluate several runs on a cluster: the scores of each, as `steelyard.evaluate` gives them, by its name.

    runs: one Spark frame with a column that names the run of each row (`run`, or found by its usual name), which is
    read once for all runs; or a mapping of name to frame. The other parameters are those of `evaluate`.
    """
    columns, policies = Columns.taken(options)
    chosen_dialect, chosen, named = prepare(measures, dialect, policies)
    by_run: dict[str, Scores] = {}
    for scan in _scans(spark, qrels, runs, run, columns):
        by_run |= scan.scores(on_scale(named, scan.qrels, chosen_dialect), chosen_dialect, chosen)
    warn_of({name: scores.notes for name, scores in by_run.items()})
    return by_run


def compare(
    spark: Any,
    qrels: Any,
    runs: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    run: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare runs on a cluster: the leaderboard and the pairs of `steelyard.compare`.

    runs: as in `evaluate_runs`. options: those of `steelyard.compare`, without `predicted`, `pool` and `these_queries`.
    The lists stay on the cluster: the result has no documents to show. Those of the judged queries are read only if a
    significant difference may depend on unjudged documents.
    """
    columns, others = Columns.taken(options)
    refused = [name for name in ("predicted", "pool", "these_queries") if others.get(name)]
    if refused:
        raise errors.InputError(f"{refused[0]} is not available on Spark; use steelyard.compare on this machine.")
    policies = {name: others[name] for name in Policies.__annotations__ if name in others}
    ordering = resolve(dialect_of(others.get("dialect", "steelyard")).policies, policies).ordering
    scans = _scans(spark, qrels, runs, run, columns)
    scanned = {name: scanned_run for scan in scans for name, scanned_run in scan.runs(ordering).items()}
    result = compare_runs(scans[0].qrels, scanned, measures, **others)
    assert isinstance(result, Comparison)
    return result


def _scans(spark: Any, qrels: Any, runs: Any, run: str | None, columns: Columns) -> list[RunScan]:
    source = columns.qrels_source(qrels)
    if is_spark_frame(runs):
        tables = {"": columns.run_table(runs, run=spark_rows.run_column(runs, run))}
    elif isinstance(runs, Mapping) and runs:
        tables = {str(name): columns.run_table(frame) for name, frame in runs.items()}
    else:
        problem = f"the runs are a {type(runs).__name__}; expected a Spark frame with a column that"
        raise errors.InputError(f"{problem} names the run of each row, or a mapping of name to Spark frame.")
    judged = driver_qrels(source)
    if judged is None:
        problem = f"the qrels have more than {MOST_JUDGMENTS:,} judgments;"
        raise errors.InputError(f"{problem} evaluate the runs one by one, with steelyard.spark.evaluate.")
    judged = judged_qrels(judged)
    return [RunScan(spark, judged, table, name) for name, table in tables.items()]


def driver_qrels(source: SparkTable | Qrels) -> Qrels | None:
    """The qrels on the driver, checked; None if they have more judgments than MOST_JUDGMENTS."""
    if isinstance(source, Qrels):
        return source if len(source) <= MOST_JUDGMENTS else None
    rows = qrels_rows(source)
    if rows.count() > MOST_JUDGMENTS:
        return None
    table = collect_columns(rows).sort("row")
    judgments = table.filter(table["kind"] == Kind.JUDGMENT)
    spark_rows.check_faults(faults_of(table.filter(table["kind"] != Kind.JUDGMENT), judgments), source.names, {})
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
        coverage = Coverage(**counts, policies=options, notes=tuple(notes), levels=levels)
        coverage = noted(coverage, measures, tally.traits, tally.lengths)
        return replace(coverage, notes=(*coverage.notes, note("rows-shuffled", most=MOST_JUDGMENTS)))

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
        spark_rows.check_faults(tally.faults, self._qrels.names, self._run.names)
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
        return Columns().qrels_table(frame)

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
