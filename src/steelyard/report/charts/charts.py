"""The charts as Vega-Lite specifications, which are plain dictionaries.

A chart has the rows of all measures and shows those of the one that its parameter `measure` names, so that a page
can change the measure without a new chart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from steelyard.comparison.failures import RunFailures
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

Spec: TypeAlias = dict[str, Any]
_ROWS = {"name": "rows"}
_FRONT = {"domain": ["on the front", "dominated"], "range": ["diamond", "circle"]}
_RAMP = {"range": "ramp", "domain": [0, 1]}
_TYPES = {"N": "nominal", "Q": "quantitative"}


@dataclass(frozen=True)
class Chart:
    """A figure: its name and title, a text on how to read it, and its Vega-Lite specification.

    `measures` are the values of the parameter `measure`, `columns` those of `column`; empty where the chart has no
    such parameter. `height` is that of the drawing, in pixels. `colours` are the places of the runs' colours in
    `CATEGORIES`. `place`: where the page has it: first among the charts, folded below those, or in another section.
    """

    name: str
    title: str
    about: str
    spec: Spec
    height: int
    measures: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    colours: tuple[int, ...] = ()
    place: str = "more"


def charts_of(subject: Subject, failures: Sequence[RunFailures]) -> list[Chart]:
    """Every chart that there is data for."""
    comparison, names = subject.comparison, subject.candidates
    runs = [data.chart_label(run) for run in names]
    chosen = [failures[comparison.runs.index(run)] for run in names] if failures else []
    baseline = comparison.plan.baseline
    reference = baseline or names[0]
    shown = {run: data.chart_label(name) for run, name in short_names(names, LONG_NAME).items()}
    drawn: list[tuple[str, Callable[..., Chart], Iterable[Row], tuple[Any, ...]]] = [
        ("first", _differences, data.difference_rows(comparison, reference), (runs, shown[reference])),
        ("first", _curves, data.curve_rows(comparison, names, chosen), (runs,)),
        ("first", _trade, data.trade_rows(subject, shown), (runs,)),
        ("first", _approximation, data.approximation_rows(subject), (subject,)),
        ("first", _slices, data.slice_rows(subject, names), (runs,)),
        ("leaderboard", _ranks, data.rank_rows(comparison) if len(runs) > 1 else (), (runs,)),
        ("leaderboard", _bounds, data.bound_rows(comparison), (runs,)),
        ("failures", _funnel, data.funnel_rows(comparison, names, chosen), (runs,)),
        ("more", _bars, data.bar_rows(comparison), (runs, baseline is not None)),
        ("more", _distribution, data.distribution_rows(comparison), (runs,)),
        ("more", _diversity, data.diversity_rows(comparison, names, chosen), (runs,)),
        ("more", _p_values, data.p_rows(comparison), (runs, baseline)),
        ("more", _overlap, data.overlap_rows(comparison, names) if len(runs) > 1 else (), (runs,)),
    ]
    labelled = [(place, draw, data.labelled(rows, names), arguments) for place, draw, rows, arguments in drawn]
    charts = [replace(draw(rows, *arguments), place=place) for place, draw, rows, arguments in labelled if rows]
    # Every run has the same colour in every chart.
    rest = count()
    colours = tuple(
        LEADER if place == 0 else BASELINE if run == baseline else 2 + next(rest) % (len(CATEGORIES) - 2)
        for place, run in enumerate(names)
    )
    return [replace(chart, colours=chart.colours or colours) for chart in charts]


def _differences(rows: list[Row], runs: Sequence[str], reference: str) -> Chart:
    strong, colour = "datum.outcome === 'significant'", _colour(runs, legend=False)
    by_run = _by_run(runs, "vs", "difference", "low", "high", "p", "outcome")
    low = _field("low:Q", title=f"difference from {reference}")
    fill = {"condition": {"test": strong, **colour}, "value": "transparent"}
    drawn = _layered(
        # It has data of its own, so that it is there whatever the measure.
        _layer({"type": "rule", "strokeDash": [5, 4]}, x={"datum": 0}) | {"data": _ROWS},
        _layer({"type": "rule", "strokeWidth": 3}, **by_run, x=low, x2="high", opacity=_if({"test": strong}, 1, 0.45)),
        _layer({"type": "point", "size": 90, "strokeWidth": 2, "opacity": 1}, **by_run, x="difference:Q", fill=fill),
    )
    about = (
        f"Every run minus {reference}, with the interval of the difference. A filled point is a significant difference "
        "by the corrected test."
    )
    return _chart("differences", "Differences", about, drawn, rows, _height(len(runs) - 1, 50, LINE_HEIGHT))


def _ranks(rows: list[Row], runs: Sequence[str]) -> Chart:
    last = max(row["highest"] for row in rows)
    scale = {"domain": [1, last], "nice": False, "padding": 12}
    axis = {"values": list(range(1, last + 1, -(-last // 20))), "format": "d"}
    lowest = _field("lowest:Q", title="rank", scale=scale, axis=axis)
    drawn = _layered(
        _layer({"type": "rule", "strokeWidth": 7, "strokeCap": "round", "opacity": 0.35}, x=lowest, x2="highest"),
        _layer({"type": "point", "filled": True, "size": 80, "opacity": 1}, x="rank:Q"),
        **_by_run(runs, "rank", "lowest", "highest"),
    )
    about = (
        "The rank of every run, and the ranks that are consistent with the tests: a line starts after the runs that "
        "are significantly better, and ends before those that are significantly worse."
    )
    return _chart("ranks", "Ranks", about, drawn, rows, _height(len(runs), 60))


def _bounds(rows: list[Row], runs: Sequence[str]) -> Chart:
    low = _field("low:Q", title=None, scale={"zero": False}, axis={"tickCount": 6})
    drawn = _layered(
        _layer({"type": "bar", "height": {"band": 0.62}, "opacity": 0.4, "cornerRadius": 2}, x=low, x2="high"),
        _layer({"type": "tick", "thickness": 3, "bandSize": 18}, x="value:Q"),
        **_by_run(runs, "value", "low", "high", "judged"),
    )
    about = (
        "The lowest and the highest mean that any grading of the run's unjudged documents gives; the tick is the mean. "
        "Documents that are not in its lists keep their grades."
    )
    return _chart("bounds", "Bounds", about, drawn, rows, _height(len(runs), 60))


def _funnel(rows: list[Row], runs: Sequence[str]) -> Chart:
    steps = list(dict.fromkeys(row["step"] for row in rows))
    axis, scale = {"format": "%", "tickCount": 5}, {"domain": steps, "range": "ramp"}
    drawn = _layer(
        {"type": "bar", "height": {"band": 0.7}},
        x=_field("share:Q", title="share of all relevant documents", stack=None, axis=axis),
        y=_runs_down(runs),
        color=_field("step:N", title=None, sort=steps, scale=scale, legend={"orient": "top", "columns": 2}),
        tooltip=_tips("run", "step", "documents", "share"),
    )
    about = (
        "The relevant documents of all queries: how many a run retrieves at all, and how many within its first "
        "documents. What is retrieved but low could be gained by a better order; the rest must be retrieved first."
    )
    return _chart("funnel", "Relevant documents by depth", about, drawn, rows, _height(len(runs), 90), chosen=())


def _bars(rows: list[Row], runs: Sequence[str], baseline: bool) -> Chart:
    down, end = _runs_down(runs), {"as": "end", "calculate": "isValid(datum.high) ? datum.high : datum.value"}
    tips = _tips("run", "value", "low", "high", "stars")
    bar = {"type": "bar", "height": {"band": 0.62}, "cornerRadiusEnd": 2}
    stars = {"type": "text", "align": "left", "dx": 5, "fontSize": 13, "fontWeight": "bold"}
    layers = [
        _layer(bar, x=_field("value:Q", title=None), y=down, color=_colour(runs, legend=False), tooltip=tips),
        _layer({"type": "rule", "strokeWidth": 1.5}, x="low:Q", x2="high", y=down),
        _layer(stars, end, x="end:Q", y=down, text="stars:N"),
    ]
    about = "Means with their 95% intervals."
    if baseline:
        layers.append(_layer({"type": "rule", "strokeDash": [5, 4]}, x=_field("baseline:Q", aggregate="max")))
        about += (
            " The dashed line is the baseline; stars mark a significant difference from it (*** p < 0.001, ** p "
            "< 0.01, * p < 0.05)."
        )
    return _chart("means", "Means", about, _layered(*layers), rows, _height(len(runs), 10, LINE_HEIGHT))


def _curves(rows: list[Row], runs: Sequence[str]) -> Chart:
    about = "Every run at every cutoff, with the 95% interval of the mean. Click a name in the legend to highlight it."
    return _chart("cutoffs", "By cutoff", about, _lines(rows, runs), rows, LINE_HEIGHT)


def _diversity(rows: list[Row], runs: Sequence[str]) -> Chart:
    about = "The number of different targets of a query among the first k documents; repeated targets add nothing."
    return _chart("diversity", "Diversity", about, _lines(rows, runs), rows, LINE_HEIGHT, chosen=())


def _lines(rows: list[Row], runs: Sequence[str]) -> Spec:
    """Lines with bands by cutoff, one colour and shape per run."""
    axis = {"values": sorted({row["k"] for row in rows}), "format": "d"}
    shapes = {"domain": runs, "range": [SHAPES[number % len(SHAPES)] for number in range(len(runs))]}
    picked = {"param": "picked"}
    faint, fainter = _if(picked, 1, 0.12), _if(picked, 0.09, 0.02)
    points = _layer(
        {"type": "point", "filled": True, "size": 55, "opacity": 1},
        y="value:Q",
        shape=_field("run:N", title=None, sort=runs, scale=shapes),
        opacity=faint,
        tooltip=_tips("run", "k", "value", "low", "high"),
    )
    drawn = _layered(
        _layer({"type": "area"}, y=_field("low:Q", title=None), y2="high", opacity=fainter),
        _layer({"type": "line", "strokeWidth": 2}, y="value:Q", opacity=faint),
        {"name": "points", **points},
        x=_field("k:Q", title="cutoff k", scale={"type": "log", "nice": False}, axis=axis),
        color=_colour(runs),
    )
    select = {"type": "point", "fields": ["run"]}
    return drawn | {"params": [{"name": "picked", "select": select, "bind": "legend", "views": ["points"]}]}


def _distribution(rows: list[Row], runs: Sequence[str]) -> Chart:
    scale, legend = {"range": "ramp", "domainMin": 0}, {"format": ".0%", "orient": "top"}
    drawn = _layer(
        {"type": "rect", "height": {"band": 0.82}},
        x=_field("left:Q", title="value of a query", scale={"nice": False}),
        x2="right",
        y=_runs_down(runs),
        color=_field("share:Q", title="queries", scale=scale, legend=legend),
        tooltip=_tips("run", "left", "right", "queries", "share"),
    )
    about = "The distribution of a run's values over queries: the stronger the colour, the more queries."
    return _chart("distribution", "Score distribution", about, drawn, rows, _height(len(runs), 70, LINE_HEIGHT))


def _trade(rows: list[Row], runs: Sequence[str]) -> Chart:
    front = {"type": "line", "interpolate": "step-after", "strokeDash": [5, 4], "strokeWidth": 1.5, "color": "#7a7a74"}
    best = {"filter": "datum.front === 'on the front'"}
    # A label is above its point. Of two neighbours of nearly the same value, the even one has it below, to the left.
    ends = [{"op": op, "field": "value", "as": name} for name, op in (("lowest", "min"), ("highest", "max"))]
    neighbours = [{"op": op, "field": "value", "as": name} for name, op in (("before", "lag"), ("after", "lead"))]
    below = (
        "datum.place % 2 == 0 && (datum.value - datum.before < datum.near"
        " || (isValid(datum.after) && datum.after - datum.value < datum.near))"
    )
    labels: list[Spec] = [
        {"joinaggregate": ends},
        best,
        {"window": [{"op": "row_number", "as": "place"}, *neighbours], "sort": [{"field": "milliseconds"}]},
        {"as": "near", "calculate": "0.08 * (datum.highest - datum.lowest)"},
        {"as": "below", "calculate": below},
        # Not a filter: Vega warns of layers without data.
        {"as": "above", "calculate": "datum.below ? '' : datum.label"},
        {"as": "under", "calculate": "datum.below ? datum.label : ''"},
    ]
    drawn = _layered(
        _layer(front, best),
        _layer(
            {"type": "point", "size": 130, "strokeWidth": 2},
            color=_colour(runs),
            shape=_field("front:N", title=None, scale=_FRONT, legend=None),
            tooltip=_tips("run", "value", "milliseconds", "front"),
        ),
        _layer({"type": "text", "dy": -13}, *labels, text="above:N"),
        _layer({"type": "text", "align": "right", "dx": -6, "dy": 14}, *labels, text="under:N"),
        x=_times(40),
        y=_field("value:Q", title=None, scale={"zero": False, "padding": 18}),
    )
    about = (
        "Up and to the left is better. No other run is both better and faster than those on the Pareto front "
        "(diamonds)."
    )
    return _chart("trade", "Quality and latency", about, drawn, rows, LINE_HEIGHT)


def _times(padding: int) -> Spec:
    scale, title = {"type": "log", "padding": padding}, "milliseconds per query (median, log scale)"
    return _field("milliseconds:Q", title=title, scale=scale, axis={"tickCount": 5})


def _approximation(rows: list[Row], subject: Subject) -> Chart:
    measure = str(subject.approximation[0]["measure"])
    series = list(dict.fromkeys(row["series"] for row in rows))
    legend = {"orient": "top", "columns": 3, "labelLimit": 240, "symbolOpacity": 1}
    lost = _field("lost:Q", title=f"{measure} lost", scale={"zero": True, "padding": 12})
    low = _field("low:Q", title=f"{measure} lost")
    approximate = {"filter": f"datum.series !== '{data.EXACT}'"}
    drawn = _layered(
        _layer({"type": "line", "strokeWidth": 1, "opacity": 0.5}, approximate, order="neighbours:Q", y=lost),
        _layer({"type": "rule", "strokeWidth": 1.5, "opacity": 0.6}, y=low, y2="high"),
        _layer(
            {"type": "point", "size": 90, "strokeWidth": 2, "filled": False},
            y=lost,
            shape=_field("front:N", scale=_FRONT, legend=None),
            tooltip=_tips("search", "lost", "low", "high", "neighbours", "milliseconds", "front"),
        ),
        x=_times(30),
        color=_field("series:N", title=None, sort=series, scale={"domain": series}, legend=legend),
    )
    about = (
        f"{measure} lost compared with exact search over the same vectors and with the "
        "same filter, with the interval of the corrected test. Down and to the left is better; of the diamonds, no "
        "other search with that filter loses less and is faster."
    )
    title, colours = "What approximate search costs", tuple(number % len(CATEGORIES) for number in range(len(series)))
    chart = _chart("approximation", title, about, drawn, rows, LINE_HEIGHT + 60, chosen=())
    return replace(chart, colours=colours)


def _slices(rows: list[Row], runs: Sequence[str]) -> Chart:
    axis = {"labelLimit": 180, "ticks": False, "domain": False}
    places = {"x": _runs_across("run", runs), "y": _field("slice:N", title=None, sort=None, axis=axis)}
    tips = _tips("run", "slice", "value", "queries")
    drawn = _cells(places, _field("shade:Q", legend=None, scale=_RAMP), tips, "text:N", "datum.shade > inkAt", 48)
    slices = {(row["column"], row["slice"]) for row in rows}
    tallest = max(Counter(column for column, _ in slices).values())
    about = (
        "Means by kind of query (number of queries in brackets); the stronger the colour the better, and ● is the "
        "best of each kind."
    )
    height = max(LINE_HEIGHT, tallest * ROW_HEIGHT + 110)
    return _chart("slices", "By kind of query", about, drawn, rows, height, ("measure", "column"))


def _p_values(rows: list[Row], runs: Sequence[str], baseline: str | None) -> Chart:
    places = {"x": _runs_across("vs", runs), "y": _runs_down(runs)}
    legend = {"orient": "top", "columns": 4, "symbolStrokeWidth": 1, "symbolStrokeColor": "#8a8a84"}
    levels = _field("level:N", title="p", scale={"domain": [*LEVELS], "range": "ordinal"}, legend=legend)
    strong = " || ".join(f"datum.level === '{level}'" for level in STRONG_LEVELS)
    shown_p = "!isValid(datum.p) ? '' : datum.p < 0.001 ? '<.001' : format(datum.p, '.3f')"
    tips = _tips("run", "vs", "difference", "p")
    drawn = _cells(places, levels, tips, "text:N", strong, 36, {"as": "text", "calculate": shown_p})
    family = "all pairs of the measure"
    if baseline is not None:
        family = f"the pairs with {baseline} as in the tables, and for the other pairs together"
    about = f"The p-value of every two runs, adjusted for {family}; strong cells are significant differences."
    return _chart("p-values", "Significant differences", about, drawn, rows, _height(len(runs), 130, LINE_HEIGHT))


def _overlap(rows: list[Row], runs: Sequence[str]) -> Chart:
    places = {"x": _runs_across("vs", runs), "y": _runs_down(runs)}
    colour, text = _field("share:Q", legend=None, scale=_RAMP), _field("share:Q", format=".0%")
    drawn = _cells(places, colour, _tips("run", "vs", "share"), text, "datum.share > inkAt", 34)
    about = (
        f"The share of their first {data.OVERLAP_DEPTH} documents that two runs have in common. Runs with a low "
        "overlap may be worth fusing."
    )
    height = _height(len(runs), 130, LINE_HEIGHT)
    return _chart("agreement", "Overlap", about, drawn, rows, height, chosen=())


def _chart(
    name: str, title: str, about: str, drawn: Spec, rows: list[Row], height: int, chosen: Sequence[str] = ("measure",)
) -> Chart:
    """A chart as wide as the element that it is in. Of what is `chosen`, it has the rows of one value at a time."""
    values = {column: tuple(dict.fromkeys(row[column] for row in rows)) for column in chosen}
    params = {column: of_column[0] for column, of_column in values.items()} | INKS
    spec = drawn | {"data": _ROWS, "datasets": {"rows": rows}}
    spec["params"] = [{"name": name, "value": value} for name, value in params.items()] + drawn.get("params", [])
    spec["transform"] = [{"filter": f"datum.{column} === {column}"} for column in chosen]
    spec |= {"width": "container", "height": height, "autosize": {"type": "fit", "contains": "padding"}}
    return Chart(name, title, about, spec, height, values.get("measure", ()), values.get("column", ()))


def _height(runs: int, rest: int, least: int = 0) -> int:
    """The height of a chart with one row per run; `rest` is for its axis and its legend."""
    return max(least, runs * (LOW_ROW_HEIGHT if runs > MANY else ROW_HEIGHT) + rest)


def _layered(*layers: Spec, **channels: Any) -> Spec:
    """Layers, and the channels that they share."""
    return {"layer": list(layers), "encoding": _encoding(channels)}


def _layer(mark: Spec, *transforms: Spec, **channels: Any) -> Spec:
    """A mark with its channels, and what is done with the rows before it is drawn."""
    return {"mark": mark, "encoding": _encoding(channels)} | ({"transform": list(transforms)} if transforms else {})


def _encoding(channels: Spec) -> Spec:
    """Channels by name; a text is a field without options."""
    return {name: _field(channel) if isinstance(channel, str) else channel for name, channel in channels.items()}


def _field(shorthand: str, **options: Any) -> Spec:
    """A field and its type, such as `run:N`; the second end of an interval has no type of its own."""
    name, _, kind = shorthand.partition(":")
    return {"field": name, **({"type": _TYPES[kind]} if kind else {}), **options}


def _if(condition: Spec, value: Any, other: Any) -> Spec:
    """One value or another."""
    return {"condition": {**condition, "value": value}, "value": other}


def _by_run(runs: Sequence[str], *tips: str) -> Spec:
    """The channels of a chart with one row per run."""
    return {"y": _runs_down(runs), "color": _colour(runs, legend=False), "tooltip": _tips("run", *tips)}


def _runs_down(runs: Sequence[str]) -> Spec:
    axis = {"labelLimit": 190, **_labels(runs), "ticks": False, "domain": False}
    return _field("run:N", title=None, sort=runs, axis=axis)


def _runs_across(field: str, runs: Sequence[str]) -> Spec:
    axis = {"labelAngle": -35, "labelLimit": 180, **_labels(runs), "orient": "bottom", "ticks": False, "domain": False}
    return _field(f"{field}:N", title=None, sort=runs, axis=axis)


def _labels(runs: Sequence[str]) -> dict[str, str]:
    """The expression for the labels of names: long ones without the prefix and suffix that all names share."""
    if max(map(len, runs), default=0) <= LONG_NAME:
        return {}
    head, tail = shared_ends(runs)
    before, after = (len(part.encode("utf-16-le", "replace")) // 2 for part in (head, tail))
    middle = f"slice(datum.label, {before}, length(datum.label) - {after})"
    if max(map(len, runs)) - len(head) - len(tail) > LONG_NAME:
        middle = f"(length({middle}) > {LONG_NAME} ? slice({middle}, 0, 14) + '…' + slice({middle}, -13) : {middle})"
    return {"labelExpr": f"{repr('…') if head else repr('')} + {middle} + {repr('…') if tail else repr('')}"}


def _colour(runs: Sequence[str], legend: bool = True) -> Spec:
    head, tail = shared_ends(runs)
    longest = max(map(len, runs), default=0) - len(head) - len(tail)
    columns, limit = (4, 170) if longest <= LEGEND_NAME else (2, 240)
    key = {"orient": "top", "columns": columns, "symbolLimit": 40, "symbolOpacity": 1, "labelLimit": limit}
    key |= _labels(runs)
    return _field("run:N", title=None, sort=runs, scale={"domain": runs}, legend=key if legend else None)


def _cells(
    places: Spec, colour: Spec, tips: list[Spec], text: str | Spec, strong: str, width: int, *transforms: Spec
) -> Spec:
    """Coloured cells with text, which is shown if a cell has `width` pixels; `strong` cells have the other ink."""
    ink = _if({"test": strong}, {"expr": "inkHigh"}, {"expr": "inkLow"})
    fits = _if({"test": f"bandwidth('x') >= {width}"}, 1, 0)
    return _layered(
        _layer({"type": "rect", "cornerRadius": 2}, color=colour, tooltip=tips),
        _layer({"type": "text", "fontSize": 11}, *transforms, text=text, color=ink, opacity=fits),
        **places,
    )


def _tips(*fields: str) -> list[Spec]:
    formats = dict.fromkeys(("value", "low", "high", "left", "right", "difference", "lost"), ".4~f")
    formats |= {"share": ".1%", "neighbours": ".1%", "judged": ".0%", "documents": ",", "p": ".3g"}
    formats["milliseconds"] = ".3~g"
    kinds = dict.fromkeys(("run", "vs", "slice", "stars", "front", "outcome", "search", "step"), "N")
    options = {name: {"format": form} for name, form in formats.items()}
    return [_field(f"{name}:{kinds.get(name, 'Q')}", **options.get(name, {})) for name in fields]


WIDTH, SCALE = 760, 2
_CONFIG: Spec = {
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
