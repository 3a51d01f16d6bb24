"""The listing of retrievers: every name of the registry, its settings and its extra."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.cli import run
from steelyard.retrievers.registry import class_of, retriever_names, retriever_settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).parents[2]


def test_every_name_of_the_registry_is_listed_and_a_finished_run():
    assert list(sy.retrievers()) == [*retriever_names(), "run"]


@pytest.mark.parametrize("name", retriever_names())
def test_an_entry_has_every_setting_with_its_default(name):
    entry = sy.retrievers()[name]
    assert [text.split("=")[0].split()[0] for text in entry.settings] == retriever_settings(name)
    assert entry.what.endswith(".")
    for setting in retriever_settings(name):
        assert setting in entry.about, f"{name}: {setting} is not explained"


def test_defaults_and_what_a_name_fixes():
    plus = sy.retrievers()["bm25-plus"]
    assert plus.settings[:3] == ("k1=1.5", "b=0.75", "delta")
    assert plus.what.endswith("Here variant=plus.")
    assert "score (needed)" in sy.retrievers()["rerank"].settings


def test_every_extra_is_one_of_the_project():
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    needed = {entry.extra for entry in sy.retrievers().values()} - {""}
    assert {"langchain", "llama-index", "haystack", "qdrant", "tantivy", "bm25s", "pyterrier"} == needed
    assert needed <= set(extras)
    assert extras["dense"] == ["steelyard[wordllama,minilm]"]
    assert {"wordllama", "minilm", "report", "spark"} <= set(extras)
    for name in retriever_names():
        source = inspect.getsource(sys.modules[class_of(name)[0].__module__])
        loads = "package(" in source or "library_object(" in source
        assert bool(sy.retrievers()[name].extra) == loads


def test_on_the_command_line(capsys):
    assert run(["retrievers"]) == 0
    assert "langchain" in capsys.readouterr().out
    assert run(["retrievers", "qdrant"]) == 0
    assert "Needs: pip install 'steelyard[qdrant]'" in capsys.readouterr().out
    assert run(["retrievers", "--format", "json"]) == 0
    rows = {row["retriever"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["random"]["settings"] == "seed=0, name"
    assert run(["retrievers", "bm26"]) == 2
    assert "Did you mean bm25" in capsys.readouterr().err
