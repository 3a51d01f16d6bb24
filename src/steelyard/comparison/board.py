"""The board: every run's value of every measure on every query. All of a comparison reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.alignment.hits import Bools, Floats
from steelyard.errors import MeasureError
from steelyard.measures.compute import averaged, summary
from steelyard.measures.grammar import Measure, parse

COMPOSITE = "composite"


@dataclass(frozen=True)
class Column:
    """One measure of a board: its key, whether more or less is better, and how queries are summed up."""

    key: str
    better: str = "more"
    measure: Measure | None = None

    def mean(self, values: Floats) -> float:
        """The values of the queries in one number; NaN where there are none."""
        if self.measure is not None:
            return summary(self.measure, values)
        kept = values[~np.isnan(values)]
        return float(kept.mean()) if len(kept) else float("nan")

    @property
    def averaged(self) -> bool:
        """Whether `mean` is the mean over queries, so that an interval of the mean is its interval."""
        return self.measure is None or averaged(self.measure)

    def worth(self, values: Floats) -> Floats:
        """The values turned so that more is better."""
        return -values if self.better == "less" else values


@dataclass(frozen=True)
class Board:
    """Values by run, measure and query (NaN where a measure does not apply). `k` is the board's cutoff, if one."""

    runs: tuple[str, ...]
    columns: tuple[Column, ...]
    queries: tuple[str, ...]
    values: Floats
    k: int | None = None

    def column(self, key: str) -> int:
        """The place of a measure."""
        for place, column in enumerate(self.columns):
            if column.key == key:
                return place
        raise MeasureError(f"{key!r} was not measured; there are {', '.join(c.key for c in self.columns)}.")

    def of(self, key: str) -> Floats:
        """One measure's values, runs x queries."""
        return self.values[:, self.column(key), :]

    def means(self) -> Floats:
        """Every run's summary of every measure, runs x measures."""
        return np.array(
            [[column.mean(row) for column, row in zip(self.columns, run, strict=True)] for run in self.values]
        ).reshape(len(self.runs), len(self.columns))

    def where(self, chosen: Bools) -> Board:
        """The board of some of the queries."""
        kept = [query for query, keep in zip(self.queries, chosen.tolist(), strict=True) if keep]
        return replace(self, queries=tuple(kept), values=self.values[:, :, chosen])

    def with_composite(self, weights: Mapping[str, float]) -> Board:
        """The board with the weighted mean of some measures as a further one, first of all."""
        total = sum(weights.values())
        mixed = np.zeros((len(self.runs), len(self.queries)))
        for key, weight in weights.items():
            values = self.of(key)
            less = self.columns[self.column(key)].better == "less"
            mixed += weight * (1 - values if less else values) / total
        values = np.concatenate([mixed[:, None, :], self.values], axis=1)
        return replace(self, columns=(Column(COMPOSITE), *self.columns), values=values)

    def only(self, keys: Sequence[str]) -> Board:
        """The board of some of the measures, in the order given."""
        places = [self.column(key) for key in keys]
        return replace(self, columns=tuple(self.columns[p] for p in places), values=self.values[:, places, :])


def column_named(key: str) -> Column:
    """A column by name alone: a measure's own direction where the name is one, else more is better."""
    try:
        measure = parse(key)
    except MeasureError:
        return Column(
            key, "less" if key.strip().lower() in ("latency", "seconds", "cost", "loss", "error") else "more"
        )
    return Column(key, measure.definition.better if measure.definition.better == "less" else "more")
