"""A column of the leaderboard is one declaration, and every format shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.comparison import columns
from steelyard.comparison.columns import BoardColumn

QRELS = {f"q{number}": {"a": 1, "b": 0} for number in range(6)}
RUNS = {"first": {query: ["a", "b"] for query in QRELS}, "second": {query: ["b", "a"] for query in QRELS}}


def test_a_column_that_is_declared_once_is_in_every_format(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import_peer("altair")
    answered = BoardColumn("answered", lambda comparison, row: comparison.coverage[row.run].answered)
    monkeypatch.setattr(columns, "COLUMNS", [*columns.COLUMNS, answered])
    result = sy.compare(QRELS, RUNS, ["RR"])

    assert result.leaderboard["answered"].to_list() == [6, 6]
    assert [row["answered"] for row in json.loads(result.to_json())["leaderboard"]] == [6, 6]
    for text in (result.to_text(), result.summary(), result.to_markdown(), result.to_latex(), result.to_csv()):
        heading = next(line for line in text.splitlines() if "answered" in line)
        body = text[text.index(heading) :].splitlines()
        assert sum("6" in line for line in body if "first" in line or "second" in line) >= 2
    assert '<th class="number">answered</th>' in result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert '<button type="button">answered</button>' in page
    assert page.count('<td class="number" data-value="6">6</td>') == 2


def test_a_column_is_shown_only_where_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = BoardColumn("hidden", lambda comparison, row: 1, when=lambda comparison: len(comparison.runs) > 2)
    only = BoardColumn("only", lambda comparison, row: 1, forms=("json",))
    monkeypatch.setattr(columns, "COLUMNS", [*columns.COLUMNS, hidden, only])
    result = sy.compare(QRELS, RUNS, ["RR"])

    assert "hidden" not in result.to_text() + result.to_json() + result.to_markdown()
    assert "only" not in result.leaderboard.columns
    assert result.to_dict()["leaderboard"][0]["only"] == 1
