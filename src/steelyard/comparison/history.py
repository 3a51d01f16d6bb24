"""History: one benchmark over time: every measure with intervals, breaks, tested changes, the best and the last."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.scores import Column, column_named
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.lazy import looked_up, special
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure, parse
from steelyard.report.documents import Document, Documented, frame_table, plain_values
from steelyard.report.tables import Table
from steelyard.statistics import adjust, best_of_p, fall_tests, mean_interval
from steelyard.statistics.paired import moments, t_tests
from steelyard.version import __version__
from steelyard.wording import counted, listed

BREAKING = ("corpus", "queries", "qrels")  # Fingerprints whose change breaks a line, as another definition does.
MOST_DRAWN = 1000  # Points of a line up to which the intervals are bootstrapped.


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector, which would look at the millions of objects of a long history again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True, eq=False, slots=True)
class Point:
    """One run of a bench on one dataset."""

    record: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The short commit, with * where files were changed; the time without a commit."""
        commit = self.record.get("commit")
        return f"{str(commit)[:7]}{'*' if self.record.get('dirty') else ''}" if commit else self.time

    @property
    def time(self) -> str:
        """The time in UTC, to the minute."""
        return str(self.record["time"])[:16].replace("T", " ")

    def values(self, run: str, measure: str) -> dict[str, float]:
        """The value of every query that has one."""
        _, values = self.recorded(run, measure) or (math.nan, ())
        pairs = zip(self.record["queries"], values, strict=False)
        return {str(query): float(value) for query, value in pairs if value is not None}

    def recorded(self, run: str, measure: str) -> tuple[float, Sequence[float | None]] | None:
        """The mean and the values in the order of the queries, None for a query without one; None if there are none."""
        of_run = self.record["runs"].get(run)
        try:
            mean, values = of_run["means"][measure], of_run["values"][measure]
        except (KeyError, TypeError):
            return None
        queries = len(self.record["queries"])
        values = values if len(values or ()) <= queries else values[:queries]
        if mean is None or not values or (values[0] is None and all(value is None for value in values)):
            return None
        return float(mean), values

    def column(self, measure: str) -> Column:
        """The column of a measure by its recorded definition; by its name if that is not one, as of a composite."""
        try:
            defined = parse(str(self.record["measures"].get(measure)))
        except MeasureError:
            return column_named(measure)
        return Column(measure, defined.definition.better, defined)

    def breaks(self, other: Point, measure: str) -> list[str]:
        """What changed between two points so that their values cannot be compared."""
        mine, theirs = self.record, other.record
        changed = [name for name in BREAKING if mine["fingerprints"].get(name) != theirs["fingerprints"].get(name)]
        same = mine.get("settings") == theirs.get("settings")
        same = same and mine["measures"].get(measure) == theirs["measures"].get(measure)
        return changed if same else [*changed, "definition"]


class LinePoint(NamedTuple):
    """A point of a line: its mean with the interval, what breaks the line before it, and the tested change.

    `change` is drop, rise, or empty; `p_adjusted` is corrected for all steps of the measure on the dataset, NaN where
    nothing was tested. `difference` is from the point before. Measures that are not averaged have no interval or test.
    """

    point: Point
    dataset: str
    run: str
    measure: str
    mean: float
    low: float
    high: float
    broken: tuple[str, ...] = ()
    difference: float = math.nan
    p_adjusted: float = math.nan
    change: str = ""


@dataclass(frozen=True, eq=False)
class HistoryData:
    """The lines of a history file, oldest first: `table`, `changes`, `latest`, `movers`."""

    points: tuple[Point, ...]
    alpha: float = 0.05

    @property
    def datasets(self) -> list[str]:
        return list(self.by_dataset)

    @property
    def measures(self) -> list[str]:
        """The measures of all points."""
        return list(dict.fromkeys(str(key) for point in self.points for key in point.record["measures"]))

    @cached_property
    def by_dataset(self) -> dict[str, list[Point]]:
        """The points of every dataset."""
        groups: dict[str, list[Point]] = {}
        for point in self.points:
            groups.setdefault(str(point.record["dataset"]), []).append(point)
        return groups

    @cached_property
    @uncollected()
    def lines(self) -> dict[tuple[str, str, str], list[LinePoint]]:
        """The steps of every line, by dataset, measure and run."""
        measures = self.measures
        lines: dict[tuple[str, str, str], list[LinePoint]] = {}
        for dataset, points in self.by_dataset.items():
            by_run = _series(points, measures)
            for measure in measures:
                series = {run: by_measure[measure] for run, by_measure in by_run.items() if by_measure[measure].points}
                lines |= _lines(series, dataset, measure, self.alpha)
        return lines

    @property
    def steps(self) -> list[LinePoint]:
        return [step for line in self.lines.values() for step in line]

    @property
    def changed(self) -> list[LinePoint]:
        """The steps with a significant change."""
        return [step for step in self.steps if step.change]

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per point, run and measure: means, intervals, breaks and changes."""
        rows = [
            {
                "time": step.point.time,
                **{name: step.point.record.get(name) for name in ("commit", "branch", "dirty")},
                **{name: getattr(step, name) for name in _STEP},
                "broken": ", ".join(step.broken),
            }
            for step in self.steps
        ]
        return pl.DataFrame(plain_values(rows), schema=_SCHEMA, orient="row")

    @property
    def changes(self) -> pl.DataFrame:
        """The rows of `table` with a significant change."""
        return self.table.filter(pl.col("change") != "")

    @cached_property
    def latest(self) -> pl.DataFrame:
        """For every line the last value and the best one since the last break, and whether the last is below it.

        The test is a one-sided paired t test, corrected for choosing the best (`best_of_p`) and the number of lines.
        """
        rows: list[list[Any]] = []
        p_values = []
        for (dataset, measure, run), line in self.lines.items():
            since = max((place for place, step in enumerate(line) if step.broken), default=0)
            last, column = line[-1], line[-1].point.column(measure)
            best = (min if column.better == "less" else max)(line[since:], key=lambda step: step.mean)
            points, tested = [step.point for step in line[since:]], column.averaged and last is not best
            p_values.append(_best_p(points, best.point, column, run, measure) if tested else math.nan)
            values = [last.mean, last.point.label, best.mean, best.point.label, last.mean - best.mean]
            rows.append([dataset, measure, run, *values])
        for row, p in zip(rows, adjust(p_values).tolist() if p_values else [], strict=True):
            verdict = "worse than the best" if p < self.alpha else "not significant"
            row += [plain_values(p), "" if math.isnan(p) else verdict]
        names = ["dataset", "measure", "run", "last", "last_at", "best", "best_at", "difference", "p_adjusted"]
        types: dict[str, Any] = dict.fromkeys([*names, "verdict"], pl.String)
        types |= dict.fromkeys(("last", "best", "difference", "p_adjusted"), pl.Float64)
        return pl.DataFrame(rows, schema=types, orient="row")

    def point(self, name: str, dataset: str | None = None) -> Point:
        """A point by its commit, or the first characters of it; `last` is the last one, `first` the first."""
        points = [point for point in self.points if dataset in (None, point.record["dataset"])]
        if name in ("first", "last"):
            return points[0 if name == "first" else -1]
        matches = [point for point in points if name and str(point.record.get("commit") or "").startswith(name)]
        if not matches:
            labels = list(dict.fromkeys(point.label for point in points))
            has = f"it has {listed(labels[-6:])}.{did_you_mean(name, labels)}"
            raise InputError(f"there is no commit {name!r} in the history; {has}")
        return matches[-1]

    def movers(
        self,
        before: str,
        after: str,
        run: str | None = None,
        measure: str | Measure | None = None,
        dataset: str | None = None,
        most: int = 10,
    ) -> pl.DataFrame:
        """The queries that changed most between two points: query_id, before, after, difference.

        before, after: commits, or `first` and `last`. run, measure, dataset: default the first of the last point.
        """
        dataset = dataset or str(self.points[-1].record["dataset"])
        one, other = self.point(before, dataset), self.point(after, dataset)
        run = run or next(iter(other.record["runs"]))
        measure = str(measure or self.measures[0])
        if measure not in self.measures:
            listing = f"{', '.join(self.measures)}.{did_you_mean(measure, self.measures)}"
            raise MeasureError(f"{measure!r} is not in the history, which has {listing}")
        for point in (one, other):
            if not point.values(run, measure):
                raise InputError(f"run {run!r} has no values of {measure} at {point.label}.")
        schema = {"query_id": pl.String, "before": pl.Float64, "after": pl.Float64, "difference": pl.Float64}
        return pl.DataFrame(self.moved(one, other, run, measure)[:most], schema=schema, orient="row")

    def moved(self, before: Point, after: Point, run: str, measure: str) -> list[tuple[str, float, float, float]]:
        """(query, before, after, difference) of every query that changed, the largest differences first."""
        old, new = before.values(run, measure), after.values(run, measure)
        rows = [(query, old[query], value, value - old[query]) for query, value in new.items() if query in old]
        return sorted((row for row in rows if row[3]), key=lambda row: -abs(row[3]))

    @property
    def verdict(self) -> str:
        """How many points there are, and the last significant change of every line that has one."""
        first = f"{counted(len(self.points), 'point')} from {self.points[0].time} to {self.points[-1].time} (UTC)"
        latest = {(step.dataset, step.measure, step.run): step for step in self.changed}
        shown = [
            f"{step.change} of {step.measure} of {step.run} by {abs(step.difference):.4f} at {step.point.label}"
            for step in latest.values()
        ]
        return first + (f". Last significant changes: {listed(shown, 4)}." if shown else ": no significant change.")


class History(Documented, HistoryData):
    """The result of `history`: its data, and the output formats."""

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]], alpha: float = 0.05) -> History:
        """The history of records as `read_history` reads them."""
        return cls(tuple(map(Point, records)), alpha)

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `history`."""
        return {
            "steelyard": __version__,
            "alpha": self.alpha,
            "verdict": self.verdict,
            "points": self.table.to_dicts(),
            "latest": self.latest.to_dicts(),
        }

    def data_table(self) -> Table:
        """One row per point, run and measure, as in `table`."""
        return frame_table(self.table)

    def document(self) -> Document:
        """One table per dataset and measure, and the last and the best values."""
        return cast(Document, looked_up("steelyard.report.history:history_document")(self))

    def _page(self, folder: Path | None) -> str:
        """Every measure over time, drawn."""
        return cast(str, looked_up("steelyard.report.history:history_page")(self))


@dataclass(eq=False, slots=True)
class _Series:
    """The points of a line as columns, since a long history has a million of them; `kinds`: see `_series`."""

    points: list[Point] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    values: list[Sequence[float | None]] = field(default_factory=list)


def _series(points: Sequence[Point], measures: Sequence[str]) -> dict[str, dict[str, _Series]]:
    """What is recorded at the points of a dataset, by run and measure."""
    by_run: dict[str, dict[str, _Series]] = {}
    kind, last = 0, None  # A number that changes where the queries, the fingerprints, measures or settings change.
    for point in points:
        record = point.record
        this = (record["queries"], record["fingerprints"], record["measures"], record.get("settings"))
        kind, last = kind + (this != last), this
        for run in record["runs"]:
            if run not in by_run:
                by_run[run] = {measure: _Series() for measure in measures}
            for measure, series in by_run[run].items():
                if recorded := point.recorded(run, measure):
                    series.points.append(point)
                    series.kinds.append(kind)
                    series.means.append(recorded[0])
                    series.values.append(recorded[1])
    return by_run


def _lines(
    by_run: Mapping[str, _Series], dataset: str, measure: str, alpha: float
) -> dict[tuple[str, str, str], list[LinePoint]]:
    """The lines of a measure; the p-values of all changes are corrected together (Holm)."""
    tested = {run: _tested(series, run, measure) for run, series in by_run.items()}
    adjusted = adjust(np.concatenate([p for *_, p in tested.values()])) if tested else np.empty(0)
    changes = np.array(["", "drop", "rise"], dtype=object)
    lines, stop = {}, 0
    for run, (low, high, broken, differences, _) in tested.items():
        series = by_run[run]
        start, stop = stop, stop + len(series.points)
        p = adjusted[start:stop]
        change = changes[np.where(p < alpha, np.where(differences > 0, 2, 1), 0)]
        names = (repeat(name, len(p)) for name in (dataset, run, measure))
        columns = (low.tolist(), high.tolist(), broken, differences.tolist(), p.tolist(), change.tolist())
        steps = zip(series.points, *names, series.means, *columns, strict=True)
        lines[dataset, measure, run] = list(map(LinePoint._make, steps))
    return lines


def _tested(series: _Series, run: str, measure: str) -> tuple[Floats, Floats, list[tuple[str, ...]], Floats, Floats]:
    """For every point the ends of the interval, what breaks the line, the difference from the point before and its
    uncorrected p-value; NaN where nothing was tested."""
    points = series.points
    low, high, differences, p_values = (np.full(len(points), math.nan) for _ in range(4))
    broken: list[tuple[str, ...]] = [()] * len(points)
    changed = np.diff(np.array([series.kinds, list(map(len, series.values))]), axis=1).any(axis=0)
    for start, stop in pairwise([0, *(np.flatnonzero(changed) + 1).tolist(), len(points)]):
        column, values = points[start].column(measure), _matrix(series.values[start:stop])
        if column.averaged:
            ends = np.array(_intervals(column.tested(values), drawn=len(points) <= MOST_DRAWN))
            low[start:stop], high[start:stop] = np.clip(np.exp(ends) if column.geometric else ends, *column.range)
        differences[start + 1 : stop], p_values[start + 1 : stop] = _changes(column, values)
        if start:
            before, after = points[start - 1], points[start]
            broken[start] = tuple(after.breaks(before, measure))
            if not broken[start]:
                was, now = before.values(run, measure), after.values(run, measure)
                both = np.array([(was[query], value) for query, value in now.items() if query in was]).reshape(-1, 2)
                differences[start], p_values[start] = np.ravel(_changes(column, both.T))
    return low, high, broken, differences, p_values


def _changes(column: Column, values: Floats) -> tuple[Floats, Floats]:
    """The difference of every row from the one before, on the values that both have, and its p-value."""
    gaps = np.diff(column.tested(values), axis=0)
    differences, p_values = t_tests(gaps)
    if column.geometric or not column.averaged:
        for place in np.flatnonzero(~np.isnan(differences)):
            before, after = map(column.mean, values[place : place + 2, ~np.isnan(gaps[place])])
            differences[place] = after - before
    return differences, p_values if column.averaged else np.full(len(gaps), math.nan)


def _matrix(rows: Sequence[Sequence[float | None]]) -> Floats:
    """Lists of one length as rows, NaN for None. Without None an iterator takes half of the time."""
    try:
        return np.fromiter(chain.from_iterable(rows), np.float64).reshape(len(rows), -1)
    except TypeError:
        return np.array(rows, dtype=np.float64)


def _intervals(matrix: Floats, drawn: bool) -> tuple[Floats, Floats]:
    """The interval of the mean of every row: the bootstrap's if `drawn`, or Student's: drawing would take minutes."""
    if drawn:
        low, high = np.array([mean_interval(row[~np.isnan(row)]) for row in matrix]).T
        return low, high
    n, means, deviations = moments(matrix)
    sizes, places = np.unique(n, return_inverse=True)
    margins = special.stdtrit(sizes - 1.0, 0.975)[places] * deviations / np.sqrt(n)
    return means - margins, means + margins


def _best_p(points: Sequence[Point], best: Point, column: Column, run: str, measure: str) -> float:
    """The p-value of a loss of the last point against the best of them, on the queries that all of them have."""
    first, earlier = points[0].record["queries"], len(points) - 1
    same = all(point.record["queries"] is first or point.record["queries"] == first for point in points)
    if same and earlier > MOST_DRAWN:
        points = [best, points[-1]]
    rows = [recorded[1] for point in points if (recorded := point.recorded(run, measure))]
    if same and len(set(map(len, rows))) == 1:
        values = _matrix(rows)
    else:
        by_query = [point.values(run, measure) for point in points]
        shared = [query for query in by_query[-1] if all(query in scores for scores in by_query)]
        values = np.array([[scores[query] for query in shared] for scores in by_query]).reshape(len(points), -1)
    worth = column.worth(column.tested(values))
    gaps = worth[:-1] - worth[-1]
    p = fall_tests(-gaps[[points.index(best)]])[0].p
    if earlier > MOST_DRAWN and not math.isnan(p):
        return min(1.0, p * earlier)  # Bonferroni's bound: drawing would take minutes in a long line.
    return p if math.isnan(p) else best_of_p(p, gaps)


_STEP = ("dataset", "measure", "run", "mean", "low", "high", "difference", "p_adjusted", "change")
"""The fields of a step that are columns of the table."""

_SCHEMA: dict[str, Any] = dict.fromkeys(("time", "commit", "branch", "dirty", *_STEP, "broken"), str)
_SCHEMA |= {"dirty": bool} | dict.fromkeys(("mean", "low", "high", "difference", "p_adjusted"), float)
