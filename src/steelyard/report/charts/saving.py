"""Charts as files: a PNG and an SVG each, without a browser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.formats.atomic import write_file
from steelyard.report.charts.drawing import CONFIG, Chart

WIDTH = 760
SCALE = 2

_CONFIG: dict[str, Any] = {
    "background": "#ffffff",
    "font": "Helvetica, Arial, sans-serif",
    **CONFIG,
    "view": {"stroke": None},
    "axis": {"gridColor": "#e6e6e2", "domainColor": "#8a8a84", "tickColor": "#8a8a84", "labelFontSize": 12},
    "legend": {"labelFontSize": 12},
    "title": {
        "anchor": "start",
        "fontSize": 15,
        "subtitleFontSize": 12,
        "subtitleColor": "#5a5a55",
        "offset": 14,
    },
}


def save_charts(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write every chart of the measure that ranks the runs as NAME.png and NAME.svg; the files written."""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in charts:
        shown = chart.measures[0] if chart.measures else ""
        title = {"text": f"{chart.title}: {shown}" if shown else chart.title, "subtitle": chart.about}
        spec = {**chart.spec, "width": WIDTH, "title": title, "config": _CONFIG, "padding": 16}
        drawings = {"svg": vl_convert.vegalite_to_svg(spec).encode()}
        drawings["png"] = vl_convert.vegalite_to_png(spec, scale=SCALE)
        for kind, content in drawings.items():
            path = folder / f"{chart.name}.{kind}"
            write_file(path, content)
            written.append(path)
    return written
