"""Span measures compared with sets of characters; on real texts, their properties."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
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


@pytest.mark.slow
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


GOLDENS = {
    "400": (
        [0.5668553894634927, 0.07204661016949152, 0.06922015974781079],
        [0.40492841409561464, 0.1480026987489912, 0.13974432937827672],
    ),
    "800, overlap 400": (
        [0.755776724479549, 0.04955449623352163, 0.04910927615823701],
        [0.6625062198757916, 0.07315495422215504, 0.07260570203289732],
    ),
    "lines": (
        [0.6785702019196372, 0.020365247185273515, 0.020347025846903417],
        [0.5135699574681094, 0.11971280438802036, 0.11938066397541758],
    ),
}
"""Mean recall, precision and IoU of 472 questions with retrieve=5, and with retrieve=-1.

The package chunking_evaluation could not be installed. These are the results of a separate program that does, character
by character, what `_scores_from_dataset_and_retrievals` of its base_evaluation.py (commit 23ee965) does with ranges.
"""

Chunk = tuple[str, int, int]


def chunks_of(texts: dict[str, str], name: str) -> list[Chunk]:
    """Windows of characters, or the lines that are not empty."""
    if name == "lines":
        return [(doc, at.start(), at.end()) for doc, text in texts.items() for at in re.finditer("[^\n]+", text)]
    size = int(name.split(",")[0])
    return [(doc, a, min(a + size, len(text))) for doc, text in texts.items() for a in range(0, len(text), 400)]


def by_shared_words(questions: list[str], texts: dict[str, str], chunks: list[Chunk]) -> list[list[int]]:
    """The 20 chunks that share most words with each question; earlier ones first if equal."""
    places: dict[str, list[int]] = {}
    for place, (doc, start, end) in enumerate(chunks):
        for word in set(re.findall(r"\w+", texts[doc][start:end].lower())):
            places.setdefault(word, []).append(place)
    counts = (
        Counter(place for word in set(re.findall(r"\w+", question.lower())) for place in places.get(word, ()))
        for question in questions
    )
    return [sorted(count, key=lambda place: (-count[place], place))[:20] for count in counts]


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize("name", sorted(GOLDENS))
def test_the_dialect_of_chroma_equals_what_its_code_computes(name: str) -> None:
    texts = {path.stem: path.read_bytes().decode() for path in sorted((DATA / "corpora").glob("*.md"))}
    with (DATA / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    key, chunks = sy.Evidence.read(DATA / "questions_df.csv"), chunks_of(texts, name)
    listed = [{"chunk_id": str(at), "doc_id": d, "start": a, "end": b} for at, (d, a, b) in enumerate(chunks)]
    qrels = key.judge(listed, documents=texts)
    ranked = by_shared_words([row["question"] for row in rows], texts, chunks)
    touching = []  # retrieve=-1: as many chunks as touch a gold span, at most 20; ends that meet count as well
    for row in rows:
        gold = [(one["start_index"], one["end_index"]) for one in json.loads(row["references"])]
        here = ((a, b) for doc, a, b in chunks if doc == row["corpus_id"])
        touching.append(sum(any(a <= end and start <= b for start, end in gold) for a, b in here))
    for depths, k, golden in (([5] * len(rows), 5, GOLDENS[name][0]), (touching, 20, GOLDENS[name][1])):
        lists = zip(key.queries, ranked, depths, strict=True)
        run = {query: [str(place) for place in places[:depth]] for query, places, depth in lists}
        scores = sy.evaluate(qrels, run, [f"{each}@{k}" for each in ("recall", "precision", "iou")], dialect="chroma")
        assert list(scores.means.values()) == pytest.approx(golden, rel=0, abs=1e-12)


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
