"""The columns of the leaderboard: each is declared once, as a `BoardColumn` in `COLUMNS`, for every format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from steelyard.comparison.data import ComparisonData
from steelyard.comparison.judged import ALL_JUDGED, RowJudged
from steelyard.comparison.leaderboard import LeaderboardRow
from steelyard.comparison.scores import COMPOSITE, Column

Form: TypeAlias = Literal["table", "summary", "markdown", "latex", "page", "frame", "json"]
"""Where a column is shown: `table` is the whole table on a terminal and in notebooks, `summary` the short one."""

FORMS: tuple[Form, ...] = ("table", "summary", "markdown", "latex", "page", "frame", "json")
TABLES: tuple[Form, ...] = ("table", "summary", "markdown", "latex", "page")

CACHED = "cached"  # What marks times that are from the cache of a bench.
FAILED = "FAILED"  # The heading of the number of queries that a run failed on.
NOT_MEASURED = "not measured"  # What a run has in place of its rank if its values mean nothing.


@dataclass(frozen=True)
class BoardColumn:
    """One column of the leaderboard.

    name: in the frame, CSV and JSON, and the heading in tables, unless `headings` has another one for a form.
    value: of a row, unrounded. cells: what other forms show in its place; TABLES without a cell of their own show the
    one for `table`. when: whether a comparison has the column. forms: where it is shown. measure: its measure, if any.
    """

    name: str
    value: Callable[[ComparisonData, LeaderboardRow], Any]
    cells: Mapping[Form, Callable[[ComparisonData, LeaderboardRow], Any]] = field(default_factory=dict)
    headings: Mapping[Form, str] = field(default_factory=dict)
    when: Callable[[ComparisonData], object] = lambda comparison: True
    forms: tuple[Form, ...] = FORMS
    measure: Column | None = None

    def cell(self, comparison: ComparisonData, row: LeaderboardRow, form: Form) -> Any:
        """What a form shows of a row."""
        tabular = self.cells.get("table", self.value) if form in TABLES else self.value
        return self.cells.get(form, tabular)(comparison, row)

    def heading(self, form: Form) -> str:
        """The heading in a form."""
        return self.headings.get(form, self.headings.get("table", self.name) if form in TABLES else self.name)


def columns_of(comparison: ComparisonData, form: Form) -> list[BoardColumn]:
    """The columns that a form shows, in their order."""
    columns: list[BoardColumn] = []
    for entry in COLUMNS:
        columns += [entry] if isinstance(entry, BoardColumn) else entry(comparison)
    return [column for column in columns if form in column.forms and column.when(comparison)]


def board_rows(comparison: ComparisonData, form: Form) -> list[dict[str, Any]]:
    """The rows of the leaderboard by the headings of a form."""
    columns, rows = columns_of(comparison, form), comparison.shown_rows
    return [{column.heading(form): column.cell(comparison, row, form) for column in columns} for row in rows]


# Measures

_TITLES = {"recall": "Recall", "precision": "Precision", "f1": "F1 Score", "mrr": "MRR", "hit_rate": "Hit Rate"}
_TITLES |= {"ndcg": "nDCG", "confusion": "Confusion Rate"}


def title(key: str, dialect: str) -> str:
    """The title of a measure's column: its key, or its name in the leaderboard dialect."""
    if key == COMPOSITE:
        return "Composite Score"
    return f"Average {_TITLES[key.lower()]}" if dialect == "leaderboard" and key.lower() in _TITLES else key


def measure_heading(column: Column) -> str:
    """The heading of a measure's column, with the unit of times."""
    return f"{column.key} ms" if is_time(column) else column.key


def is_time(column: Column) -> bool:
    """Whether the values of a measure are seconds."""
    return column.timed and column.measure is not None


def scale_of(column: Column) -> float:
    """The factor of a measure's values in tables: times are shown in milliseconds."""
    return 1e3 if is_time(column) else 1.0


def _measure_column(column: Column, dialect: str) -> BoardColumn:
    """The means of a measure; Markdown and LaTeX have its title, and the unscaled mean."""
    key, name, factor = column.key, title(column.key, dialect), scale_of(column)
    return BoardColumn(
        key,
        lambda _, row: None if row.rank is None else row.means[key],
        {
            "table": lambda _, row: row.means[key] * factor,
            "markdown": lambda _, row: row.means[key],
            "latex": lambda _, row: row.means[key],
            "json": lambda _, row: None if math.isnan(row.means[key]) else row.means[key],
        },
        {"table": measure_heading(column), "markdown": name, "latex": name},
        forms=("table", "markdown", "latex", "frame", "json"),
        measure=column,
    )


def _interval_columns(comparison: ComparisonData) -> Iterable[BoardColumn]:
    """The ends of the interval of every measure, in frames."""

    def end(key: str, place: int, _: ComparisonData, row: LeaderboardRow) -> float | None:
        interval = row.intervals[key]
        return None if interval is None else interval[place]

    for key in comparison.keys:
        for place, name in enumerate(("low", "high")):
            yield BoardColumn(f"{key} {name}", partial(end, key, place), forms=("frame",))


def _json_intervals(_: ComparisonData, row: LeaderboardRow) -> dict[str, list[float] | None]:
    return {key: None if ends is None or math.isnan(ends[0]) else list(ends) for key, ends in row.intervals.items()}


# Runs and ranks


def run_label(row: LeaderboardRow) -> str:
    """The name of a run; of one that was not measured, with these words."""
    return row.run if row.rank is not None else f"{row.run} ({NOT_MEASURED})"


def _annotated_run(comparison: ComparisonData, row: LeaderboardRow) -> str:
    """The name of a run with what other formats have a column for: a LaTeX table has to be narrow."""
    failed = f" (failed on {comparison.failed[row.run]} queries)" if row.run in comparison.failed else ""
    cached = " (cached times)" if row.run in comparison.cached_times else ""
    return run_label(row) + cached + failed


def _rank_interval(_: ComparisonData, row: LeaderboardRow) -> str:
    if row.rank is None:
        return NOT_MEASURED
    return f"{row.rank_low}-{row.rank_high}" if row.rank_low != row.rank_high else str(row.rank_low)


# Judged documents


def _row_judged(comparison: ComparisonData, row: LeaderboardRow) -> RowJudged:
    return comparison.judged.get((row.run, row.k), RowJudged())


def partly_judged(comparison: ComparisonData) -> bool:
    """Whether some documents above the cutoff of the measure that ranks the runs are not judged, as far as is known."""
    key = comparison.keys[0]
    return any(judged.shares[key] < ALL_JUDGED for judged in comparison.judged.values() if key in judged.shares)


def judged_text(comparison: ComparisonData, row: LeaderboardRow) -> str:
    """The judged share of a row on the measure that ranks the runs."""
    share = _share(comparison.keys[0], comparison, row)
    return "" if share is None else f"{share:.0%}"


def bounds_text(comparison: ComparisonData, row: LeaderboardRow) -> str:
    """The lowest and the highest value of the measure that ranks the runs that any grading gives."""
    judged, column = _row_judged(comparison, row), comparison.score_tables[0].columns[0]
    if judged.bounds is None or column.key not in judged.shares:
        return ""
    low, high = (end * scale_of(column) for end in judged.bounds)
    return f"{low:.4f} to {high:.4f}"


def _judged_columns(comparison: ComparisonData) -> Iterable[BoardColumn]:
    """In frames: the judged share of every measure, and the bounds of the measure that ranks the runs."""
    if not comparison.judged:
        return
    first = comparison.keys[0]
    for key in dict.fromkeys(key for judged in comparison.judged.values() for key in judged.shares):
        yield BoardColumn(f"{key} judged", partial(_share, key), forms=("frame",))
    for place, end in enumerate(("lowest", "highest")):
        yield BoardColumn(f"{first} {end}", partial(_bound, place), forms=("frame",))


def _share(key: str, comparison: ComparisonData, row: LeaderboardRow) -> float | None:
    return _row_judged(comparison, row).shares.get(key)


def _bound(place: int, comparison: ComparisonData, row: LeaderboardRow) -> float | None:
    bounds = _row_judged(comparison, row).bounds
    return None if bounds is None else bounds[place]


def _json_shares(comparison: ComparisonData, row: LeaderboardRow) -> dict[str, float] | None:
    judged = comparison.judged.get((row.run, row.k))
    return None if judged is None else dict(judged.shares)


def _json_bounds(comparison: ComparisonData, row: LeaderboardRow) -> dict[str, list[float] | None] | None:
    judged = comparison.judged.get((row.run, row.k))
    return None if judged is None else {comparison.keys[0]: None if judged.bounds is None else list(judged.bounds)}


# The declarations


def _times(comparison: ComparisonData, row: LeaderboardRow) -> str:
    return CACHED if row.run in comparison.cached_times else ""


# In the functions of this table, c is the comparison.
COLUMNS: list[BoardColumn | Callable[[ComparisonData], Iterable[BoardColumn]]] = [
    BoardColumn("rank", lambda _, row: row.rank, forms=("table", "frame", "json")),
    BoardColumn(
        "run",
        lambda _, row: row.run,
        {"markdown": lambda _, row: run_label(row), "latex": _annotated_run},
        {"markdown": "Retriever", "latex": "Run"},
        forms=("table", "markdown", "latex", "frame", "json"),
    ),
    BoardColumn(
        "k",
        lambda _, row: row.k,
        headings={"latex": "$k$"},
        when=lambda c: c.score_tables[0].k is not None,
        forms=("table", "summary", "markdown", "latex", "frame"),
    ),
    BoardColumn("k", lambda _, row: row.k, forms=("json",)),
    BoardColumn(COMPOSITE, lambda _, row: row.means.get(COMPOSITE), forms=("json",)),
    lambda c: [_measure_column(column, c.dialect) for column in c.score_tables[0].columns],
    BoardColumn("ranks", _rank_interval, forms=("table",)),
    BoardColumn("group", lambda _, row: row.group, forms=("table",)),
    BoardColumn(
        "judged",
        judged_text,
        headings={"markdown": "Judged", "page": "Judged"},
        when=partly_judged,
        forms=("table", "summary", "markdown", "page"),
    ),
    BoardColumn(
        "bounds", bounds_text, headings={"markdown": "Bounds"}, when=partly_judged, forms=("table", "markdown")
    ),
    _judged_columns,
    BoardColumn(
        "times",
        _times,
        headings={"markdown": "Times"},
        when=lambda c: c.cached_times,
        forms=("table", "markdown", "frame"),
    ),
    BoardColumn(  # Where the times of some runs are cached, and those of others are not.
        "times", _times, when=lambda c: c.cached_times and set(c.runs) - set(c.cached_times), forms=("summary",)
    ),
    BoardColumn(
        "failed",
        lambda c, row: c.failed.get(row.run, ""),
        headings={"table": FAILED},
        when=lambda c: c.failed,
        forms=("table", "summary", "markdown", "frame"),
    ),
    BoardColumn(
        "not_measured", lambda c, row: c.unmeasured.get(row.run, ""), when=lambda c: c.unmeasured, forms=("frame",)
    ),
    BoardColumn("predicted_by", lambda c, _: c.predicted_by, when=lambda c: c.predicted_by, forms=("frame",)),
    BoardColumn("group", lambda _, row: row.group, forms=("frame", "json")),
    BoardColumn("rank_low", lambda _, row: row.rank_low, forms=("frame", "json")),
    BoardColumn("rank_high", lambda _, row: row.rank_high, forms=("frame", "json")),
    _interval_columns,
    BoardColumn("intervals", _json_intervals, forms=("json",)),
    BoardColumn("judged", _json_shares, when=lambda c: c.judged, forms=("json",)),
    BoardColumn("bounds", _json_bounds, when=lambda c: c.judged, forms=("json",)),
]
"""The columns in their order; a function gives those that depend on the comparison."""
