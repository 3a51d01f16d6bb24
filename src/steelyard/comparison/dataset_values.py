"""The values of one dataset among several: means, intervals and verdicts of its comparison, and values per query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.checks import unknown_name
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import Column, ScoreTable, label
from steelyard.errors import InputError, MeasureError
from steelyard.measures.grammar import parse
from steelyard.wording import SHOWN_NAMES, listed


@dataclass(frozen=True, eq=False)
class DatasetValues:
    """One dataset: the mean of every run that was measured on it, with its interval where it has one.

    `per_query` has one value per query and run, on the queries that all these runs have; it is empty for published
    means. `verdicts` are those of every two runs on this dataset alone, for (run, baseline). `page` is its report page.
    `others` has the means by other measures, by their labels.
    """

    name: str
    means: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    per_query: Mapping[str, Floats] = field(default_factory=dict)
    verdicts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    page: Path | None = None
    timed_apart: bool = False
    others: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def queries(self) -> int | None:
        """The number of queries; None if it is not known."""
        return next((len(values) for values in self.per_query.values()), None)

    def with_published(self, means: Mapping[str, float]) -> DatasetValues:
        """The dataset with the published means of more runs."""
        twice = sorted(self.means.keys() & means.keys())
        if twice:
            raise InputError(
                f"{self.name}: {listed(twice, SHOWN_NAMES)} has a value of its own and a published one; "
                "give one of them another name."
            )
        return replace(self, means={**self.means, **means})


def measured_column(comparison: Comparison, measure: str | None) -> tuple[ScoreTable, Column]:
    """The score table and the column of a measure, by its label or its definition; the first one by default."""
    columns = [(table, column) for table in comparison.score_tables for column in table.columns]
    if measure is None:
        return columns[0]
    labels = {label(column.key, table.k): (table, column) for table, column in columns}
    by_case = {name.lower(): found for name, found in labels.items()}
    if measure.lower() in by_case:
        return by_case[measure.lower()]
    try:
        spelled = parse(measure).spelled
    except MeasureError:
        spelled = ""
    for table, column in columns:
        if column.measure is not None and column.measure.spelled == spelled and table.k is None:
            return table, column
    raise MeasureError(unknown_name("measure", measure, labels))


def dataset_values(
    name: str, comparison: Comparison, table: ScoreTable, column: Column, page: Path | None
) -> DatasetValues:
    """The values of one dataset from its comparison; means, intervals and verdicts are those of the comparison."""
    rows = {row.run: row for row in comparison.leaderboard_rows if row.k == table.k}
    means = {run: rows[run].means[column.key] for run in table.runs if run in rows}
    means = {run: mean for run, mean in means.items() if mean == mean}
    values = table.compared(column.key)[[table.runs.index(run) for run in means]]
    kept = values[:, ~np.isnan(values).any(axis=0)]
    pairs = comparison.claims.every(column.key, table.k)
    apart = column.timed and not all(table.comparable(column, i, j) for i, j in combinations(range(len(table.runs)), 2))
    return DatasetValues(
        name,
        means,
        {run: rows[run].intervals[column.key] for run in means},
        dict(zip(means, kept, strict=True)) if column.averaged and not column.geometric else {},
        {
            ends: verdict
            for pair in pairs
            for ends, verdict in (
                ((pair.run, pair.baseline), pair.verdict),
                ((pair.baseline, pair.run), reverse(pair.verdict)),
            )
        },
        page,
        apart,
        {
            label(other.key, each.k): {
                row.run: row.means[other.key] for row in comparison.leaderboard_rows if row.k == each.k
            }
            for each in comparison.score_tables
            for other in each.columns
            if other is not column
        },
    )


def reverse(verdict: str) -> str:
    """The verdict of the baseline compared with the run."""
    return {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}.get(verdict, verdict)
