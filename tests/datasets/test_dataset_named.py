"""Datasets as bench.yaml and the command line name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.datasets import Dataset
from steelyard.errors import InputError
from steelyard.io.datasets import dataset_named
from steelyard.qrels import Qrels


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a dataset in data/, qrels in it and beside it."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "corpus.jsonl").write_text('{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n')
    (data / "queries.jsonl").write_text('{"_id": "q1", "text": "which?"}\n')
    (data / "inside.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    (tmp_path / "inside.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tb\t1\n")
    (tmp_path / "outside.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tb\t1\n")
    monkeypatch.chdir(tmp_path.parent)
    return Path(tmp_path.name)


def judged(dataset: Dataset) -> list[str]:
    return list(dataset.qrels.judged.doc_ids)


@pytest.mark.parametrize(
    ("qrels", "docs"), [("inside.tsv", ["a"]), ("outside.tsv", ["b"])], ids=["in the dataset", "beside"]
)
def test_named_qrels_are_searched_in_the_dataset_first(folder: Path, qrels: str, docs: list[str]) -> None:
    assert judged(dataset_named({"path": "data", "qrels": qrels}, folder)) == docs
    assert judged(dataset_named(f"{{path: data, qrels: {qrels}}}", folder)) == docs


@pytest.mark.parametrize(("place", "docs"), [("data/table.csv", ["a"]), ("table.csv", ["b"])])
def test_columns_of_qrels_can_be_named(folder: Path, place: str, docs: list[str]) -> None:
    (folder / "table.csv").write_text("question,passage,label\nq1,b,1\n")
    (folder / place).write_text(f"question,passage,label\nq1,{docs[0]},1\n")
    qrels = {"path": "table.csv", "query_id": "question", "doc_id": "passage", "grade": "label"}
    assert judged(dataset_named({"path": "data", "qrels": qrels}, folder)) == docs
    parts = {"queries": "data/queries.jsonl", "qrels": {**qrels, "path": place}}
    assert judged(dataset_named(parts, folder)) == docs
    with pytest.raises(InputError, match=r"no role 'grad'.*Did you mean grade"):
        dataset_named({"path": "data", "qrels": {"path": "table.csv", "grad": "label"}}, folder)


@pytest.mark.parametrize("source", ["data", "demo"])
def test_qrels_in_memory_replace_those_of_the_dataset(folder: Path, source: str) -> None:
    for qrels in ({"q1": ["b"]}, Qrels({"q1": ["b"]})):
        assert judged(dataset_named({"path": source, "qrels": qrels}, folder)) == ["b"]


def test_a_folder_called_demo_is_not_the_demo(folder: Path) -> None:
    (folder / "demo").mkdir()
    assert dataset_named("demo", folder).name == "demo"
    assert len(dataset_named("demo", folder).queries) == 115


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("{path: data, qrels: absent.tsv}", "there is no absent.tsv; the folder holds corpus.jsonl, inside.tsv"),
        ("{qrels: inside.tsv}", "expected demo, ir_datasets:ID, a path, a path with options, .* or the parts of one"),
        ("{path: data", "is not YAML"),
        ("{path: data, qrel: inside.tsv}", "no option 'qrel'.*Did you mean qrels"),
        (7, "the dataset is 7; expected demo"),
        ("absent", "there is no such folder or file"),
    ],
)
def test_wrong_names_are_reported(folder: Path, named: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        dataset_named(named, folder)
