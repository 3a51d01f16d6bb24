"""Projected qrels equal a loop over every pair; split spans are reported; a hash, a page and a parent count."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_projection import contains, judged

import steelyard as sy
from needs import import_peer
from steelyard.chunking import Fixed, chunk_documents
from steelyard.errors import InputError
from steelyard.evidence import facts as fact_matching
from steelyard.evidence import projection as interval_join
from steelyard.evidence import text_hash
from steelyard.evidence.facts import Matching, find_facts
from steelyard.evidence.projection import Intervals, overlaps
from steelyard.notes import note

BOOK = "The balance weighs gold. A boat floats, a stone sinks; the balance does not care."


def chunks_of(text: str, size: int, step: int | None = None, doc: str = "book") -> list[dict[str, Any]]:
    starts = range(0, max(1, len(text)), step or size)
    return [
        {
            "chunk_id": f"{doc}/{a}",
            "doc_id": doc,
            "start": a,
            "end": min(a + size, len(text)),
            "text": text[a : a + size],
        }
        for a in starts
    ]


def rows(qrels: sy.Qrels) -> set[tuple[str, str, str]]:
    return set(qrels.frame.select("query_id", "doc_id", "target").iter_rows())


def test_the_surface_as_written() -> None:
    ev = sy.Evidence(
        {"q1": [[{"doc_id": "book", "start": 10, "end": 30}], [{"fact": "Paris is ..."}, {"doc_id": "d7"}]]}
    )
    chunks = [*chunks_of(BOOK, 25), {"chunk_id": "x", "doc_id": "d7", "start": 0, "end": 3, "text": "Hm."}]
    qrels = ev.judge(chunks)
    assert rows(qrels) == {("q1", "book/0", "1"), ("q1", "book/25", "1"), ("q1", "x", "2")}
    assert qrels.frame["grade"].to_list() == [1, 1, 1]


def test_frames_of_any_kind_give_the_same_judgments() -> None:
    import_peer("pyarrow")
    ev = sy.Evidence({"q": [{"doc_id": "book", "start": 0, "end": 30}]})
    frame = pl.DataFrame(chunks_of(BOOK, 20))
    assert ev.judge(frame) == ev.judge(frame.to_pandas()) == ev.judge(frame.to_arrow()) == ev.judge(frame.to_dicts())


@pytest.mark.parametrize(
    ("overlap", "held"), [("any", {"book/0", "book/20"}), ("majority", {"book/0"}), ("whole", {"unfound:q:1"})]
)
def test_a_span_split_by_a_chunk_boundary(overlap: Any, held: set[str]) -> None:
    ev = sy.Evidence({"q": [{"doc_id": "book", "start": 5, "end": 25}]})
    found = ev.project(chunks_of(BOOK, 20), overlap=overlap)
    assert {doc for _, doc, _ in rows(found.qrels)} == held
    assert found.split.to_dicts() == [
        {"query_id": "q", "target": 1, "doc_id": "book", "start": 5, "end": 25, "pieces": 2, "best": 0.75}
    ]
    assert note("spans-split", count=1, overlap=overlap) in found.qrels.notes


def test_half_a_span_is_not_a_majority() -> None:
    ev = sy.Evidence({"q": [{"doc_id": "book", "start": 10, "end": 30}]})
    assert rows(ev.judge(chunks_of(BOOK, 20), overlap="majority")) == {("q", "unfound:q:1", "1")}


def test_a_target_that_nothing_satisfies_counts_as_not_found() -> None:
    ev = sy.Evidence({"q": [{"fact": "weighs gold"}, {"fact": "weighs lead"}]})
    found = ev.project({"d1": BOOK})
    scores = sy.evaluate(found.qrels, {"q": ["d1"]}, ["R(per=target)", "AllTargets"])
    assert scores.means == {"R(per=target)": 0.5, "AllTargets": 0.0}
    assert found.lost_facts["fact"].to_list() == ["weighs lead"]
    assert found.unfound["what"].to_list() == ["fact 'weighs lead'"]
    assert any("this fact cannot be found by any retriever" in str(each) for each in found.notes)


def test_facts_in_no_document_and_facts_split_by_a_boundary_are_reported_separately() -> None:
    ev = sy.Evidence({"q": [{"fact": "A boat floats"}, {"fact": "weighs lead"}]})
    found = ev.project(chunks_of(BOOK, 30), documents={"book": BOOK})
    assert dict(found.lost_facts.select("fact", "in_document").iter_rows()) == {
        "A boat floats": True,
        "weighs lead": False,
    }
    assert any("in no document: 'weighs lead' (query 'q')" in str(each) for each in found.notes)
    assert note("facts-split", count=1) in found.notes


def test_twelve_facts_that_no_retriever_can_find_are_listed() -> None:
    ev = sy.Evidence({"q": [{"fact": f"fact number {n} is nowhere"} for n in range(12)]})
    notes = " ".join(map(str, ev.judge({"d1": BOOK}).notes))
    assert "these 12 facts cannot be found by any retriever" in notes
    assert "'fact number 9 is nowhere' (query 'q'), and 2 more" in notes


def test_white_space_and_unicode_forms_do_not_matter_and_case_does_by_default() -> None:
    ev = sy.Evidence({"q": [{"fact": "the ﬁrst\u00a0rule"}]})
    chunks = {"a": "By the first\n\trule", "b": "By The First rule", "c": "the firstrule"}
    assert rows(ev.judge(chunks)) == {("q", "a", "1")}
    assert rows(ev.judge(chunks, case=False)) == {("q", "a", "1"), ("q", "b", "1")}
    assert rows(ev.judge(chunks, spaces="removed")) == {("q", "a", "1"), ("q", "c", "1")}


def test_a_share_of_a_facts_words_in_order() -> None:
    chunks = {"a": "Gold is weighed, and stone sinks.", "b": "Stone sinks and gold is weighed"}
    ev = sy.Evidence({"q": [{"fact": "Gold weighed and stone sinks quickly"}]})
    assert rows(ev.judge(chunks, share=0.8)) == {("q", "a", "1")}
    own = sy.Evidence({"q": [{"fact": "Gold weighed and stone sinks quickly", "share": 0.8}]})
    assert rows(own.judge(chunks)) == {("q", "a", "1")}


def test_a_hash_of_the_text_as_it_is_or_in_its_normal_form() -> None:
    raw = hashlib.sha256(b"A  boat.").hexdigest()
    ev = sy.Evidence(
        {"q": [{"hash": raw}, {"hash": text_hash("A boat.")}, {"md5": hashlib.md5(b"A stone.").hexdigest()}]}
    )
    assert rows(ev.judge({"a": "A  boat.", "b": "A stone."})) == {("q", "a", "1"), ("q", "a", "2"), ("q", "b", "3")}


def test_a_page_a_parent_and_conditions_that_must_all_hold() -> None:
    chunks = [
        {"chunk_id": f"{doc}-{page}", "doc_id": doc, "page": page, "text": text}
        for doc, page, text in (("a", 1, "gold"), ("a", 2, "lead"), ("b", 1, "lead"))
    ]
    ev = sy.Evidence(
        {
            "q": [
                {"doc_id": "a", "page": 1},
                {"page": 1},
                {"parent": "a"},
                {"doc_id": "a", "fact": "lead"},
                {"chunk_id": "b-1"},
            ]
        }
    )
    wanted = {"1": {"a-1"}, "2": {"a-1", "b-1"}, "3": {"a-1", "a-2"}, "4": {"a-2"}, "5": {"b-1"}}
    assert rows(ev.judge(chunks)) == {("q", chunk, target) for target, held in wanted.items() for chunk in held}


@pytest.mark.parametrize("rule", ["shelf", lambda chunk: chunk[0], re.compile(r"^(\w)-")])
def test_a_parent_by_a_column_a_function_or_a_pattern(rule: Any) -> None:
    chunks = [{"chunk_id": name, "doc_id": name, "shelf": name[0]} for name in ("a-1", "a-2", "b-1")]
    frame = pl.DataFrame(chunks)
    assert rows(sy.Evidence({"q": [{"parent": "a"}]}).judge(frame, parent=rule)) == {
        ("q", "a-1", "1"),
        ("q", "a-2", "1"),
    }


def test_a_better_alternative_gives_its_grade() -> None:
    ev = sy.Evidence({"q": [[{"doc_id": "book", "grade": 1}, {"fact": "weighs gold", "grade": 3}]]})
    found = ev.judge(chunks_of(BOOK, 30)).frame
    assert dict(found.select("doc_id", "grade").iter_rows()) == {"book/0": 3, "book/30": 1, "book/60": 1}


def test_null_queries_have_no_judgment_and_stay() -> None:
    ev = sy.Evidence({"q1": [{"doc_id": "book"}], "q2": None, "q3": []}, null=["q3"])
    qrels = ev.judge({"book": BOOK})
    assert ev.null_queries == ["q2", "q3"]
    assert qrels.queries == ["q1", "q2", "q3"]
    scores = sy.evaluate(qrels, {"q1": ["book"], "q2": [], "q3": ["book"]}, ["Abstain", "Hit@1"], no_relevant="skip")
    assert scores.means == {"Abstain": 0.5, "Hit@1": 1.0}
    assert scores.coverage.no_relevant == 2


def test_qrels_become_evidence() -> None:
    corpus = {"d1": BOOK[:24], "d2": BOOK[25:39]}
    ev = sy.Evidence.from_qrels({"q1": {"d1": 2, "d2": -1}, "q2": [["d1", "d2"]]}, corpus)
    found = ev.judge({"whole": BOOK}).frame
    assert found.rows() == [("q1", "whole", 2, "1"), ("q2", "whole", 1, "1")]


texts = st.lists(st.sampled_from(["ab", "a", "b", "ba", "\u00a0", "  ", "\n", "A", "ﬁ", "fi", "c."]), max_size=25).map(
    "".join
)
facts = st.lists(st.sampled_from(["ab", "a", "b", "ba", " ", "\n", "A", "fi", "c"]), min_size=1, max_size=7).map(
    "".join
)


@pytest.mark.slow
@given(
    st.lists(texts, min_size=1, max_size=8),
    st.lists(facts.filter(str.strip), min_size=1, max_size=8),
    st.sampled_from([1.0, 0.5, 0.7]),
    st.booleans(),
    st.sampled_from(["single", "removed"]),
    st.sampled_from([2, 64]),
    st.sampled_from([10, 10**6]),
)
@settings(deadline=None, max_examples=150)
def test_facts_found_equal_a_loop(
    texts: list[str], facts: list[str], share: float, case: bool, spaces: Any, piece: int, batch: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fact_matching, "PIECE", piece)
        patch.setattr(fact_matching, "BATCH", batch)
        found = find_facts(
            facts, [share] * len(facts), pl.Series(texts, dtype=pl.String), Matching(case=case, spaces=spaces)
        )
    rule = {"share": share, "case": case, "spaces": spaces}
    wanted = [(f, t) for f, fact in enumerate(facts) for t, text in enumerate(texts) if contains(text, fact, **rule)]
    assert list(zip(*(part.tolist() for part in found), strict=True)) == wanted


intervals = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 30)), max_size=12)


@given(intervals, intervals, st.sampled_from([1, 5, 10**6]))
@settings(deadline=None, max_examples=200)
def test_spans_joined_equal_a_loop(spans: list[Any], chunks: list[Any], block: int) -> None:
    def arrays(listed: list[Any], least: int) -> Intervals:
        doc, start, length = (np.array([row[at] for row in listed], dtype=np.int64) for at in range(3))
        return Intervals(doc, start, start + np.maximum(length, least))

    a, b = arrays(spans, 1), arrays(chunks, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interval_join, "BLOCK", block)
        found = overlaps(a, b)
    wanted = [
        (i, j, int(shared))
        for i in range(len(spans))
        for j in range(len(chunks))
        if a.doc[i] == b.doc[j] and (shared := min(a.end[i], b.end[j]) - max(a.start[i], b.start[j])) > 0
    ]
    assert list(zip(*(part.tolist() for part in found), strict=True)) == wanted


span = st.tuples(st.sampled_from(["a", "b", "z"]), st.integers(0, 60), st.integers(1, 40)).map(
    lambda row: {"doc_id": row[0], "start": row[1], "end": row[1] + row[2]}
)
way = st.one_of(
    span,
    st.sampled_from(["balance", "a stone", "boat  floats", "nowhere"]).map(lambda fact: {"fact": fact}),
    st.sampled_from(["a", "b", "z"]).map(lambda doc: {"doc_id": doc}),
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["balance", "stone"])).map(
        lambda row: {"doc_id": row[0], "fact": row[1]}
    ),
)
evidence_by_query = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.lists(st.lists(way, min_size=1, max_size=3), min_size=1, max_size=3),
    min_size=1,
)


@pytest.mark.slow
@given(evidence_by_query, st.integers(5, 90), st.integers(3, 90), st.sampled_from(["any", "majority", "whole"]))
@settings(deadline=None, max_examples=100)
def test_any_evidence_on_any_chunking_equals_the_loop(evidence: Any, size: int, step: int, overlap: Any) -> None:
    chunks = [*chunks_of(BOOK, size, step, "a"), *chunks_of(BOOK.upper(), size + 1, step + 2, "b")]
    assert rows(sy.Evidence(evidence).judge(chunks, overlap=overlap)) == judged(evidence, chunks, overlap=overlap)


def test_judged_chunks_become_spans_that_smaller_chunks_share() -> None:
    text = " ".join(f"word{number}" for number in range(400))
    large = [vars(chunk) for chunk in chunk_documents({"d": text}, Fixed(tokens=100))]
    small = [vars(chunk) for chunk in chunk_documents({"d": text}, Fixed(tokens=30))]
    qrels = {"q1": {"d#1": 1}, "q2": {"d#3": 2, "d#4": 1}}
    texts = sy.Evidence.from_qrels(qrels, {chunk["chunk_id"]: chunk["text"] for chunk in large})
    with pytest.raises(InputError, match="3 of 3 facts are whole texts of judged documents.*doc_id, start and end"):
        texts.judge(small)
    spans = sy.Evidence.from_qrels(qrels, large)
    judged = {(query, doc): next(c for c in large if c["chunk_id"] == doc) for query in qrels for doc in qrels[query]}
    expected = {
        (query, chunk["chunk_id"])
        for (query, _), old in judged.items()
        for chunk in small
        if chunk["start"] < old["end"] and old["start"] < chunk["end"]
    }
    found = spans.judge(small)
    assert set(found.frame.select("query_id", "doc_id").rows()) == expected
    assert "targets-not-found" not in {each.code for each in found.notes}
    with pytest.raises(InputError, match="1 judged chunk has no start and end"):
        sy.Evidence.from_qrels({"q": ["a"]}, [{"chunk_id": "a", "doc_id": "d", "text": "x"}, {**large[0]}])
