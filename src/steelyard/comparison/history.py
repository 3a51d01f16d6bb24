"""History: one benchmark over time: every measure with intervals, breaks, tested changes, the best and the last."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.scores import column_named
from steelyard.errors import InputError, MeasureError, did_you_mean
from steelyard.statistics import adjust, mean_interval, t_test
from steelyard.version import __version__
from steelyard.wording import listed

if TYPE_CHECKING:
    import polars as pl

BREAKING = ("corpus", "queries", "qrels")
"""Fingerprints whose change breaks a line, as does another definition of the measure."""


@dataclass(frozen=True, eq=False)
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
        found = self._of(run, "values").get(measure) or ()
        return {
            str(query): float(value)
            for query, value in zip(self.record["queries"], found, strict=False)
            if value is not None
        }

    def _of(self, run: str, what: str) -> Mapping[str, Any]:
        own = self.record["runs"].get(run)
        found = own.get(what) if isinstance(own, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    def breaks(self, other: Point, measure: str) -> list[str]:
        """What changed between two points so that their values cannot be compared."""
        mine, theirs = self.record["fingerprints"], other.record["fingerprints"]
        changed = [name for name in BREAKING if mine.get(name) != theirs.get(name)]
        definitions = [each.record["measures"].get(measure) for each in (self, other)]
        settings = [each.record.get("settings") for each in (self, other)]
        same = definitions[0] == definitions[1] and settings[0] == settings[1]
        return changed if same else [*changed, "definition"]


@dataclass(frozen=True, eq=False)
class Step:
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
class History:
    """The lines of a history file, oldest first: `table`, `changes`, `latest`, `movers`."""

    points: tuple[Point, ...]
    alpha: float = 0.05

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]], alpha: float = 0.05) -> History:
        """The history of records as `read_history` reads them."""
        return cls(tuple(map(Point, records)), alpha)

    @property
    def datasets(self) -> list[str]:
        """The datasets."""
        return list(dict.fromkeys(str(point.record["dataset"]) for point in self.points))

    @property
    def measures(self) -> list[str]:
        """The measures of all points."""
        return list(dict.fromkeys(str(key) for point in self.points for key in point.record["measures"]))

    @cached_property
    def lines(self) -> dict[tuple[str, str, str], list[Step]]:
        """The steps of every line, by dataset, measure and run."""
        made: dict[tuple[str, str, str], list[Step]] = {}
        for dataset in self.datasets:
            points = [point for point in self.points if point.record["dataset"] == dataset]
            runs = list(dict.fromkeys(str(run) for point in points for run in point.record["runs"]))
            for measure in self.measures:
                lines = {run: _line(points, dataset, run, measure) for run in runs}
                made |= {
                    (dataset, measure, run): line
                    for run, line in _corrected(lines, self.alpha).items()
                    if line
                }
        return made

    @property
    def steps(self) -> list[Step]:
        """All steps of all lines."""
        return [step for line in self.lines.values() for step in line]

    @property
    def changed(self) -> list[Step]:
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
                **_cells(step),
            }
            for step in self.steps
        ]
        return pl.DataFrame(rows, schema=_SCHEMA, orient="row")

    @property
    def changes(self) -> pl.DataFrame:
        """The rows of `table` with a significant change."""
        import polars as pl

        return self.table.filter(pl.col("change") != "")

    @cached_property
    def latest(self) -> pl.DataFrame:
        """For every line the last value and the best one since the last break, and whether they differ significantly."""
        import polars as pl

        rows, p_values = [], []
        for (dataset, measure, run), line in self.lines.items():
            since = max((place for place, step in enumerate(line) if step.broken), default=0)
            sign = -1.0 if column_named(measure).better == "less" else 1.0
            last, best = line[-1], max(line[since:], key=lambda step: sign * step.mean)
            gap = _gap(best.point, last.point, run, measure)
            p_values.append(t_test(gap).p if last is not best and len(gap) else math.nan)
            values = [last.mean, last.point.label, best.mean, best.point.label, last.mean - best.mean]
            rows.append([dataset, measure, run, *values])
        adjusted = adjust(p_values).tolist() if p_values else []
        data = [
            [*row, None if p != p else p, "" if p != p else _verdict(p, self.alpha)]
            for row, p in zip(rows, adjusted, strict=True)
        ]
        names = [
            "dataset",
            "measure",
            "run",
            "last",
            "last_at",
            "best",
            "best_at",
            "difference",
            "p_adjusted",
        ]
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
                f"{measure!r} is not in the history, which has {', '.join(self.measures)}.{did_you_mean(measure, self.measures)}"
            )
        for point in (one, other):
            if not point.values(run, measure):
                raise InputError(f"run {run!r} has no values of {measure} at {point.label}.")
        rows = self.moved(one, other, run, measure)
        schema = {"query_id": pl.String, "before": pl.Float64, "after": pl.Float64, "difference": pl.Float64}
        return pl.DataFrame(rows[:most], schema=schema, orient="row")

    def moved(
        self, before: Point, after: Point, run: str, measure: str
    ) -> list[tuple[str, float, float, float]]:
        """(query, before, after, difference) of every query that changed, the largest differences first."""
        old, new = before.values(run, measure), after.values(run, measure)
        rows = [
            (query, old[query], value, value - old[query]) for query, value in new.items() if query in old
        ]
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

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `history`."""
        return {
            "steelyard": __version__,
            "alpha": self.alpha,
            "verdict": self.verdict,
            "points": self.table.to_dicts(),
            "latest": self.latest.to_dicts(),
        }

    def to_json(self) -> str:
        """The JSON of `history`."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)

    def to_text(self) -> str:
        """The verdict and the tables as plain text."""
        from steelyard.report.history import history_text

        return history_text(self)

    def to_markdown(self) -> str:
        """The tables in Markdown."""
        from steelyard.report.history import history_markdown

        return history_markdown(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """The page: every measure over time, written to `path` where one is given."""
        from steelyard.io.files import write_file
        from steelyard.report.history import history_page

        page = history_page(self)
        if path is not None:
            write_file(Path(path), page.encode())
        return page

    def __repr__(self) -> str:
        return self.to_text()


def _line(points: Sequence[Point], dataset: str, run: str, measure: str) -> list[tuple[Step, float]]:
    """The steps of a line, each with the uncorrected p-value of its change; NaN where nothing was tested."""
    made: list[tuple[Step, float]] = []
    before: Point | None = None
    for point in points:
        values = np.array(list(point.values(run, measure).values()))
        mean = point.mean(run, measure)
        if not len(values) or mean != mean:
            continue
        low, high = mean_interval(values)
        broken = [] if before is None else point.breaks(before, measure)
        gap = np.empty(0) if before is None or broken else _gap(before, point, run, measure)
        p = t_test(gap).p if len(gap) else math.nan
        difference = float(gap.mean()) if len(gap) else math.nan
        made.append((Step(point, dataset, run, measure, mean, low, high, tuple(broken), difference), p))
        before = point
    return made


def _corrected(lines: Mapping[str, list[tuple[Step, float]]], alpha: float) -> dict[str, list[Step]]:
    """The lines with the p-values of all their steps corrected together (Holm)."""
    flat = [(run, step, p) for run, line in lines.items() for step, p in line]
    adjusted = adjust([p for *_, p in flat]).tolist() if flat else []
    made: dict[str, list[Step]] = {run: [] for run in lines}
    for (run, step, _), p in zip(flat, adjusted, strict=True):
        rise = "" if not p < alpha else "rise" if step.difference > 0 else "drop"
        made[run].append(replace(step, p_adjusted=p, change=rise))
    return made


def _gap(before: Point, after: Point, run: str, measure: str) -> Floats:
    """The differences on the queries that both points have."""
    old = before.values(run, measure)
    new = after.values(run, measure)
    return np.array([value - old[query] for query, value in new.items() if query in old])


def _verdict(p: float, alpha: float) -> str:
    return "different from the best" if p < alpha else "not significant"


def _cells(step: Step) -> dict[str, Any]:
    return {
        "dataset": step.dataset,
        "measure": step.measure,
        "run": step.run,
        "mean": step.mean,
        "low": _plain(step.low),
        "high": _plain(step.high),
        "difference": _plain(step.difference),
        "p_adjusted": _plain(step.p_adjusted),
        "change": step.change,
        "broken": ", ".join(step.broken),
    }


_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("time", "commit", "branch"), str),
    "dirty": bool,
    **dict.fromkeys(("dataset", "measure", "run"), str),
    **dict.fromkeys(("mean", "low", "high", "difference", "p_adjusted"), float),
    **dict.fromkeys(("change", "broken"), str),
}


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
