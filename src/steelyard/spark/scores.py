"""SparkScores: the values of every query, which stay on the cluster, and their means and coverage."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from steelyard import errors
from steelyard.alignment.ranking import repeat_error
from steelyard.coverage import Coverage, Levels, unknown_documents_note
from steelyard.evaluation import missing_error, no_grades_error
from steelyard.measures.compute import summary
from steelyard.measures.grammar import Measure
from steelyard.notes import note
from steelyard.scores import Scores, key_of
from steelyard.spark.plan import Plan, map_in_arrow
from steelyard.spark.rows import fault_error
from steelyard.spark.worker import Tally, total
from steelyard.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

_NOT_ON_WORKERS = (
    "steelyard is not installed in the Python of the workers. Install steelyard[spark] on the cluster, or set PYSPARK_PYTHON "
    "to an interpreter that has it."
)
_COUNTS = (
    *("queries", "answered", "missing", "empty", "without_judgments", "no_relevant"),
    *("documents", "unjudged", "repeated", "tie_sensitive", "below_rel"),
)


@dataclass(frozen=True, eq=False, repr=False)
class SparkScores:
    """The result of steelyard.spark.evaluate(). The cluster starts to work when a value is first needed.

    The values stay on the cluster, persisted by Spark until `unpersist`.
    """

    plan: Plan
    dialect: str

    @property
    def name(self) -> str:
        """The run's name."""
        return self.plan.name

    @property
    def measures(self) -> Mapping[str, Measure]:
        """The measures, keyed as the caller wrote them."""
        return self.plan.measures

    @cached_property
    def per_query(self) -> Any:
        """A Spark frame: query_id, then one column per measure; null where the measure does not apply."""
        return self._values("query_id", *self._columns).toDF("query_id", *self.measures)

    @cached_property
    def means(self) -> dict[str, float]:
        """Each measure over all queries: the mean, or the sum of a count; computed on the driver, in the order of the qrels."""
        values = _collect(self._values("place", *self._columns)).sort("place")
        if not len(values):
            raise no_grades_error()
        return {
            key: summary(measure, _floats(values[column]))
            for (key, measure), column in zip(self.measures.items(), self._columns, strict=True)
        }

    def __getitem__(self, measure: str | Measure) -> float:
        return self.means[key_of(measure, self.measures)]

    @property
    def policies(self) -> dict[str, Any]:
        """The options in force, as in Scores.policies."""
        return vars(self.plan.options).copy()

    @cached_property
    def coverage(self) -> Coverage:
        """Counts of missing queries, unjudged and repeated documents, and ties, as in Scores.coverage."""
        tally = self._computed[1]
        counts = {name: tally.counts.get(name, 0) for name in _COUNTS}
        if not counts["queries"]:
            raise no_grades_error()
        notes = list(dict.fromkeys([*self.plan.qrels.notes, *self.plan.run.notes]))
        if counts["queries"] and not counts["answered"] and counts["without_judgments"]:
            notes.insert(
                0, note("no-shared-query", run=tally.run_only, qrels=[query for _, query in tally.judged])
            )
        held = counts["repeated"] if self.plan.options.duplicates == "hold" else 0
        if tally.retrieved and tally.known and counts["documents"] == counts["unjudged"] + held:
            notes.insert(0, unknown_documents_note(tally.retrieved, tally.known))
        below = Levels.of(self.measures, self.plan.options.rel).note(counts["below_rel"], tally.lowest_grade)
        notes += [below] if below else []
        notes += tally.lengths.notes(self.measures, self.plan.options.depth)
        notes += tally.traits.notes(self.measures)
        return Coverage(**counts, policies=self.plan.options, notes=tuple(notes))

    def to_scores(self) -> Scores:
        """All values as Scores on the driver: for intervals, comparisons and reports."""
        values = _collect(self._values("place", "query_id", *self._columns)).sort("place")
        return Scores(
            name=self.name,
            dialect=self.dialect,
            measures=self.measures,
            queries=values["query_id"].to_list(),
            matrix=np.array([_floats(values[column]) for column in self._columns]),
            coverage=self.coverage,
        )

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

    @property
    def _columns(self) -> list[str]:
        return [f"m{number}" for number in range(len(self.measures))]

    def _values(self, *columns: str) -> Any:
        return self._computed[0].filter(sf.col("tally").isNull()).select(*columns)

    @cached_property
    def _computed(self) -> tuple[Any, Tally]:
        """The frame of values and tallies, persisted by Spark, and the sum of the tallies."""
        frame = self.plan.result().persist()
        try:
            rows = frame.filter(sf.col("tally").isNotNull()).select("tally").collect()
        except PySparkException as error:
            frame.unpersist()
            if "No module named 'steelyard'" in str(error):
                raise errors.PackageError(_NOT_ON_WORKERS) from None
            raise
        tally = total([row["tally"] for row in rows])
        try:
            self._check(tally)
        except errors.SteelyardError:
            frame.unpersist()
            raise
        return frame, tally

    def _check(self, tally: Tally) -> None:
        """Raise the error that the workers found, if any."""
        plan = self.plan
        fault = fault_error(tally.faults, plan.qrels.names, plan.run.names)
        if fault is not None:
            raise fault
        if tally.error is not None:
            kind, text = tally.error
            raise getattr(errors, kind, errors.SteelyardError)(text)
        if tally.repeated is not None:
            raise repeat_error(tally.counts["repeated"], *tally.repeated[1:])
        if plan.options.missing == "error" and tally.missing:
            missing = [query for _, query in tally.missing]
            raise missing_error(missing, tally.counts["missing"], tally.counts["queries"], self.name)


def _collect(frame: Any) -> pl.DataFrame:
    """The rows of a Spark frame on the driver; they are sent as Arrow blocks, not row by row."""
    parts = map_in_arrow(frame, _packed, "packed binary").collect()
    empty = pl.DataFrame(schema={column: _KINDS.get(column, pl.Float64) for column in frame.columns})
    return pl.concat([empty, *(pl.read_ipc_stream(io.BytesIO(part["packed"])) for part in parts)])


_KINDS: dict[str, Any] = {"query_id": pl.String, "place": pl.Int64}


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([packed], ["packed"])


def _floats(values: pl.Series) -> Any:
    return values.fill_null(float("nan")).to_numpy()
