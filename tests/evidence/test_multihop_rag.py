"""MultiHop-RAG by facts: its two definitions of MAP@10, null queries, and its worked example, by evidence."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from needs import SHARED, needs_shared
from steelyard.chunking import Fixed, chunk_documents
from steelyard.retrievers import BM25

DATA = SHARED / "multihop-rag"


def script(listed: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> dict[str, float]:
    """The published script's figures as its description has them, one text after the other."""
    hits_4 = hits_10 = reciprocal = precision = 0.0
    for texts, facts in zip(listed, gold, strict=True):
        packed = ["".join(fact.split()) for fact in facts]
        seen: set[str] = set()
        first = None
        total = 0.0
        for rank, text in enumerate(texts[:10], start=1):
            inside = {fact for fact in packed if fact in "".join(text.split())}
            if inside and first is None:
                first = rank
            total += len(inside - seen) / rank
            seen |= inside
        hits_10 += first is not None
        hits_4 += first is not None and first <= 4
        reciprocal += 1 / first if first else 0
        precision += total / min(len(packed), 10)
    size = len(gold)
    return {"Hits@10": hits_10 / size, "Hits@4": hits_4 / size, "MAP@10": precision / size, "MRR@10": reciprocal / size}


words = st.sampled_from(["ab", "b a", "c", "a\nb", "cab", "d d"])


@given(
    st.lists(
        st.tuples(
            st.lists(words, unique_by=lambda w: "".join(w.split()), min_size=1, max_size=4),
            st.lists(st.integers(0, 11), unique=True, max_size=12),
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.lists(words, max_size=3).map(" ".join), min_size=12, max_size=12),
)
@settings(deadline=None)
def test_the_scripts_figures_equal_its_loop(queries: list[tuple[list[str], list[int]]], texts: list[str]) -> None:
    key = sy.Evidence({f"q{n}": [{"fact": fact} for fact in facts] for n, (facts, _) in enumerate(queries)})
    qrels = key.judge({f"c{n}": text for n, text in enumerate(texts)}, spaces="removed")
    run = {f"q{n}": [f"c{at}" for at in listed] for n, (_, listed) in enumerate(queries)}
    found = sy.evaluate(qrels, run, ["Hits@10", "Hits@4", "MAP@10", "MRR@10"], dialect="multihop-rag-script")
    wanted = script([[texts[at] for at in listed] for _, listed in queries], [facts for facts, _ in queries])
    assert found.means == pytest.approx(wanted, abs=1e-12)


def test_more_than_ten_facts_divide_by_ten() -> None:
    key = sy.Evidence({"q": [{"fact": f"fact {n}."} for n in range(12)]})
    text = " ".join(f"fact {n}." for n in range(12))
    scores = sy.evaluate(key.judge({"c": text}), {"q": ["x", "c"]}, "MAP@10", dialect="multihop-rag-script")
    assert scores["MAP@10"] == 12 / 2 / 10


def test_document_4_through_evidence() -> None:
    """Chunks A to I, each with a fact of its own; the figures of the worked example."""
    chunks = {name: f"It is known that {name} holds." for name in "ABCDEFGHI"}
    needed = {"q1": "ABC", "q2": "DE", "q3": "GHI"}
    key = sy.Evidence({query: [{"fact": f"that {name} holds"} for name in names] for query, names in needed.items()})
    run = {"q1": list("ADBEF"), "q2": list("DEFGH"), "q3": list("ABCDE")}
    scores = sy.evaluate(key.judge(chunks), run, ["MAP@5", "MRR@5", "Hit@5"], dialect="multihop-rag")
    assert scores.means == pytest.approx({"MAP@5": 11 / 18, "MRR@5": 2 / 3, "Hit@5": 2 / 3}, abs=1e-9)


@needs_shared
def test_real_facts_in_chunks_and_null_queries(tmp_path: Path) -> None:
    """Facts of one article put together as its text, chunked, retrieved and matched: the script's loop agrees."""
    facts = {row["_id"]: row for row in map(json.loads, (DATA / "corpus.jsonl").read_text("utf-8").splitlines())}
    queries = [json.loads(line) for line in (DATA / "queries.jsonl").read_text("utf-8").splitlines()]
    gold: dict[str, list[str]] = {query["_id"]: [] for query in queries}
    with (DATA / "qrels.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            gold[row["query-id"]].append(facts[row["corpus-id"]]["text"])
    questions = [
        {"query_id": query["_id"], "query": query["text"], "question_type": query["question_type"],
         "evidence_list": [{"fact": fact} for fact in gold[query["_id"]]]}
        for query in queries
    ]  # fmt: skip
    (tmp_path / "MultiHopRAG.json").write_text(json.dumps(questions), encoding="utf-8")
    key = sy.Evidence.read(tmp_path / "MultiHopRAG.json")
    assert (len(key), len(key.queries), len(key.null_queries)) == (1153, 500, 71)

    articles: dict[str, str] = {}
    for row in facts.values():
        articles[row["url"]] = articles.get(row["url"], "") + row["text"] + "\n\n"
    chunks = chunk_documents(articles, Fixed(tokens=100, overlap=50))
    corpus = {chunk.chunk_id: chunk.text for chunk in chunks}
    asked = [query["text"] for query in queries]
    answers = BM25(variant="okapi").index(corpus).retrieve(asked, k=10)
    run = dict(zip(gold, answers, strict=True))
    qrels = key.judge(chunks, spaces="removed", documents=articles)
    measures = ["Hits@4", "Hits@10", "MAP@10", "MRR@10"]
    scores = sy.evaluate(qrels, run, measures, dialect="multihop-rag-script")
    answerable = [query for query in gold if gold[query]]
    wanted = script(
        [[corpus[doc] for doc, _ in run[query]] for query in answerable], [gold[query] for query in answerable]
    )
    assert scores.means == pytest.approx(wanted, abs=1e-12)
    assert scores.coverage.no_relevant == 71
    described = sy.evaluate(qrels, run, measures, dialect="multihop-rag")
    assert described.coverage.no_relevant == 71
    assert described["Hits@4"] == scores["Hits@4"]
    assert described["MAP@10"] != scores["MAP@10"]
    assert sy.evaluate(qrels, run, "Abstain")["Abstain"] == 0.0
