"""What a worker needs to evaluate queries. It imports neither Spark nor polars, whose threads are set before."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.measures.grammar import Measure
from steelyard.options import Options

ROWS = 1 << 18
"""Rows that a worker evaluates at a time: whole queries with about this many rows, or one longer query."""


@dataclass(frozen=True)
class EvaluationSettings:
    """The measures and the options, as every worker gets them.

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
