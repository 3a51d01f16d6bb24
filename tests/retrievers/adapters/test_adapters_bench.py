"""Adapters in a bench: an error for one query is recorded for that query."""

from __future__ import annotations

import pytest

import steelyard as sy
from steelyard.benchmark import Bench
from steelyard.datasets import Dataset
from steelyard.errors import SteelyardError
from steelyard.retrievers.adapters import Python

QUERIES = {f"q{n}": word for n, word in enumerate(("fox", "none", "twice", "fails", "nan", "unknown", "empty"))}
ANSWERS = {
    "fox": [("d1", 2.0), ("d2", 1.0)],
    "none": None,
    "twice": [("d1", 2.0), ("d1", 2.0), ("d2", 1.0)],
    "nan": [("d1", float("nan"))],
    "empty": [],
    "unknown": [("d1", 3.0), ("not-in-the-corpus", 1.0)],
}


@pytest.fixture
def dataset(corpus):
    return Dataset.of(corpus, QUERIES, {query: ["d1"] for query in QUERIES})


def search(query, k):
    if query == "fails":
        raise ConnectionError("the index went away")
    return ANSWERS[query]


def run_bench(dataset, folder, entry):
    return sy.bench(
        Bench(dataset=dataset, retrievers=[entry], measures=["RR@10"], depth=5, missing="zero"), output=folder
    )


def test_errors_are_recorded_and_the_other_queries_continue(dataset, tmp_path):
    result = run_bench(dataset, tmp_path / "out", Python(search, name="mine"))
    (row,) = result.rows
    assert set(row.errors) == {"q1", "q3", "q4"}
    assert "the result for 'none' is None; expected a list, which is empty if nothing was found" in row.errors["q1"]
    assert "ConnectionError: the index went away" in row.errors["q3"]
    assert "is nan" in row.errors["q4"]
    assert row.unknown_documents == 1
    rows = result.runs["mine"].frame.iter_rows(named=True)
    assert [row["doc_id"] for row in rows if row["query_id"] == "q2"] == ["d1", "d1", "d2"]


def test_results_are_cached_while_the_code_is_unchanged(dataset, tmp_path, module, monkeypatch):
    source = "queries = []\ndef retrieve(query):\n    queries.append(query)\n    return ['d1']\n"
    monkeypatch.chdir(module("steelyard_test_kept", source))
    entry = {"python": "steelyard_test_kept:retrieve"}
    run_bench(dataset, tmp_path / "out", entry)
    import steelyard_test_kept

    once = len(steelyard_test_kept.queries)
    assert once >= len(QUERIES)
    run_bench(dataset, tmp_path / "out", entry)
    assert len(steelyard_test_kept.queries) == once
    module("steelyard_test_kept", source + "# changed\n")
    run_bench(dataset, tmp_path / "out", entry)
    assert len(steelyard_test_kept.queries) == 2 * once


def test_results_are_recomputed_when_an_imported_module_changes(dataset, tmp_path, module, monkeypatch):
    module("steelyard_test_behind", "FIRST = ['d1']\n")
    monkeypatch.chdir(
        module("steelyard_test_before", "from steelyard_test_behind import FIRST\ndef retrieve(query): return FIRST\n")
    )
    entry = {"python": "steelyard_test_before:retrieve"}
    assert not run_bench(dataset, tmp_path / "out", entry).rows[0].cached
    assert run_bench(dataset, tmp_path / "out", entry).rows[0].cached
    module("steelyard_test_behind", "FIRST = ['d2']\n")
    assert not run_bench(dataset, tmp_path / "out", entry).rows[0].cached


def test_a_bench_with_a_missing_target_runs_nothing(dataset, tmp_path):
    with pytest.raises(SteelyardError, match="there is no module 'steelyard_test_nowhere'"):
        run_bench(dataset, tmp_path / "out", {"python": "steelyard_test_nowhere:retrieve"})
