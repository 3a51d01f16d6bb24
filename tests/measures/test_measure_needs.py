"""Where the judgments do not hold what a measure needs, coverage says so; no number changes."""

from __future__ import annotations

import pytest

import steelyard as sy

RUN = {"q1": ["a", "x"], "q2": ["b"]}
FLAT = {"q1": {"a": 1, "x": 0}, "q2": {"b": 2}}


def notes(qrels: object, *measures: str) -> list[str]:
    return list(sy.evaluate(qrels, RUN, list(measures)).coverage.notes)


def test_confusion_without_a_distractor() -> None:
    assert notes(FLAT, "Confusion@3", "nDCG@10") == [
        "no distractor is judged (a grade below 0), so Confusion@3 cannot be other than 0"
    ]
    assert "No distractor is judged" in str(sy.evaluate(FLAT, RUN, ["Confusion@3"]).coverage)
    assert notes({**FLAT, "q2": {"b": 2, "y": -1}}, "Confusion@3") == []
    assert sy.evaluate(FLAT, RUN, ["Confusion@3"])["Confusion@3"] == 0.0


@pytest.mark.parametrize(
    "measure", ["DR@2", "Diversity@2", "R(per=target)@2", "alpha_nDCG@5", "AP(per=target)"]
)
def test_targets_that_nobody_named(measure: str) -> None:
    said = f"the judgments name no targets, so in {measure} each relevant document is its own"
    assert notes(FLAT, measure, "R@2") == [said]
    assert notes({"q1": [["a", "x"]], "q2": [["b"]]}, measure) == []
    assert notes({"q1": [["a"]], "q2": [["b"]]}, measure) == [], "named, if of one document each"


def test_bpref_without_a_document_judged_not_relevant() -> None:
    assert notes({"q1": ["a"], "q2": ["b"]}, "Bpref") == [
        "no document is judged not relevant (grade 0), so Bpref is the share of the relevant documents that came back"
    ]
    assert notes(FLAT, "Bpref") == []


def test_abstain_without_an_unanswerable_query() -> None:
    assert notes(FLAT, "Abstain") == ["every query has a relevant document, so Abstain has no query to count"]
    assert notes({**FLAT, "q3": []}, "Abstain") == []


def test_a_grade_that_no_document_has() -> None:
    assert notes(FLAT, "P(rel=3)@1", "R(rel=3)@5", "P(rel=2)@1") == [
        "no document is graded 3 or more, so P(rel=3)@1 and R(rel=3)@5 cannot be other than 0"
    ]


def test_a_composites_components_are_looked_at() -> None:
    result = sy.compare(FLAT, {"one": RUN, "two": RUN}, ["RR"], composite={"RR": 1, "Confusion@3": 1})
    assert all("Confusion@3 cannot be other than 0" in " ".join(c.notes) for c in result.coverage.values())
    assert (
        sum("Confusion@3" in line for line in result.to_text().splitlines() if "cannot be other" in line) == 1
    )


def test_many_measures_are_counted() -> None:
    asked = [f"Confusion@{k}" for k in range(1, 9)]
    (note,) = notes(FLAT, *asked)
    assert "Confusion@4, Confusion@5 and 3 others cannot" in note


def test_judgments_that_hold_nothing_need_no_note() -> None:
    assert notes({"q1": [], "q2": []}, "Confusion@3", "DR@2") == []
