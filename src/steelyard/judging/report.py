"""The tables and drawings of an Agreement and of QuerySets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import isnan
from typing import Any

import numpy as np
import polars as pl

from steelyard.judging.agreement import Agreement
from steelyard.judging.query_sets import QuerySets
from steelyard.report.documents import Document
from steelyard.report.tables import Table
from steelyard.statistics import shown_p
from steelyard.statistics.agreement import QuerySetAgreement
from steelyard.statistics.arrays import Array

SIDE, MARGIN = 440, 56  # Width and height of a drawing and its margin, in pixels.
NAMED = 6  # Points of a drawing whose names are printed: those furthest from the mean difference.
BARS = 24  # Bars of a histogram at most.


def agreement_document(agreement: Agreement) -> Document:
    """The verdict, the tables, the scores of the runs by two judges, drawn, and the remarks."""
    kappas = [f"kappa{part}" for part in ("", "_low", "_high", "_linear", "_quadratic")]
    pairs = agreement.pairs.select("a", "b", "n", *kappas, "alpha", "ac1", "bias").rows()
    titles = ["a", "b", "documents", "kappa", "low", "high", "linear", "quadratic", "alpha", "AC1", "bias"]
    note = "alpha is Krippendorff's, ordinal; bias is the mean grade of b minus that of a."
    tables = [
        Table(titles, pairs, title="Agreement of grades", keys=2, note=note),
        *(_systems_tables(agreement) if agreement.systems.height else []),
        *(_confusion_table(agreement, agreement.judges[0], b) for b in agreement.judges[1:]),
        *_favours_tables(agreement),
    ]
    title = f"Agreement of {' and '.join(agreement.judges)}"
    return Document(title, agreement.verdict, tables, agreement.remarks, ranking_drawings(agreement))


def _systems_tables(agreement: Agreement) -> list[Table]:
    """The agreement of the rankings of runs, and the pairs of runs with a significant difference."""
    rows = []
    for row in agreement.systems.iter_rows(named=True):
        figures = [_interval_text(row, name) for name in ("tau", "tau_ap", "rbo")]
        drop = f"{row['drop']:g} ({row['dropped']})" if row["dropped"] else "0"
        rows.append([row["a"], row["b"], row["measure"], *figures, drop, _interval_text(row, "bias", "+.4f")])
    count, queries = len(agreement.runs), max(agreement.systems["queries"].to_list())
    note = (
        f"{count:,} runs; 95% bootstrap intervals over at most {queries:,} queries; tau is tau-b; a is the "
        f"reference of tau_AP; RBO with p = {agreement.rbo_p:g}; bias is the mean score by b minus that by a."
    )
    titles = ["a", "b", "measure", "tau", "tau_AP", "RBO", "largest drop", "bias"]
    ranked = Table(titles, rows, title="Agreement of the rankings of runs", keys=3, note=note)
    names = ["a", "b", "measure", "run_pairs", "significant_a", "significant_b", "significant_both", "reversed"]
    titles = ["a", "b", "measure", "pairs", "by a", "by b", "by both", "reversed"]
    note = "Paired t test over queries, p < 0.05, not corrected; reversed: a and b prefer different runs."
    tested = agreement.systems.select(names).rows()
    return [ranked, Table(titles, tested, title="Pairs of runs with a significant difference", keys=3, note=note)]


def _confusion_table(agreement: Agreement, a: str, b: str) -> Table:
    frame = agreement.confusion(a, b)
    grades = [name.rpartition("=")[2] for name in frame.columns[1:]]
    rows = []
    for grade, *counts in frame.rows():
        given = sum(float(other) * count for other, count in zip(grades, counts, strict=True))
        rows.append([grade, *counts, f"{given / sum(counts) - float(grade):+.4f}" if any(counts) else ""])
    title, note = f"Grades by {a} (rows) and {b} (columns)", f"bias: the mean grade by {b} minus the grade by {a}."
    return Table(["grade", *grades, "bias"], rows, title=title, note=note, shade="row")


def _favours_tables(agreement: Agreement) -> list[Table]:
    """The runs whose bias differs significantly from the mean bias, by the judges compared with the first."""
    chosen = agreement.favours.filter((pl.col("a") == agreement.judges[0]) & (pl.col("p_adjusted") < 0.05))
    if not chosen.height:
        return []
    columns = ["b", "measure", "run", "score_a", "score_b", "bias", "favour", "p_adjusted"]
    selected = chosen.select(columns).sort("b", "measure", "favour", descending=[False, False, True]).rows()
    rows = [[*row[:-1], shown_p(row[-1])] for row in selected]
    note = "favour: the bias of the run minus the mean bias of all runs. Holm's correction over the runs."
    title = f"Runs with a bias different from the others, compared with {agreement.judges[0]}"
    titles = ["judge", *columns[1:3], "score by a", "score by b", "bias", "favour", "p"]
    return [Table(titles, rows, title=title, keys=3, note=note)]


def query_sets_document(sets: QuerySets) -> Document:
    """The verdict, the tables, and for every set the splits of the reference and the runs' scores, drawn."""
    title = f"Query sets {', '.join(sets.sets[1:])} compared with {sets.sets[0]}"
    drawings = []
    for (name, measure), agreement in sets.agreements.items():
        drawings.append(_histogram(sets.sets[0], name, measure, agreement))
        scores = [sets.scores(label, measure) for label in (sets.sets[0], name)]
        drawings.append(_scatter(sets.table.runs, scores, f"{measure} with {sets.sets[0]}", f"{measure} with {name}"))
    return Document(title, sets.verdict, _query_sets_tables(sets), sets.notes, drawings)


def _query_sets_tables(sets: QuerySets) -> list[Table]:
    """The rankings of runs by each set, and the pairs of runs with a significant difference."""
    rows = []
    for row in sets.query_sets.rename({"split_tau": "split"}).iter_rows(named=True):
        figures = [_interval_text(row, "tau"), _interval_text(row, "split"), row["split_queries"]]
        rows.append([row["set"], row["measure"], row["queries"], *figures, _interval_text(row, "bias", "+.4f")])
    reference, queries = sets.sets[0], max(sets.query_sets["reference_queries"].to_list())
    note = (
        f"{len(sets.table.runs):,} runs; tau is tau-b with the {queries:,} queries of {reference}, with a 95% "
        f"bootstrap interval over queries. as many {reference}: tau of as many queries of {reference} (drawn) with the "
        "rest, mean and middle 95% of random splits. bias: mean score with the set minus that with the reference."
    )
    titles = ["set", "measure", "queries", "tau", f"as many {reference}", "drawn", "bias"]
    ranked = Table(titles, rows, title=f"Rankings of runs compared with {reference}", keys=2, note=note)
    names = ["set", "measure", "run_pairs", "significant_reference", "significant_set", "significant_both"]
    titles = ["set", "measure", "pairs", f"by {reference}", "by the set", "by both", "reversed", "opposite"]
    note = (
        "Paired t test over queries, p < 0.05, not corrected. reversed: significant by both, in opposite directions; "
        f"opposite: significant by {reference}, and the set's means prefer the other run."
    )
    tested = sets.query_sets.select(*names, "reversed", "opposite").rows()
    return [ranked, Table(titles, tested, title="Pairs of runs with a significant difference", keys=2, note=note)]


def ranking_drawings(agreement: Agreement) -> list[str]:
    """For every judge compared with the first, and every measure: the runs' scores by both, as SVG.

    A run above the diagonal is scored higher by the judge than the reference; runs in another order rank differently.
    """
    reference = agreement.judges[0]
    drawings = []
    for judge in agreement.judges[1:] if len(agreement.runs) > 1 else ():
        for measure in agreement.measures:
            *scores, queries = agreement.scores(reference, judge, measure)
            if queries:
                across, up = f"{measure} by {reference}", f"{measure} by {judge}"
                drawings.append(_scatter(agreement.runs, scores, across, up))
    return drawings


def _scatter(runs: Sequence[str], scores: Sequence[Array], across: str, up: str) -> str:
    """The runs' means by both as SVG, on axes of one scale, with the diagonal; far outliers are hollow, at the edge."""
    one, other = (matrix.mean(axis=1).tolist() for matrix in scores)
    points = list(zip(runs, one, other, strict=True))
    values = [*one, *other]
    quarter, most = np.quantile(values, (0.25, 0.75)).tolist()
    reach = 1.5 * (most - quarter)
    low, high = max(min(values), quarter - reach), min(max(values), most + reach)
    low, width = _axis(low, high)
    plot = SIDE - 2 * MARGIN

    def place(x: float, y: float) -> tuple[str, str]:
        right, above = (plot * min(1.0, max(0.0, (value - low) / width)) for value in (x, y))
        return f"{MARGIN + right:.1f}", f"{SIDE - MARGIN - above:.1f}"

    end, middle, edge = SIDE - MARGIN, SIDE / 2, MARGIN - 8
    labels = "".join(
        f'<text x="{place(tick, low)[0]}" y="{end + 16}" text-anchor="middle">{tick:.2f}</text>'
        f'<text x="{edge}" y="{place(low, tick)[1]}" text-anchor="end" dominant-baseline="middle">{tick:.2f}</text>'
        for tick in (low + width * part for part in (0.1, 0.5, 0.9))
    )
    dots = "".join(
        '<circle cx="{}" cy="{}" r="4" stroke="#0072b2" fill="#0072b2" fill-opacity="{}">'
        "<title>{}: {:.4f}, {:.4f}</title></circle>".format(
            *place(x, y), 0.6 if min(x, y) >= low and max(x, y) <= low + width else 0, escape(run), x, y
        )
        for run, x, y in points
    )
    usual = sum(y - x for _, x, y in points) / len(points)
    placed: list[tuple[float, float]] = []
    for run, x, y in sorted(points, key=lambda point: -abs(point[2] - point[1] - usual)):
        at, height = map(float, place(x, y))
        if len(placed) < NAMED and all(abs(height - other) > 12 or abs(at - left) > plot / 2 for left, other in placed):
            placed.append((at, height))
            side, anchor = (-8, "end") if at > middle else (8, "start")
            dots += f'<text x="{at + side:.1f}" y="{height + 4:.1f}" text-anchor="{anchor}">{escape(run)}</text>'
    return _drawing(
        f"{up} and {across}, one point per run",
        f'<rect x="{MARGIN}" y="{MARGIN}" width="{plot}" height="{plot}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.3"/>'
        f'<line x1="{MARGIN}" y1="{end}" x2="{end}" y2="{MARGIN}" stroke="currentColor" stroke-opacity="0.4" '
        'stroke-dasharray="4 4"/>'
        f'{labels}{dots}<text x="{middle}" y="{SIDE - 6}" text-anchor="middle">{escape(across)}</text>'
        f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">{escape(up)}</text>',
    )


def _histogram(reference: str, name: str, measure: str, agreement: QuerySetAgreement) -> str:
    """The tau of random splits of the reference as bars in SVG, the middle 95% of them shaded, and the set's tau."""
    taus, value = agreement.splits[~np.isnan(agreement.splits)], agreement.tau.value
    if not len(taus) or isnan(value):
        return ""
    low, high = min(float(taus.min()), value), max(float(taus.max()), value)
    low, width = _axis(low, high)
    counts, edges = np.histogram(taus, bins=BARS, range=(low, low + width))
    plot, end = SIDE - 2 * MARGIN, SIDE - MARGIN

    def across(tau: float) -> float:
        return MARGIN + plot * (tau - low) / width

    bars = "".join(
        f'<rect x="{across(left):.1f}" y="{end - plot * count / counts.max():.1f}" width="{plot / BARS - 1:.1f}" '
        f'height="{plot * count / counts.max():.1f}" fill="#0072b2" fill-opacity="0.6"><title>{left:.2f} to '
        f"{right:.2f}: {count:,} splits</title></rect>"
        for count, left, right in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        if count
    )
    ticks = "".join(
        f'<text x="{across(tick):.1f}" y="{end + 16}" text-anchor="middle">{tick:.2f}</text>'
        for tick in (low + width * part for part in (0.1, 0.5, 0.9))
    )
    band, mark = agreement.split, across(value)
    label = f"tau of {agreement.split_queries:,} {reference} queries with the rest ({measure})"
    return _drawing(
        f"{label}; {name} has {value:.2f}",
        f'<rect x="{across(band.low):.1f}" y="{MARGIN}" width="{across(band.high) - across(band.low):.1f}" '
        f'height="{plot}" fill="currentColor" fill-opacity="0.08"><title>middle 95%</title></rect>{bars}'
        f'<line x1="{mark:.1f}" y1="{MARGIN}" x2="{mark:.1f}" y2="{end}" stroke="#d55e00" stroke-width="2"/>'
        f'<text x="{mark:.1f}" y="{MARGIN - 6}" text-anchor="middle">{escape(name)} {value:.2f}</text>'
        f'<line x1="{MARGIN}" y1="{end}" x2="{SIDE - MARGIN}" y2="{end}" stroke="currentColor" stroke-opacity="0.4"/>'
        f'{ticks}<text x="{SIDE / 2}" y="{SIDE - 6}" text-anchor="middle">{escape(label)}</text>',
    )


def _axis(low: float, high: float) -> tuple[float, float]:
    """The lowest value of an axis and its width: a little wider than the values."""
    return low - 0.05 * (high - low or 1.0), 1.1 * (high - low or 1.0)


def _drawing(label: str, content: str) -> str:
    return (
        f'<svg viewBox="0 0 {SIDE} {SIDE}" width="{SIDE}" height="{SIDE}" role="img" aria-label="{escape(label)}" '
        f'font-family="sans-serif" font-size="11" fill="currentColor">{content}</svg>'
    )


def _interval_text(row: Mapping[str, Any], name: str, form: str = ".4f") -> str:
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return "" if value is None or isnan(value) else f"{value:{form}} [{low:{form}}, {high:{form}}]"
