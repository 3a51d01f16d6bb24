"""SparkScores: the result of steelyard.spark.evaluate()."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from steelyard.coverage import Coverage
from steelyard.measures.grammar import Measure
from steelyard.scores import Scores, key_of
from steelyard.spark.frames import send_columns
from steelyard.spark.plan import Plan
from steelyard.spark.scan import scanned_scores
from steelyard.spark.shuffled import ShuffledScores
from steelyard.wording import counted


@dataclass(frozen=True, eq=False, repr=False)
class SparkScores:
    """The result of steelyard.spark.evaluate(). The cluster starts to work when a value is first needed."""

    plan: Plan

    @property
    def name(self) -> str:
        """The run's name."""
        return self.plan.name

    @property
    def dialect(self) -> str:
        """The name of the dialect."""
        return self.plan.dialect.name

    @property
    def measures(self) -> Mapping[str, Measure]:
        """The measures, keyed as the caller wrote them."""
        return self.plan.measures

    @cached_property
    def per_query(self) -> Any:
        """A Spark frame: query_id, then one column per measure; null where the measure does not apply."""
        if self._scores is None:
            return self._shuffled.per_query
        return values_frame(self.plan.spark, self._scores)

    @cached_property
    def means(self) -> dict[str, float]:
        """Each measure over all queries: the mean, or the sum of a count."""
        return (self._scores or self._shuffled).means

    def __getitem__(self, measure: str | Measure) -> float:
        return self.means[key_of(measure, self.measures)]

    @property
    def policies(self) -> dict[str, Any]:
        """The options in force, as in Scores.policies."""
        return vars(self.plan.options).copy()

    @property
    def coverage(self) -> Coverage:
        """Counts of missing queries, unjudged and repeated documents, and ties, as in Scores.coverage."""
        return (self._scores or self._shuffled).coverage

    def to_scores(self) -> Scores:
        """All values as Scores on the driver: for intervals, comparisons and reports."""
        return self._scores or self._shuffled.to_scores()

    def unpersist(self) -> None:
        """Release the values that Spark keeps. They are computed again if they are needed later."""
        if "_shuffled" in self.__dict__:
            self._shuffled.unpersist()

    def __repr__(self) -> str:
        if "means" not in self.__dict__:
            return f"SparkScores of {self.name!r}: {', '.join(self.measures)} (not computed yet)"
        width = max(map(len, self.measures))
        lines = [f"  {key:<{width}}  {value:.4f}" for key, value in self.means.items()]
        head = f"SparkScores of {self.name!r} over {counted(self.coverage.queries, 'query', 'queries')}"
        return "\n".join([head, *lines, f"  {self.coverage}"])

    @cached_property
    def _scores(self) -> Scores | None:
        """The scores, computed on the driver from what the workers found; None with too many judgments for that."""
        return scanned_scores(self.plan)

    @cached_property
    def _shuffled(self) -> ShuffledScores:
        """The scores by a shuffle of all rows."""
        return ShuffledScores(self.plan)


def values_frame(spark: Any, scores: Scores) -> Any:
    """The values of every query as a Spark frame: query_id, one column per measure; NaN becomes null."""
    columns = [f"m{number}" for number in range(len(scores.measures))]
    values = [pl.Series(name, row).fill_nan(None) for name, row in zip(columns, scores.matrix, strict=True)]
    table = pl.DataFrame([pl.Series("query_id", list(scores.queries), dtype=pl.String), *values])
    schema = ", ".join(["query_id string", *(f"{name} double" for name in columns)])
    return send_columns(spark, table, schema).toDF("query_id", *scores.measures)
