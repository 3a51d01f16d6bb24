"""The data of the charts, as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan
from typing import Any, TypeAlias

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.comparison.columns import is_time, partly_judged
from steelyard.comparison.data import ComparisonData
from steelyard.comparison.failures import RunFailures, places_of
from steelyard.comparison.leaderboard import LeaderboardRow
from steelyard.comparison.movers import ranked_rows
from steelyard.comparison.scores import Column, label
from steelyard.comparison.slices import in_order, slice_labels
from steelyard.errors import MeasureError
from steelyard.evaluation import measure_values
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure, parse
from steelyard.report.page.embed import visible
from steelyard.report.page.subject import Subject

Row: TypeAlias = dict[str, Any]

BINS = 20
CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
OVERLAP_DEPTH = 10  # The first documents whose overlap is shown.
NORMAL = 1.959964  # Half-width of a 95% interval, in standard errors.
FUNNEL = (20, 10)  # The numbers of first documents in which relevant ones are counted.
UNDECIDED = ("not significant", "undecided", "equal", "not tested")  # Verdicts that are no significant difference.
EXACT = "exact search"

_NAMES = ("run", "vs", "slice", "column")
_OBJECT_KEYS = {
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
    *("toLocaleString", "toString", "valueOf"),
}


def chart_label(name: str) -> str:
    """A name that is safe in a chart: Vega groups by plain JavaScript objects, which have keys of their own.

    >>> chart_label("bm25"), len(chart_label("constructor")) - len("constructor")
    ('bm25', 1)
    """
    shown = visible(name)
    return f"\u200b{shown}" if shown.startswith("__") or shown in _OBJECT_KEYS else shown


def labelled(rows: Iterable[Row], runs: Sequence[str]) -> list[Row]:
    """The rows about these runs, with names that are safe in a chart."""
    about = (row for row in rows if all(row[key] in runs for key in ("run", "vs") if key in row))
    return [{key: chart_label(value) if key in _NAMES else value for key, value in row.items()} for row in about]


def bar_rows(comparison: ComparisonData) -> Iterator[Row]:
    """Each run's mean with its interval, the baseline's mean, and the stars of the difference from it."""
    tested = {(pair.run, pair.baseline, pair.label): pair.stars for pair in comparison.tested_pairs}
    base = comparison.plan.baseline
    by_run = {(row.run, row.k): row for row in comparison.leaderboard_rows}
    for shown in comparison.shown_measures:
        key, k = shown.column.key, shown.scores.k
        reference = _finite(by_run[base, k].means[key]) if base is not None else None
        ranked = sorted((by_run[run, k] for run in comparison.runs), key=lambda row: _sort_key(row, shown.column))
        for place, row in enumerate(ranked):
            low, high = map(_finite, row.intervals[key] or (None, None))
            stars = tested.get((row.run, base or "", shown.label), "")
            bar: Row = {"measure": shown.label, "run": row.run, "place": place, "value": _finite(row.means[key])}
            bar |= {"low": low, "high": high, "baseline": reference}
            yield {**bar, "stars": "" if stars == "ns" else stars}


def difference_rows(comparison: ComparisonData, reference: str) -> Iterator[Row]:
    """The difference of every run from one run on every measure, with its interval."""
    for shown in comparison.shown_measures:
        for pair in comparison.tested_pairs:
            if pair.label != shown.label or reference not in (pair.run, pair.baseline):
                continue
            other, sign = (pair.run, 1.0) if pair.baseline == reference else (pair.baseline, -1.0)
            low, high = map(_finite, sorted((sign * pair.low, sign * pair.high)))
            row: Row = {"measure": shown.label, "run": other, "vs": reference}
            row |= {"difference": _finite(sign * pair.difference), "low": low, "high": high}
            row["p"] = None if isnan(pair.p_adjusted) else pair.p_adjusted
            yield {**row, "outcome": pair.verdict if pair.verdict in UNDECIDED else "significant"}


def curve_rows(comparison: ComparisonData, runs: Sequence[str], failures: Sequence[RunFailures]) -> list[Row]:
    """Each measure that takes a cutoff at every cutoff up to the longest list, with a band of the mean."""
    rows = []
    for shown in comparison.shown_measures:
        measure = shown.column.measure
        if measure is not None and measure.definition.cutoff != "none" and measure.definition.cutoff_kind == "rank":
            rows += _by_cutoff(comparison, runs, failures, measure, shown.label)
    return rows


def diversity_rows(comparison: ComparisonData, runs: Sequence[str], failures: Sequence[RunFailures]) -> list[Row]:
    """The number of different targets among the first k documents, by k."""
    return _by_cutoff(comparison, runs, failures, parse("Diversity"), "Diversity")


def _by_cutoff(
    comparison: ComparisonData, runs: Sequence[str], failures: Sequence[RunFailures], measure: Measure, label: str
) -> list[Row]:
    """The means of the runs at every cutoff up to the longest list; empty if one cannot be computed.

    Where only scores are known, there are no failures, and no lists whose cutoff could be changed.
    """
    if not failures:
        return []
    alignments = [run_failures.alignment for run_failures in failures]
    depth = max(int(a.retrieved.max(initial=0)) for a in alignments)
    cutoffs = [k for k in CUTOFFS if k <= max(depth, 1) or k <= (measure.cutoff or 1)]
    try:
        return [
            {"measure": label, "run": run, "k": k, **_band(_values(measure @ k, a, comparison), measure)}
            for k in cutoffs
            for run, a in zip(runs, alignments, strict=True)
        ]
    except MeasureError:
        return []


def _values(measure: Measure, a: Alignment, comparison: ComparisonData) -> Floats:
    """A measure's values with the options of the comparison, on the queries that it compares."""
    assert comparison.options is not None
    values = measure_values(measure, a, comparison.options)
    if comparison.options.missing != "skip":
        return values
    first = comparison.score_tables[0]
    shared = np.flatnonzero(~np.isnan(first.compared(first.columns[0].key)).all(axis=0))
    kept = {first.queries[place] for place in shared.tolist()}
    return values[[query in kept for query in a.queries]]


def _band(values: Floats, measure: Measure) -> Row:
    """The mean and its 95% interval, by the normal distribution, within the measure's range."""
    kept = values[~np.isnan(values)]
    if not len(kept):
        return {"value": None, "low": None, "high": None}
    mean = float(kept.mean())
    reach = NORMAL * float(kept.std(ddof=1)) / len(kept) ** 0.5 if len(kept) > 1 else 0.0
    low, high = np.clip((mean - reach, mean + reach), *measure.range).tolist()
    return {"value": _rounded(mean), "low": _finite(low), "high": _finite(high)}


def distribution_rows(comparison: ComparisonData) -> list[Row]:
    """A histogram of the values of every run, in twenty bins over the measure's range."""
    rows = []
    for shown in comparison.shown_measures:
        values = shown.values
        finite = values[np.isfinite(values)]
        if not finite.size:
            continue
        low, high = min(0.0, float(finite.min())), float(finite.max())
        if shown.column.measure is None or shown.column.measure.definition.high == 1.0:
            high = max(1.0, high)
        edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
        for run, run_values in zip(comparison.runs, values, strict=True):
            kept = run_values[np.isfinite(run_values)]
            counts, _ = np.histogram(kept, edges)
            for left, right, count in zip(edges[:-1], edges[1:], counts.tolist(), strict=True):
                if count:
                    row = {"measure": shown.label, "run": run, "left": _rounded(left), "right": _rounded(right)}
                    rows.append({**row, "queries": count, "share": _rounded(count / len(kept))})
    return rows


def rank_rows(comparison: ComparisonData) -> list[Row]:
    """Each run's rank on the measure that ranks the runs, with the lowest and the highest by the tests."""
    return [
        {"measure": label(comparison.keys[0], row.k), "run": row.run}
        | {"rank": row.rank, "lowest": row.rank_low, "highest": row.rank_high}
        for row in comparison.leaderboard_rows
    ]


def bound_rows(comparison: ComparisonData) -> list[Row]:
    """Each run's mean on the measure that ranks the runs, with the bounds of all gradings of unjudged documents."""
    key, rows = comparison.keys[0], []
    for row in comparison.leaderboard_rows if partly_judged(comparison) else ():
        judged = comparison.judged.get((row.run, row.k))
        if judged is not None and judged.bounds is not None:
            low, high = map(_finite, judged.bounds)
            cells = {"value": _finite(row.means[key]), "low": low, "high": high, "judged": judged.shares.get(key)}
            rows.append({"measure": label(key, row.k), "run": row.run, **cells})
    return rows


def funnel_rows(comparison: ComparisonData, runs: Sequence[str], failures: Sequence[RunFailures]) -> list[Row]:
    """How many relevant documents there are, are retrieved, and are among the first ones; by run.

    Empty if the lists are too short to have a difference, and if relevant documents are not the same for all runs.
    """
    depth = max((int(run_failures.alignment.retrieved.max(initial=0)) for run_failures in failures), default=0)
    if depth <= min(FUNNEL) or comparison.source is None or comparison.source.chunked:
        return []
    first = comparison.score_tables[0]
    compared = np.flatnonzero(~np.isnan(first.compared(first.columns[0].key)).all(axis=0))
    places = places_of(failures, [first.queries[place] for place in compared.tolist()])
    rows = []
    for run, run_failures in zip(runs, failures, strict=True):
        a, total = run_failures.alignment, int(run_failures.relevant[places].sum())
        relevant = (a.grade > 0) & (a.grade >= (run_failures.level or 0)) & np.isin(a.query, places)
        counts = {"relevant": total, "retrieved": int(relevant.sum())}
        counts |= {f"first {k}": int((relevant & (a.rank <= k)).sum()) for k in FUNNEL if k < depth}
        rows += [
            {"run": run, "step": step, "documents": count, "share": _rounded(count / max(1, total))}
            for step, count in counts.items()
        ]
    return rows


def trade_rows(subject: Subject, runs: Mapping[str, str]) -> list[Row]:
    """Each run with its label in the chart: mean, time per query, and whether it is on the Pareto front."""
    comparison, seconds = subject.comparison, subject.seconds
    timed = [run for run in runs if run in seconds]
    rows: list[Row] = []
    for shown in comparison.shown_measures:
        if is_time(shown.column):
            continue
        means = dict(zip(comparison.runs, shown.means, strict=True))
        costs = {run: (-float(shown.column.worth(np.array([means[run]]))[0]), seconds[run]) for run in timed}
        rows += (
            {"measure": shown.label, "run": run, "label": runs[run], "value": _finite(means[run])}
            | {"milliseconds": _rounded(cost[1] * 1e3), "front": _front(cost, costs.values())}
            for run, cost in costs.items()
        )
    return rows if len(timed) > 1 else []


def approximation_rows(subject: Subject) -> list[Row]:
    """What every run of approximate search loses, its time per query, and whether it is on the Pareto front.

    The exact searches lose nothing; they have their own series.
    """
    timed = [row for row in subject.approximation if row["seconds"] and row["exact_seconds"]]
    points: dict[str, Row] = {}
    exact: Mapping[str, Any] = {"lost": 0.0, "low": 0.0, "high": 0.0, "neighbours": 1.0}
    searches = [(row["exact"], EXACT, exact, row["exact_seconds"], row["exact"]) for row in timed]
    searches += [(row["run"], chart_label(row["series"]), row, row["seconds"], row["exact"]) for row in timed]
    for name, series, values, seconds, against in searches:
        points[name] = {
            "search": chart_label(name),
            "series": series,
            **{key: _finite(values[key]) for key in exact},
            "milliseconds": _rounded(seconds * 1e3),
            "against": against,
        }
    for point in points.values():
        rivals = [other for other in points.values() if other["against"] == point["against"]]
        costs = [(other["lost"], other["milliseconds"]) for other in rivals]
        point["front"] = _front((point["lost"], point["milliseconds"]), costs)
    return list(points.values())


def _front(cost: tuple[float, float], costs: Iterable[tuple[float, float]]) -> str:
    """Whether a pair of costs is on the Pareto front: none of the others is as low in both, and different."""
    dominated = any(other[0] <= cost[0] and other[1] <= cost[1] and other != cost for other in costs)
    return "dominated" if dominated else "on the front"


def slice_rows(subject: Subject, runs: Sequence[str]) -> list[Row]:
    """Each run's mean on the queries with one value of a column; `shade` runs from 0, worst, to 1, best."""
    comparison = subject.comparison
    rows: list[Row] = []
    for shown in comparison.shown_measures:
        for name, column in subject.slice_columns.items():
            labels = np.array(slice_labels(shown.scores.queries, column), dtype=object)
            part: list[Row] = []
            for value in in_order(labels.tolist()):
                inside = labels == value
                size = int(inside.sum())
                for run in runs:
                    mean = _finite(shown.column.mean(shown.values[comparison.runs.index(run)][inside]))
                    row = {"measure": shown.label, "column": name, "slice": f"{value} ({size:,})"}
                    part.append({**row, "run": run, "value": mean, "queries": size})
            rows += _shaded(part, shown.column)
    return rows


def _shaded(rows: list[Row], column: Column) -> list[Row]:
    """The rows with the shade of each, and its value as text, the best of a slice marked."""
    values = [row["value"] for row in rows if row["value"] is not None]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    shaded = []
    for row in rows:
        part = 0.5 if row["value"] is None or high == low else (row["value"] - low) / (high - low)
        rivals = [other["value"] for other in rows if other["slice"] == row["slice"] and other["value"] is not None]
        best = (min if column.better == "less" else max)(rivals, default=None)
        mark = " ●" if row["value"] == best and any(value != best for value in rivals) else ""
        small = row["value"] is not None and 0 < abs(row["value"]) < 0.01
        text = "" if row["value"] is None else f"{row['value']:{'.1e' if small else '.3f'}}{mark}"
        shaded.append({**row, "text": text, "shade": _rounded(1 - part if column.better == "less" else part)})
    return shaded


def p_rows(comparison: ComparisonData) -> Iterator[Row]:
    """The adjusted p-value of every two runs, as the tie groups use it."""
    for shown in comparison.shown_measures:
        for pair in comparison.pairs_on(shown):
            p = None if isnan(pair.p_adjusted) else pair.p_adjusted
            level = "not tested"
            if p is not None:
                level = next((f"< {bound}" for bound in (0.001, 0.01, 0.05) if p < bound), "0.05 or more")
            level = "undecided" if pair.verdict == "undecided" else level
            for run, other, sign in ((pair.run, pair.baseline, 1.0), (pair.baseline, pair.run, -1.0)):
                row = {"measure": shown.label, "run": run, "vs": other, "p": p}
                yield {**row, "difference": _finite(sign * pair.difference), "level": level}


def overlap_rows(comparison: ComparisonData, runs: Sequence[str]) -> list[Row]:
    """For every two runs, in both directions, the share of their first documents that both have.

    It is the mean over the queries of both.
    """
    source, options = comparison.source, comparison.options
    if source is None or source.chunked or options is None:
        return []
    tops = pl.concat(
        ranked_rows(source.run(name), options.ordering)
        .filter(pl.col("rank") <= OVERLAP_DEPTH)
        .select(
            run=pl.lit(number, pl.Int64), query=pl.col("query_id").hash(), both=pl.struct("query_id", "doc_id").hash()
        )
        for number, name in enumerate(runs)
    )
    queries, query = np.unique(tops["query"].to_numpy(), return_inverse=True)
    documents, document = np.unique(tops["both"].to_numpy(), return_inverse=True)
    listed = np.zeros((len(runs), len(documents)), dtype=bool)
    listed[tops["run"].to_numpy(), document] = True
    query_of = np.zeros(len(documents), dtype=np.int64)
    query_of[document] = query
    sizes = np.stack([np.bincount(query_of[in_run], minlength=len(queries)) for in_run in listed])
    rows: list[Row] = []
    for i, j in combinations(range(len(runs)), 2):
        shared = np.bincount(query_of[listed[i] & listed[j]], minlength=len(queries))
        both = (sizes[i] > 0) & (sizes[j] > 0)
        shares = shared[both] / np.maximum(sizes[i], sizes[j])[both]
        share = _rounded(float(shares.mean())) if len(shares) else None
        rows += ({"run": runs[one], "vs": runs[other], "share": share} for one, other in ((i, j), (j, i)))
    return rows


def _sort_key(row: LeaderboardRow, column: Column) -> float:
    """Best first, NaN last."""
    mean = row.means[column.key]
    return float("inf") if isnan(mean) else -float(column.worth(np.array([mean]))[0])


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else _rounded(float(value))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
