"""plot(): altair charts of means; to_pandas() of frames that are returned."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import steelyard as sy
from needs import import_peer

import_peer("altair")

QRELS = {f"q{n}": {f"d{n}": 1} for n in range(6)}
RUNS = {"good": {f"q{n}": [f"d{n}", "x"] for n in range(6)}, "poor": {f"q{n}": ["x", f"d{n}"] for n in range(6)}}


def rows_of(chart: Any) -> list[dict[str, Any]]:
    (rows,) = chart.to_dict()["datasets"].values()
    return rows


def test_a_comparison_is_plotted_best_run_first() -> None:
    result = sy.compare(QRELS, RUNS, ["RR", "R@2"])
    rows = rows_of(result.plot())
    assert [(row["run"], row["value"]) for row in rows] == [("good", 1.0), ("poor", 0.5)]
    assert result.plot().to_dict()["layer"][0]["title"] == "RR"
    assert {row["measure"] for row in rows_of(result.plot("R@2"))} == {"R@2"}
    with pytest.raises(sy.MeasureError, match="unknown measure 'R@3'"):
        result.plot("R@3")


def test_scores_are_plotted_by_measure() -> None:
    scores = sy.evaluate(QRELS, RUNS["poor"], ["RR", "NumRet"])
    rows = rows_of(scores.plot())
    assert rows[0] == {"measure": "RR", "value": 0.5, "low": 0.5, "high": 0.5}
    assert rows[1] == {"measure": "NumRet", "value": 12.0, "low": None, "high": None}


def test_without_altair_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(sy.PackageError, match=r"steelyard\[report\]"):
        sy.evaluate(QRELS, RUNS["good"], "RR").plot()


def test_frames_become_pandas_frames() -> None:
    scores, result = sy.evaluate(QRELS, RUNS["good"], "RR"), sy.compare(QRELS, RUNS, ["RR"])
    frames = [scores.per_query, result.leaderboard, result.pairs, sy.Run(RUNS["good"]).frame, sy.Qrels(QRELS).frame]
    for frame in frames:
        assert isinstance(frame.to_pandas(), import_peer("pandas").DataFrame)
