"""Notes on the chunkings of a bench: each once, and how much text a cutoff reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import steelyard as sy
from steelyard.benchmark.chunkings import chunkings_of
from steelyard.benchmark.comparison import chunking_notes, compare_runs
from steelyard.notes import sentence

TEXTS = {
    "a": "Gold is weighed here. A balance is never wrong. Boats are for rivers and lakes.",
    "b": "Stones sink in water. Boats float on water. A balance weighs gold and lead.",
}
QUERIES = {"q1": "what is weighed", "q2": "boats on water"}
EVIDENCE: dict[str, Any] = {"q1": [{"fact": "weighs gold"}], "q2": [{"fact": "Stones sink"}]}
CHUNKERS = [{"sentence": {"tokens": 6}}, "whole"]


def notes(*measures: str, chunkers: Any = CHUNKERS, evidence: Any = EVIDENCE, composite: Any = None) -> tuple[str, ...]:
    """The notes on two runs per chunking, one with its lists reversed; without retrievers."""
    dataset = sy.Dataset.of(TEXTS, QUERIES, {})
    chunkings = chunkings_of(dataset, chunkers, evidence, "any", Path())
    runs, chunking_of = {}, {}
    for chunking in chunkings:
        for name, listed in (("on", list(chunking.corpus)[::-1]), ("off", list(chunking.corpus))):
            label = f"{name} {chunking.label}"
            runs[label] = sy.Run(dict.fromkeys(QUERIES, listed), name=label, texts=dict(chunking.corpus))
            chunking_of[label] = str(chunking.label)
    qrels = {str(chunking.label): chunking.qrels for chunking in chunkings}
    rows = [{"run": label, "chunker": chunking} for label, chunking in chunking_of.items()]
    comparison = compare_runs({"measures": measures}, composite, qrels, runs, rows, {})
    return tuple(map(sentence, chunking_notes(dataset, chunkings, comparison, chunking_of, runs)))


def test_chunks_that_do_not_fit_into_a_budget_are_reported() -> None:
    over = [text for text in notes("R(per=target, budget=10)", "RR@5") if "budget" in text]
    assert over == [
        "The chunks of whole have 14 tokens on average, more than the budget of R(per=target, budget=10): a list ends "
        "before the first chunk that does not fit."
    ]
    assert not [text for text in notes("R(per=target, budget=20)") if "does not fit" in text]


def test_text_read_at_a_cutoff() -> None:
    assert notes("R(per=target)@2") == (
        "Ranking by R(per=target)@2 favours large chunks: the first 2 documents have, in tokens per query, "
        "29 with on whole (first), "
        "29 with off whole (second) and 10 with on sentence-6 (the best on another chunking). "
        "R(per=target, budget=10) gives every run the same amount of text: "
        "put it first among the measures to rank by it.",
    )


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        (["R@2"], "R(budget=10) gives every run"),
        (["Hit@2"], "Hit(budget=10) gives every run"),
        (["nDCG@2"], "R(per=target, budget=10) gives every run"),
        (
            ["R@2", "Hit(budget=12)"],
            "Hit(budget=12) gives every run the same amount of text: put it first to rank by it.",
        ),
    ],
)
def test_budget_that_is_advised(measures: list[str], expected: str) -> None:
    (note,) = [text for text in notes(*measures) if "budget of" not in text]
    assert expected in note
    assert sy.parse(re.findall(r"\w+\([^)]*budget=\d+\)", note)[0]).parameters["budget"] in (10, 12)


def test_measure_where_lower_is_better() -> None:
    (note,) = notes("Unjudged@2")
    assert note.startswith("Ranking by Unjudged@2 does not count how much text is read: the first 2 documents have")


def test_deepest_cutoff_of_a_composite() -> None:
    (note,) = notes("RR", composite={"RR@1": 1, "R@2": 1})
    assert note.startswith("Ranking by the composite score favours large chunks: the first 2 documents have")


@pytest.mark.parametrize(
    "more", [{"measures": ["R(budget=20)", "R@2"]}, {"measures": ["RR"]}, {"chunkers": ["whole"], "measures": ["R@2"]}]
)
def test_no_note_without_a_rank_cutoff_or_with_one_chunking(more: dict[str, Any]) -> None:
    measures = more.pop("measures")
    assert notes(*measures, **more) == ()


def test_queries_without_judgments_and_judged_queries_without_text() -> None:
    found = notes("RR", evidence={"q1": EVIDENCE["q1"], "z": [{"fact": "sink"}]})
    assert found == (
        "1 of 2 queries has no judgment and was not run ('q2').",
        "1 judged query is not in the dataset ('z').",
    )


def test_same_note_on_every_chunking_is_reported_once() -> None:
    evidence = {**EVIDENCE, "q1": {"targets": [{"fact": "weighs gold"}], "distractors": [{"fact": "weighs tin"}]}}
    assert notes("RR", evidence=evidence) == (
        "On every chunking: 1 of 1 distractor is in no chunk and cannot mislead.",
    )
    evidence["q1"]["distractors"] = [{"fact": "Boats float"}]
    assert notes("RR", evidence=evidence) == (
        "On whole: 1 chunk holds a distractor and a target of the same query; it counts as relevant.",
    )


def test_fact_that_is_cut_and_fact_that_is_in_no_document() -> None:
    found = notes("RR", evidence={**EVIDENCE, "q2": [{"fact": "water. A balance"}, {"fact": "tin"}]})
    assert len(found) == 3
    assert found[0].startswith(
        "On every chunking: this fact cannot be found by any retriever, being in no document: 'tin'"
    )
    assert found[1] == (
        "On sentence-6: 1 fact is in a document but in no chunk: a chunk boundary splits it; "
        "2 targets are satisfied by no chunk; they stay in the qrels, under a placeholder, and count as not found."
    )
    assert found[2].startswith("On whole: 1 target is satisfied by no chunk")


def test_evidence_with_options(tmp_path: Path) -> None:
    (tmp_path / "spans.csv").write_text("query_id,file,start,end\nq1,a,0,21\n", encoding="utf-8")
    named = {"path": "spans.csv", "format": "rows", "doc_id": "file"}
    (chunking,) = chunkings_of(sy.Dataset.of(TEXTS, QUERIES, {}), ["whole"], named, "any", tmp_path)
    assert chunking.qrels.frame.rows() == [("q1", "whole:a#1", 1, "1")]
