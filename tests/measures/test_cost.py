"""Abstain: empty lists for queries without a relevant document."""

from __future__ import annotations

import math

import steelyard as sy


def test_an_empty_list_abstains_and_a_missing_query_does_not():
    truth = {"known": ["a"], "hopeless": [], "lost": []}
    scores = sy.evaluate(truth, {"known": ["a"], "hopeless": []}, ["Abstain"])
    found = dict(zip(scores.queries, scores.matrix[0].tolist(), strict=True))
    assert math.isnan(found.pop("known"))
    assert found == {"hopeless": 1.0, "lost": 0.0}


def test_a_threshold_makes_low_scores_an_abstention():
    truth, run = {"q": [], "r": []}, {"q": {"a": 0.2}, "r": {"a": 0.9}}
    scores = sy.evaluate(truth, run, ["Abstain", "Abstain(threshold=0.5)"])
    assert list(scores.means.values()) == [0.0, 0.5]
