"""The charts as Vega-Lite, drawn with altair.

A chart has the rows of all measures and shows those of the one that its parameter `measure` names, so that a page
can change the measure without a new chart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import altair as alt

from steelyard.comparison.next_steps import RunFailures
from steelyard.io.files import write_file
from steelyard.report.charts import data
from steelyard.report.charts.data import Row
from steelyard.report.page.subject import Subject
from steelyard.report.tables import shared_ends, short_names

RAMP = ["#eaf3f1", "#a9d3cc", "#5aa9a0", "#1f7a72", "#0b4f4a"]
"""From low to high. A dark page has its own, so charts name the range instead of the colours."""
LEVELS = {
    "< 0.001": "#0b4f4a",
    "< 0.01": "#1f7a72",
    "< 0.05": "#8cc4bc",
    "0.05 or more": "#f1f1ee",
    "undecided": "#efd9a8",
    "not tested": "#d9d9d6",
}
STRONG_LEVELS = ("< 0.001", "< 0.01")
INKS = {"inkLow": "#000000", "inkHigh": "#ffffff", "inkAt": 0.72}
"""Text colours on cells with low and high values, and the value where they change; a dark page has its own."""
CATEGORIES = [
    *("#0b655f", "#85857f", "#0072b2", "#d55e00", "#b0468f", "#8a6d00"),
    *("#5b4bb7", "#c0392b", "#3d7ea6", "#6a7b0f", "#7a5c46", "#00805a"),
]
"""Colours of runs: that of the leader, that of the baseline, and the others. Each is legible on white."""
LEADER, BASELINE = 0, 1  # The places of the two in `CATEGORIES`.
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right"]
LINE_HEIGHT, ROW_HEIGHT, LOW_ROW_HEIGHT = 340, 30, 20
MANY = 12  # With more runs than this, the rows of a chart are low.
LONG_NAME = 28  # A name with more characters than this is too long for an axis.
LEGEND_NAME = 22  # A name with more characters than this is too long for a legend of four columns.
_FRONT = alt.Scale(domain=["on the front", "dominated"], range=["diamond", "circle"])


@dataclass(frozen=True)
class Chart:
    """A figure: its name and title, a text on how to read it, and its Vega-Lite specification.

    `measures` are the values of the parameter `measure`, `columns` those of `column`; empty where the chart has no
    such parameter. `height` is that of the drawing, in pixels. `colours` are the places of the runs' colours in
    `CATEGORIES`. `place`: where the page has it (`PLACES`).
    """

    name: str
    title: str
    about: str
    spec: dict[str, Any]
    height: int
    measures: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    colours: tuple[int, ...] = ()
    place: str = "more"


PLACES = {
    **dict.fromkeys(("differences", "cutoffs", "trade", "approximation", "slices"), "first"),
    **dict.fromkeys(("ranks", "bounds"), "leaderboard"),
    "funnel": "failures",
}
"""Where a page has a chart: first among the charts, or in the section that it belongs to; the others are folded."""


def charts_of(subject: Subject, failures: Sequence[RunFailures]) -> list[Chart]:
    """Every chart that there is data for."""
    comparison, names = subject.comparison, subject.candidates
    columns = [data.chart_label(name) for name in subject.slice_columns]
    runs = [data.chart_label(run) for run in names]
    chosen = [failures[comparison.runs.index(run)] for run in names] if failures else []
    baseline = comparison.plan.baseline
    reference = baseline or names[0]

    def kept(rows: Iterable[Row]) -> list[Row]:
        return data.labelled([row for row in rows if row["run"] in names and row.get("vs", row["run"]) in names])

    shown = {run: data.chart_label(name) for run, name in short_names(names, LONG_NAME).items()}
    paired = len(runs) > 1
    drawn: list[tuple[Callable[..., Chart], list[Row], tuple[Any, ...]]] = [
        (_differences, kept(data.difference_rows(comparison, reference)), (runs, shown[reference])),
        (_curves, data.labelled(data.curve_rows(comparison, names, chosen)) if failures else [], (runs,)),
        (_trade, data.labelled(data.trade_rows(subject, shown)), (runs,)),
        (_approximation, data.approximation_rows(subject), (subject,)),
        (_slices, data.labelled(data.slice_rows(subject, names)), (columns, runs)),
        (_ranks, kept(data.rank_rows(comparison)) if paired else [], (runs,)),
        (_bounds, kept(data.bound_rows(comparison)), (runs,)),
        (_funnel, data.labelled(data.funnel_rows(comparison, names, chosen)) if failures else [], (runs,)),
        (_bars, kept(data.bar_rows(comparison)), (runs, baseline is not None)),
        (_distribution, kept(data.distribution_rows(comparison)), (runs,)),
        (_diversity, data.labelled(data.diversity_rows(comparison, names, chosen)) if failures else [], (runs,)),
        (_p_values, kept(data.p_rows(comparison)) if paired else [], (runs, baseline)),
        (_overlap, data.labelled(data.overlap_rows(comparison, names)) if paired else [], (runs,)),
    ]
    # Every run has the same colour in every chart.
    rest = count()
    colours = tuple(
        LEADER if place == 0 else BASELINE if run == baseline else 2 + next(rest) % (len(CATEGORIES) - 2)
        for place, run in enumerate(names)
    )
    charts = [draw(rows, *arguments) for draw, rows, arguments in drawn if rows]
    return [replace(chart, colours=chart.colours or colours, place=PLACES.get(chart.name, "more")) for chart in charts]


def _differences(rows: list[Row], runs: Sequence[str], reference: str) -> Chart:
    base = _measured().encode(y=_runs_down("run", runs))
    strong = alt.datum.outcome == "significant"
    tips = _tips("run", "vs", "difference", "low", "high", "p", "outcome")
    line = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", title=f"difference from {reference}"),
        x2="high:Q",
        color=_colour(runs, legend=False),
        opacity=alt.condition(strong, alt.value(1), alt.value(0.45)),
        tooltip=tips,
    )
    points = base.mark_point(size=90, strokeWidth=2, opacity=1).encode(
        x="difference:Q",
        color=_colour(runs, legend=False),
        fill=alt.condition(strong, _colour(runs, legend=False), alt.value("transparent")),
        tooltip=tips,
    )
    zero = _all().mark_rule(strokeDash=[5, 4]).encode(x=alt.datum(0))
    about = (
        f"Every run minus {reference}, with the interval of the corrected test: a filled point is a significant "
        "difference, and its line does not cross 0."
    )
    height = max(LINE_HEIGHT, _rows_height(len(runs) - 1, 50))
    return _chosen("differences", "Differences", about, alt.layer(zero, line, points), rows, height)


def _ranks(rows: list[Row], runs: Sequence[str]) -> Chart:
    base = _measured().encode(y=_runs_down("run", runs), tooltip=_tips("run", "rank", "lowest", "highest"))
    last = max(row["highest"] for row in rows)
    ranks = alt.Scale(domain=[1, last], nice=False, padding=12)
    axis = alt.Axis(values=list(range(1, last + 1, -(-last // 20))), format="d")
    line = base.mark_rule(strokeWidth=7, strokeCap="round", opacity=0.35).encode(
        x=alt.X("lowest:Q", title="rank", scale=ranks, axis=axis), x2="highest:Q", color=_colour(runs, legend=False)
    )
    points = base.mark_point(filled=True, size=80, opacity=1).encode(x="rank:Q", color=_colour(runs, legend=False))
    about = (
        "The rank of every run, and the ranks that are consistent with the tests: a line starts after the runs that "
        "are significantly better, and ends before those that are significantly worse."
    )
    return _chosen("ranks", "Ranks", about, alt.layer(line, points), rows, _rows_height(len(runs), 60))


def _bounds(rows: list[Row], runs: Sequence[str]) -> Chart:
    base = _measured().encode(y=_runs_down("run", runs), tooltip=_tips("run", "value", "low", "high", "judged"))
    low = alt.X("low:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=6))
    bar = base.mark_bar(height={"band": 0.62}, opacity=0.4, cornerRadius=2)
    bar = bar.encode(x=low, x2="high:Q", color=_colour(runs, legend=False))
    value = base.mark_tick(thickness=3, bandSize=18).encode(x="value:Q", color=_colour(runs, legend=False))
    about = (
        "The lowest and the highest mean that any grading of the run's unjudged documents gives; the tick is the mean. "
        "Documents that are not in its lists keep their grades."
    )
    return _chosen("bounds", "Bounds", about, alt.layer(bar, value), rows, _rows_height(len(runs), 60))


def _funnel(rows: list[Row], runs: Sequence[str]) -> Chart:
    steps = list(dict.fromkeys(row["step"] for row in rows))
    axis, scale = alt.Axis(format="%", tickCount=5), alt.Scale(domain=steps, range="ramp")
    bars = _all().mark_bar(height={"band": 0.7})
    chart = bars.encode(
        x=alt.X("share:Q", title="share of all relevant documents", stack=None, axis=axis),
        y=_runs_down("run", runs),
        color=alt.Color("step:N", title=None, sort=steps, scale=scale, legend=alt.Legend(orient="top", columns=2)),
        tooltip=_tips("run", "step", "documents", "share"),
    )
    about = (
        "The relevant documents of all queries: how many a run retrieves at all, and how many within its first "
        "documents. What is retrieved but low could be gained by a better order; the rest must be retrieved first."
    )
    height = _rows_height(len(runs), 90)
    return Chart("funnel", "Relevant documents by depth", about, _spec(chart, rows, height), height)


def _rows_height(runs: int, rest: int) -> int:
    """The height of a chart with one row per run; `rest` is for its axis and its legend."""
    return runs * (LOW_ROW_HEIGHT if runs > MANY else ROW_HEIGHT) + rest


def _bars(rows: list[Row], runs: Sequence[str], baseline: bool) -> Chart:
    base = _measured().encode(y=_runs_down("run", runs))
    value, tips = alt.X("value:Q", title=None), _tips("run", "value", "low", "high", "stars")
    bars = base.mark_bar(height={"band": 0.62}, cornerRadiusEnd=2)
    layers: list[Any] = [
        bars.encode(x=value, color=_colour(runs, legend=False), tooltip=tips),
        base.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q"),
        base.transform_calculate(end="isValid(datum.high) ? datum.high : datum.value")
        .mark_text(align="left", dx=5, fontSize=13, fontWeight="bold")
        .encode(x="end:Q", text="stars:N"),
    ]
    about = "Means with their 95% intervals."
    if baseline:
        layers.append(_measured().mark_rule(strokeDash=[5, 4]).encode(x="max(baseline):Q"))
        about += (
            " The dashed line is the baseline; stars mark a significant difference from it (*** p < 0.001, ** p "
            "< 0.01, * p < 0.05)."
        )
    height = max(LINE_HEIGHT, _rows_height(len(runs), 10))
    return _chosen("means", "Means", about, alt.layer(*layers), rows, height)


def _curves(rows: list[Row], runs: Sequence[str]) -> Chart:
    about = "Every run at every cutoff, with the 95% interval of the mean. Click a name in the legend to highlight it."
    return _chosen("cutoffs", "By cutoff", about, _lines(_measured(), rows, runs), rows, LINE_HEIGHT)


def _diversity(rows: list[Row], runs: Sequence[str]) -> Chart:
    about = "The number of different targets of a query among the first k documents; repeated targets add nothing."
    return Chart("diversity", "Diversity", about, _spec(_lines(_all(), rows, runs), rows, LINE_HEIGHT), LINE_HEIGHT)


def _lines(chart: Any, rows: list[Row], runs: Sequence[str]) -> Any:
    """Lines with bands by cutoff, one colour and shape per run."""
    axis = alt.Axis(values=sorted({row["k"] for row in rows}), format="d")
    picked = alt.selection_point(name="picked", fields=["run"], bind="legend")
    faint = alt.condition(picked, alt.value(1), alt.value(0.12))
    base = chart.encode(
        x=alt.X("k:Q", title="cutoff k", scale=alt.Scale(type="log", nice=False), axis=axis), color=_colour(runs)
    )
    band = base.mark_area().encode(
        y=alt.Y("low:Q", title=None), y2="high:Q", opacity=alt.condition(picked, alt.value(0.09), alt.value(0.02))
    )
    line = base.mark_line(strokeWidth=2).encode(y="value:Q", opacity=faint)
    shapes = alt.Scale(domain=list(runs), range=[SHAPES[number % len(SHAPES)] for number in range(len(runs))])
    shape = alt.Shape("run:N", title=None, sort=list(runs), scale=shapes)
    points = base.mark_point(filled=True, size=55, opacity=1).encode(
        y="value:Q", shape=shape, opacity=faint, tooltip=_tips("run", "k", "value", "low", "high")
    )
    return alt.layer(band, line, points.properties(name="points").add_params(picked))


def _distribution(rows: list[Row], runs: Sequence[str]) -> Chart:
    scale, legend = alt.Scale(range="ramp", domainMin=0), alt.Legend(format=".0%", orient="top")
    cells = _measured().mark_rect(height={"band": 0.82})
    chart = cells.encode(
        x=alt.X("left:Q", title="value of a query", scale=alt.Scale(nice=False)),
        x2="right:Q",
        y=_runs_down("run", runs),
        color=alt.Color("share:Q", title="queries", scale=scale, legend=legend),
        tooltip=_tips("run", "left", "right", "queries", "share"),
    )
    about = "The distribution of a run's values over queries: the stronger the colour, the more queries."
    height = max(LINE_HEIGHT, _rows_height(len(runs), 70))
    return _chosen("distribution", "Score distribution", about, chart, rows, height)


def _trade(rows: list[Row], runs: Sequence[str]) -> Chart:
    value = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False, padding=18))
    base = _measured().encode(x=_times(40), y=value)
    is_best = alt.datum.front == "on the front"
    best = base.transform_filter(is_best)
    front = best.mark_line(interpolate="step-after", strokeDash=[5, 4], strokeWidth=1.5, color="#7a7a74")
    points = base.mark_point(size=130, strokeWidth=2).encode(
        color=_colour(runs),
        shape=alt.Shape("front:N", title=None, scale=_FRONT, legend=None),
        tooltip=_tips("run", "value", "milliseconds", "front"),
    )
    # A label is above its point. Of two neighbours of nearly the same value, the even one has it below, to the left.
    by_time = [alt.SortField("milliseconds")]
    named = (
        base.transform_joinaggregate(lowest="min(value)", highest="max(value)")
        .transform_filter(is_best)
        .transform_window(place="row_number()", before="lag(value)", after="lead(value)", sort=by_time)
        .transform_calculate(
            near="0.08 * (datum.highest - datum.lowest)",
            below="datum.place % 2 == 0 && (datum.value - datum.before < datum.near"
            " || (isValid(datum.after) && datum.after - datum.value < datum.near))",
        )
        # Not a filter: Vega warns of layers without data.
        .transform_calculate(above="datum.below ? '' : datum.label", under="datum.below ? datum.label : ''")
    )
    above = named.mark_text(dy=-13).encode(text="above:N")
    below = named.mark_text(align="right", dx=-6, dy=14).encode(text="under:N")
    about = (
        "Up and to the left is better. No other run is both better and faster than those on the Pareto front "
        "(diamonds)."
    )
    return _chosen("trade", "Quality and latency", about, alt.layer(front, points, above, below), rows, LINE_HEIGHT)


def _times(padding: int) -> alt.X:
    scale, axis = alt.Scale(type="log", padding=padding), alt.Axis(tickCount=5)
    return alt.X("milliseconds:Q", title="milliseconds per query (median, log scale)", scale=scale, axis=axis)


def _approximation(rows: list[Row], subject: Subject) -> Chart:
    measure = str(subject.approximation[0]["measure"])
    series = list(dict.fromkeys(row["series"] for row in rows))
    legend = alt.Legend(orient="top", columns=3, labelLimit=240, symbolOpacity=1)
    colour = alt.Color("series:N", title=None, sort=series, scale=alt.Scale(domain=series), legend=legend)
    base = _all().encode(x=_times(30), color=colour)
    lost = alt.Y("lost:Q", title=f"{measure} lost", scale=alt.Scale(zero=True, padding=12))
    tips = _tips("search", "lost", "low", "high", "neighbours", "milliseconds", "front")
    line = base.transform_filter(alt.datum.series != data.EXACT).mark_line(strokeWidth=1, opacity=0.5)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(y=alt.Y("low:Q", title=f"{measure} lost"), y2="high:Q")
    points = base.mark_point(size=90, strokeWidth=2, filled=False).encode(
        y=lost, shape=alt.Shape("front:N", scale=_FRONT, legend=None), tooltip=tips
    )
    about = (
        f"{measure} lost compared with exact search over the same vectors and with the "
        "same filter, with the interval of the corrected test. Down and to the left is better; of the diamonds, no "
        "other search with that filter loses less and is faster."
    )
    height = LINE_HEIGHT + 60
    spec = _spec(alt.layer(line.encode(order="neighbours:Q", y=lost), bars, points), rows, height)
    colours = tuple(number % len(CATEGORIES) for number in range(len(series)))
    return Chart("approximation", "What approximate search costs", about, spec, height, colours=colours)


def _slices(rows: list[Row], columns: Sequence[str], runs: Sequence[str]) -> Chart:
    slices = alt.Y("slice:N", title=None, sort=None, axis=alt.Axis(labelLimit=180, ticks=False, domain=False))
    base = _measured().transform_filter("datum.column === column").encode(x=_runs_across("run", runs), y=slices)
    tips = _tips("run", "slice", "value", "queries")
    cells = _cells(base, _ramp("shade"), tips, base, "text:N", "datum.shade > inkAt", 48)
    tallest = max(len({row["slice"] for row in rows if row["column"] == name}) for name in columns)
    about = (
        "Means by kind of query (number of queries in brackets); the stronger the colour the better, and ● is the "
        "best of each kind."
    )
    height = max(LINE_HEIGHT, tallest * ROW_HEIGHT + 110)
    return _chosen("slices", "By kind of query", about, cells, rows, height, columns)


def _p_values(rows: list[Row], runs: Sequence[str], baseline: str | None) -> Chart:
    base = _measured().encode(x=_runs_across("vs", runs), y=_runs_down("run", runs))
    levels = alt.Color(
        "level:N",
        title="p",
        scale=alt.Scale(domain=list(LEVELS), range="ordinal"),
        legend=alt.Legend(orient="top", columns=4, symbolStrokeWidth=1, symbolStrokeColor="#8a8a84"),
    )
    strong = " || ".join(f"datum.level === '{level}'" for level in STRONG_LEVELS)
    shown_p = "!isValid(datum.p) ? '' : datum.p < 0.001 ? '<.001' : format(datum.p, '.3f')"
    labels = base.transform_calculate(text=shown_p)
    cells = _cells(base, levels, _tips("run", "vs", "difference", "p"), labels, "text:N", strong, 36)
    family = "all pairs of the measure"
    if baseline is not None:
        family = f"the pairs with {baseline} as in the tables, and for the other pairs together"
    about = f"The p-value of every two runs, adjusted for {family}; strong cells are significant differences."
    height = max(LINE_HEIGHT, _rows_height(len(runs), 130))
    return _chosen("p-values", "Significant differences", about, cells, rows, height)


def _overlap(rows: list[Row], runs: Sequence[str]) -> Chart:
    base = _all().encode(x=_runs_across("vs", runs), y=_runs_down("run", runs))
    text = alt.Text("share:Q", format=".0%")
    cells = _cells(base, _ramp("share"), _tips("run", "vs", "share"), base, text, "datum.share > inkAt", 34)
    height = max(LINE_HEIGHT, _rows_height(len(runs), 130))
    about = (
        f"The share of their first {data.OVERLAP_DEPTH} documents that two runs have in common. Runs with a low "
        "overlap may be worth fusing."
    )
    return Chart("agreement", "Overlap", about, _spec(cells, rows, height), height)


def _chosen(
    name: str, title: str, about: str, chart: Any, rows: list[Row], height: int, columns: Sequence[str] = ()
) -> Chart:
    """A chart with a parameter `measure`, and `column` where there are columns."""
    measures = tuple(dict.fromkeys(row["measure"] for row in rows))
    spec = _spec(chart, rows, height)
    chosen = {"measure": measures[0]} | ({"column": columns[0]} if columns else {})
    spec["params"] = [*({"name": name, "value": value} for name, value in chosen.items()), *spec["params"]]
    return Chart(name, title, about, spec, height, measures, tuple(columns))


def _all() -> Any:
    return alt.Chart(alt.NamedData(name="rows"))


def _measured() -> Any:
    return _all().transform_filter("datum.measure === measure")


def _spec(chart: Any, rows: list[Row], height: int) -> dict[str, Any]:
    """The chart as Vega-Lite, as wide as the element that it is in."""
    fitted = chart.properties(
        width="container", height=height, autosize=alt.AutoSizeParams(type="fit", contains="padding")
    )
    spec: dict[str, Any] = fitted.to_dict(validate=False)
    spec.pop("$schema", None)
    spec.pop("config", None)
    spec["datasets"] = {"rows": rows}
    inks = [{"name": name, "value": colour} for name, colour in INKS.items()]
    spec["params"] = [*inks, *spec.get("params", [])]
    return spec


def _runs_down(field: str, runs: Sequence[str]) -> alt.Y:
    axis = alt.Axis(labelLimit=190, labelExpr=_label(runs), ticks=False, domain=False)
    return alt.Y(f"{field}:N", title=None, sort=list(runs), axis=axis)


def _runs_across(field: str, runs: Sequence[str]) -> alt.X:
    axis = alt.Axis(labelAngle=-35, labelLimit=180, labelExpr=_label(runs), orient="bottom", ticks=False, domain=False)
    return alt.X(f"{field}:N", title=None, sort=list(runs), axis=axis)


def _label(runs: Sequence[str]) -> Any:
    """The expression for the labels of names: long ones without the prefix and suffix that all names share."""
    if max(map(len, runs), default=0) <= LONG_NAME:
        return alt.Undefined
    head, tail = shared_ends(runs)
    before, after = (len(part.encode("utf-16-le", "replace")) // 2 for part in (head, tail))
    middle = f"slice(datum.label, {before}, length(datum.label) - {after})"
    if max(map(len, runs)) - len(head) - len(tail) > LONG_NAME:
        middle = f"(length({middle}) > {LONG_NAME} ? slice({middle}, 0, 14) + '…' + slice({middle}, -13) : {middle})"
    return f"{repr('…') if head else repr('')} + {middle} + {repr('…') if tail else repr('')}"


def _colour(runs: Sequence[str], legend: bool = True) -> alt.Color:
    head, tail = shared_ends(runs)
    longest = max(map(len, runs), default=0) - len(head) - len(tail)
    columns, limit = (4, 170) if longest <= LEGEND_NAME else (2, 240)
    key = alt.Legend(
        orient="top", columns=columns, symbolLimit=40, symbolOpacity=1, labelLimit=limit, labelExpr=_label(runs)
    )
    scale = alt.Scale(domain=list(runs))
    return alt.Color("run:N", title=None, sort=list(runs), scale=scale, legend=key if legend else None)


def _ramp(field: str) -> alt.Color:
    return alt.Color(f"{field}:Q", legend=None, scale=alt.Scale(range="ramp", domain=[0, 1]))


def _cells(
    base: Any, colour: alt.Color, tips: list[alt.Tooltip], labels: Any, text: Any, strong: str, width: int
) -> Any:
    """Coloured cells with text, which is shown if a cell has `width` pixels; `strong` cells have the other ink."""
    ink = alt.condition(strong, alt.value(alt.expr("inkHigh")), alt.value(alt.expr("inkLow")))
    fits = alt.condition(f"bandwidth('x') >= {width}", alt.value(1), alt.value(0))
    return alt.layer(
        base.mark_rect(cornerRadius=2).encode(color=colour, tooltip=tips),
        labels.mark_text(fontSize=11).encode(text=text, color=ink, opacity=fits),
    )


def _tips(*fields: str) -> list[alt.Tooltip]:
    formats = dict.fromkeys(("value", "low", "high", "left", "right", "difference", "lost"), ".4~f")
    formats |= {"share": ".1%", "neighbours": ".1%", "judged": ".0%", "documents": ",", "p": ".3g"}
    formats["milliseconds"] = ".3~g"
    kinds = dict.fromkeys(("run", "vs", "slice", "stars", "front", "outcome", "search", "step"), "N")
    return [alt.Tooltip(f"{name}:{kinds.get(name, 'Q')}", format=formats.get(name, alt.Undefined)) for name in fields]


WIDTH, SCALE = 760, 2
_CONFIG: dict[str, Any] = {
    "background": "#ffffff",
    "font": "Helvetica, Arial, sans-serif",
    "view": {"stroke": None},
    "axis": {"gridColor": "#e6e6e2", "domainColor": "#8a8a84", "tickColor": "#8a8a84", "labelFontSize": 12},
    "legend": {"labelFontSize": 12},
    "title": {"anchor": "start", "fontSize": 15, "subtitleFontSize": 12, "subtitleColor": "#5a5a55", "offset": 14},
}


def save_charts(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write every chart, for the measure that ranks the runs, as NAME.png and NAME.svg; returns the files."""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in charts:
        shown = chart.measures[0] if chart.measures else ""
        title = {"text": f"{chart.title}: {shown}" if shown else chart.title, "subtitle": chart.about}
        category = [CATEGORIES[colour] for colour in chart.colours]
        config = {**_CONFIG, "range": {"category": category, "ramp": RAMP, "ordinal": list(LEVELS.values())}}
        spec = {**chart.spec, "width": WIDTH, "title": title, "padding": 16, "config": config}
        svg, png = vl_convert.vegalite_to_svg(spec).encode(), vl_convert.vegalite_to_png(spec, scale=SCALE)
        for kind, content in (("svg", svg), ("png", png)):
            written.append(folder / f"{chart.name}.{kind}")
            write_file(written[-1], content)
    return written
