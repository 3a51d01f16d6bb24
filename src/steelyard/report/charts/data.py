"""What the charts draw, as rows: every chart's numbers, worked out before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.leaderboard import Standing
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.pairs import apart
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import Board, Column, label
from steelyard.comparison.slices import COMPLEXITY, complexity
from steelyard.errors import MeasureError
from steelyard.evaluation import measure_values
from steelyard.measures.grammar import Measure, parse
from steelyard.report.page.queries import Look
from steelyard.report.page.subject import Subject, visible

Row: TypeAlias = dict[str, Any]

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
BINS = 20
OVERLAP_DEPTH = 10
SLICE_VALUES = 12
"""A column with more different values than this is no column to slice by."""

NORMAL = 1.959964
"""Standard errors to either side of a mean that hold 95 %."""

_NAMES = ("run", "against", "slice", "column")
_OBJECT_KEYS = {
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
    *("toLocaleString", "toString", "valueOf"),
}

QUICK_TESTS = ("t", "wilcoxon", "sign", "tukey")


@dataclass(frozen=True)
class Shown:
    """One measure at one cutoff: its label over all boards, its board, and its column."""

    label: str
    board: Board
    column: Column

    @property
    def values(self) -> Floats:
        """Runs x queries."""
        return self.board.of(self.column.key)


def chart_label(name: str) -> str:
    """A name as a chart can hold it: Vega groups by plain JavaScript objects, which have keys of their own.

    >>> chart_label("bm25"), len(chart_label("constructor")) - len("constructor")
    ('bm25', 1)
    """
    shown = visible(name)
    return f"\u200b{shown}" if shown.startswith("__") or shown in _OBJECT_KEYS else shown


def labelled(rows: list[Row]) -> list[Row]:
    """The rows with every name as a chart can hold it."""
    return [
        {key: chart_label(value) if key in _NAMES else value for key, value in row.items()} for row in rows
    ]


def shown_measures(comparison: Comparison) -> list[Shown]:
    """Every measure of every board, labelled as the pairs label them."""
    return [
        Shown(label(column.key, board.k), board, column)
        for board in comparison.boards
        for column in board.columns
    ]


def bar_rows(comparison: Comparison) -> list[Row]:
    """Each run's mean with its interval, the baseline's mean, and the stars of the difference from it."""
    tested = {(pair.run, pair.baseline, pair.label): pair.stars for pair in comparison.tested}
    base = comparison.plan.baseline
    standing = {(row.run, row.k): row for row in comparison.standings}
    rows = []
    for shown in shown_measures(comparison):
        key, k = shown.column.key, shown.board.k
        reference = _finite(standing[base, k].means[key]) if base is not None else None
        ranked = sorted(comparison.runs, key=lambda run: _worst_last(standing[run, k], shown.column))
        for place, run in enumerate(ranked):
            row = standing[run, k]
            interval = row.intervals[key] or (None, None)
            stars = tested.get((run, base or "", shown.label), "")
            rows.append(
                {
                    "measure": shown.label,
                    "run": run,
                    "place": place,
                    "value": _finite(row.means[key]),
                    "low": _finite(interval[0]),
                    "high": _finite(interval[1]),
                    "baseline": reference,
                    "stars": "" if stars == "ns" else stars,
                }
            )
    return rows


def curve_rows(comparison: Comparison, looks: Sequence[Look]) -> list[Row]:
    """Each measure that takes a cutoff at every cutoff up to the longest list, with a band of the mean."""
    rows = []
    for shown in shown_measures(comparison):
        meant = shown.column.measure
        if meant is None or meant.definition.cutoff == "none" or meant.definition.cutoff_kind != "rank":
            continue
        rows += _against_k(comparison, looks, meant, shown.label)
    return rows


def diversity_rows(comparison: Comparison, looks: Sequence[Look]) -> list[Row]:
    """How many different targets the first k documents hold, against k."""
    return _against_k(comparison, looks, parse("Diversity"), "Diversity")


def _against_k(comparison: Comparison, looks: Sequence[Look], meant: Measure, label: str) -> list[Row]:
    depth = max((int(each.alignment.retrieved.max(initial=0)) for each in looks), default=0)
    rows = []
    for k in CUTOFFS:
        if k > max(depth, 1) and k > (meant.cutoff or 1):
            break
        for run, each in zip(comparison.runs, looks, strict=True):
            try:
                found = _values(meant @ k, each, comparison)
            except MeasureError:
                return []
            rows.append({"measure": label, "run": run, "k": k, **_band(found, meant)})
    return rows


def _values(meant: Measure, each: Look, comparison: Comparison) -> Floats:
    """A measure's values under the policies of the comparison."""
    options = next(iter(comparison.coverage.values())).policies
    found = measure_values(meant, each.alignment, options)
    return found[each.alignment.answered] if options.missing == "skip" else found


def _band(found: Floats, meant: Measure) -> Row:
    """The mean and the ends of its interval, by the normal distribution, within the measure's range."""
    kept = found[~np.isnan(found)]
    if not len(kept):
        return {"value": None, "low": None, "high": None}
    mean = float(kept.mean())
    reach = NORMAL * float(kept.std(ddof=1)) / len(kept) ** 0.5 if len(kept) > 1 else 0.0
    low, high = max(mean - reach, meant.definition.low), min(mean + reach, meant.definition.high)
    return {"value": _rounded(mean), "low": _finite(low), "high": _finite(high)}


def distribution_rows(comparison: Comparison) -> list[Row]:
    """How many queries have which value: twenty bins over the measure's range, for each run."""
    rows = []
    for shown in shown_measures(comparison):
        found = shown.values
        finite = found[np.isfinite(found)]
        if not finite.size:
            continue
        low, high = min(0.0, float(finite.min())), float(finite.max())
        if shown.column.measure is None or shown.column.measure.definition.high == 1.0:
            high = max(1.0, high)
        edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
        for run, values_of_run in zip(comparison.runs, found, strict=True):
            kept = values_of_run[np.isfinite(values_of_run)]
            counts, _ = np.histogram(kept, edges)
            for left, right, count in zip(edges[:-1], edges[1:], counts.tolist(), strict=True):
                if count:
                    row = {
                        "measure": shown.label,
                        "run": run,
                        "left": _rounded(left),
                        "right": _rounded(right),
                    }
                    rows.append({**row, "queries": count, "share": _rounded(count / len(kept))})
    return rows


def trade_rows(subject: Subject) -> list[Row]:
    """Each run's mean against its time a query, and whether no other run is both better and faster."""
    comparison, seconds = subject.comparison, subject.seconds
    timed = [run for run in comparison.runs if run in seconds]
    rows: list[Row] = []
    for shown in shown_measures(comparison):
        if shown.column.measure is not None and shown.column.measure.name == "Latency":
            continue
        means = dict(
            zip(comparison.runs, shown.board.means()[:, shown.board.column(shown.column.key)], strict=True)
        )
        worth = {run: float(shown.column.worth(np.array([means[run]]))[0]) for run in timed}
        for run in timed:
            beaten = any(
                worth[other] >= worth[run]
                and seconds[other] <= seconds[run]
                and (worth[other], seconds[other]) != (worth[run], seconds[run])
                for other in timed
            )
            rows.append(
                {
                    "measure": shown.label,
                    "run": run,
                    "value": _finite(means[run]),
                    "milliseconds": _rounded(seconds[run] * 1e3),
                    "front": "beaten" if beaten else "on the front",
                }
            )
    return rows if len(timed) > 1 else []


def slice_columns(subject: Subject) -> dict[str, Mapping[str, object]]:
    """The columns to slice by: what is known of the queries, where few values repeat, and complexity."""
    found: dict[str, Mapping[str, object]] = {}
    for name, column in subject.columns.items():
        if 1 < len({str(value) for value in column.values()}) <= SLICE_VALUES:
            found[name] = column
    source = subject.comparison.source
    if source is not None and not source.chunked and COMPLEXITY not in found:
        sizes = complexity(source.qrels)
        if len(set(sizes.values())) > 1:
            found[COMPLEXITY] = sizes
    return found


def slice_rows(subject: Subject, columns: Mapping[str, Mapping[str, object]]) -> list[Row]:
    """Each run's mean on the queries with one value of a column; `shade` runs from 0, worst, to 1, best."""
    comparison = subject.comparison
    rows: list[Row] = []
    for shown in shown_measures(comparison):
        queries, found = shown.board.queries, shown.values
        for name, column in columns.items():
            labels = np.array(
                [str(column[query]) if column.get(query) is not None else "not given" for query in queries],
                dtype=object,
            )
            part: list[Row] = []
            for value in _in_order(labels.tolist()):
                inside = labels == value
                for run, of_run in zip(comparison.runs, found, strict=True):
                    mean = shown.column.mean(of_run[inside])
                    part.append(
                        {
                            "measure": shown.label,
                            "column": name,
                            "slice": f"{value} ({int(inside.sum()):,})",
                            "run": run,
                            "value": _finite(mean),
                            "queries": int(inside.sum()),
                        }
                    )
            rows += _shaded(part, shown.column)
    return rows


def _shaded(rows: list[Row], column: Column) -> list[Row]:
    """The rows with a shade for each, and its value as text, the best of a slice marked."""
    known = [row["value"] for row in rows if row["value"] is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    made = []
    for row in rows:
        part = 0.5 if row["value"] is None or high == low else (row["value"] - low) / (high - low)
        rivals = [
            other["value"] for other in rows if other["slice"] == row["slice"] and other["value"] is not None
        ]
        best = (min if column.better == "less" else max)(rivals, default=None)
        mark = " ●" if row["value"] == best and any(value != best for value in rivals) else ""
        said = "" if row["value"] is None else f"{_short(row['value'])}{mark}"
        made.append({**row, "said": said, "shade": _rounded(1 - part if column.better == "less" else part)})
    return made


def _short(value: float) -> str:
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.1e}"


def _in_order(labels: list[str]) -> list[str]:
    sizes = ["simple", "medium", "complex"]
    return sorted(
        set(labels), key=lambda each: (each == "not given", sizes.index(each) if each in sizes else 0, each)
    )


def p_rows(comparison: Comparison) -> list[Row]:
    """The adjusted p-value of every two runs, as the tie groups use it.

    Tests that draw at random are made for the measure that ranks the runs alone.
    """
    rows = []
    for shown in shown_measures(comparison):
        first = shown.column.key == comparison.boards[0].columns[0].key
        if not first and comparison.plan.test not in QUICK_TESTS:
            continue
        sure = apart(shown.board.only([shown.column.key]), comparison.plan, comparison.tested)
        means = shown.board.means()[:, shown.board.column(shown.column.key)]
        for i, j in ((i, j) for i in range(len(sure)) for j in range(len(sure)) if i != j):
            p = float(sure[i, j])
            rows.append(
                {
                    "measure": shown.label,
                    "run": comparison.runs[i],
                    "against": comparison.runs[j],
                    "p": None if p != p else p,
                    "difference": _finite(float(means[i] - means[j])),
                    "level": _level(p),
                }
            )
    return rows


def _level(p: float) -> str:
    if p != p:
        return "no test"
    return "< 0.001" if p < 0.001 else "< 0.01" if p < 0.01 else "< 0.05" if p < 0.05 else "0.05 or more"


def overlap_rows(comparison: Comparison) -> list[Row]:
    """How much of their first ten documents two runs share, on average over the queries of both."""
    import polars as pl

    source = comparison.source
    if source is None or source.chunked:
        return []
    rules = next(iter(comparison.coverage.values())).policies
    tops = []
    for name in comparison.runs:
        rows = ranked_rows(source.run(name), rules.ordering).filter(pl.col("rank") <= OVERLAP_DEPTH)
        tops.append(rows.select("query_id", "doc_id").unique())
    sizes = [top.group_by("query_id").len("size") for top in tops]
    found = []
    for i, j in combinations(range(len(tops)), 2):
        shared = tops[i].join(tops[j], on=["query_id", "doc_id"]).group_by("query_id").len("shared")
        both = sizes[i].join(sizes[j], on="query_id", suffix="_other").join(shared, on="query_id", how="left")
        share = (
            both.sort("query_id")
            .select((pl.col("shared").fill_null(0) / pl.max_horizontal("size", "size_other")).mean())
            .item()
        )
        for run, other in ((i, j), (j, i)):
            row = {"run": comparison.runs[run], "against": comparison.runs[other]}
            found.append({**row, "share": None if share is None else _rounded(share)})
    return found


def _worst_last(row: Standing, column: Column) -> float:
    mean = row.means[column.key]
    return float("inf") if mean != mean else -float(column.worth(np.array([mean]))[0])


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else _rounded(float(value))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
