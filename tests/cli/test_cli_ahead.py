"""Reading ahead: which files are read, and how they are ordered, before the command line is parsed."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.alignment.hits import Ordering
from steelyard.cli import ahead
from steelyard.native import kernel_options


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, str, tuple[int, bool, bool]]]:
    monkeypatch.chdir(tmp_path)
    for name in ("a.qrels", "b.run", "c.run"):
        (tmp_path / name).touch()
    calls: list[tuple[str, str, tuple[int, bool, bool]]] = []
    monkeypatch.setattr(ahead, "read_ahead", lambda *arguments: calls.append(arguments))
    return calls


@pytest.mark.parametrize(
    ("arguments", "ordering"),
    [
        ("a.qrels b.run c.run", Ordering()),
        ("-m AP a.qrels --set depth=5 b.run", Ordering()),
        ("a.qrels b.run --ties stable", Ordering("stable")),
        ("a.qrels --ties=docid-asc b.run --set duplicates=collapse", Ordering("docid-asc", "collapse")),
        ("--dialect trec_eval-9 a.qrels b.run", Ordering("docid-desc", "error", True)),
    ],
)
def test_first_two_files_are_read_with_the_chosen_ordering(reads, arguments, ordering) -> None:
    ahead.start_reading(arguments.split())
    assert reads == [("a.qrels", "b.run", kernel_options(ordering.ties, ordering.duplicates, ordering.single))]


@pytest.mark.parametrize(
    "arguments", ["", "--help", "a.qrels", "a.qrels none.run", "a.qrels b.run --ties odd", "a.qrels b.run --dialect no"]
)
def test_nothing_is_read_if_the_arguments_are_unclear(reads, arguments) -> None:
    ahead.start_reading(arguments.split())
    assert reads == []
