"""Inputs of the command line that are not what a command expects, or come in another way than as a named file."""

from __future__ import annotations

import json

import pytest

import steelyard as sy
from steelyard.cli import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Qrels, two runs and a pool of them, in the current folder."""
    monkeypatch.chdir(tmp_path)
    sy.Qrels({"q1": {"a": 1}, "q2": {"c": 1}}).write("qrels.trec")
    runs = {"bm25-okapi": {"q1": ["a", "b"], "q2": ["c"]}, "dense": {"q1": ["b", "a"], "q2": ["d", "c"]}}
    for name, lists in runs.items():
        sy.Run(lists, name=name).write(f"{name}.run")
    sy.pool(runs).write("pool.jsonl")
    return tmp_path


def failed(arguments: list[str], capsys) -> str:
    """The message of a command that exits with 2."""
    assert run(arguments) == 2
    return capsys.readouterr().err


def test_judge_of_a_file_that_is_no_pool_is_an_error(folder, capsys):
    sy.Run({"q1": ["a"]}).write("dense.parquet")
    assert "not a pool" in failed(["judge", "dense.parquet", "--dataset", "demo"], capsys)


@pytest.mark.parametrize("verb", ["evaluate", "compare"])
def test_judgments_without_a_grade_are_an_error(folder, capsys, verb):
    line = {"query_id": "q1", "doc_id": "a", "grade": None, "judge": "ann"}
    (folder / "none.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert "no document has a grade" in failed([verb, "none.jsonl", "bm25-okapi.run", "dense.run"], capsys)
