"""The bench of `steelyard demo`, which has complete qrels."""

from __future__ import annotations

from importlib.resources import as_file, files

import pytest

import steelyard as sy
from steelyard.comparison.leaderboard import order_of
from steelyard.comparison.pairs import pairs_of


@pytest.mark.slow
def test_unjudged_documents_change_no_verdict_of_the_demo(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.bench.result.write_page", lambda *arguments, **keywords: None)
    with as_file(files("steelyard.demo") / "bench.yaml") as config:
        comparison = sy.bench(config, tmp_path).comparison
    tables = comparison.score_tables
    plain = pairs_of(tables, comparison.plan, [order_of(table) for table in tables])
    assert len(plain) > 20
    assert [pair.verdict for pair in comparison.tested_pairs] == [pair.verdict for pair in plain]
    assert "undecided" not in {pair.verdict for pair in comparison.tested_pairs}
    assert comparison.judged == {}, "the qrels have relevant documents and distractors only"
    assert not comparison.unmeasured
