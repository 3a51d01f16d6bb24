"""Span measures compared with sets of characters; on real texts, their properties."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from needs import SHARED, needs_shared
from steelyard.chunking import Fixed, Recursive, Sentence, Whole, chunk_documents
from steelyard.errors import InputError, MeasureError
from steelyard.retrievers import BM25, Random

DATA = SHARED / "chunk-spans"
MEASURES = ("SpanR", "SpanP", "SpanIoU")

span = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 30), st.integers(1, 20))


def as_dict(row: tuple[str, int, int]) -> dict[str, Any]:
    return {"doc_id": row[0], "start": row[1], "end": row[1] + row[2]}


def by_characters(gold: list[dict[str, Any]], retrieved: list[dict[str, Any]]) -> dict[str, float]:
    """The definitions, character by character."""
    wanted = {(one["doc_id"], at) for one in gold for at in range(one["start"], one["end"])}
    there = {(one["doc_id"], at) for one in retrieved for at in range(one["start"], one["end"])}
    read = sum(one["end"] - one["start"] for one in retrieved)
    shared = len(wanted & there)
    return {
        "SpanR": shared / len(wanted),
        "SpanP": shared / read if read else 0.0,
        "SpanIoU": shared / (read + len(wanted - there)),
        "SpanR(gold=each)": shared / sum(one["end"] - one["start"] for one in gold),
    }


@given(
    st.dictionaries(st.sampled_from(["q1", "q2"]), st.lists(span, min_size=1, max_size=4), min_size=1),
    st.lists(span, min_size=1, max_size=8),
    st.data(),
)
@settings(deadline=None, max_examples=150)
def test_span_measures_equal_sets_of_characters(gold: Any, listed: Any, data: Any) -> None:
    chunks = [{"chunk_id": f"c{at}", **as_dict(row)} for at, row in enumerate(listed)]
    by_id = {chunk["chunk_id"]: chunk for chunk in chunks}
    run = {query: data.draw(st.permutations(list(by_id))) for query in gold}
    key = sy.Evidence({query: [as_dict(row) for row in rows] for query, rows in gold.items()})
    k, budget = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 12))
    tokens = {chunk["chunk_id"]: at % 3 + 1 for at, chunk in enumerate(chunks)}
    names = [f"{name}@{k}" for name in MEASURES]
    names += [f"{name}(budget={budget})" for name in MEASURES] + [f"SpanR(gold=each)@{k}"]
    scores = sy.evaluate(key.judge(chunks), sy.Run(run, tokens=tokens), names).per_query
    for row in scores.iter_rows(named=True):
        query, used, fitting = row["query_id"], 0, []
        for chunk in run[query]:
            used += tokens[chunk]
            if used <= budget:
                fitting.append(chunk)
        wanted = [as_dict(one) for one in gold[query]]
        first = by_characters(wanted, [by_id[chunk] for chunk in run[query][:k]])
        fits = by_characters(wanted, [by_id[chunk] for chunk in fitting])
        expected = {f"{name}@{k}": first[name] for name in (*MEASURES, "SpanR(gold=each)")}
        expected |= {f"{name}(budget={budget})": fits[name] for name in MEASURES}
        assert {name: row[name] for name in expected} == expected


def test_the_dialect_of_chroma_adds_up_gold_spans_that_overlap() -> None:
    key = sy.Evidence({"q": [{"doc_id": "d", "start": 0, "end": 10}, {"doc_id": "d", "start": 5, "end": 15}]})
    qrels = key.judge([{"chunk_id": c, "doc_id": "d", "start": a, "end": a + 12} for c, a in (("x", 0), ("y", 6))])
    scores = sy.evaluate(qrels, {"q": ["x", "y"]}, ["recall@1", "precision@2", "iou@1"], dialect="chroma")
    assert scores.means == {"recall@1": 12 / 20, "precision@2": 15 / 24, "iou@1": 12 / 15}
    assert sy.evaluate(qrels, {"q": ["x", "y"]}, ["SpanR@1"])["SpanR@1"] == 12 / 15


def test_tokens_count_where_they_begin() -> None:
    text = "one two three four five six"
    key = sy.Evidence({"q": [{"doc_id": "d", "start": 4, "end": 18}]})
    qrels = key.judge(chunk_documents({"d": text}, Fixed(2)), unit="token", documents={"d": text})
    scores = sy.evaluate(qrels, {"q": ["d#1", "d#2"]}, [f"{name}@{k}" for k in (1, 2) for name in MEASURES])
    assert scores.means == {
        "SpanR@1": 1 / 3, "SpanP@1": 1 / 2, "SpanIoU@1": 1 / 4, "SpanR@2": 1.0, "SpanP@2": 3 / 4, "SpanIoU@2": 3 / 4,
    }  # fmt: skip


def test_queries_without_a_span_are_left_out_and_unknown_chunks_are_noted() -> None:
    key = sy.Evidence(
        {
            "q1": [{"doc_id": "d", "start": 0, "end": 4}],
            "q2": [{"doc_id": "d"}],
            "q3": None,
            "q4": [{"doc_id": "d", "start": 0, "end": 2}],
        }
    )
    scores = sy.evaluate(key.judge({"d": "text"}), {"q1": ["d", "other"]}, ["SpanR@5"], no_relevant="skip")
    assert scores["SpanR@5"] == 0.5
    per_query = dict(scores.per_query.fill_nan(None).iter_rows())
    assert per_query == {"q1": 1.0, "q2": None, "q3": None, "q4": 0.0}
    assert "1 retrieved chunk is not among the chunks and counts as no text" in list(map(str, scores.notes))


def test_the_same_from_every_form_of_a_run_and_in_a_comparison(tmp_path: Any) -> None:
    key = sy.Evidence({"q": [{"doc_id": "d", "start": 0, "end": 10}], "r": [{"doc_id": "d", "start": 8, "end": 9}]})
    qrels = key.judge([{"chunk_id": c, "doc_id": "d", "start": a, "end": a + 8} for c, a in (("x", 0), ("y", 4))])
    lists = {"q": {"y": 2.0, "x": 1.0}, "r": {"x": 5.0}}
    sy.Run(lists).write(tmp_path / "one.run")
    expected = [0.6, 0.0]
    for run in (lists, sy.Run(lists), sy.Run(lists).frame, tmp_path / "one.run"):
        assert sy.evaluate(qrels, run, ["SpanR@1"]).per_query["SpanR@1"].to_list() == expected
    compared = sy.compare(qrels, {"a": lists, "b": {"q": ["x"], "r": ["y"]}}, ["SpanR@1"], baseline="a")
    assert compared.pairs["difference"].to_list() == [pytest.approx(0.9 - 0.3)]


def test_span_measures_refuse_what_they_cannot_count() -> None:
    key = sy.Evidence({"q": [{"doc_id": "d", "start": 0, "end": 4}]})
    chunks = [{"chunk_id": "c", "doc_id": "d", "start": 0, "end": 3}]
    with pytest.raises(InputError, match="needs the documents"):
        key.judge(chunks, unit="token")
    with pytest.raises(InputError, match="unit is 'words'"):
        key.judge(chunks, unit="words")  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="where the spans and the chunks are"):
        sy.evaluate({"q": ["c"]}, {"q": ["c"]}, ["SpanR@5"])
    with pytest.raises(MeasureError, match="a budget needs the length"):
        sy.evaluate(key.judge(chunks), {"q": ["c"]}, ["SpanR(budget=5)"])
    with pytest.raises(MeasureError, match="unjudged=remove the text"):
        sy.evaluate(key.judge(chunks), {"q": ["c"]}, ["SpanR@5"], unjudged="remove")


@pytest.mark.slow
@needs_shared
def test_real_texts_equal_brute_force_and_whole_texts_have_recall_one() -> None:
    key = sy.Evidence.read(DATA / "questions_df.csv")
    texts = {path.stem: path.read_bytes().decode() for path in (DATA / "corpora").glob("*.md")}
    everything = {query: [f"{doc}#1" for doc in texts] for query in key.queries}
    whole = key.judge(chunk_documents(texts, Whole()), documents=texts)
    assert sy.evaluate(whole, everything, ["SpanR"])["SpanR"] == 1.0
    gold: dict[str, list[dict[str, Any]]] = {}
    for row in key.spans.iter_rows(named=True):
        gold.setdefault(row["query_id"], []).append(row)
    with (DATA / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        questions = [row["question"] for row in csv.DictReader(file)]
    for chunker in (Fixed(200, 20), Sentence(80), Recursive(200)):
        chunks = chunk_documents(texts, chunker)
        qrels = key.judge(chunks, documents=texts)
        by_id = {chunk.chunk_id: vars(chunk) for chunk in chunks}
        corpus = {chunk.chunk_id: chunk.text for chunk in chunks}
        for retriever in (BM25(variant="okapi"), Random(seed=1)):
            answers = retriever.index(corpus).retrieve(questions, k=20)
            run = sy.Run(dict(zip(key.queries, answers, strict=True)), texts=corpus)
            labels = ["SpanR@1", "SpanR@5", "SpanP@5", "SpanIoU@5", "SpanR(budget=500)", "SpanR(budget=2000)"]
            scores = sy.evaluate(qrels, run, labels)
            for query, answer in list(zip(key.queries, answers, strict=True))[::37]:
                brute = by_characters(gold[query], [by_id[doc] for doc, _ in answer[:5]])
                row = scores.per_query.row(key.queries.index(query), named=True)
                assert row["query_id"] == query
                assert {name: row[f"{name}@5"] for name in MEASURES} == {name: brute[name] for name in MEASURES}
            for low, high in (("@1", "@5"), ("(budget=500)", "(budget=2000)")):
                assert (scores.per_query[f"SpanR{low}"] <= scores.per_query[f"SpanR{high}"]).all()
            if isinstance(retriever, BM25):
                assert scores["SpanR@5"] > 0.5
