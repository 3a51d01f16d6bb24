"""TREC Deep Learning counts from grade 2: where that changes a verdict, a note says so."""

from __future__ import annotations

import dl2019_simulation as simulation
import pytest

import steelyard as sy
from needs import needs_shared


@needs_shared
def test_the_verdict_with_rel_2_is_noted_exactly_where_it_differs() -> None:
    qrels, runs = simulation.qrels(), simulation.runs()
    noted, differing = [], []
    for number, (one, other) in enumerate(simulation.random_pairs(30, seed=28)):
        compared = {name: runs[name] for name in (one, other)}
        measure = ("P@10", "AP@100", "R@100")[number % 3]
        plain = sy.compare(qrels, compared, [measure], unjudged="remove")
        strict = sy.compare(qrels, compared, [measure], unjudged="remove", rel=2)
        pairs = [result.tested_pairs[0] for result in (plain, strict)]
        winner = [{"better": pair.run, "worse": pair.baseline}.get(pair.verdict, "") for pair in pairs]
        if winner[0] != winner[1]:
            differing.append(number)
        notes = [each for each in plain.notes if each.code == "relevance-level-decides"]
        if notes:
            noted.append(number)
            mean = {row.run: row.means[measure] for row in strict.leaderboard_rows}
            assert notes[0]["difference"] == pytest.approx(
                mean[notes[0]["run"]] - mean[notes[0]["baseline"]], abs=1e-12
            )
        assert not [each for each in strict.notes if each.code == "relevance-level-decides"]
    assert noted == differing
    assert 0 < len(noted) < 30
