"""Notes on pairs that cannot be tested, with measure and reason; and the shares of unjudged documents."""

from __future__ import annotations

from typing import Any

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


def test_a_single_pair_is_named() -> None:
    judged = {f"q{n}": ["a"] for n in range(6)}
    whole = {query: ["a"] for query in judged}
    late = {query: [f"x{at}" for at in range(n % 3)] + ["a"] for n, query in enumerate(judged)}
    runs = {
        "early": {query: whole[query] for query in ("q0", "q1", "q2")},
        "end": {query: late[query] for query in ("q3", "q4", "q5")},
        "all": late,
    }
    found = notes(judged, runs, ["RR"], missing="skip")
    assert found == ["no test of early vs end on RR: no query has a value in both runs"]


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
