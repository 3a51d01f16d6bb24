"""Qrels that lack what a measure needs are reported in the coverage; no number changes."""

from __future__ import annotations

import pytest

import steelyard as sy

RUN = {"q1": ["a", "x"], "q2": ["b"]}
FLAT = {"q1": {"a": 1, "x": 0}, "q2": {"b": 2}}


def notes(qrels: object, *measures: str) -> list[str]:
    return list(map(str, sy.evaluate(qrels, RUN, list(measures)).coverage.notes))


def test_confusion_without_a_distractor() -> None:
    assert notes(FLAT, "Confusion@3", "nDCG@10") == [
        "no document is judged a distractor (a grade below 0), so Confusion@3 can only be 0"
    ]
    assert "No document is judged a distractor" in str(sy.evaluate(FLAT, RUN, ["Confusion@3"]).coverage)
    assert notes({**FLAT, "q2": {"b": 2, "y": -1}}, "Confusion@3") == []
    assert sy.evaluate(FLAT, RUN, ["Confusion@3"])["Confusion@3"] == 0.0


@pytest.mark.parametrize("measure", ["DR@2", "Diversity@2", "R(per=target)@2", "alpha_nDCG@5", "AP(per=target)"])
def test_qrels_without_targets(measure: str) -> None:
    text = f"the qrels name no targets, so in {measure} each relevant document is its own target"
    assert notes(FLAT, measure, "R@2") == [text]
    assert notes({"q1": [["a", "x"]], "q2": [["b"]]}, measure) == []
    assert notes({"q1": [["a"]], "q2": [["b"]]}, measure) == [], "targets of one document each are targets too"


def test_bpref_without_a_document_judged_not_relevant() -> None:
    assert notes({"q1": ["a"], "q2": ["b"]}, "Bpref") == [
        "no document is judged not relevant (grade 0), so Bpref is the share "
        "of the relevant documents that are retrieved"
    ]
    assert notes(FLAT, "Bpref") == []


def test_abstain_without_an_unanswerable_query() -> None:
    assert notes(FLAT, "Abstain") == ["every query has a relevant document, so Abstain has no query to count"]
    assert notes({**FLAT, "q3": []}, "Abstain") == []


def test_a_grade_that_no_document_has() -> None:
    assert notes(FLAT, "P(rel=3)@1", "R(rel=3)@5", "P(rel=2)@1") == [
        "no document has grade 3 or above, so P(rel=3)@1 and R(rel=3)@5 can only be 0"
    ]


def test_components_of_a_composite_are_checked() -> None:
    result = sy.compare(FLAT, {"one": RUN, "two": RUN}, ["RR"], composite={"RR": 1, "Confusion@3": 1})
    for coverage in result.coverage.values():
        assert "no-distractors" in [note.code for note in coverage.notes]
    assert sum("Confusion@3" in line for line in result.to_text().splitlines() if "can only be 0" in line) == 1


def test_many_measures_are_counted() -> None:
    measures = [f"Confusion@{k}" for k in range(1, 9)]
    (note,) = notes(FLAT, *measures)
    assert "Confusion@4, Confusion@5 and 3 others can only be 0" in note


def test_empty_qrels_have_no_note() -> None:
    assert notes({"q1": [], "q2": []}, "Confusion@3", "DR@2") == []
