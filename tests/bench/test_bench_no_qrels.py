"""A bench whose dataset has no qrels: lists, times and agreement, and what to do next."""

from __future__ import annotations

import json

import pytest

import steelyard as sy
from steelyard.benchmark.folder import load_result
from steelyard.cli import run as command
from steelyard.errors import InputError

CONFIG = """\
dataset: data
retrievers: [bm25-okapi, bm25-plus, {random: {seed: 1}}]
measures: [nDCG@10]
baseline: random
depth: 10
warmup: 0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    words = ["balance", "boat", "river", "gold", "lake", "stone", "lead", "water"]
    for name, rows in (
        ("corpus", {f"d{n}": f"a {word} and a {words[n - 1]}" for n, word in enumerate(words)}),
        ("queries", {f"q{n}": word for n, word in enumerate(words[:4])}),
    ):
        lines = (json.dumps({"_id": key, "text": text}) + "\n" for key, text in rows.items())
        (data / f"{name}.jsonl").write_text("".join(lines))
    (tmp_path / "bench.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_lists_are_compared_and_the_folder_can_be_read(folder):
    result = sy.bench("bench.yaml")
    assert result.evaluated is None
    assert [row.run for row in result.lists.runs] == ["bm25-okapi", "bm25-plus", "random"]
    assert {row.queries for row in result.lists.runs} == {4}
    assert result.lists.pairs["overlap"].to_list() == sy.compare(None, result.runs).pairs["overlap"].to_list()
    assert all(row.p50_seconds is not None for row in result.rows)
    (note,) = result.notes
    assert note.code == "no-qrels"
    assert "steelyard judge bench-result" in str(note)
    assert "overlap@10" in repr(result)
    names = {path.name for path in result.folder.iterdir()}
    assert names == {"cache", "documents.parquet", "leaderboard.md", "queries.parquet", "result.json", "runs"}
    assert "## Cost" in (result.folder / "leaderboard.md").read_text()
    record = json.loads((result.folder / "result.json").read_text())
    assert record["comparison"] is None
    assert record["lists"] == result.lists.to_dict()
    again = load_result(result.folder)
    assert again.evaluated is None
    assert again.lists.to_dict() == result.lists.to_dict()
    assert set(again.documents) == set(sy.Dataset.read("data", judged=False).corpus)


def test_one_retriever_has_no_lists_to_agree_with(folder):
    (folder / "bench.yaml").write_text(CONFIG.replace("[bm25-okapi, bm25-plus, {random: {seed: 1}}]", "[random]"))
    result = sy.bench("bench.yaml")
    assert result.lists.verdict == "No qrels: the run cannot be evaluated."
    assert "agree" not in repr(result) + (result.folder / "leaderboard.md").read_text()


def test_what_needs_qrels_is_an_error_that_names_the_next_step(folder):
    result = sy.bench("bench.yaml")
    expected = "has no qrels.*steelyard judge bench-result"
    for action in (
        lambda: result.comparison,
        lambda: load_result("bench-result").comparison,
        lambda: result.to_html("report.html"),
        lambda: sy.gate("bench-result", "nDCG@10 >= 0.1"),
    ):
        with pytest.raises(InputError, match=expected):
            action()


def test_command_line(folder, capsys):
    assert command(["bench", "bench.yaml"]) == 0
    printed = capsys.readouterr()
    assert "overlap@10" in printed.out
    assert "p95 ms" in printed.out
    assert "The dataset has no qrels, so the retrievers were run and not evaluated" in printed.err
    assert "report.html" not in printed.err
    assert command(["bench", "bench.yaml", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["qrels"] is None
    assert command(["report", "bench-result"]) == 2
    assert "has no qrels" in capsys.readouterr().err


def test_qrels_that_are_added_later_use_the_cached_answers(folder):
    sy.bench("bench.yaml")
    (folder / "data" / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td0\t1\nq1\td1\t1\n")
    result = sy.bench("bench.yaml")
    assert all(row.cached for row in result.rows)
    assert set(result.comparison.score_tables[0].queries) == {"q0", "q1"}
    assert (result.folder / "report.html").exists()
    (folder / "data" / "qrels.tsv").unlink()
    assert sy.bench("bench.yaml").evaluated is None
    assert not (result.folder / "report.html").exists()
    assert not (result.folder / "scores.parquet").exists()


def test_retriever_that_fails_on_every_query(folder):
    def fail(query, k):
        raise ValueError("no index")

    broken = {"python": fail, "name": "broken"}
    result = sy.bench({"dataset": "data", "retrievers": [broken, "bm25-okapi"], "measures": ["RR"]}, output="out")
    assert result.broken == ["broken"]
    assert [row.run for row in result.lists.runs] == ["bm25-okapi"]
    alone = sy.bench({"dataset": "data", "retrievers": [broken], "measures": ["RR"]}, output="alone")
    assert alone.lists.runs == ()


def test_nothing_is_to_be_judged_if_every_retriever_failed(folder, capsys):
    (folder / "failing.py").write_text("def search(query, k):\n    raise ValueError('no index.')\n")
    (folder / "bench.yaml").write_text("dataset: data\nretrievers: [python: 'failing:search']\nmeasures: [RR]\n")
    assert command(["bench", "bench.yaml"]) == 2
    printed = capsys.readouterr().err
    assert "The result is in bench-result.\n" in printed
    assert "no index)." in printed


def test_dataset_in_memory_and_finished_runs(folder):
    dataset = sy.Dataset.of({"a": "red fox", "b": "grey wolf"}, {"q": "fox"}, {}, name="tiny")
    sy.Run({"other": ["a"]}, name="old").write("old.json")
    result = sy.bench(
        {"dataset": dataset, "retrievers": ["bm25-okapi", {"run": "old.json"}], "measures": ["RR"]}, output="out"
    )
    (pair,) = result.lists.tested
    assert pair.queries == 0
    assert pair.overlap != pair.overlap
