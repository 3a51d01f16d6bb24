"""Real collections for the tests of retrievers, read from the shared data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import steelyard as sy
from needs import NO_KERNEL, shared_data
from steelyard.native import kernel


@dataclass(frozen=True)
class Collection:
    """Documents, the queries of the qrels, and the qrels."""

    corpus: dict[str, str]
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def collection() -> Callable[[str], Collection]:
    """Reads the bundled dataset `demo`, or a collection of ../shared by its name."""

    def read(name: str) -> Collection:
        if name == "demo":
            demo = sy.Dataset.read(name)
            judgments: dict[str, dict[str, int]] = {}
            for query, doc, grade in demo.qrels.frame.select("query_id", "doc_id", "grade").rows():
                judgments.setdefault(query, {})[doc] = int(grade)
            return Collection(dict(demo.corpus), dict(demo.queries), judgments)
        folder = shared_data(name)
        corpus = {row["_id"]: f"{row.get('title', '')} {row['text']}".strip() for row in _rows(folder / "corpus.jsonl")}
        texts = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
        qrels: dict[str, dict[str, int]] = {}
        qrels_file = next(path for path in (folder / "qrels.tsv", folder / "qrels_test.tsv") if path.exists())
        for line in qrels_file.read_text(encoding="utf-8").splitlines():
            query, *_, doc, grade = line.split("\t")
            if grade.lstrip("-").isdigit():
                qrels.setdefault(query, {})[doc] = int(grade)
        return Collection(corpus, {query: texts[query] for query in qrels}, qrels)

    return read


@pytest.fixture(params=["native", "portable"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test with the native kernel and with numpy."""
    if request.param == "portable":
        monkeypatch.setenv("STEELYARD_NATIVE", "0")
    elif kernel() is None:
        pytest.skip(NO_KERNEL)
    return str(request.param)
