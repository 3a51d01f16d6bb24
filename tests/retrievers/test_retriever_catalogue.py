"""The list of retrievers: every name of the registry, its settings and its extra."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.cli import run
from steelyard.retrievers import Retriever, RetrieverError
from steelyard.retrievers.registry import retriever, retriever_names, retriever_settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).parents[2]


def test_every_retriever_and_a_finished_run_are_listed():
    assert list(sy.list_retrievers()) == [*retriever_names(), "run"]


@pytest.mark.parametrize("name", retriever_names())
def test_an_entry_has_every_setting_with_its_default(name):
    entry = sy.list_retrievers()[name]
    assert [text.split("=")[0].split()[0] for text in entry.settings] == retriever_settings(name)
    assert entry.what.endswith(".")
    for setting in retriever_settings(name):
        assert setting in entry.about, f"{name}: {setting} is not explained"


def test_defaults_and_settings_implied_by_a_name():
    plus = sy.list_retrievers()["bm25-plus"]
    assert plus.settings[:3] == ("k1=1.5", "b=0.75", "delta")
    assert plus.what.endswith("Here variant=plus.")
    assert "score (needed)" in sy.list_retrievers()["rerank"].settings


PACKAGES = {
    "langchain": "langchain_core",
    "llama-index": "llama_index",
    "haystack": "haystack",
    "qdrant": "qdrant_client",
    "postgres": "psycopg",
    "lancedb": "lancedb",
    "chroma": "chromadb",
    "faiss": "faiss",
    "milvus": "pymilvus",
    "sqlite-vec": "sqlite_vec",
    "tantivy": "tantivy",
    "bm25s": "bm25s",
    "pyterrier": "pyterrier",
}
"""The extras of retrievers, and the package that each installs."""

SETTINGS = {
    "rerank": {"first": "random", "score": "operator:eq"},
    "http": {"target": "http://localhost/{query}"},
    "elasticsearch": {"target": "http://localhost/index"},
    "opensearch": {"target": "http://localhost/index"},
    "qdrant": {"embed": "json:dumps"},
}
"""Settings for the retrievers that cannot be created without any; the others get a target if they take one."""


INDEXING = {"tantivy", "sqlite-fts", "sqlite-vec", "postgres-fts", "pgvector", "lancedb", "chroma", "faiss", "milvus"}
"""The retrievers that index the corpus if they have no target."""


def test_every_extra_is_one_of_the_project():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert {entry.extra for entry in sy.list_retrievers().values()} - {""} == set(PACKAGES)
    assert set(PACKAGES) <= set(extras)
    assert extras["dense"] == ["steelyard[wordllama,minilm]"]
    assert {"wordllama", "minilm", "report", "spark"} <= set(extras)


class NotInstalled:
    """A finder for which the optional packages do not exist."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in PACKAGES.values():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.split(".")[0])
        return None


@pytest.mark.parametrize("name", retriever_names())
def test_a_retriever_has_an_extra_if_and_only_if_it_needs_an_optional_package(name, monkeypatch):
    for loaded in [loaded for loaded in sys.modules if loaded.split(".")[0] in PACKAGES.values()]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setattr(sys, "meta_path", [NotInstalled(), *sys.meta_path])
    needs_target = "target" in retriever_settings(name) and name not in INDEXING
    settings = SETTINGS.get(name, {"target": "json:dumps"} if needs_target else {})
    extra = sy.list_retrievers()[name].extra
    if extra:
        with pytest.raises(RetrieverError, match=rf"pip install 'steelyard\[{extra}\]'"):
            retriever(name, settings)
    else:
        assert isinstance(retriever(name, settings), Retriever)


def test_on_the_command_line(capsys):
    assert run(["list", "retrievers"]) == 0
    assert "langchain" in capsys.readouterr().out
    assert run(["list", "retrievers", "qdrant"]) == 0
    assert "Needs: pip install 'steelyard[qdrant]'" in capsys.readouterr().out
    assert run(["list", "retrievers", "--format", "json"]) == 0
    rows = {row["retriever"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["random"]["settings"] == "seed=0, name"
    assert run(["list", "retrievers", "bm26"]) == 2
    assert "Did you mean bm25" in capsys.readouterr().err
