"""Span measures compared with sets of characters; on real texts, their properties."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from needs import SHARED, needs_shared
from steelyard.chunking import Fixed, Recursive, Sentence, Whole, chunk_documents
from steelyard.errors import InputError, MeasureError
from steelyard.evidence import span_scores
from steelyard.retrievers import BM25, Random

DATA = SHARED / "chunk-spans"

span = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 30), st.integers(1, 20))


def as_dict(row: tuple[str, int, int]) -> dict[str, Any]:
    return {"doc_id": row[0], "start": row[1], "end": row[1] + row[2]}


@given(
    st.dictionaries(st.sampled_from(["q1", "q2"]), st.lists(span, min_size=1, max_size=4), min_size=1),
    st.lists(span, min_size=1, max_size=8),
    st.data(),
)
@settings(deadline=None, max_examples=150)
def test_span_measures_equal_sets_of_characters(gold: Any, listed: Any, data: Any) -> None:
    chunks = [{"chunk_id": f"c{at}", **as_dict(row)} for at, row in enumerate(listed)]
    run = {query: data.draw(st.permutations([c["chunk_id"] for c in chunks])) for query in gold}
    key = sy.Evidence({query: [as_dict(row) for row in rows] for query, rows in gold.items()})
    k = data.draw(st.integers(1, 9))
    tokens = {chunk["chunk_id"]: at % 3 + 1 for at, chunk in enumerate(chunks)}
    budget = data.draw(st.integers(1, 12))
    found = span_scores(key, chunks, sy.Run(run, tokens=tokens), k=k, budget=budget).per_query
    for row in found.iter_rows(named=True):
        query = row["query_id"]
        wanted = {(doc, at) for doc, start, size in gold[query] for at in range(start, start + size)}
        used, fitting = 0, []
        for chunk in run[query]:
            used += tokens[chunk]
            if used <= budget:
                fitting.append(chunk)
        for label, kept in ((f"@{k}", run[query][:k]), (f"(budget={budget})", fitting)):
            there = {
                (c["doc_id"], at)
                for c in chunks
                if c["chunk_id"] in kept
                for at in range(c["start"], c["end"])
            }
            assert row[f"SpanR{label}"] == len(wanted & there) / len(wanted)
            assert row[f"SpanP{label}"] == (len(wanted & there) / len(there) if there else 0)
            assert row[f"SpanIoU{label}"] == len(wanted & there) / len(wanted | there)


def test_tokens_count_where_they_begin() -> None:
    text = "one two three four five six"
    key = sy.Evidence({"q": [{"doc_id": "d", "start": 4, "end": 18}]})
    chunks = chunk_documents({"d": text}, Fixed(2))
    found = span_scores(key, chunks, {"q": ["d#1", "d#2"]}, unit="token", documents={"d": text}, k=[1, 2])
    assert found.means == {
        "SpanR@1": 1 / 3, "SpanP@1": 1 / 2, "SpanIoU@1": 1 / 4, "SpanR@2": 1.0, "SpanP@2": 3 / 4, "SpanIoU@2": 3 / 4,
    }  # fmt: skip


def test_notes_report_what_is_left_out() -> None:
    key = sy.Evidence(
        {
            "q1": [{"doc_id": "d", "start": 0, "end": 4}],
            "q2": [{"doc_id": "d"}],
            "q3": None,
            "q4": [{"doc_id": "d", "start": 0, "end": 2}],
        }
    )
    found = span_scores(key, {"d": "text"}, {"q1": ["d", "other"]}, k=5)
    assert found["SpanR@5"] == 0.5
    assert found.per_query["SpanR@5"].to_list() == [1.0, 0.0]
    assert list(map(str, found.notes)) == [
        "2 of 4 queries have no span and are left out",
        "1 query is not in the run and counts 0",
        "1 retrieved chunk is not among the chunks and counts as no text",
    ]
    assert found.interval("SpanR@5") == (0.0, 1.0)


def test_span_measures_refuse_what_they_cannot_count() -> None:
    key = sy.Evidence({"q": [{"doc_id": "d", "start": 0, "end": 4}]})
    with pytest.raises(InputError, match="k is 0"):
        span_scores(key, {"d": "text"}, {"q": ["d"]}, k=0)
    with pytest.raises(InputError, match="needs the documents"):
        span_scores(key, {"d": "text"}, {"q": ["d"]}, unit="token")
    with pytest.raises(InputError, match="no character spans"):
        span_scores({"q": [{"doc_id": "d"}]}, {"d": "text"}, {"q": ["d"]})
    with pytest.raises(InputError, match="a budget needs"):
        span_scores(key, [{"chunk_id": "c", "doc_id": "d", "start": 0, "end": 3}], {"q": ["c"]}, budget=5)
    with pytest.raises(MeasureError, match="was not measured"):
        span_scores(key, {"d": "text"}, {"q": ["d"]}, k=1)["SpanR@2"]


@needs_shared
def test_real_texts_whole_texts_have_recall_one_and_recall_grows_with_k() -> None:
    key = sy.Evidence.read(DATA / "questions_df.csv")
    texts = {path.stem: path.read_bytes().decode() for path in (DATA / "corpora").glob("*.md")}
    everything = {query: [f"{doc}#1" for doc in texts] for query in key.queries}
    whole = span_scores(key, chunk_documents(texts, Whole()), everything, documents=texts)
    assert whole["SpanR"] == 1.0
    import csv

    with (DATA / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        questions = [row["question"] for row in csv.DictReader(file)]
    for chunker in (Fixed(200, 20), Sentence(80), Recursive(200)):
        chunks = chunk_documents(texts, chunker)
        corpus = {chunk.chunk_id: chunk.text for chunk in chunks}
        for retriever in (BM25(variant="okapi"), Random(seed=1)):
            answers = retriever.index(corpus).retrieve(questions, k=50)
            run = sy.Run(dict(zip(key.queries, answers, strict=True)), texts=corpus)
            found = span_scores(key, chunks, run, k=[1, 5, 20, 50], budget=[500, 2000], documents=texts)
            for low, high in (("@1", "@5"), ("@5", "@20"), ("@20", "@50"), ("(budget=500)", "(budget=2000)")):
                assert (found.per_query[f"SpanR{low}"] <= found.per_query[f"SpanR{high}"]).all()
            if isinstance(retriever, BM25):
                assert found["SpanR@5"] > 0.5
