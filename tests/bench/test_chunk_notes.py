"""What a bench of chunkers says of its chunkings: once each, and how much text a rank reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import steelyard as sy
from steelyard.bench.chunkers import chunk_notes, chunkings_of, compare_chunkings
from steelyard.comparison.testing import ComparisonPlan

TEXTS = {
    "a": "Gold is weighed here. A balance is never wrong. Boats are for rivers and lakes.",
    "b": "Stones sink in water. Boats float on water. A balance weighs gold and lead.",
}
QUERIES = {"q1": "what is weighed", "q2": "boats on water"}
EVIDENCE: dict[str, Any] = {"q1": [{"fact": "weighs gold"}], "q2": [{"fact": "Stones sink"}]}
CHUNKERS = [{"sentence": {"tokens": 6}}, "whole"]


def notes(
    *measures: str, chunkers: Any = CHUNKERS, evidence: Any = EVIDENCE, composite: Any = None
) -> tuple[str, ...]:
    """The notes of two runs a chunking, one that answers backwards; without retrievers."""
    dataset = sy.Dataset.of(TEXTS, QUERIES, {})
    chunkings = chunkings_of(dataset, chunkers, evidence, "any", Path())
    runs, chunking_of = {}, {}
    for chunking in chunkings:
        for name, listed in (("on", list(chunking.corpus)[::-1]), ("off", list(chunking.corpus))):
            label = f"{name} {chunking.label}"
            runs[label] = sy.Run(dict.fromkeys(QUERIES, listed), name=label, texts=dict(chunking.corpus))
            chunking_of[label] = str(chunking.label)
    judgments = {str(chunking.label): chunking.qrels for chunking in chunkings}
    comparison = compare_chunkings(
        judgments, runs, chunking_of, measures, ComparisonPlan(), composite=composite
    )
    return chunk_notes(dataset, chunkings, comparison, chunking_of, runs)


def test_the_text_that_is_read_at_a_rank() -> None:
    assert notes("R(per=target)@2") == (
        "R(per=target)@2 favours big chunks: the first 2 hold, in tokens a query, 29 with on whole (first), "
        "29 with off whole (second) and 10 with on sentence-6 (the best on another chunking). "
        "R(per=target, budget=10) gives all the same amount of text: add it, first of the measures, to rank by it.",
    )


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        (["R@2"], "R(budget=10) gives all"),
        (["Hit@2"], "Hit(budget=10) gives all"),
        (["nDCG@2"], "R(per=target, budget=10) gives all"),
        (
            ["R@2", "Hit(budget=12)"],
            "Hit(budget=12) gives all the same amount of text: name it first to rank by it.",
        ),
    ],
)
def test_the_budget_to_use(measures: list[str], said: str) -> None:
    (note,) = notes(*measures)
    assert said in note
    assert sy.parse(re.findall(r"\w+\([^)]*budget=\d+\)", note)[0]).parameters["budget"] in (10, 12)


def test_of_a_measure_where_less_is_better_no_favour_is_claimed() -> None:
    (note,) = notes("Unjudged@2")
    assert note.startswith("Unjudged@2 does not count how much text is read: the first 2 hold")


def test_of_a_composite_the_deepest_cutoff_is_read() -> None:
    (note,) = notes("RR", composite={"RR@1": 1, "R@2": 1})
    assert note.startswith("The composite score favours big chunks: the first 2 hold")


@pytest.mark.parametrize(
    "more",
    [
        {"measures": ["R(budget=9)", "R@2"]},
        {"measures": ["RR"]},
        {"chunkers": ["whole"], "measures": ["R@2"]},
    ],
)
def test_where_no_rank_cuts_or_one_chunking_is_all_nothing_is_said(more: dict[str, Any]) -> None:
    measures = more.pop("measures")
    assert notes(*measures, **more) == ()


def test_queries_that_only_one_side_has() -> None:
    said = notes("RR", evidence={"q1": EVIDENCE["q1"], "z": [{"fact": "sink"}]})
    assert said == (
        "1 of 2 queries has no judgment and was not asked ('q2').",
        "1 judged query is not in the dataset ('z').",
    )


def test_what_is_alike_on_every_chunking_is_said_once() -> None:
    evidence = {
        **EVIDENCE,
        "q1": {"targets": [{"fact": "weighs gold"}], "distractors": [{"fact": "weighs tin"}]},
    }
    assert notes("RR", evidence=evidence) == (
        "Every chunking: 1 of 1 distractor is in no chunk and cannot mislead.",
    )
    evidence["q1"]["distractors"] = [{"fact": "Boats float"}]
    assert notes("RR", evidence=evidence) == (
        "whole: 1 chunk holds a distractor and what the same query needs; it counts as relevant.",
    )


def test_a_fact_that_a_border_cuts_is_told_from_one_that_is_nowhere() -> None:
    said = notes("RR", evidence={**EVIDENCE, "q2": [{"fact": "water. A balance"}, {"fact": "tin"}]})
    assert len(said) == 3
    assert said[0].startswith(
        "Every chunking: this fact cannot be found by any retriever, being in no document: 'tin'"
    )
    assert said[1] == (
        "sentence-6: 1 fact is in a document and in no chunk: a chunk border cuts it; "
        "2 targets are satisfied by no chunk; they stay in the judgments, under a stand-in, and count as not found."
    )
    assert said[2].startswith("whole: 1 target is satisfied by no chunk")


def test_evidence_with_options(tmp_path: Path) -> None:
    (tmp_path / "spans.csv").write_text("query_id,file,start,end\nq1,a,0,21\n", encoding="utf-8")
    named = {"path": "spans.csv", "format": "rows", "doc_id": "file"}
    (chunking,) = chunkings_of(sy.Dataset.of(TEXTS, QUERIES, {}), ["whole"], named, "any", tmp_path)
    assert chunking.qrels.frame.rows() == [("q1", "whole:a#1", 1, "1")]
