"""Wrong evidence and chunks: the error names what is wrong, where, and what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest

import steelyard as sy
from steelyard.errors import InputError
from steelyard.notes import note

BOOK = "The balance weighs gold."
SPAN = sy.Evidence({"q": [{"doc_id": "book", "start": 4, "end": 11}]})


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"q": []}, "query 'q': no evidence, and not marked null"),
        ({"q": [[]]}, "query 'q', target 1: [] is not a dict or a list of dicts"),
        ({"q": ["d7"]}, "target 1: 'd7' is not a dict"),
        ({"q": {"d7": 1}}, "query 'q': a dict, not a list of targets"),
        ({"q": [{"facts": "x"}]}, "unknown condition 'facts'. Did you mean fact"),
        ({"q": [{"fact": " \n"}]}, "a fact is empty"),
        ({"q": [{"doc_id": "a", "start": 9, "end": 3}]}, "the span 9 to 3 of document 'a' is reversed"),
        ({"q": [{"doc_id": "a", "start": 3, "end": 3}]}, "is empty"),
        ({"q": [{"doc_id": "a", "start": -1, "end": 3}]}, "out of range: it starts below 0"),
        ({"q": [{"start": 1, "end": 3}]}, "names no document"),
        ({"q": [{"doc_id": "a", "start": 1}]}, "one of them is missing"),
        ({"q": [{"doc_id": "a", "start": 1.5, "end": 3}]}, "start is 1.5, not a whole number"),
        ({"q": [{"doc_id": "a", "start": 0, "end": 2**40 + 1}]}, "out of range: no document has so many characters"),
        ({"q": [{"fact": "gold \ud800"}]}, "fact 'gold \\ud800' has half of a character"),
        ({"q": [{"doc_id": "a", "start": 0, "end": 1, "content": "\udc80"}]}, "content '\\udc80' has half of a"),
        ({"q": [{"fact": "x", "share": 1.5}]}, "share is 1.5"),
        ({"q": [{"hash": "abc"}]}, "not a sha256, sha1 or md5"),
        ({"q": [{"doc_id": "a", "grade": 0}]}, "grade is 0"),
        ({"q": [{"doc_id": "a", "grade": 10**400}]}, "expected a grade above 0"),
        ({"q": [{"grade": 2}]}, "a dict without a condition"),
    ],
)
def test_evidence_that_cannot_be_used(evidence: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        sy.Evidence(evidence)


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(InputError) as caught:
        sy.Evidence({"q1": [], "q2": [{"fact": ""}], "q3": [{"doc_id": "a"}]}, null=["q3", "q9"])
    for part in (
        "4 problems",
        "'q1'",
        "'q2'",
        "'q3' is marked null and has evidence",
        "'q9' is marked null and has no entry",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"start": 0, "end": 20, "text": BOOK}, "characters 0 to 20 are 20, and its text has 24"),
        ({"start": 9, "end": 3}, "characters 9 to 3 are not a span"),
        ({"start": -1, "end": 3}, "not a span"),
        ({"start": 0, "end": 2**62}, "not a span"),
        ({"start": 9}, "a start or an end, not both"),
        ({"start": "x", "end": 3}, "not whole numbers"),
        ({"text": "gold \ud800"}, "'gold \\ud800' of the chunks has half of a character"),
    ],
)
def test_chunk_offsets_that_do_not_match_the_text(chunk: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        SPAN.judge([{"chunk_id": "c", "doc_id": "book", **chunk}])


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"start": 1, "end": 4, "text": "The"}, "has 'he' there, not 'The'"),
        ({"start": 20, "end": 30}, "it ends at 30, and document 'book' at 24"),
        ({"doc_id": "other", "start": 0, "end": 3}, "'other' is not among the documents"),
    ],
)
def test_chunks_that_differ_from_their_documents(chunk: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        SPAN.judge([{"chunk_id": "c", "doc_id": "book", **chunk}], documents={"book": BOOK})


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ({"start": 4, "end": 99}, "is out of range: the document has 24"),
        ({"start": 4, "end": 11, "content": "boat"}, "is 'balance', but its content is 'boat'"),
        ({"doc_id": "z", "start": 4, "end": 11}, "there is no such document"),
    ],
)
def test_spans_that_differ_from_their_documents(span: Any, message: str) -> None:
    ev = sy.Evidence({"q": [{"doc_id": "book", **span}]})
    with pytest.raises(InputError, match=re.escape(message)):
        ev.judge({"book": BOOK}, documents={"book": BOOK})


def test_a_parent_rule_without_a_match() -> None:
    ev = sy.Evidence({"q": [{"parent": "book"}]})
    chunks = [{"chunk_id": "book#1", "doc_id": "book#1"}, {"chunk_id": "book#2", "doc_id": "book#2"}]
    with pytest.raises(InputError, match="maps every chunk to nothing"):
        ev.judge(chunks, parent=lambda chunk: None)
    with pytest.raises(InputError, match="maps 1 of 2 chunks to nothing"):
        ev.judge(chunks, parent=re.compile(r"(.*)#1"))
    with pytest.raises(InputError, match="gives no parent that the evidence names: it gives 'book#1'"):
        ev.judge(chunks)
    with pytest.raises(InputError, match="names the column 'shelf'"):
        ev.judge(chunks, parent="shelf")


def test_chunks_without_what_the_evidence_needs() -> None:
    bare = [{"chunk_id": "1", "doc_id": "book"}, {"chunk_id": "2", "doc_id": "book"}]
    with pytest.raises(InputError, match="the chunks have no start and end"):
        SPAN.judge(bare)
    with pytest.raises(InputError, match="the chunks have no text"):
        sy.Evidence({"q": [{"fact": "x"}]}).judge(bare)
    with pytest.raises(InputError, match="the chunks have no page"):
        sy.Evidence({"q": [{"doc_id": "book", "page": 1}]}).judge(bare)


def test_wrong_chunks() -> None:
    with pytest.raises(InputError, match="there are no chunks"):
        SPAN.judge([])
    with pytest.raises(InputError, match="a chunk is a str"):
        SPAN.judge(["text"])
    with pytest.raises(InputError, match="1 chunk id occurs more than once"):
        SPAN.judge([{"chunk_id": "c"}, {"chunk_id": "c"}])
    with pytest.raises(InputError, match="expected chunk_id"):
        SPAN.judge([{"title": "c"}])


def test_overlapping_chunks_are_noted() -> None:
    chunks = [{"chunk_id": str(a), "doc_id": "book", "start": a, "end": a + 10} for a in (0, 5, 10)]
    found = SPAN.project(chunks)
    assert found.overlapping == 2
    assert note("chunks-overlap", count=2, chunks=3) in found.notes


def test_wrong_options() -> None:
    with pytest.raises(InputError, match="overlap is 'most'"):
        SPAN.judge({"book": BOOK}, overlap="most")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="share is 0"):
        SPAN.judge({"book": BOOK}, share=0)
    with pytest.raises(InputError, match="share is 'half'"):
        SPAN.judge({"book": BOOK}, share="half")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="spaces is 'none'"):
        SPAN.judge({"book": BOOK}, spaces="none")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Evidence.read"):
        sy.Evidence([1])  # type: ignore[arg-type]
