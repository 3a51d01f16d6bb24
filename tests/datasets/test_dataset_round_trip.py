"""What is written is what is read again, whatever the ids, texts and judgments."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.datasets import Corpus, Dataset, Queries
from steelyard.datasets.packed import PackedIds, PackedTexts
from steelyard.errors import InputError
from steelyard.qrels import Qrels

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
IDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
VALUES = st.one_of(
    TEXTS, st.integers(-9, 9), st.booleans(), st.lists(TEXTS, max_size=2), st.dictionaries(TEXTS, TEXTS, max_size=2)
)
NAMES = st.one_of(st.sampled_from(["metadata", "text", "_id", "id", "links", "title", "group", "url"]), TEXTS)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    documents: dict[str, Any] = {}
    for doc_id in draw(st.lists(IDS, min_size=1, max_size=5, unique=True)):
        documents[doc_id] = {
            "title": draw(TEXTS),
            "text": draw(TEXTS),
            "links": draw(st.lists(IDS, max_size=2)),
            "group": draw(TEXTS),
            "metadata": draw(st.dictionaries(NAMES, VALUES, max_size=2)),
        }
    queries: dict[str, Any] = {}
    for query_id in draw(st.lists(IDS, min_size=1, max_size=4, unique=True)):
        columns = draw(st.dictionaries(NAMES, VALUES, max_size=2))
        queries[query_id] = {"text": draw(TEXTS), "metadata": columns}
    pairs = draw(
        st.lists(st.tuples(st.sampled_from(list(queries)), st.sampled_from(list(documents))), max_size=8, unique=True)
    )
    targets = st.one_of(st.none(), IDS) if draw(st.booleans()) else st.none()
    rows = [(query, doc, float(draw(st.integers(-1, 3))), draw(targets)) for query, doc in pairs]
    return Dataset.of(documents, queries, Qrels.from_rows(rows))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(datasets())
def test_writing_and_reading(dataset: Dataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset.write(folder)
        read = Dataset.read(folder)
        assert dict(read.corpus) == dict(dataset.corpus)
        assert dict(read.corpus.titles) == dict(dataset.corpus.titles)
        assert (read.corpus.links or {}) == (dataset.corpus.links or {})
        assert dict(read.corpus.groups) == dict(dataset.corpus.groups)
        assert dict(read.corpus.metadata) == dict(dataset.corpus.metadata)
        assert dict(read.queries) == dict(dataset.queries)
        assert read.queries.columns == dataset.queries.columns
        assert sorted(read.qrels.frame.rows(), key=str) == sorted(dataset.qrels.frame.rows(), key=str)
        assert read.fingerprint == dataset.fingerprint


def test_questions_without_an_answer_are_marked(tmp_path: Path) -> None:
    dataset = Dataset.of({"d": "x"}, {"q1": "?", "q2": "!"}, {"q1": ["d"], "q2": []})
    dataset.write(tmp_path)
    read = Dataset.read(tmp_path)
    assert read.qrels == dataset.qrels
    assert read.queries.column("answerable") == {"q2": False}


def test_grades_that_are_not_whole_survive(tmp_path: Path) -> None:
    dataset = Dataset.of({"d": "x", "e": "y"}, {"q1": "?"}, {"q1": {"d": 0.25, "e": -1.5}})
    dataset.write(tmp_path)
    assert Dataset.read(tmp_path) == dataset


def test_writing_twice_gives_the_same_bytes_and_a_folder_is_made(tmp_path: Path) -> None:
    dataset = Dataset.read("demo")
    for name in ("a/b", "c"):
        dataset.write(tmp_path / name)
    for file in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        assert (tmp_path / "a/b" / file).read_bytes() == (tmp_path / "c" / file).read_bytes()
    assert Dataset.read(tmp_path / "c").fingerprint == dataset.fingerprint
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the folder cannot be created"):
        dataset.write(tmp_path / "file")


def test_the_fingerprint_follows_the_content() -> None:
    corpus: dict[str, Any] = {"a": {"title": "T", "text": "x"}, "b": "y"}
    queries: dict[str, Any] = {"q": {"text": "?", "type": "t"}}
    base = Dataset.of(corpus, queries, {"q": ["a"]}, name="one")
    assert Dataset.of(corpus, queries, {"q": ["a"]}, name="two").fingerprint == base.fingerprint
    others = [
        Dataset.of({**corpus, "b": "z"}, queries, {"q": ["a"]}),
        Dataset.of({"a": {"title": "", "text": "Tx"}, "b": "y"}, queries, {"q": ["a"]}),
        Dataset.of({"b": "y", "a": corpus["a"]}, queries, {"q": ["a"]}),
        Dataset.of({**corpus, "b": {"text": "y", "links": ["a"]}}, queries, {"q": ["a"]}),
        Dataset.of({**corpus, "b": {"text": "y", "group": "g"}}, queries, {"q": ["a"]}),
        Dataset.of({**corpus, "b": {"text": "y", "url": "u"}}, queries, {"q": ["a"]}),
        Dataset.of(corpus, {"q": "?"}, {"q": ["a"]}),
        Dataset.of(corpus, {"q": {"text": "!", "type": "t"}}, {"q": ["a"]}),
        Dataset.of(corpus, queries, {"q": ["b"]}),
        Dataset.of(corpus, queries, {"q": ["a"], "r": []}),
    ]
    assert len({other.fingerprint for other in others} | {base.fingerprint}) == len(others) + 1


def test_a_dataset_is_frozen_and_travels() -> None:
    dataset = Dataset.read("demo")
    with pytest.raises(AttributeError):
        dataset.name = "other"  # type: ignore[misc]
    assert dataset.corpus["fare-01"]
    again: Corpus = pickle.loads(pickle.dumps(dataset.corpus))
    assert again["fare-01"] == dataset.corpus["fare-01"]
    assert again.fingerprint == dataset.corpus.fingerprint


@given(st.lists(TEXTS, max_size=30))
def test_packed_texts_are_a_sequence(texts: list[str]) -> None:
    packed = PackedTexts.of(texts)
    assert list(packed) == texts
    assert [packed[place] for place in range(-len(texts), len(texts))] == texts + texts
    assert packed[1:4] == texts[1:4]
    assert list(packed.take(range(0, len(texts), 2))) == texts[::2]
    with pytest.raises(IndexError):
        packed[len(texts)]


@given(st.lists(st.text("ab", min_size=1, max_size=3), max_size=30))
def test_packed_ids_are_found_and_repeats_known(ids: list[str]) -> None:
    packed = PackedIds.of(ids)
    assert isinstance(packed, PackedIds)
    assert [packed.position(item) for item in ids] == [ids.index(item) for item in ids]
    assert packed.position("c") is None
    assert packed.position("\ud800") is None
    expected = [(place, ids.index(item)) for place, item in enumerate(ids) if ids.index(item) != place]
    assert packed.repeats() == expected


def test_ids_with_equal_hashes_are_distinguished() -> None:
    # These two have the same CRC-32.
    ids = PackedIds.of(["plumless", "buckeroo"])
    assert isinstance(ids, PackedIds)
    assert (ids.position("plumless"), ids.position("buckeroo"), ids.repeats()) == (0, 1, [])


def test_a_corpus_is_a_mapping() -> None:
    corpus = Corpus.of({"b": "B", "a": {"title": "T", "text": "A"}})
    assert corpus == {"b": "B", "a": "T\nA"}
    assert list(corpus.items()) == [("b", "B"), ("a", "T\nA")]
    assert list(corpus.values()) == ["B", "T\nA"]
    assert ("a", "T\nA") in corpus.items()
    assert "B" in corpus.values()
    assert corpus.get("c") is None
    assert 7 not in corpus
    with pytest.raises(KeyError):
        corpus["c"]
    assert Corpus.of(corpus) is corpus
    assert repr(corpus) == "Corpus: 2 documents"
    queries = Queries.of({"q": {"text": "?", "type": "t"}})
    assert Queries.of(queries) is queries
    assert repr(queries) == "Queries: 1 query, columns type"
