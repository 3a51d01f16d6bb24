"""Distractors survive re-chunking: as evidence, projected, read, written, and kept from qrels."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_projection import satisfies

import steelyard as sy
from steelyard.errors import InputError
from steelyard.notes import note

BOOK = "The balance weighs gold. A boat floats, a stone sinks; the balance does not care."
SPAN = {"doc_id": "book", "start": 4, "end": 23}
WRONG = {"doc_id": "book", "start": 25, "end": 38}


def chunks_of(size: int) -> list[dict[str, Any]]:
    return [
        {
            "chunk_id": f"book/{a}",
            "doc_id": "book",
            "start": a,
            "end": min(a + size, len(BOOK)),
            "text": BOOK[a : a + size],
        }
        for a in range(0, len(BOOK), size)
    ]


def graded(qrels: sy.Qrels) -> dict[tuple[str, str], float]:
    return {(query, doc): grade for query, doc, grade, _ in qrels.frame.drop_nulls("doc_id").iter_rows()}


@pytest.mark.parametrize(
    "form",
    [
        {"targets": [SPAN], "distractors": [WRONG]},
        [SPAN, {**WRONG, "grade": -1}],
        [SPAN, {**WRONG, "distractor": True}],
        [[SPAN], [{**WRONG, "grade": -1}]],
    ],
)
def test_every_form_is_equal(form: Any) -> None:
    ev = sy.Evidence({"q": form})
    assert repr(ev) == "Evidence: 1 query, 1 target (1 span), 1 distractor"
    assert ev == sy.Evidence({"q": {"targets": [SPAN], "distractors": [WRONG]}})
    assert graded(ev.judge(chunks_of(24))) == {("q", "book/0"): 1, ("q", "book/24"): -1}


def test_a_chunk_with_a_target_and_a_distractor_is_relevant() -> None:
    ev = sy.Evidence({"q": {"targets": [SPAN], "distractors": [WRONG]}, "other": {"distractors": [WRONG]}})
    found = ev.project({"book": BOOK})
    assert graded(found.qrels) == {("q", "book"): 1, ("other", "book"): -1}
    assert found.both == 1
    assert note("relevant-with-distractor", count=1) in found.qrels.notes


def test_a_distractor_counts_by_overlap_and_has_no_placeholder() -> None:
    ev = sy.Evidence({"q": {"targets": [SPAN], "distractors": [WRONG]}})
    assert graded(ev.judge(chunks_of(30))) == {("q", "book/0"): 1, ("q", "book/30"): -1}
    found = ev.project(chunks_of(30), overlap="whole")
    assert graded(found.qrels) == {("q", "book/0"): 1}
    assert found.lost_distractors.rows() == [("q", "characters 25 to 38 of document 'book'")]
    assert note("distractors-not-found", count=1, distractors=1) in found.notes
    assert found.split.height == found.unfound.height == 0


@pytest.mark.parametrize(
    "wrong", [{"fact": "A  boat floats"}, {"page": 2}, {"parent": "p2"}, {"chunk_id": "c2"}, {"doc_id": "boats"}]
)
def test_facts_pages_parents_and_documents_mislead_too(wrong: dict[str, Any]) -> None:
    chunks = [
        {"chunk_id": "c1", "doc_id": "gold", "page": 1, "parent": "p1", "text": BOOK[:24]},
        {"chunk_id": "c2", "doc_id": "boats", "page": 2, "parent": "p2", "text": BOOK[25:]},
    ]
    ev = sy.Evidence({"q": {"targets": [{"fact": "weighs gold"}], "distractors": [{**wrong, "grade": -2}]}})
    qrels = ev.judge(chunks)
    assert graded(qrels) == {("q", "c1"): 1, ("q", "c2"): -2}
    means = sy.evaluate(qrels, {"q": ["c2", "c1"]}, ["Confusion@1", "R(per=target)@2"]).means
    assert means == {"Confusion@1": 1.0, "R(per=target)@2": 1.0}


@settings(deadline=None)
@given(
    spans=st.lists(
        st.tuples(st.integers(0, 70), st.integers(1, 20), st.booleans()).map(
            lambda drawn: {
                "doc_id": "book",
                "start": drawn[0],
                "end": drawn[0] + drawn[1],
                "grade": 1 if drawn[2] else -1,
            }
        ),
        min_size=1,
        max_size=6,
    ),
    size=st.integers(3, 40),
    overlap=st.sampled_from(["any", "majority", "whole"]),
)
def test_every_pair_by_the_plain_loop(spans: list[dict[str, Any]], size: int, overlap: Any) -> None:
    chunks = chunks_of(size)
    wanted: dict[tuple[str, str], float] = {}
    for chunk in chunks:
        met = [span["grade"] for span in spans if satisfies(span, chunk, overlap=overlap)]
        if met:
            wanted["q", chunk["chunk_id"]] = max(met)
    found = graded(sy.Evidence({"q": spans}).judge(chunks, overlap=overlap))
    assert {pair: grade for pair, grade in found.items() if "unfound" not in pair[1]} == wanted


def test_qrels_keep_their_distractors() -> None:
    old = {"q1": {"a": 2, "b": -1, "c": 0}, "q2": {"b": -3}}
    by_id = sy.Evidence.from_qrels(old)
    assert repr(by_id) == "Evidence: 2 queries, 1 target (1 document), 2 distractors, 1 null query"
    chunks = [{"chunk_id": f"{doc}#{n}", "doc_id": doc} for doc in "abc" for n in (1, 2)]
    qrels = by_id.judge(chunks)
    assert graded(qrels) == {
        ("q1", "a#1"): 2,
        ("q1", "a#2"): 2,
        ("q1", "b#1"): -1,
        ("q1", "b#2"): -1,
        ("q2", "b#1"): -3,
        ("q2", "b#2"): -3,
    }
    assert qrels.notes == (note("grade-0-dropped", count=1),)
    by_text = sy.Evidence.from_qrels(old, {"a": "gold", "b": "lead", "c": "tin"})
    assert graded(by_text.judge({"x": "gold and lead", "y": "lead"})) == {
        ("q1", "x"): 2,
        ("q1", "y"): -1,
        ("q2", "x"): -3,
        ("q2", "y"): -3,
    }


EVIDENCE = sy.Evidence(
    {
        "q1": {
            "targets": [[SPAN, {"fact": 'gold, and\n"more"', "share": 0.8, "grade": 2}], {"page": 3, "doc_id": "b"}],
            "distractors": [WRONG, {"parent": "p", "grade": -2}],
        },
        "q2": None,
        "q3": {"distractors": [{"fact": "lead"}]},
    }
)


@pytest.mark.parametrize(
    "name", ["evidence.json", "evidence.jsonl", "evidence.csv", "evidence.tsv", "evidence.jsonl.gz"]
)
def test_written_evidence_is_read_back(tmp_path: Path, name: str) -> None:
    EVIDENCE.write(tmp_path / name)
    assert sy.Evidence.read(tmp_path / name) == EVIDENCE
    other = "again.csv" if name == "evidence.json" else "again.json"
    sy.Evidence.read(tmp_path / name).write(tmp_path / other)
    assert sy.Evidence.read(tmp_path / other) == EVIDENCE


def test_what_a_table_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a span with another condition, which a table cannot hold"):
        sy.Evidence({"q": [{**SPAN, "page": 1}]}).write(tmp_path / "evidence.csv")
    with pytest.raises(InputError, match=re.escape("written as .json, .jsonl, .csv or .tsv")):
        EVIDENCE.write(tmp_path / "evidence.parquet")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "query_id,doc_id,start,end,grade\nq,book,4,23,1\nq,book,25,38,-1\n"),
        ("b.csv", "query_id,doc_id,start,end,distractor\nq,book,4,23,\nq,book,25,38,true\n"),
        ("c.csv", "query_id,doc_id,start,end,distractor\nq,book,4,23,0\nq,book,25,38,1\n"),
        (
            "d.jsonl",
            json.dumps({"query_id": "q", "references": [SPAN], "distractors": [WRONG], "corpus_id": "book"}) + "\n",
        ),
        ("e.jsonl", json.dumps({"query_id": "q", "targets": [SPAN], "distractors": [WRONG]}) + "\n"),
        ("f.json", json.dumps({"q": {"targets": [SPAN], "distractors": [WRONG]}})),
    ],
)
def test_files_with_distractors(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert sy.Evidence.read(tmp_path / name) == sy.Evidence({"q": {"targets": [SPAN], "distractors": [WRONG]}})


def test_rows_of_facts(tmp_path: Path) -> None:
    text = "query_id,fact,doc_id,target,grade\nq,weighs gold,,1,2\nq,weighs lead,book,1,\nq,weighs tin,,,-1\n"
    (tmp_path / "facts.csv").write_text(text, encoding="utf-8")
    ev = sy.Evidence.read(tmp_path / "facts.csv")
    assert ev == sy.Evidence(
        {
            "q": {
                "targets": [[{"fact": "weighs gold", "grade": 2}, {"fact": "weighs lead", "doc_id": "book"}]],
                "distractors": [{"fact": "weighs tin"}],
            }
        }
    )


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"q": [[SPAN, {**WRONG, "grade": -1}]]}, "target 1: a distractor among its alternatives"),
        ({"q": {"distractors": [{**WRONG, "grade": 1}]}}, "a distractor has a grade below 0"),
        ({"q": {"distractors": "d7"}}, "its distractors are a str, not a list of dicts"),
        ({"q": {"distractors": ["d7"]}}, "distractor 1: 'd7' is not a dict"),
        ({"q": {"targets": []}}, "no evidence, and not marked null"),
        ({"q": {"targets": [SPAN], "distracters": []}}, "a dict, not a list of targets"),
        ({"q": [{**WRONG, "distractor": "maybe"}]}, "distractor is 'maybe'; expected true or false"),
        ({"q": [{**WRONG, "grade": float("nan")}]}, "grade is nan"),
    ],
)
def test_distractors_that_cannot_be_used(evidence: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        sy.Evidence(evidence)


def test_rows_that_cannot_be_used(tmp_path: Path) -> None:
    for text, message in (
        ("query_id,doc_id,start,end,distractor\nq,a,1,2,perhaps\n", "row 1: distractor is 'perhaps'"),
        ("query_id,doc_id,start,end,grade\nq,a,1,2,high\n", "grade is 'high'"),
        ('query_id,doc_id,references\nq,a,"[{""end"": null}]"\n', "is not a span"),
        ("query_id,doc_id,start,end\nq,a,--5,9\n", "start is '--5', not a whole number of characters"),
    ):
        (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=re.escape(message)):
            sy.Evidence.read(tmp_path / "bad.csv")


def test_distractors_are_not_relevant_text() -> None:
    ev = sy.Evidence({"q": {"targets": [SPAN], "distractors": [WRONG]}})
    assert sy.evaluate(ev.judge(chunks_of(24)), {"q": ["book/0"]}, ["SpanR@1"])["SpanR@1"] == 1.0
