"""The charts of `plot()`: means with their intervals, as an altair chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from steelyard.errors import PackageError
from steelyard.report.charts.data import Row

if TYPE_CHECKING:
    from altair import LayerChart

WIDTH, BAR = 460, 26


def means_plot(rows: Sequence[Row], label: str, title: str) -> LayerChart:
    """A bar per row, in their order, with its interval. A row has `label`, `value`, and `low` and `high` or None."""
    try:
        import altair as alt
    except ImportError:
        raise PackageError("plot() needs the package altair: pip install 'steelyard[report]'.") from None

    bars = alt.Chart(
        alt.InlineData(values=list(rows)), title=title, width=WIDTH, height=BAR * len(rows)
    ).encode(
        y=alt.Y(f"{label}:N", sort=None, title=None),
        tooltip=[
            f"{label}:N",
            *(alt.Tooltip(f"{field}:Q", format=".4f") for field in ("value", "low", "high")),
        ],
    )
    drawn: Any = alt.layer(
        bars.mark_bar(color="#0072b2").encode(x=alt.X("value:Q", title="mean, with its 95% interval")),
        bars.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q"),
    )
    chart: LayerChart = drawn
    return chart
