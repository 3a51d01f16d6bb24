"""The bench of `steelyard demo`, which has complete qrels."""

from __future__ import annotations

from importlib.resources import as_file, files

import pytest

import steelyard as sy


@pytest.mark.slow
def test_unjudged_documents_change_no_verdict_of_the_demo(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.benchmark.result.write_page", lambda *arguments, **keywords: None)
    with as_file(files("steelyard.demo") / "bench.yaml") as config:
        comparison = sy.bench(config, tmp_path).comparison
    assert len(comparison.tested_pairs) > 20
    for pair in comparison.tested_pairs:
        claimed = pair.verdict not in ("not significant", "equal", "not tested")
        assert claimed == (pair.p_adjusted < comparison.plan.alpha), pair
    assert "undecided" not in {pair.verdict for pair in comparison.tested_pairs}
    assert comparison.judged == {}, "the qrels have relevant documents and distractors only"
    assert not comparison.unmeasured
