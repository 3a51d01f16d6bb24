"""Hybrid and Rerank: retrievers made of retrievers, and retrievers by name."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import steelyard.retrievers
from steelyard.errors import SteelyardError
from steelyard.fusion.fuse import fuse_lists
from steelyard.retrievers import BM25, Dense, Hybrid, Random, Rerank, Retriever, RetrieverError, retriever
from steelyard.retrievers.registry import retriever_names, retriever_settings

CORPUS = {
    "d1": "a red fox in the snow",
    "d2": "a grey wolf",
    "d3": "the fox and the old hound",
    "d4": "an owl at night",
}


def longest(query: str, texts: list[str]) -> list[int]:
    return [len(text) for text in texts]


def test_hybrid_is_the_fusion_of_its_parts() -> None:
    parts = [BM25("lucene"), Dense(dimensions=2)]
    hybrid = Hybrid(of=parts, fuse="rrf").index(CORPUS)
    lists = [part.retrieve(["fox in snow"], k=100)[0] for part in parts]
    assert hybrid.retrieve(["fox in snow"], k=3)[0] == fuse_lists(lists, "rrf")[:3]
    weighted = Hybrid(of=parts, fuse="wsum", weights=[0.9, 0.1], norm="max").index(CORPUS)
    expected = fuse_lists(lists, "wsum", norm="max", weights=[0.9, 0.1])
    assert weighted.retrieve(["fox in snow"], k=4)[0] == expected
    assert hybrid.size_in_bytes() == sum(part.size_in_bytes() for part in parts) > 0


def test_bm25_by_name_leaves_out_documents_without_a_shared_word() -> None:
    hybrid = Hybrid(of=["bm25-lucene", {"bm25-plus": {"k1": 1.2}}]).index(CORPUS)
    assert {doc for doc, _ in hybrid.retrieve(["fox"], k=4)[0]} == {"d1", "d3"}
    assert hybrid.retrieve(["unheard", ""], k=4) == [[], []]
    by_short_name = Hybrid(of=["bm25", "bm25-lucene"]).index(CORPUS)
    assert {doc for doc, _ in by_short_name.retrieve(["fox"], k=4)[0]} == {"d1", "d3"}
    filled = Hybrid(of=[{"bm25-lucene": {"fill": True}}, "random"]).index(CORPUS)
    assert len(filled.retrieve(["fox"], k=4)[0]) == 4


def test_hybrid_settings_have_the_parts_and_the_method() -> None:
    settings = Hybrid(of=["bm25-okapi", "random"], parameters={"k": 10}).settings()
    assert settings["fusion"] == {"method": "rrf", "k": 10}
    assert [part["retriever"] for part in settings["of"]] == ["bm25", "random"]
    assert Hybrid(of=["bm25-okapi", {"random": {"seed": 1}}], parameters={"k": 10}).settings() != settings


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"of": ["random"]}, "two or more retrievers"),
        ({"of": "random"}, "two or more retrievers"),
        ({"of": ["random", "denze"]}, "Did you mean dense"),
        ({"of": ["random", {"dense": {"dim": 3}}]}, "unknown setting 'dim'"),
        ({"of": ["random", {"dense": {}, "random": {}}]}, "expected one retriever name with its settings"),
        ({"of": ["random", 3]}, "3 is not a retriever"),
        ({"fuse": "rrff"}, "rrf"),
        ({"weights": [1.0]}, "1 weight for 2 runs"),
        ({"depth": 0}, "`depth` is 0"),
        ({"parameters": 60}, "expected `name: value` pairs"),
        ({"parameters": {"kk": 60}}, "no parameter 'kk'"),
    ],
)
def test_a_bad_hybrid_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SteelyardError, match=message):
        Hybrid(**{"of": ["random", "bm25-l"], **wrong})


def test_rerank_orders_the_candidates_and_keeps_the_rest() -> None:
    rerank = Rerank(first=BM25("lucene"), score=longest, candidates=2).index(CORPUS)
    found = rerank.retrieve(["fox"], k=4)[0]
    assert found == [("d3", 25.0), ("d1", 21.0), ("d2", 20.0), ("d4", 19.0)]
    assert rerank.retrieve(["fox"], k=1)[0] == found[:1]


def test_equal_rerank_scores_keep_the_first_order() -> None:
    first = Random(seed=3).index(CORPUS)
    rerank = Rerank(first=Random(seed=3), score=lambda query, texts: [0.0] * len(texts)).index(CORPUS)
    expected = [doc for doc, _ in first.retrieve(["q"], k=4)[0]]
    assert [doc for doc, _ in rerank.retrieve(["q"], k=4)[0]] == expected


def test_a_cross_encoder_gets_pairs() -> None:
    class Encoder:
        def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
            return [float(query in text) for query, text in pairs]

    rerank = Rerank(first="random", score=Encoder()).index(CORPUS)
    assert rerank.retrieve(["wolf"], k=1)[0] == [("d2", 1.0)]
    assert "Encoder" in rerank.settings()["score"]


def test_a_scorer_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_scorers", SimpleNamespace(longest=longest))
    rerank = retriever("rerank", {"first": "random", "score": "my_scorers:longest"}).index(CORPUS)
    assert rerank.retrieve(["q"], k=1)[0][0][1] == 25.0
    assert rerank.settings()["score"] == "my_scorers:longest"


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("no_such_module:f", "there is no module 'no_such_module'"),
        ("json:nothing", "module 'json' has no 'nothing'"),
        (3, "expected a callable"),
        ("cross-encoder:/no/such/folder", "never downloaded"),
    ],
)
def test_a_bad_scorer_is_refused(score: Any, message: str) -> None:
    with pytest.raises(RetrieverError, match=message):
        Rerank(first="random", score=score)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda query, texts: None, "expected one number per text"),
        (lambda query, texts: [1.0], "1 score for 4 texts"),
        (lambda query, texts: [float("nan")] * len(texts), "not a finite number"),
        (lambda query, texts: ["x"] * len(texts), "expected one number per text"),
    ],
)
def test_bad_scores_are_refused(score: Any, message: str) -> None:
    with pytest.raises(RetrieverError, match=message):
        Rerank(first="random", score=score).index(CORPUS).retrieve(["q"], k=4)


def test_a_document_that_is_not_in_the_corpus_is_refused() -> None:
    class Elsewhere(Random):
        def retrieve(self, queries: Any, k: int = 10) -> Any:
            return [[("d99", 1.0)] for _ in queries]

    with pytest.raises(RetrieverError, match="returned document 'd99', which is not in the corpus"):
        Rerank(first=Elsewhere(), score=longest).index(CORPUS).retrieve(["q"], k=4)


@pytest.mark.parametrize("make", [lambda: Hybrid(of=["random", "dense"]), lambda: Rerank("random", longest)])
def test_retrieving_before_indexing_is_refused(make: Any) -> None:
    with pytest.raises(RetrieverError, match="nothing is indexed"):
        make().retrieve(["fox"], k=1)


OWN = ("bm25-okapi", "bm25-plus", "bm25-l", "bm25-lucene", "bm25-robertson", "bm25-atire", "random", "dense", "hybrid")


@pytest.mark.parametrize("name", OWN)
def test_every_retriever_has_the_protocol(name: str) -> None:
    made = retriever(name)
    assert isinstance(made, Retriever)
    assert made.label == name
    assert retriever(name, {"name": "mine"}).label == "mine"
    assert json.loads(json.dumps(made.settings())) == made.settings()
    answers = made.index(CORPUS).retrieve(["red fox", "owl"], k=2)
    assert answers[0][0][0] == "d1" or name == "random"
    for found in answers:
        assert len(found) <= 2
        assert all(type(doc) is str and type(score) is float for doc, score in found)
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert made.retrieve(["red fox", "owl"], k=2) == answers


def test_a_text_alone_is_the_first_setting() -> None:
    assert retriever("dense", "lsa").settings() == Dense().settings()


def test_names_and_settings_are_listed() -> None:
    assert set(OWN) | {"rerank"} <= set(retriever_names())
    assert "variant" not in retriever_settings("bm25-plus")
    assert {"of", "fuse", "weights"} <= set(retriever_settings("hybrid"))


def test_unknown_names_and_settings_are_refused() -> None:
    with pytest.raises(RetrieverError, match="Did you mean bm25-okapi"):
        retriever("bm25-okapy")
    with pytest.raises(RetrieverError, match="unknown setting 'K1'; expected one of .* Did you mean k1"):
        retriever("bm25-okapi", {"K1": 1.2})
    with pytest.raises(RetrieverError, match="unknown setting 'variant'"):
        retriever("bm25-okapi", {"variant": "plus"})
    with pytest.raises(RetrieverError, match="rerank: needs the setting score"):
        retriever("rerank", {"first": "random"})
    with pytest.raises(RetrieverError, match="the settings are a int"):
        retriever("random", 42)  # type: ignore[arg-type]
    with pytest.raises(RetrieverError, match="unknown retriever 7"):
        retriever(7)  # type: ignore[arg-type]


def test_the_package_lists_its_names() -> None:
    assert {"BM25", "Random", "Dense", "Hybrid", "Rerank"} <= set(dir(steelyard.retrievers))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = steelyard.retrievers.Nothing
