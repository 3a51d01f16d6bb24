"""Settings that are lists: one row per combination, with a short label that every file has."""

from __future__ import annotations

import sys

import pytest

import steelyard as sy
from steelyard.benchmark.config import check_bench
from steelyard.cli import run as command
from steelyard.errors import InputError

MODULE = """
class CharGram:
    def __init__(self, n, at="x"):
        self.n = n

    def index(self, corpus):
        n = self.n
        self.grams = {doc: {text[i : i + n] for i in range(len(text) - n + 1)} for doc, text in corpus.items()}

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
        (
            {"arguments": [{"n": 3, "at": "y"}, {"n": 4, "at": "y"}], "name": "chargram"},
            ["chargram n=3", "chargram n=4"],
        ),
        ({"arguments": [{"n": 3}], "name": "chargram"}, ["chargram"]),
        (
            {"arguments": {"n": 3}, "concurrency": [1, 2], "name": "grams"},
            ["grams concurrency=1", "grams concurrency=2"],
        ),
    ],
)
def test_labels_of_a_sweep(folder, settings, names):
    assert labels({"python": {"target": TARGET, **settings}}) == names


def test_empty_list_is_an_error(folder):
    with pytest.raises(InputError, match="bm25-okapi: `k1` is an empty list"):
        labels({"bm25-okapi": {"k1": []}})


def test_hybrid_of_a_swept_retriever(folder):
    swept = {"bm25-okapi": {"k1": [0.9, 1.2]}}
    with pytest.raises(InputError, match="may be any of 'bm25-okapi k1=0.9', 'bm25-okapi k1=1.2'"):
        labels(swept, {"hybrid": {"of": ["bm25-okapi", "dense"]}})
    made = check_bench(
        {
            "dataset": "demo",
            "retrievers": [swept, {"hybrid": {"of": ["bm25-okapi k1=0.9", "dense"]}}],
            "measures": ["RR"],
        }
    )
    assert made[1][2].settings["of"][0]["k1"] == 0.9


def test_labels_are_in_the_run_files(folder, dataset, capsys):
    retrievers = [{"python": {"target": TARGET, "arguments": [{"n": 2}, {"n": 3}], "name": "a/b"}}]
    result = sy.bench({"dataset": dataset, "retrievers": retrievers, "measures": ["RR"]}, output="out")
    assert list(result.runs) == ["a/b n=2", "a/b n=3"]
    files = sorted((folder / "out" / "runs").iterdir())
    assert [sy.Run.read(file).name for file in files] == ["a/b n=2", "a/b n=3"]
    assert command(["compare", "out/qrels.parquet", *map(str, files), "-m", "RR"]) == 0
    assert "a/b n=2" in capsys.readouterr().out


def test_run_without_a_name_has_the_name_of_its_file(tmp_path):
    sy.Run({"q": ["d"]}).write(tmp_path / "mine.parquet")
    assert sy.Run.read(tmp_path / "mine.parquet").name == "mine"


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"tokens": [2, 3]}, ["fixed-2", "fixed-3"]),
        ({"tokens": [2, 3], "name": "cut"}, ["cut tokens=2", "cut tokens=3"]),
    ],
)
def test_sweep_of_chunkers(dataset, tmp_path, settings, names):
    given = {"dataset": dataset, "retrievers": ["bm25-okapi"], "measures": ["RR"], "depth": 5}
    result = sy.bench({**given, "chunkers": [{"fixed": settings}]}, output=tmp_path)
    assert list(result.runs) == [f"bm25-okapi on {name}" for name in names]


def test_repeated_value_in_a_sweep_of_chunkers_is_an_error():
    with pytest.raises(InputError, match="two chunkers are called 'fixed-2 tokens=2'"):
        labels("bm25-okapi", chunkers=[{"fixed": {"tokens": [2, 2]}}])


def parts(entries, of):
    """The settings of the parts of a hybrid in a bench."""
    config = {"dataset": "demo", "retrievers": [*entries, {"hybrid": {"of": of}}], "measures": ["nDCG@10"]}
    return check_bench(config)[1][-1].settings["of"]


def test_a_reference_is_a_label_or_the_only_row_of_a_retriever():
    two = [{"bm25-okapi": {"k1": 0.5, "name": "low"}}, {"bm25-okapi": {"k1": 2.0, "name": "high"}}]
    assert [part["k1"] for part in parts(two, ["high", "low"])] == [2.0, 0.5]
    # A row without settings has the name of its retriever as its label.
    assert [part["k1"] for part in parts([*two, "bm25-okapi"], ["bm25-okapi", "high"])] == [1.5, 2.0]
    assert parts(two[:1], ["bm25-okapi", "random"])[0]["k1"] == 0.5
    with pytest.raises(InputError, match="'bm25-okapi' may be any of 'low', 'high'; name one of them"):
        parts(two, ["bm25-okapi", "random"])
    with pytest.raises(
        InputError, match=r"'hihg' is neither a retriever of this bench \(low, high, .*Did you mean high\?"
    ):
        parts(two, ["hihg", "random"])
