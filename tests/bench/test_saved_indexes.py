"""A bench saves the indexes of large corpora, and opens them where corpus and settings are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import steelyard as sy
from steelyard.benchmark import cache as saved_indexes
from steelyard.retrievers.bm25 import BM25

QUERIES = {"q1": "red fox", "q2": "grey wolf"}
QRELS = {"q1": ["d1"], "q2": ["d2"]}


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the retrievers that were indexed; a corpus of ten documents is large."""
    found: list[str] = []
    index = BM25.index

    def counted(self: BM25, corpus: Any) -> BM25:
        found.append(self.label)
        return index(self, corpus)

    monkeypatch.setattr(BM25, "index", counted)
    monkeypatch.setattr(saved_indexes, "SAVED_FROM", 10)
    return found


def run(folder: Path, documents: int = 12, depth: int = 5, retrievers: Any = None, fresh: bool = False) -> Any:
    corpus = {f"d{n}": f"{'red fox' if n % 2 else 'grey wolf'} {n}" for n in range(documents)}
    dataset = sy.Dataset.of(corpus, QUERIES, QRELS)
    dataset.write(folder / "data")
    config = {
        "dataset": str(folder / "data"),
        "depth": depth,
        "retrievers": retrievers or ["bm25-okapi", {"bm25-lucene": {"k1": 1.2}}],
        "measures": ["nDCG@5"],
    }
    return sy.bench(config, folder / "result", fresh=fresh)


def saved(folder: Path) -> set[str]:
    return {path.name for path in (folder / "result" / "cache").glob("*.bm25*")}


def test_an_index_is_used_again(tmp_path: Path, indexed: list[str]) -> None:
    first = run(tmp_path)
    assert indexed == ["bm25-okapi", "bm25-lucene"]
    assert len(saved(tmp_path)) == 4
    second = run(tmp_path, depth=4)
    assert indexed == ["bm25-okapi", "bm25-lucene"]
    for name in ("bm25-okapi", "bm25-lucene"):
        short = {query: found[:4] for query, found in lists(first.runs[name]).items()}
        assert lists(second.runs[name]) == short
    assert [row.index_seconds for row in second.rows] == [row.index_seconds for row in first.rows]
    assert all(row.index_seconds and row.index_bytes for row in second.rows)


def lists(run: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for query, doc, score in run.frame.select("query_id", "doc_id", "score").rows():
        found.setdefault(query, []).append((doc, score))
    return found


def test_another_corpus_or_setting_has_its_own_index(tmp_path: Path, indexed: list[str]) -> None:
    run(tmp_path, retrievers=["bm25-okapi"])
    kept = saved(tmp_path)
    run(tmp_path, retrievers=[{"bm25-okapi": {"b": 0.3}}])
    assert len(indexed) == 2
    run(tmp_path, documents=13, retrievers=[{"bm25-okapi": {"b": 0.3}}])
    assert len(indexed) == 3
    assert len(saved(tmp_path)) == 2
    assert not saved(tmp_path) & kept


def test_a_damaged_index_is_made_again(tmp_path: Path, indexed: list[str]) -> None:
    first = run(tmp_path, retrievers=["bm25-okapi"])
    file = next((tmp_path / "result" / "cache").glob("*.bm25"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-50])
    second = run(tmp_path, depth=4, retrievers=["bm25-okapi"])
    assert len(indexed) == 2
    assert file.read_bytes() == whole
    assert lists(second.runs["bm25-okapi"])["q1"] == lists(first.runs["bm25-okapi"])["q1"][:4]


def test_a_fresh_bench_indexes_again(tmp_path: Path, indexed: list[str]) -> None:
    run(tmp_path, retrievers=["bm25-okapi"])
    run(tmp_path, retrievers=["bm25-okapi"], fresh=True)
    assert len(indexed) == 2


def test_the_index_of_a_small_corpus_is_not_saved(tmp_path: Path, indexed: list[str]) -> None:
    run(tmp_path, documents=9)
    assert not saved(tmp_path)
