"""The values of an evaluation by a shuffle: they stay on the cluster, and counts and means go to the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import functions as sf

from steelyard import errors
from steelyard.alignment.ranking import repeat_error
from steelyard.coverage import Coverage, Levels, unknown_documents_note
from steelyard.evaluation import missing_error, no_grades_error
from steelyard.measures.compute import summary
from steelyard.measures.grammar import Measure
from steelyard.notes import note
from steelyard.scores import Scores
from steelyard.spark.frames import collect, collect_columns
from steelyard.spark.plan import MOST_JUDGMENTS, Plan
from steelyard.spark.rows import fault_error
from steelyard.spark.sums import cluster_means
from steelyard.spark.worker import EvaluationTally, total

MOST_QUERIES = 10_000_000
"""The values of up to this many queries are averaged on the driver, those of more on the cluster."""
_COUNTS = (
    *("queries", "answered", "missing", "empty", "without_judgments", "no_relevant"),
    *("documents", "unjudged", "repeated", "tie_sensitive", "below_rel"),
)


@dataclass(frozen=True, eq=False, repr=False)
class ShuffledScores:
    """The scores of a plan. The values stay on the cluster, persisted by Spark until `unpersist`."""

    plan: Plan

    @property
    def _measures(self) -> Mapping[str, Measure]:
        return self.plan.measures

    @property
    def per_query(self) -> Any:
        """A Spark frame: query_id, then one column per measure; null where the measure does not apply."""
        return self._values("query_id", *self._columns).toDF("query_id", *self._measures)

    @cached_property
    def means(self) -> dict[str, float]:
        """Each measure over all queries: the mean, or the sum of a count.

        Up to MOST_QUERIES values are added on the driver, in the order of the qrels. Sums of more are computed on the
        cluster without rounding, so that no order matters, and rounded once.
        """
        if not self.coverage.queries:
            raise no_grades_error()
        if self.coverage.queries > MOST_QUERIES:
            return cluster_means(self._values(*self._columns), self._measures)
        values = collect_columns(self._values("place", *self._columns)).sort("place")
        return {
            key: summary(measure, _floats(values[column]))
            for (key, measure), column in zip(self._measures.items(), self._columns, strict=True)
        }

    @cached_property
    def coverage(self) -> Coverage:
        """Counts of missing queries, unjudged and repeated documents, and ties, as in Scores.coverage."""
        tally = self._computed[1]
        counts = {name: tally.counts.get(name, 0) for name in _COUNTS}
        if not counts["queries"]:
            raise no_grades_error()
        notes = list(dict.fromkeys([*self.plan.qrels.notes, *self.plan.run.notes]))
        if counts["queries"] and not counts["answered"] and counts["without_judgments"]:
            notes.insert(0, note("no-shared-query", run=tally.run_only, qrels=[query for _, query in tally.judged]))
        held = counts["repeated"] if self.plan.options.duplicates == "hold" else 0
        if tally.retrieved and tally.known and counts["documents"] == counts["unjudged"] + held:
            notes.insert(0, unknown_documents_note(tally.retrieved, tally.known))
        below = Levels.of(self._measures, self.plan.options.rel).note(counts["below_rel"], tally.lowest_grade)
        notes += [below] if below else []
        notes += tally.lengths.notes(self._measures, self.plan.options.depth)
        notes += tally.traits.notes(self._measures)
        notes.append(note("rows-shuffled", most=MOST_JUDGMENTS))
        return Coverage(**counts, policies=self.plan.options, notes=tuple(notes))

    def to_scores(self) -> Scores:
        """All values as Scores on the driver."""
        values = collect_columns(self._values("place", "query_id", *self._columns)).sort("place")
        return Scores(
            name=self.plan.name,
            dialect=self.plan.dialect.name,
            measures=self._measures,
            queries=values["query_id"].to_list(),
            matrix=np.array([_floats(values[column]) for column in self._columns]),
            coverage=self.coverage,
        )

    def unpersist(self) -> None:
        """Release the values that Spark keeps. They are computed again if they are needed later."""
        if "_computed" in self.__dict__:
            self._computed[0].unpersist()

    @property
    def _columns(self) -> list[str]:
        return [f"m{number}" for number in range(len(self._measures))]

    def _values(self, *columns: str) -> Any:
        return self._computed[0].filter(sf.col("tally").isNull()).select(*columns)

    @cached_property
    def _computed(self) -> tuple[Any, EvaluationTally]:
        """The frame of values and tallies, persisted by Spark, and the sum of the tallies."""
        frame = self.plan.result().persist()
        try:
            rows = collect(frame.filter(sf.col("tally").isNotNull()).select("tally"))
            tally = total([row["tally"] for row in rows])
            self._check(tally)
        except Exception:
            frame.unpersist()
            raise
        return frame, tally

    def _check(self, tally: EvaluationTally) -> None:
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
            raise missing_error(missing, tally.counts["missing"], tally.counts["queries"], plan.name)


def _floats(values: pl.Series) -> Any:
    return values.fill_null(float("nan")).to_numpy()
