"""The charts of `plot()`: means with their intervals, as an altair chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from steelyard.checks import unknown_name
from steelyard.comparison.data import ComparisonData
from steelyard.errors import MeasureError, PackageError
from steelyard.report.charts.data import Row, bar_rows

if TYPE_CHECKING:
    from altair import LayerChart

WIDTH, BAR = 460, 26


def comparison_plot(comparison: ComparisonData, measure: object = None) -> LayerChart:
    """The runs of a comparison on one measure; default the one that ranks them."""
    rows = list(bar_rows(comparison))
    labels = list(dict.fromkeys(row["measure"] for row in rows))
    chosen = labels[0] if measure is None else str(measure)
    if chosen not in labels:
        raise MeasureError(unknown_name("measure", chosen, labels))
    return means_plot([row for row in rows if row["measure"] == chosen], "run", chosen)


def means_plot(rows: Sequence[Row], label: str, title: str) -> LayerChart:
    """A bar per row, in their order, with its interval. A row has `label`, `value`, and `low` and `high` or None."""
    try:
        import altair as alt
    except ImportError:
        raise PackageError("plot() needs the package altair: pip install 'steelyard[report]'.") from None

    bars = alt.Chart(alt.InlineData(values=list(rows)), title=title, width=WIDTH, height=BAR * len(rows)).encode(
        y=alt.Y(f"{label}:N", sort=None, title=None),
        tooltip=[f"{label}:N", *(alt.Tooltip(f"{field}:Q", format=".4f") for field in ("value", "low", "high"))],
    )
    drawn: Any = alt.layer(
        bars.mark_bar(color="#0072b2").encode(x=alt.X("value:Q", title="mean, with its 95% interval")),
        bars.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q"),
    )
    chart: LayerChart = drawn
    return chart
