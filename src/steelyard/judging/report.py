"""How rankings of runs by two judges or query sets are shown: columns, intervals as text, and drawings as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import isnan
from typing import Any

import numpy as np

from steelyard.statistics.agreement import QuerySetAgreement
from steelyard.statistics.arrays import Array

SIDE, MARGIN = 440, 56  # Width and height of a drawing and its margin, in pixels.
NAMED = 6  # Points of a drawing whose names are printed: those furthest from the mean difference.
BARS = 24  # Bars of a histogram at most.


def typed(names: str, kind: type) -> dict[str, type]:
    """Columns of a frame that have the same type."""
    return dict.fromkeys(names.split(), kind)


def with_intervals(names: str) -> dict[str, type]:
    """Columns of numbers, each followed by the ends of its interval."""
    return {f"{name}{end}": float for name in names.split() for end in ("", "_low", "_high")}


def interval_text(row: Mapping[str, Any], name: str, form: str = ".4f") -> str:
    """A figure of a row with its interval; empty if there is none."""
    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return "" if value is None or isnan(value) else f"{value:{form}} [{low:{form}}, {high:{form}}]"


def scatter(runs: Sequence[str], scores: Sequence[Array], across: str, up: str) -> str:
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


def histogram(reference: str, name: str, measure: str, agreement: QuerySetAgreement) -> str:
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
