"""BM25: the scores of rank_bm25 and bm25s, native and portable, ties in document order, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from needs import import_peer, needs_kernel
from steelyard.errors import InputError, SteelyardError
from steelyard.retrievers import BM25, RetrieverError

RANK_BM25 = {"okapi": "BM25Okapi", "plus": "BM25Plus", "l": "BM25L"}
VARIANTS = ("okapi", "plus", "l", "lucene", "robertson", "atire")


def reference(variant: str, documents: list[list[str]], **constants: float) -> Any:
    return getattr(import_peer("rank_bm25"), RANK_BM25[variant])(documents, **constants)


def all_scores(bm25: BM25, query: str, size: int) -> np.ndarray:
    """Every document's score, in document order; ids are the documents' places."""
    scores = np.full(size, np.nan)
    for doc, score in bm25.retrieve([query], k=size)[0]:
        scores[int(doc)] = score
    return scores


def numbered(texts: list[str]) -> dict[str, str]:
    return {str(place): text for place, text in enumerate(texts)}


tokens = st.sampled_from(["a", "b", "c", "d", "e", "a-longer-token", "naïve", "東"])
texts = st.lists(st.lists(tokens, max_size=9).map(" ".join), min_size=1, max_size=12)


@pytest.mark.parametrize("variant", RANK_BM25)
@settings(max_examples=60)
@given(
    corpus=texts.filter(any),
    query=st.lists(st.one_of(tokens, st.just("unknown")), max_size=6).map(" ".join),
    k1=st.sampled_from([0.0, 0.9, 1.2, 1.5]),
    b=st.sampled_from([0.0, 0.4, 0.75]),
)
def test_scores_are_rank_bm25s_to_the_last_bit(
    variant: Any, form: str, corpus: list[str], query: str, k1: float, b: float
) -> None:
    with np.errstate(invalid="ignore"):
        expected = reference(variant, [text.split() for text in corpus], k1=k1, b=b).get_scores(query.split())
    # With k1 = 0 rank_bm25 divides 0 by 0 in every document that lacks the term.
    if not np.isnan(expected).any():
        bm25 = BM25(variant, k1=k1, b=b, tokenizer="whitespace").index(numbered(corpus))
        assert all_scores(bm25, query, len(corpus)).tolist() == expected.tolist()


@pytest.mark.parametrize("variant", RANK_BM25)
@pytest.mark.parametrize(
    "name", ["demo", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cranfield", "scifact"))]
)
def test_real_collections_score_as_rank_bm25(
    variant: Any, name: str, form: str, collection: Callable[[str], Any]
) -> None:
    data = collection(name)
    texts = [text.lower() for text in data.corpus.values()]
    peer = reference(variant, [text.split() for text in texts])
    bm25 = BM25(variant, tokenizer="whitespace").index(numbered(texts))
    queries = [query.lower() for query in data.queries.values()][:: 4 if name == "scifact" else 1]
    for query, found in zip(queries, bm25.retrieve(queries, k=len(texts)), strict=True):
        expected = peer.get_scores(query.split())
        order = np.argsort(-expected, kind="stable")
        assert [int(doc) for doc, _ in found] == order.tolist()
        assert [score for _, score in found] == expected[order].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "cranfield"])
@pytest.mark.parametrize("variant", ["lucene", "robertson", "atire"])
def test_scores_are_bm25s(variant: Any, name: str, form: str, collection: Callable[[str], Any]) -> None:
    bm25s = import_peer("bm25s")
    data = collection(name)
    texts = list(data.corpus.values())
    peer = bm25s.BM25(method=variant, dtype="float64")
    peer.index([text.split() for text in texts], show_progress=False)
    bm25 = BM25(variant, tokenizer="whitespace").index(numbered(texts))
    for query in list(data.queries.values())[:60]:
        known = [token for token in query.split() if token in peer.vocab_dict]
        expected = peer.get_scores(known)
        assert all_scores(bm25, query, len(texts)) == pytest.approx(expected, abs=1e-9)


@needs_kernel
@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=60)
@given(
    corpus=texts,
    queries=st.lists(st.lists(tokens, max_size=6).map(" ".join), max_size=4),
    k=st.integers(1, 15),
    fill=st.booleans(),
)
def test_native_and_portable_answers_are_equal(
    variant: Any, monkeypatch: pytest.MonkeyPatch, corpus: list[str], queries: list[str], k: int, fill: bool
) -> None:
    monkeypatch.delenv("STEELYARD_NATIVE", raising=False)
    native = BM25(variant, tokenizer="whitespace", fill=fill).index(numbered(corpus)).retrieve(queries, k)
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    portable = BM25(variant, tokenizer="whitespace", fill=fill).index(numbered(corpus)).retrieve(queries, k)
    assert native == portable


@needs_kernel
@pytest.mark.parametrize("variant", VARIANTS)
def test_native_and_portable_agree_over_many_blocks(variant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(5)
    corpus = {f"d{i}": " ".join(f"w{n}" for n in draw.zipf(1.3, 8) if n < 5000) for i in range(13_000)}
    queries = [" ".join(f"w{n}" for n in draw.zipf(1.3, 5)) for _ in range(20)] + ["", "w4999 w4998"]
    native = BM25(variant, tokenizer="whitespace").index(corpus)
    answers = {k: native.retrieve(queries, k) for k in (1, 10, 500, 20_000)}
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    portable = BM25(variant, tokenizer="whitespace").index(corpus)
    assert portable.size_in_bytes() == native.size_in_bytes() > 0
    for k, found in answers.items():
        assert portable.retrieve(queries, k) == found


def test_equal_scores_rank_in_document_order(form: str) -> None:
    corpus = {f"d{i}": "same words" if i % 3 else "other things here" for i in range(200)}
    found = BM25("lucene", tokenizer="whitespace").index(corpus).retrieve(["same"], k=200)[0]
    match = [f"d{i}" for i in range(200) if i % 3]
    assert [doc for doc, _ in found] == match + [f"d{i}" for i in range(0, 200, 3)]


def test_fill_adds_documents_without_a_shared_word(form: str) -> None:
    corpus = {"d1": "owl", "d2": "red fox", "d3": "grey fox", "d4": "bear"}
    filled = BM25("lucene", tokenizer="whitespace").index(corpus).retrieve(["grey fox"], k=4)[0]
    assert [doc for doc, _ in filled] == ["d3", "d2", "d1", "d4"]
    assert filled[2][1] == filled[3][1] == 0.0
    matching = BM25("lucene", tokenizer="whitespace", fill=False).index(corpus).retrieve(["grey fox", "cat"], k=4)
    assert [[doc for doc, _ in found] for found in matching] == [["d3", "d2"], []]


def test_plus_scores_documents_without_the_term(form: str) -> None:
    corpus = {"d1": "owl", "d2": "red fox", "d3": "bear"}
    found = dict(BM25("plus", tokenizer="whitespace").index(corpus).retrieve(["fox"], k=3)[0])
    assert found["d1"] == found["d3"] == pytest.approx(np.log(4))


@pytest.mark.parametrize("query", ["", "   ", "the of and", "unheard"])
def test_a_query_without_known_words_scores_all_documents_0(query: str, form: str) -> None:
    found = BM25().index({"d1": "red fox", "d2": "grey wolf"}).retrieve([query], k=5)
    assert found == [[("d1", 0.0), ("d2", 0.0)]]


def test_a_corpus_of_empty_texts_is_searched(form: str) -> None:
    assert BM25().index({"d1": "", "d2": "  "}).retrieve(["fox"], k=1) == [[("d1", 0.0)]]


def test_k_beyond_the_corpus_gives_the_corpus(form: str) -> None:
    assert len(BM25().index({"d1": "fox", "d2": "wolf"}).retrieve(["fox"], k=100)[0]) == 2


def test_no_queries_give_no_lists(form: str) -> None:
    assert BM25().index({"d1": "fox"}).retrieve([], k=3) == []


def test_a_second_index_replaces_the_first(form: str) -> None:
    bm25 = BM25("lucene", fill=False).index({"d1": "fox"})
    assert bm25.index({"e1": "wolf"}).retrieve(["fox", "wolf"], k=3)[0] == []


def test_numbers_as_ids_become_text(form: str) -> None:
    corpus: Any = {7: "fox"}
    assert BM25("lucene").index(corpus).retrieve(["fox"], k=1)[0][0][0] == "7"


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ({}, "the corpus is empty"),
        ([("d1", "fox")], "expected a mapping"),
        ({"d1": None}, r"text of document 'd1' is nothing \(None\)"),
        ({"d1": 3}, "text of document 'd1' is a int"),
        ({None: "fox"}, "document id None"),
        ({"7": "fox", 7: "wolf"}, "'7' occurs as text and as a number"),
    ],
)
def test_a_bad_corpus_is_refused(corpus: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        BM25().index(corpus)


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_a_bad_k_is_refused(k: Any) -> None:
    with pytest.raises(InputError, match="expected a whole number of documents"):
        BM25().index({"d1": "fox"}).retrieve(["fox"], k=k)


def test_bad_queries_are_refused() -> None:
    bm25 = BM25().index({"d1": "fox"})
    with pytest.raises(InputError, match="takes a list of queries"):
        bm25.retrieve("fox", k=1)
    with pytest.raises(InputError, match=r"query 2 is nothing \(None\)"):
        bm25.retrieve(["fox", None], k=1)  # type: ignore[list-item]


def test_retrieving_before_indexing_is_refused() -> None:
    with pytest.raises(RetrieverError, match=r"call index\(corpus\)"):
        BM25().retrieve(["fox"], k=1)
    assert BM25().size_in_bytes() == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"variant": "okapy"}, "Did you mean okapi"),
        ({"k1": -1}, "`k1` is -1; expected a number from 0 to 1e"),
        ({"b": 1.5}, "`b` is 1.5; expected a number from 0 to 1"),
        ({"b": "0.75"}, "expected a number"),
        ({"k1": float("nan")}, "expected a number"),
        ({"variant": "okapi", "delta": 1.0}, "only the variants plus and l have delta"),
        ({"tokenizer": "word"}, "Did you mean words"),
        ({"tokenizer": 3}, "expected a name or a callable"),
    ],
)
def test_bad_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(RetrieverError, match=message):
        BM25(**wrong)


@pytest.mark.parametrize(
    "tokenizer", [lambda text: text, lambda text: None, lambda text: [["nested"]], lambda text: [1, 2]]
)
def test_a_tokenizer_that_does_not_return_tokens_is_refused(tokenizer: Any, form: str) -> None:
    with pytest.raises(SteelyardError, match="expected a callable from a text to a list of texts"):
        BM25(tokenizer=tokenizer).index({"d1": "fox"})


def test_settings_identify_a_retriever() -> None:
    assert BM25().settings() == BM25(name="mine").settings()
    assert BM25().settings() != BM25(k1=1.2).settings()
    assert BM25(tokenizer=str.split).settings()["tokenizer"] == "builtins.str.split"
    assert BM25(name="mine").label == "mine"


@pytest.mark.parametrize("variant", ["okapi", "plus", "lucene"])
def test_scifact_is_as_published(variant: Any, collection: Callable[[str], Any]) -> None:
    assert 0.66 <= ndcg(BM25(variant), collection("scifact")) <= 0.70


def test_japanese_needs_no_segmenter(collection: Callable[[str], Any]) -> None:
    data = collection("faq-ja")
    default, bigrams = ndcg(BM25(), data), ndcg(BM25(tokenizer="ngrams:2"), data)
    assert default >= bigrams >= 0.37
    assert ndcg(BM25(tokenizer="whitespace"), data) < 0.05


def ndcg(retriever: BM25, data: Any) -> float:
    retriever.index(data.corpus)
    answers = retriever.retrieve(list(data.queries.values()), k=10)
    run = {query: [doc for doc, _ in found] for query, found in zip(data.queries, answers, strict=True)}
    return sy.evaluate(data.qrels, run, ["nDCG@10"])["nDCG@10"]
