"""The charts: plain dictionaries that are valid Vega-Lite, made without altair."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.comparison.failures import run_failures
from steelyard.report.charts.charts import charts_of
from steelyard.report.page.subject import comparison_subject

KINDS = {
    *("differences", "cutoffs", "trade", "approximation", "slices", "ranks", "bounds", "funnel"),
    *("means", "distribution", "diversity", "p-values", "agreement"),
}


def every_chart(names):
    """The charts of runs of which everything is known that a bench knows: lists, times, slices, exact search."""
    draws = np.random.default_rng(5)
    documents = [f"d{number}" for number in range(60)]
    qrels = {f"q{number}": {doc: int(draws.integers(-1, 4)) for doc in documents[number:40:2]} for number in range(20)}
    runs = {
        name: {query: [documents[place] for place in draws.permutation(60)[: 30 + at]] for query in qrels}
        for at, name in enumerate(names)
    }
    found = sy.compare(qrels, runs, ["nDCG@10", "P@5", "RR"], baseline=names[1])
    search = {"exact": names[0], "exact_seconds": 0.02, "measure": "nDCG@10", "neighbours": 0.9}
    lost = {"lost": 0.1, "low": 0.05, "high": 0.15}
    subject = replace(
        comparison_subject(found),
        costs=[{"run": name, "median_seconds": 0.001 * at} for at, name in enumerate(names, 1)],
        columns={"kind": {query: "ab"[at % 2] for at, query in enumerate(qrels)}},
        approximation=[{"run": name, "series": "hnsw", "seconds": 0.004, **search, **lost} for name in names[1:]],
    )
    return charts_of(subject, run_failures(found))


@pytest.mark.parametrize("suffix", ["", " with a name that is too long for the labels of an axis"])
def test_every_chart_is_valid_vega_lite(suffix):
    altair, jsonschema = import_peer("altair"), import_peer("jsonschema")
    charts = every_chart([f"{name}{suffix}" for name in ("bm25", "dense", "hybrid")])
    assert {chart.name for chart in charts} == KINDS
    # The page draws a chart with the colours of its theme, and with the labels of the chosen runs in the legend.
    config = {"range": {"category": ["#0b655f"], "ramp": ["#eaf3f1", "#0b4f4a"]}, "view": {"stroke": None}}
    for chart in charts:
        altair.Chart.from_dict({**chart.spec, "config": config}, validate=True)
        # A misspelt option of a mark would be found.
        views = [{**view, "mark": {**view["mark"], "colour": "red"}} for view in chart.spec.get("layer", [chart.spec])]
        wrong = {"layer": views} if "layer" in chart.spec else views[0]
        with pytest.raises(jsonschema.ValidationError):
            altair.Chart.from_dict({**chart.spec, **wrong}, validate=True)


def test_charts_do_not_import_altair():
    code = "import sys, steelyard.report.charts.charts; print('altair' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
