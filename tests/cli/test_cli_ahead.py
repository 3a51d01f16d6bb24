"""What a command line is guessed to mean before it is parsed."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.alignment.hits import Ordering
from steelyard.cli import ahead
from steelyard.native import options


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, str, tuple[int, bool, bool]]]:
    monkeypatch.chdir(tmp_path)
    for name in ("a.qrels", "b.run", "c.run"):
        (tmp_path / name).touch()
    calls: list[tuple[str, str, tuple[int, bool, bool]]] = []
    monkeypatch.setattr(ahead, "read_ahead", lambda *given: calls.append(given))
    return calls


@pytest.mark.parametrize(
    ("arguments", "ordering"),
    [
        ("a.qrels b.run c.run", Ordering()),
        ("-m AP a.qrels --depth 5 b.run", Ordering()),
        ("a.qrels b.run --ties stable", Ordering("stable")),
        ("a.qrels --ties=docid-asc b.run --duplicates collapse", Ordering("docid-asc", "collapse")),
        ("--dialect trec_eval-9 a.qrels b.run", Ordering("docid-desc", "error", True)),
    ],
)
def test_the_first_two_files_are_read_in_the_ordering_asked_for(begun, arguments, ordering) -> None:
    ahead.begin(arguments.split())
    assert begun == [("a.qrels", "b.run", options(ordering))]


@pytest.mark.parametrize(
    "arguments",
    ["", "--help", "a.qrels", "a.qrels none.run", "a.qrels b.run --ties odd", "a.qrels b.run --dialect no"],
)
def test_what_cannot_be_understood_is_left_to_the_parser(begun, arguments) -> None:
    ahead.begin(arguments.split())
    assert begun == []
