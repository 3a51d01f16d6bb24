"""History: one benchmark over time: every measure with intervals, breaks, tested changes, the best and the last."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.scores import column_named
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.lazy import looked_up
from steelyard.report.documents import Document, Documented, frame_table, plain_values
from steelyard.report.tables import Table
from steelyard.statistics import adjust, best_of_p, fall_tests, mean_interval
from steelyard.version import __version__
from steelyard.wording import listed

if TYPE_CHECKING:
    import polars as pl

BREAKING = ("corpus", "queries", "qrels")
"""Fingerprints whose change breaks a line, as does another definition of the measure."""

MOST_DRAWN = 1000
"""Points of a line up to which the intervals are bootstrapped."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the garbage collector: a long history is millions of objects, none of them garbage, and every few
    thousand new ones would have it look at them again."""
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

    def mean(self, run: str, measure: str) -> float:
        """The recorded mean; NaN if there is none."""
        value = self._of(run, "means").get(measure)
        return math.nan if value is None else float(value)

    def values(self, run: str, measure: str) -> dict[str, float]:
        """The value of every query that has one."""
        values = self.recorded(run, measure)
        return {
            str(query): float(value)
            for query, value in zip(self.record["queries"], values, strict=False)
            if value is not None
        }

    def recorded(self, run: str, measure: str) -> Sequence[float | None]:
        """The values in the order of the queries, as they are in the record; None for a query that has none."""
        values = self._of(run, "values").get(measure) or ()
        queries = len(self.record["queries"])
        return values if len(values) <= queries else values[:queries]

    def _of(self, run: str, what: str) -> Mapping[str, Any]:
        recorded = self.record["runs"].get(run)
        part = recorded.get(what) if isinstance(recorded, dict) else None
        return part if isinstance(part, dict) else {}

    def breaks(self, other: Point, measure: str) -> list[str]:
        """What changed between two points so that their values cannot be compared."""
        mine, theirs = self.record["fingerprints"], other.record["fingerprints"]
        # Records of one file share what is equal in them.
        changed = [] if mine is theirs else [name for name in BREAKING if mine.get(name) != theirs.get(name)]
        same = self.record["measures"].get(measure) == other.record["measures"].get(measure)
        same = same and self.record.get("settings") == other.record.get("settings")
        return changed if same else [*changed, "definition"]


class LinePoint(NamedTuple):
    """A point of a line: its mean with the interval, what breaks the line before it, and the tested change.

    `change` is drop, rise, or empty; `p_adjusted` is corrected for all steps of the measure on the dataset, and NaN
    where nothing was tested. `difference` is from the point before, on the queries of both.
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
        """The datasets."""
        return list(dict.fromkeys(str(point.record["dataset"]) for point in self.points))

    @property
    def measures(self) -> list[str]:
        """The measures of all points."""
        return list(dict.fromkeys(str(key) for point in self.points for key in point.record["measures"]))

    @cached_property
    @uncollected()
    def lines(self) -> dict[tuple[str, str, str], list[LinePoint]]:
        """The steps of every line, by dataset, measure and run."""
        by_dataset: dict[str, list[Point]] = {}
        for point in self.points:
            by_dataset.setdefault(str(point.record["dataset"]), []).append(point)
        lines: dict[tuple[str, str, str], list[LinePoint]] = {}
        for dataset, points in by_dataset.items():
            runs = list(dict.fromkeys(str(run) for point in points for run in point.record["runs"]))
            for measure in self.measures:
                tested = [step for run in runs for step in _line(points, dataset, run, measure)]
                for step in _corrected(tested, self.alpha):
                    lines.setdefault((dataset, measure, step.run), []).append(step)
        return lines

    @property
    def steps(self) -> list[LinePoint]:
        """All steps of all lines."""
        return [step for line in self.lines.values() for step in line]

    @property
    def changed(self) -> list[LinePoint]:
        """The steps with a significant change."""
        return [step for step in self.steps if step.change]

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per point, run and measure: means, intervals, breaks and changes."""
        import polars as pl

        rows = [
            {
                "time": step.point.time,
                "commit": step.point.record.get("commit"),
                "branch": step.point.record.get("branch"),
                "dirty": step.point.record.get("dirty"),
                **{name: getattr(step, name) for name in _STEP},
                "broken": ", ".join(step.broken),
            }
            for step in self.steps
        ]
        return pl.DataFrame(plain_values(rows), schema=_SCHEMA, orient="row")

    @property
    def changes(self) -> pl.DataFrame:
        """The rows of `table` with a significant change."""
        import polars as pl

        return self.table.filter(pl.col("change") != "")

    @cached_property
    def latest(self) -> pl.DataFrame:
        """For every line the last value and the best one since the last break, and whether the last is below it.

        The test is a one-sided paired t test, corrected for having chosen the best (`best_of_p`) and for the number of
        lines.
        """
        import polars as pl

        rows, p_values = [], []
        for (dataset, measure, run), line in self.lines.items():
            since = max((place for place, step in enumerate(line) if step.broken), default=0)
            sign = -1.0 if column_named(measure).better == "less" else 1.0
            last, best = line[-1], max(line[since:], key=lambda step: sign * step.mean)
            p_values.append(
                math.nan
                if last is best
                else _best_p([step.point for step in line[since:]], best.point, sign, run, measure)
            )
            values = [last.mean, last.point.label, best.mean, best.point.label, last.mean - best.mean]
            rows.append([dataset, measure, run, *values])
        adjusted = adjust(p_values).tolist() if p_values else []
        different = "different from the best"
        data = [
            [*row, plain_values(p), "" if math.isnan(p) else different if p < self.alpha else "not significant"]
            for row, p in zip(rows, adjusted, strict=True)
        ]
        names = ["dataset", "measure", "run", "last", "last_at", "best", "best_at", "difference", "p_adjusted"]
        types: dict[str, Any] = dict.fromkeys([*names, "verdict"], pl.String)
        types |= dict.fromkeys(("last", "best", "difference", "p_adjusted"), pl.Float64)
        return pl.DataFrame(data, schema=types, orient="row")

    def point(self, name: str, dataset: str | None = None) -> Point:
        """A point by its commit, or the first characters of it; `last` is the last one, `first` the first."""
        points = [point for point in self.points if dataset in (None, point.record["dataset"])]
        if name in ("first", "last"):
            return points[0 if name == "first" else -1]
        found = [point for point in points if name and str(point.record.get("commit") or "").startswith(name)]
        if not found:
            known = list(dict.fromkeys(point.label for point in points))
            raise InputError(
                f"there is no commit {name!r} in the history; it has {listed(known[-6:])}.{did_you_mean(name, known)}"
            )
        return found[-1]

    def movers(
        self,
        before: str,
        after: str,
        run: str | None = None,
        measure: str | None = None,
        dataset: str | None = None,
        most: int = 10,
    ) -> pl.DataFrame:
        """The queries that changed most between two points: query_id, before, after, difference.

        before, after: commits, or `first` and `last`. run, measure, dataset: default the first of the last point.
        """
        import polars as pl

        dataset = dataset or str(self.points[-1].record["dataset"])
        one, other = self.point(before, dataset), self.point(after, dataset)
        run = run or next(iter(other.record["runs"]))
        measure = measure or self.measures[0]
        if measure not in self.measures:
            raise MeasureError(
                f"{measure!r} is not in the history, which has "
                f"{', '.join(self.measures)}.{did_you_mean(measure, self.measures)}"
            )
        for point in (one, other):
            if not point.values(run, measure):
                raise InputError(f"run {run!r} has no values of {measure} at {point.label}.")
        rows = self.moved(one, other, run, measure)
        schema = {"query_id": pl.String, "before": pl.Float64, "after": pl.Float64, "difference": pl.Float64}
        return pl.DataFrame(rows[:most], schema=schema, orient="row")

    def moved(self, before: Point, after: Point, run: str, measure: str) -> list[tuple[str, float, float, float]]:
        """(query, before, after, difference) of every query that changed, the largest differences first."""
        old, new = before.values(run, measure), after.values(run, measure)
        rows = [(query, old[query], value, value - old[query]) for query, value in new.items() if query in old]
        return sorted((row for row in rows if row[3]), key=lambda row: -abs(row[3]))

    @property
    def verdict(self) -> str:
        """How many points there are, and the last significant change of every line that has one."""
        first = f"{len(self.points)} points from {self.points[0].time} to {self.points[-1].time} (UTC)"
        latest = {(step.dataset, step.measure, step.run): step for step in self.changed}
        if not latest:
            return f"{first}: no significant change."
        shown = [
            f"{step.change} of {step.measure} of {step.run} by {abs(step.difference):.4f} at {step.point.label}"
            for step in latest.values()
        ]
        return f"{first}. Last significant changes: {listed(shown, 4)}."


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
        document: Document = looked_up("steelyard.report.history:history_document")(self)
        return document

    def _page(self, folder: Path | None) -> str:
        """Every measure over time, drawn."""
        page: str = looked_up("steelyard.report.history:history_page")(self)
        return page


def _line(points: Sequence[Point], dataset: str, run: str, measure: str) -> list[LinePoint]:
    """The steps of a line, each with the uncorrected p-value of its change; NaN if nothing was tested."""
    pairs = [(point, mean) for point in points if not math.isnan(mean := point.mean(run, measure))]
    arrays = _as_arrays([point.recorded(run, measure) for point, _ in pairs])
    measured = [(*pair, values, present) for pair, (values, present) in zip(pairs, arrays, strict=True) if present]
    broken: list[tuple[str, ...]] = [()] * len(measured)
    gaps = [np.empty(0)] * len(measured)
    for place, ((before, _, old, old_present), (point, _, new, present)) in enumerate(pairwise(measured), start=1):
        broken[place] = tuple(point.breaks(before, measure))
        if broken[place]:
            continue
        old_queries, queries = before.record["queries"], point.record["queries"]
        if len(old) == len(new) and (old_queries is queries or old_queries == queries):
            gaps[place] = new - old if old_present == present == len(new) else _present(new - old)
        else:
            gaps[place] = _gap(before, point, run, measure)
    intervals = _intervals([v if present == len(v) else _present(v) for _, _, v, present in measured])
    differences, p_values = t_tests(gaps)
    steps = zip(measured, intervals, broken, differences, p_values, strict=True)
    return [
        LinePoint(point, dataset, run, measure, mean, low, high, breaks, difference, p)
        for (point, mean, _, _), (low, high), breaks, difference, p in steps
    ]


def _as_arrays(lists: Sequence[Sequence[float | None]]) -> list[tuple[Floats, int]]:
    """Lists of values as arrays, NaN for None, each with the number of its values; those of one length at once."""
    made = [(np.empty(0), 0)] * len(lists)
    for places in _places_by_length(lists).values():
        matrix = np.array([lists[place] for place in places], dtype=np.float64)
        present = np.count_nonzero(~np.isnan(matrix), axis=1).tolist()
        for place, values, count in zip(places, matrix, present, strict=True):
            made[place] = values, count
    return made


def _present(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _intervals(series: Sequence[Floats]) -> list[tuple[float, float]]:
    """The interval of every mean: the bootstrap's, or Student's in a long line, where drawing would take minutes."""
    from scipy.special import stdtrit

    if len(series) <= MOST_DRAWN:
        return [mean_interval(values) for values in series]
    made = [(math.nan, math.nan)] * len(series)
    for n, places, means, deviations in _by_length(series):
        margins = float(stdtrit(n - 1, 0.975)) * deviations / math.sqrt(n)
        for place, mean, margin in zip(places, means.tolist(), margins.tolist(), strict=True):
            made[place] = (mean - margin, mean + margin)
    return made


def t_tests(series: Sequence[Floats]) -> tuple[list[float], list[float]]:
    """The mean of every series and the p-value of `t_test`; NaN for no value, and for fewer than two.

    They are computed together: a call for every point of a long history would take most of its time.
    """
    from scipy.special import stdtr

    differences = [float(values[0]) if len(values) == 1 else math.nan for values in series]
    p_values = [math.nan] * len(series)
    for n, places, means, deviations in _by_length(series):
        with np.errstate(divide="ignore", invalid="ignore"):
            p = 2.0 * stdtr(n - 1, -np.abs(means / (deviations / math.sqrt(n))))
        equal = deviations == 0.0
        p[equal] = np.where(means[equal] == 0.0, 1.0, 2.0 * 0.5**n)
        for place, mean, value in zip(places, means.tolist(), p.tolist(), strict=True):
            differences[place], p_values[place] = mean, value
    return differences, p_values


def _by_length(series: Sequence[Floats]) -> Iterator[tuple[int, list[int], Floats, Floats]]:
    """For every length of at least 2: the places of the series of this length, their means and standard deviations."""
    for n, places in _places_by_length(series).items():
        if n > 1:
            matrix = np.stack([series[place] for place in places])
            means, deviations = matrix.mean(axis=1), matrix.std(axis=1, ddof=1)
            # A deviation that is only rounding is 0, as in `mean_and_deviation`.
            yield n, places, means, np.where(deviations <= 1e-14 * np.abs(means), 0.0, deviations)


def _places_by_length(series: Sequence[Sized]) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for place, values in enumerate(series):
        places.setdefault(len(values), []).append(place)
    return places


def _corrected(steps: Sequence[LinePoint], alpha: float) -> Iterator[LinePoint]:
    """The steps of a measure with their p-values corrected together (Holm), and the significant changes."""
    adjusted = adjust([step.p_adjusted for step in steps]).tolist() if steps else []
    for step, p in zip(steps, adjusted, strict=True):
        change = "" if not p < alpha else "rise" if step.difference > 0 else "drop"
        yield LinePoint(*step[:-2], p, change)


def _gap(before: Point, after: Point, run: str, measure: str) -> Floats:
    """The differences on the queries that both points have."""
    was, now = before.values(run, measure), after.values(run, measure)
    return np.array([value - was[query] for query, value in now.items() if query in was])


def _best_p(points: Sequence[Point], best: Point, sign: float, run: str, measure: str) -> float:
    """The p-value of a loss of the last point against the best of them, on the queries that all of them have."""
    first = points[0].record["queries"]
    if all(point.record["queries"] == first for point in points):
        values = np.array([point.recorded(run, measure) for point in points], dtype=np.float64)
    else:
        by_query = [point.values(run, measure) for point in points]
        shared = [query for query in by_query[-1] if all(query in each for each in by_query)]
        values = np.array([[each[query] for query in shared] for each in by_query]).reshape(len(points), -1)
    gaps = sign * (values[:-1] - values[-1])
    gap = gaps[points.index(best)]
    if np.isnan(gap).all():
        return math.nan
    p = fall_tests(-gap[None, :])[0].p
    if len(gaps) > MOST_DRAWN and not math.isnan(p):
        return min(1.0, p * len(gaps))  # Bonferroni's bound: drawing would take minutes in a long line.
    return p if math.isnan(p) else best_of_p(p, gaps)


_STEP = ("dataset", "measure", "run", "mean", "low", "high", "difference", "p_adjusted", "change")
"""The fields of a step that are columns of the table."""

_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("time", "commit", "branch"), str),
    "dirty": bool,
    **dict.fromkeys(("dataset", "measure", "run"), str),
    **dict.fromkeys(("mean", "low", "high", "difference", "p_adjusted"), float),
    **dict.fromkeys(("change", "broken"), str),
}
