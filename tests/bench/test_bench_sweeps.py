"""Settings given as lists: one row for each, with a short name that every file keeps."""

from __future__ import annotations

import sys

import pytest

import steelyard as sy
from steelyard.bench.config import check_bench
from steelyard.cli import run as command
from steelyard.errors import InputError

MODULE = """
class CharGram:
    def __init__(self, n, at="x"):
        self.n = n

    def index(self, corpus):
        self.grams = {doc: {text[i : i + self.n] for i in range(len(text) - self.n + 1)} for doc, text in corpus.items()}

    def retrieve(self, queries, k):
        asked = [{q[i : i + self.n] for i in range(len(q) - self.n + 1)} for q in queries]
        return [sorted(self.grams, key=lambda doc: -len(self.grams[doc] & grams))[:k] for grams in asked]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "sweep_engine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("sweep_engine", None)


@pytest.fixture
def dataset():
    corpus = {"a": "red foxes run", "b": "grey wolves sleep", "c": "owls hunt at night"}
    return sy.Dataset.of(corpus, {"q1": "fox", "q2": "wolf"}, {"q1": ["a"], "q2": ["b"]})


def labels(*retrievers, **more):
    given = {"dataset": "demo", "retrievers": list(retrievers), "measures": ["RR"], **more}
    return [spec.label for spec in check_bench(given)[1]]


TARGET = "sweep_engine:CharGram"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"arguments": [{"n": 3}, {"n": 4}]}, [f"{TARGET} n=3", f"{TARGET} n=4"]),
        ({"arguments": [{"n": 3, "at": "y"}, {"n": 4, "at": "y"}], "name": "chargram"}, ["chargram n=3", "chargram n=4"]),
        ({"arguments": [{"n": 3}], "name": "chargram"}, ["chargram"]),
        ({"arguments": {"n": 3}, "concurrency": [1, 2], "name": "grams"}, ["grams concurrency=1", "grams concurrency=2"]),
    ],
)  # fmt: skip
def test_a_swept_retriever_is_called_by_its_name_and_what_differs(folder, settings, names):
    assert labels({"python": {"target": TARGET, **settings}}) == names


def test_an_empty_list_is_no_sweep(folder):
    with pytest.raises(InputError, match="bm25-okapi: `k1` is an empty list"):
        labels({"bm25-okapi": {"k1": []}})


def test_a_hybrid_names_one_of_the_swept(folder):
    swept = {"bm25-okapi": {"k1": [0.9, 1.2]}}
    with pytest.raises(InputError, match="stands for 'bm25-okapi k1=0.9', 'bm25-okapi k1=1.2' here"):
        labels(swept, {"hybrid": {"of": ["bm25-okapi", "dense"]}})
    made = check_bench(
        {
            "dataset": "demo",
            "retrievers": [swept, {"hybrid": {"of": ["bm25-okapi k1=0.9", "dense"]}}],
            "measures": ["RR"],
        }
    )
    assert made[1][2].settings["of"][0]["k1"] == 0.9


def test_the_label_is_in_the_run_files(folder, dataset, capsys):
    retrievers = [{"python": {"target": TARGET, "arguments": [{"n": 2}, {"n": 3}], "name": "a/b"}}]
    result = sy.bench({"dataset": dataset, "retrievers": retrievers, "measures": ["RR"]}, output="out")
    assert list(result.runs) == ["a/b n=2", "a/b n=3"]
    files = sorted((folder / "out" / "runs").iterdir())
    assert [sy.Run.read(file).name for file in files] == ["a/b n=2", "a/b n=3"]
    assert command(["compare", "out/qrels.parquet", *map(str, files), "-m", "RR"]) == 0
    assert "a/b n=2" in capsys.readouterr().out


def test_a_run_without_a_name_is_called_after_its_file(tmp_path):
    sy.Run({"q": ["d"]}).write(tmp_path / "mine.parquet")
    assert sy.Run.read(tmp_path / "mine.parquet").name == "mine"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"tokens": [2, 3]}, ["fixed-2", "fixed-3"]),
        ({"tokens": [2, 3], "name": "cut"}, ["cut tokens=2", "cut tokens=3"]),
    ],
)
def test_chunkers_are_swept_alike(dataset, tmp_path, settings, names):
    given = {"dataset": dataset, "retrievers": ["bm25-okapi"], "measures": ["RR"], "depth": 5}
    result = sy.bench({**given, "chunkers": [{"fixed": settings}]}, output=tmp_path)
    assert list(result.runs) == [f"bm25-okapi on {name}" for name in names]


def test_a_chunker_swept_over_one_value_twice_is_two_of_one_name():
    with pytest.raises(InputError, match="two chunkers are called 'fixed-2 tokens=2'"):
        labels("bm25-okapi", chunkers=[{"fixed": {"tokens": [2, 2]}}])
