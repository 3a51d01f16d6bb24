"""Notes on pairs that cannot be tested, with measure and reason; and the shares of unjudged documents."""

from __future__ import annotations

from typing import Any

import polars as pl

import steelyard as sy


def notes(qrels: Any, runs: Any, measures: list[str], **more: Any) -> list[str]:
    result = sy.compare(qrels, runs, measures, **more)
    return [str(note) for note in result.notes if note.code == "not-tested"]


def test_a_measure_without_values_is_named() -> None:
    judged = {"q1": ["a"], "q2": ["b"], "q3": ["c"]}
    runs = {name: {"q1": ["a"], "q2": ["x", "b"], "q3": list(name)} for name in ("cx", "xc", "yx")}
    assert notes(judged, runs, ["RR", "Abstain"]) == [
        "no test of the pairs of runs on Abstain: no query has a value in both runs"
    ]


def test_single_pairs_are_named() -> None:
    """A run without any value of a measure is not tested on it; the other runs are."""
    frame = pl.DataFrame(
        {
            "run": ["a"] * 3 + ["b"] * 3 + ["c"] * 3,
            "query": ["1", "2", "3"] * 3,
            "MRR": [0.1, 0.5, 1.0, 0.2, 0.5, 0.9, 0.3, 0.1, 0.4],
            "cost": [1.0, 2.0, 4.0, 2.0, 2.5, 3.5, None, None, None],
        }
    )
    result = sy.compare_scores(frame, missing="skip")
    found = [str(note) for note in result.notes if note.code == "not-tested"]
    assert found == ["no test of a vs c and b vs c on cost: no query has a value in both runs"]
    assert [pair.queries for pair in result.tested_pairs if pair.measure == "cost"] == [3, 0, 0]


def test_two_runs_that_cannot_be_tested() -> None:
    (note,) = notes({"q1": ["a"]}, {"x": {"q1": ["a"]}, "y": {"q1": ["b"]}}, ["RR"])
    assert note.startswith("no test of x vs y: ")


def test_equal_shares_of_unjudged_documents_are_shown_once() -> None:
    judged = {f"q{n}": ["a"] for n in range(2)}
    runs = {
        "one": {query: ["a", *(f"x{n}" for n in range(19))] for query in judged},
        "two": {query: ["a", *(f"x{n}" for n in range(20))] for query in judged},
    }
    text = sy.compare(judged, runs, ["RR"]).to_text()
    assert "Unjudged: 95% of the retrieved documents." in text
