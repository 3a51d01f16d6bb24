"""What a worker is told: it travels to every worker, and is what Spark calls there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.measures.grammar import Measure
from steelyard.policies import Policies

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 18
"""How many rows are measured at a time: as many whole queries as make so many, or one query that has more."""


@dataclass(frozen=True)
class Task:
    """What is measured, and how. `scored`: whether the run has scores; `highest`: the highest grade of all."""

    wanted: dict[str, Measure]
    rules: Policies
    rel: float | None
    depth: int | None
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
