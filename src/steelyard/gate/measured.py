"""What a gate holds against each other: every run's value of every measure on every query, and how it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.alignment.hits import Bools, Floats
from steelyard.comparison.board import COMPOSITE, Board, Column, column_named
from steelyard.dialects import Dialect
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.evaluation import named_measures
from steelyard.measures.grammar import Measure
from steelyard.version import __version__
from steelyard.wording import counted

RESIDUAL = " residual"


@dataclass(frozen=True)
class Failed:
    """On how many of the queries it was asked a run failed, and the first error."""

    failed: int
    asked: int
    first: str

    def __str__(self) -> str:
        return f"it failed on {self.failed:,} of {counted(self.asked, 'query', 'queries')} (the first, {self.first})"


@dataclass(frozen=True, eq=False)
class Measured:
    """Values per query, wherever they were kept.

    `definitions` says of each measure how it was spelled out; `policies`, `judgments` (a short hash
    a query) and `dataset` are None where they are not known. `rules` are those the result brings
    along, `failed` the runs that failed on queries and `allow_failed` how many may, `remarks` what else a
    reader should know of its runs, `cutoffs` those of a comparison at several.
    """

    name: str
    board: Board
    dialect: str = "steelyard"
    version: str = __version__
    definitions: Mapping[str, str] = field(default_factory=dict)
    policies: Mapping[str, Any] | None = None
    judgments: Mapping[str, str] | None = None
    dataset: Mapping[str, Any] | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cutoffs: tuple[int, ...] = ()
    folder: Path | None = None
    rules: tuple[str, ...] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, Failed] = field(default_factory=dict)
    allow_failed: int = 0

    @property
    def keys(self) -> list[str]:
        """The measures, as they were written."""
        return [column.key for column in self.board.columns]

    def column(self, key: str) -> Column:
        """A measure's column."""
        return self.board.columns[self.board.column(key)]

    def key(self, text: str) -> str:
        """The measure that a rule names: as it was written, or another spelling of the same."""
        if text in self.keys:
            return text
        try:
            meant = dialect_of(self.dialect).measure(text).spelled
        except MeasureError:
            meant = ""
        for key, spelled in self.definitions.items():
            if (meant and spelled == meant) or key.lower() == text.lower():
                return key
        raise MeasureError(
            f"{text!r} is not measured in {self.name}; there are {', '.join(self.keys)}."
            f"{did_you_mean(text, self.keys)}"
        )

    def run(self, name: str) -> int:
        """The place of a run."""
        if name not in self.board.runs:
            raise InputError(
                f"there is no run {name!r} in {self.name}; there are {', '.join(self.board.runs)}."
                f"{did_you_mean(name, self.board.runs)}"
            )
        return self.board.runs.index(name)

    def values(self, run: str, key: str) -> Floats:
        """A run's values of a measure, query by query; NaN where there is none."""
        found: Floats = self.board.of(key)[self.run(run)]
        return found

    def answered(self, run: str) -> Bools:
        """The queries that a run has any value of."""
        known: Bools = ~np.isnan(self.board.values[self.run(run)]).all(axis=0)
        return known


def columns_of(
    keys: Sequence[str],
    dialect: str,
    weights: Mapping[str, float] | None = None,
    cutoffs: Sequence[int] = (),
    known: Mapping[str, str] | None = None,
) -> tuple[tuple[Column, ...], dict[str, str]]:
    """The columns that keys stand for in a dialect, and how each is spelled out; `known` spellings win."""
    spoken = dialect_of(dialect)
    columns, definitions = [], {}
    for key in keys:
        column, spelled = _column(key, spoken, weights, cutoffs)
        columns.append(column)
        definitions[key] = (known or {}).get(key, spelled)
    return tuple(columns), definitions


def _column(
    key: str, spoken: Dialect, weights: Mapping[str, float] | None, cutoffs: Sequence[int]
) -> tuple[Column, str]:
    base, k = next(
        ((key.removesuffix(f" at {k}"), k) for k in cutoffs if key.endswith(f" at {k}")), (key, None)
    )
    if base == COMPOSITE:
        mixed = ", ".join(f"{name}: {weight:g}" for name, weight in (weights or {}).items())
        return Column(key), f"{key} of {mixed}" if mixed else key
    try:
        measure = _measure(base, k, spoken)
    except MeasureError:
        return column_named(key), key
    return Column(key, measure.definition.better, measure), measure.spelled


def _measure(text: str, k: int | None, spoken: Dialect) -> Measure:
    if k is not None:
        try:
            return spoken.measure(f"{text}@{k}")
        except MeasureError:
            return spoken.measure(text)
    if text.endswith(RESIDUAL):
        return named_measures(text.removesuffix(RESIDUAL), spoken)[text]
    return spoken.measure(text)
