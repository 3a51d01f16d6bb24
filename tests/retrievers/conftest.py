"""Real collections for the tests of retrievers, read from the shared data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from steelyard.native import kernel

DATA = Path(__file__).parents[3] / "shared" / "data"


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
    """Reads a collection of the shared data by name; skips if it does not exist."""

    def read(name: str) -> Collection:
        folder = DATA / name
        if not folder.is_dir():
            pytest.skip(f"the shared test data has no {name} here")
        corpus = {
            row["_id"]: f"{row.get('title', '')} {row['text']}".strip()
            for row in _rows(folder / "corpus.jsonl")
        }
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
        pytest.skip("the native kernel is not built, or STEELYARD_NATIVE is 0")
    return str(request.param)
