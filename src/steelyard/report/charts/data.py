"""The data of the charts, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.comparison.leaderboard import LeaderboardRow
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.pairs import adjusted_p_matrix, corrected_interval
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import Column
from steelyard.comparison.slices import in_order, slice_labels
from steelyard.errors import MeasureError
from steelyard.evaluation import measure_values
from steelyard.measures.grammar import Measure, parse
from steelyard.report.page.embed import visible
from steelyard.report.page.queries import RunFailures
from steelyard.report.page.subject import Subject
from steelyard.report.rows import is_time, shown_measures

Row: TypeAlias = dict[str, Any]

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
BINS = 20
OVERLAP_DEPTH = 10
NORMAL = 1.959964
"""Half-width of a 95% interval, in standard errors."""

_NAMES = ("run", "vs", "slice", "column")
_OBJECT_KEYS = {
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
    *("toLocaleString", "toString", "valueOf"),
}

QUICK_TESTS = ("t", "wilcoxon", "sign", "tukey")


def chart_label(name: str) -> str:
    """A name that is safe in a chart: Vega groups by plain JavaScript objects, which have keys of their own.

    >>> chart_label("bm25"), len(chart_label("constructor")) - len("constructor")
    ('bm25', 1)
    """
    shown = visible(name)
    return f"\u200b{shown}" if shown.startswith("__") or shown in _OBJECT_KEYS else shown


def labelled(rows: list[Row]) -> list[Row]:
    """The rows with names that are safe in a chart."""
    return [
        {key: chart_label(value) if key in _NAMES else value for key, value in row.items()} for row in rows
    ]


EXACT = "exact search"


def bar_rows(comparison: Comparison) -> list[Row]:
    """Each run's mean with its interval, the baseline's mean, and the stars of the difference from it."""
    tested = {(pair.run, pair.baseline, pair.label): pair.stars for pair in comparison.tested_pairs}
    base = comparison.plan.baseline
    by_run = {(row.run, row.k): row for row in comparison.leaderboard_rows}
    rows = []
    for shown in shown_measures(comparison):
        key, k = shown.column.key, shown.scores.k
        reference = _finite(by_run[base, k].means[key]) if base is not None else None
        ranked = sorted(comparison.runs, key=lambda run: _sort_key(by_run[run, k], shown.column))
        for place, run in enumerate(ranked):
            row = by_run[run, k]
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


def difference_rows(comparison: Comparison, reference: str) -> list[Row]:
    """The difference of every run from one run on every measure, with the interval of the corrected test."""
    rows = []
    for shown in shown_measures(comparison):
        for pair in comparison.tested_pairs:
            if pair.label != shown.label or reference not in (pair.run, pair.baseline):
                continue
            low, high = corrected_interval(pair, shown.column, comparison.plan)
            other, sign = (pair.run, 1.0) if pair.baseline == reference else (pair.baseline, -1.0)
            ends = sorted((sign * low, sign * high))
            rows.append(
                {
                    "measure": shown.label,
                    "run": other,
                    "vs": reference,
                    "difference": _finite(sign * pair.difference),
                    "low": _finite(ends[0]),
                    "high": _finite(ends[1]),
                    "p": None if pair.p_adjusted != pair.p_adjusted else pair.p_adjusted,
                    "outcome": pair.verdict if pair.verdict in UNDECIDED else "significant",
                }
            )
    return rows


UNDECIDED = ("not significant", "undecided", "equal", "not tested")
"""Verdicts that are no significant difference."""


def curve_rows(comparison: Comparison, runs: Sequence[str], failures: Sequence[RunFailures]) -> list[Row]:
    """Each measure that takes a cutoff at every cutoff up to the longest list, with a band of the mean."""
    rows = []
    for shown in shown_measures(comparison):
        measure = shown.column.measure
        if measure is None or measure.definition.cutoff == "none" or measure.definition.cutoff_kind != "rank":
            continue
        rows += _by_cutoff(comparison, runs, failures, measure, shown.label)
    return rows


def diversity_rows(comparison: Comparison, runs: Sequence[str], failures: Sequence[RunFailures]) -> list[Row]:
    """The number of different targets among the first k documents, by k."""
    return _by_cutoff(comparison, runs, failures, parse("Diversity"), "Diversity")


def _by_cutoff(
    comparison: Comparison,
    runs: Sequence[str],
    failures: Sequence[RunFailures],
    measure: Measure,
    label: str,
) -> list[Row]:
    depth = max((int(each.alignment.retrieved.max(initial=0)) for each in failures), default=0)
    rows = []
    for k in CUTOFFS:
        if k > max(depth, 1) and k > (measure.cutoff or 1):
            break
        for run, each in zip(runs, failures, strict=True):
            try:
                values = _values(measure @ k, each, comparison)
            except MeasureError:
                return []
            rows.append({"measure": label, "run": run, "k": k, **_band(values, measure)})
    return rows


def _values(measure: Measure, each: RunFailures, comparison: Comparison) -> Floats:
    """A measure's values with the options of the comparison, on the queries that it compares."""
    assert comparison.options is not None
    values = measure_values(measure, each.alignment, comparison.options)
    if comparison.options.missing != "skip":
        return values
    first = comparison.score_tables[0]
    shared = np.flatnonzero(~np.isnan(first.compared(first.columns[0].key)).all(axis=0))
    kept = {first.queries[place] for place in shared.tolist()}
    return values[[query in kept for query in each.alignment.queries]]


def _band(values: Floats, measure: Measure) -> Row:
    """The mean and its 95% interval, by the normal distribution, within the measure's range."""
    kept = values[~np.isnan(values)]
    if not len(kept):
        return {"value": None, "low": None, "high": None}
    mean = float(kept.mean())
    reach = NORMAL * float(kept.std(ddof=1)) / len(kept) ** 0.5 if len(kept) > 1 else 0.0
    low, high = max(mean - reach, measure.definition.low), min(mean + reach, measure.definition.high)
    return {"value": _rounded(mean), "low": _finite(low), "high": _finite(high)}


def distribution_rows(comparison: Comparison) -> list[Row]:
    """A histogram of the values of every run, in twenty bins over the measure's range."""
    rows = []
    for shown in shown_measures(comparison):
        values = shown.values
        finite = values[np.isfinite(values)]
        if not finite.size:
            continue
        low, high = min(0.0, float(finite.min())), float(finite.max())
        if shown.column.measure is None or shown.column.measure.definition.high == 1.0:
            high = max(1.0, high)
        edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
        for run, own in zip(comparison.runs, values, strict=True):
            kept = own[np.isfinite(own)]
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


def trade_rows(subject: Subject, runs: Mapping[str, str]) -> list[Row]:
    """Each run, with the label that it has in the chart: its mean and its time per query, and whether it is on the Pareto front: no run is better and faster."""
    comparison, seconds = subject.comparison, subject.seconds
    timed = [run for run in runs if run in seconds]
    rows: list[Row] = []
    for shown in shown_measures(comparison):
        if is_time(shown.column):
            continue
        means = dict(zip(comparison.runs, shown.means, strict=True))
        worth = {run: float(shown.column.worth(np.array([means[run]]))[0]) for run in timed}
        for run in timed:
            dominated = any(
                worth[other] >= worth[run]
                and seconds[other] <= seconds[run]
                and (worth[other], seconds[other]) != (worth[run], seconds[run])
                for other in timed
            )
            rows.append(
                {
                    "measure": shown.label,
                    "run": run,
                    "label": runs[run],
                    "value": _finite(means[run]),
                    "milliseconds": _rounded(seconds[run] * 1e3),
                    "front": "dominated" if dominated else "on the front",
                }
            )
    return rows if len(timed) > 1 else []


def approximation_rows(subject: Subject) -> list[Row]:
    """What every run of approximate search loses, its time per query, and whether it is on the Pareto front.

    The exact searches lose nothing; they have their own series.
    """
    timed = [row for row in subject.approximation if row["seconds"] and row["exact_seconds"]]
    points: dict[str, Row] = {}
    for row in timed:
        points[row["exact"]] = {
            "search": chart_label(row["exact"]),
            "series": EXACT,
            "lost": 0.0,
            "low": 0.0,
            "high": 0.0,
            "neighbours": 1.0,
            "milliseconds": _rounded(row["exact_seconds"] * 1e3),
            "against": row["exact"],
        }
    for row in timed:
        points[row["run"]] = {
            "search": chart_label(row["run"]),
            "series": chart_label(row["series"]),
            "lost": _finite(row["lost"]),
            "low": _finite(row["low"]),
            "high": _finite(row["high"]),
            "neighbours": _finite(row["neighbours"]),
            "milliseconds": _rounded(row["seconds"] * 1e3),
            "against": row["exact"],
        }
    for point in points.values():
        others = [other for other in points.values() if other["against"] == point["against"]]
        cost = (point["lost"], point["milliseconds"])
        dominated = any(
            other["lost"] <= cost[0]
            and other["milliseconds"] <= cost[1]
            and (other["lost"], other["milliseconds"]) != cost
            for other in others
        )
        point["front"] = "dominated" if dominated else "on the front"
    return list(points.values())


def slice_rows(subject: Subject, runs: Sequence[str]) -> list[Row]:
    """Each run's mean on the queries with one value of a column; `shade` runs from 0, worst, to 1, best."""
    comparison = subject.comparison
    rows: list[Row] = []
    for shown in shown_measures(comparison):
        for name, column in subject.slice_columns.items():
            labels = np.array(slice_labels(shown.scores.queries, column), dtype=object)
            part: list[Row] = []
            for value in in_order(labels.tolist()):
                inside = labels == value
                for run in runs:
                    mean = shown.column.mean(shown.values[comparison.runs.index(run)][inside])
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
    """The rows with the shade of each, and its value as text, the best of a slice marked."""
    known = [row["value"] for row in rows if row["value"] is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    shaded = []
    for row in rows:
        part = 0.5 if row["value"] is None or high == low else (row["value"] - low) / (high - low)
        rivals = [
            other["value"] for other in rows if other["slice"] == row["slice"] and other["value"] is not None
        ]
        best = (min if column.better == "less" else max)(rivals, default=None)
        mark = " ●" if row["value"] == best and any(value != best for value in rivals) else ""
        text = "" if row["value"] is None else f"{_short(row['value'])}{mark}"
        shade = _rounded(1 - part if column.better == "less" else part)
        shaded.append({**row, "text": text, "shade": shade})
    return shaded


def _short(value: float) -> str:
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.01 else f"{value:.1e}"


def p_rows(comparison: Comparison) -> list[Row]:
    """The adjusted p-value of every two runs, as the tie groups use it.

    Tests with random draws are slow: they are computed only for the measure that ranks the runs.
    """
    rows = []
    for shown in shown_measures(comparison):
        first = shown.column.key == comparison.score_tables[0].columns[0].key
        if not first and comparison.plan.test not in QUICK_TESTS:
            continue
        scores = shown.scores.only([shown.column.key])
        p_values = adjusted_p_matrix(scores, comparison.plan, comparison.tested_pairs)
        means = shown.means
        for i, j in permutations(range(len(p_values)), 2):
            p = float(p_values[i, j])
            rows.append(
                {
                    "measure": shown.label,
                    "run": comparison.runs[i],
                    "vs": comparison.runs[j],
                    "p": None if p != p else p,
                    "difference": _finite(float(means[i] - means[j])),
                    "level": _level(p),
                }
            )
    return rows


def _level(p: float) -> str:
    if p != p:
        return "not tested"
    return "< 0.001" if p < 0.001 else "< 0.01" if p < 0.01 else "< 0.05" if p < 0.05 else "0.05 or more"


def overlap_rows(comparison: Comparison, runs: Sequence[str]) -> list[Row]:
    """The share of their first ten documents that two runs have in common, on average over the queries of both."""
    import polars as pl

    source = comparison.source
    options = comparison.options
    if source is None or source.chunked or options is None:
        return []
    tops = pl.concat(
        ranked_rows(source.run(name), options.ordering)
        .filter(pl.col("rank") <= OVERLAP_DEPTH)
        .select(
            run=pl.lit(number, pl.Int64),
            query=pl.col("query_id").hash(),
            both=pl.struct("query_id", "doc_id").hash(),
        )
        for number, name in enumerate(runs)
    )
    queries, query = np.unique(tops["query"].to_numpy(), return_inverse=True)
    documents, document = np.unique(tops["both"].to_numpy(), return_inverse=True)
    listed = np.zeros((len(runs), len(documents)), dtype=bool)
    listed[tops["run"].to_numpy(), document] = True
    query_of = np.zeros(len(documents), dtype=np.int64)
    query_of[document] = query
    sizes = np.stack([np.bincount(query_of[own], minlength=len(queries)) for own in listed])
    overlaps = []
    for i, j in combinations(range(len(runs)), 2):
        shared = np.bincount(query_of[listed[i] & listed[j]], minlength=len(queries))
        both = (sizes[i] > 0) & (sizes[j] > 0)
        shares = shared[both] / np.maximum(sizes[i], sizes[j])[both]
        share = _rounded(float(shares.mean())) if len(shares) else None
        for one, other in ((i, j), (j, i)):
            overlaps.append({"run": runs[one], "vs": runs[other], "share": share})
    return overlaps


def _sort_key(row: LeaderboardRow, column: Column) -> float:
    """Best first, NaN last."""
    mean = row.means[column.key]
    return float("inf") if mean != mean else -float(column.worth(np.array([mean]))[0])


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else _rounded(float(value))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
