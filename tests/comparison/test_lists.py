"""Runs compared without qrels: overlap, rank-biased overlap and rank correlation of their lists."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

import steelyard as sy
from steelyard.comparison.lists import compare_lists


def test_values_by_hand():
    runs = {"a": {"q1": ["x", "y", "z"], "q2": ["u", "v", "w"]}, "b": {"q1": ["y", "x", "t"], "q2": ["u", "v", "w"]}}
    (pair,) = compare_lists(runs, depth=3).tested
    assert pair.overlap == pytest.approx((2 / 3 + 1) / 2)
    assert pair.tau == pytest.approx((-1 + 1) / 2)
    assert pair.same_first == 0.5


def test_tau_equals_scipys():
    generator = random.Random(3)
    for _ in range(200):
        documents = [f"d{n}" for n in range(12)]
        a, b = generator.sample(documents, 8), generator.sample(documents, 8)
        (pair,) = compare_lists({"a": {"q": a}, "b": {"q": b}}, depth=8).tested
        shared = [doc for doc in a if doc in b]
        if len(shared) < 2:
            assert math.isnan(pair.tau)
        else:
            expected = stats.kendalltau([a.index(doc) for doc in shared], [b.index(doc) for doc in shared])
            assert pair.tau == pytest.approx(expected.statistic)


def test_identical_runs_agree_wholly():
    run = {"q1": ["a", "b"], "q2": []}
    (pair,) = compare_lists({"a": run, "b": run}).tested
    assert (pair.overlap, pair.rbo, pair.same_first) == (1.0, pytest.approx(1.0), 1.0)


def test_every_form_states_that_there_are_no_qrels():
    found = compare_lists([sy.Run({"q": ["a"]}, name="one"), sy.Run({"q": ["b"]}, name="two")])
    assert "No qrels" in found.to_text()
    assert "No qrels" in found.to_markdown()
    assert found.to_dict()["qrels"] is None
    assert found.pairs.columns == ["run", "other", "queries", "overlap", "rbo", "tau", "same_first"]


def test_runs_of_different_queries_are_refused():
    with pytest.raises(sy.InputError, match="no query in common"):
        compare_lists({"a": {"q1": ["x"]}, "b": {"q2": ["x"]}})
