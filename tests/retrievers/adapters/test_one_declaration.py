"""A new engine is one small file and one line in the registry."""

from __future__ import annotations

import sys

import pytest

import steelyard as sy
from steelyard.cli import run
from steelyard.retrievers import registry
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.registry import retriever

SOURCE = '''
from __future__ import annotations

from typing import Any, Literal

from steelyard.retrievers.adapters.base import Engine
from steelyard.retrievers.settings import setting


class Shortest(Engine):
    """Documents with a word of the query, the shortest first."""

    retriever = "shortest"

    kind: Literal["words", "letters"] = setting("the unit of length", default="words")
    pause: int = setting("letters of a pause", default=3, low=1, kinds=["letters"])
    case: bool = setting("true if upper and lower case differ", default=False)
    table: str | None = setting("the table", default=None, only="target", needed=True)
    id: str = setting("the column of the ids", default="id", only="target", key=None)

    def _build(self, documents: Any, vectors: Any, kept: Any) -> None:
        self._client = [text if self.case else text.lower() for text in documents.texts]

    def _search(self, query: str, vector: Any, k: int) -> list[tuple[int, float]]:
        words = set((query if self.case else query.lower()).split())
        found = [(row, 1 / len(text)) for row, text in enumerate(self._client) if words & set(text.split())]
        return sorted(found, key=lambda pair: -pair[1])[:k]
'''


@pytest.fixture
def shortest(tmp_path, monkeypatch):
    """The new engine: its file, and its line in the registry."""
    (tmp_path / "new_engine.py").write_text(SOURCE)
    monkeypatch.setattr("steelyard.retrievers.__path__", [*sys.modules["steelyard.retrievers"].__path__, str(tmp_path)])
    monkeypatch.setitem(registry._KNOWN, "shortest", ("new_engine", "Shortest", {}))
    yield registry.class_of("shortest")[0]
    sys.modules.pop("steelyard.retrievers.new_engine", None)


def test_the_constructor_and_its_checks(shortest):
    assert shortest(case=True, name="mine").label == "mine"
    assert retriever("shortest", {"kind": "letters", "pause": 2}).pause == 2
    wrong = [
        ({"kinds": "words"}, r"unknown setting 'kinds'; expected one of target, kind.*Did you mean kind\?"),
        ({"kind": "word"}, r"unknown kind 'word'; expected one of words, letters. Did you mean words\?"),
        ({"kind": "letters", "pause": 0}, "`pause` is 0; expected a whole number, 1 or more"),
        ({"pause": 4}, "an index of kind words has no `pause`; that is a parameter of letters"),
        ({"case": "yes"}, "`case` is a str; expected true or false"),
        ({"table": "t"}, "`table` applies to an existing collection, which needs `target`"),
        ({"target": "x"}, "a target needs `table`: the table"),
        ({"target": "x", "table": ["t"]}, "`table` is a list; expected text"),
    ]
    for settings, message in wrong:
        for make in (lambda s: shortest(**s), lambda s: retriever("shortest", s)):
            with pytest.raises(RetrieverError, match=message):
                make(settings)


def test_the_listings(shortest, capsys):
    entry = sy.list_retrievers()["shortest"]
    assert entry.what == "Documents with a word of the query, the shortest first."
    assert entry.settings[:4] == ("target", "kind=words", "pause=3", "case=False")
    assert "pause: of letters; letters of a pause." in entry.about
    assert "kind: the unit of length: `words`, `letters`." in entry.about
    assert run(["list", "retrievers", "shortest"]) == 0
    assert "case: true if upper and lower case differ." in capsys.readouterr().out
    from docs.generate import reference

    assert "`shortest` | Documents with a word of the query" in reference.retrievers()
    assert "| `pause` | 3 | of letters; letters of a pause. |" in reference.retriever_settings()


def test_the_settings_that_results_are_cached_by(shortest):
    assert shortest().settings() == {"retriever": "shortest", "kind": "words", "case": False}
    assert shortest(kind="letters").settings()["pause"] == 3
    assert shortest(name="mine", folder="/tmp").settings() == shortest().settings()
    target = shortest(target="x", table="t", id="key").settings()
    assert target == {**shortest().settings(), "target": "x", "version": None, "table": "t", "id": "key"}


def test_a_bench(shortest, tmp_path):
    corpus = {"d1": "the red fox runs", "d2": "a fox", "d3": "an owl"}
    dataset = sy.Dataset.of(corpus=corpus, queries={"q1": "Fox"}, qrels={"q1": ["d2"]})
    spec = {"dataset": dataset, "retrievers": [{"shortest": {"case": [False, True]}}], "measures": ["RR"]}
    result = sy.bench(spec, output=tmp_path / "out")
    assert [row.settings["case"] for row in result.rows] == [False, True]
    assert result.runs["shortest case=False"].frame["doc_id"].to_list() == ["d2", "d1"]
    with pytest.raises(sy.SteelyardError, match="unknown setting 'cases'"):
        sy.bench({**spec, "retrievers": [{"shortest": {"cases": True}}]}, output=tmp_path / "wrong")
