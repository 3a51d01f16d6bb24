"""Bounds of a difference of two runs: against all gradings of the documents in either list."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from steelyard.comparison.unjudged import SharedUnjudged, pair_bounds
from steelyard.errors import MeasureError
from steelyard.measures import bound_formulas
from steelyard.measures import bounds as bounds_module
from steelyard.measures.gradings import grade_levels, unjudged
from steelyard.measures.grammar import parse

sys.path.insert(0, str(Path(__file__).parent.parent / "measures"))
from all_gradings import aligned, over_all_gradings, random_case, shared_documents
from test_bounds import EVERY, SCALES, check


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_over_all_shared_gradings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    judged, lists = random_case(random.Random(seed), SCALES[seed], 5 if seed < 2 else 4, runs=2, queries=5)
    a, b = (aligned(judged, listed) for listed in lists)
    shared = SharedUnjudged(*shared_documents(judged, *lists))
    tables = over_all_gradings(EVERY, judged, lists, grade_levels(a).tolist())
    for row, measure in enumerate(EVERY):
        monkeypatch.setattr(bounds_module, "MOST_GRADINGS", 0)
        found = pair_bounds(measure, a, b, shared)
        check(measure, found, tables, row, (judged, lists))
        if not np.all(found.exact) and row % 5 == seed:
            monkeypatch.setattr(bounds_module, "MOST_GRADINGS", 4096)
            check(measure, pair_bounds(measure, a, b, shared), tables, row, (judged, lists))


EXACT = ["nDCG@3", "nDCG", "P@3", "R@3", "R(cap=True)@2", "F@3", "RR@3", "RR", "Hit@2", "DCG@3", "RBP", "NumRelRet"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_longer_lists_with_formulas_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds_module, "MOST_GRADINGS", 0)
    monkeypatch.setattr(bound_formulas, "MOST_PAIRED", seed % 2 * 256)
    scale, most = [([0, 1], 8), ([-1, 0, 1, 2], 6), ([0, 1, 3], 4)][seed % 3]
    judged, lists = random_case(random.Random(seed), scale, most, runs=2, queries=10)
    a, b = (aligned(judged, listed) for listed in lists)
    shared = SharedUnjudged(*shared_documents(judged, *lists))
    measures = list(map(parse, [*EXACT, "AP", "AP@3", "AP(denominator=min)@2", "ERR@3", "Rprec"]))
    tables = over_all_gradings(measures, judged, lists, grade_levels(a).tolist())
    for row, measure in enumerate(measures):
        found = pair_bounds(measure, a, b, shared)
        check(measure, found, tables, row, (judged, lists))
        assert str(measure) not in EXACT or np.all(found.exact), measure
        swapped = pair_bounds(measure, b, a, SharedUnjudged(shared.query, shared.rank_b, shared.rank_a))
        np.testing.assert_allclose(swapped.low, -found.high, rtol=0, atol=1e-12)
        np.testing.assert_allclose(swapped.high, -found.low, rtol=0, atol=1e-12)


def test_by_hand() -> None:
    """x is in both lists, y only in a's: P@2 of a is (x + y) / 2, that of b (x + r) / 2 with r relevant."""
    lists = [{"q": ["x", "y"]}, {"q": ["r", "x"]}]
    a, b = (aligned({"q": {"r": 1}}, listed) for listed in lists)
    one, two = np.array([1]), np.array([2])
    shared = pair_bounds(parse("P@2"), a, b, SharedUnjudged(one - 1, one, two))
    assert (shared.low[0], shared.high[0], shared.exact[0]) == (-0.5, 0, True)
    nothing = np.array([], dtype=np.int64)
    apart = pair_bounds(parse("P@2"), a, b, SharedUnjudged(nothing, nothing, nothing))
    assert (apart.low[0], apart.high[0], apart.exact[0]) == (-1, 0.5, True)


def test_the_same_list_twice_does_not_differ() -> None:
    a = aligned({"q": {"a": 1, "b": 2}}, {"q": ["u", "a", "v", "w", "b"]})
    docs = unjudged(a)
    shared = SharedUnjudged(docs.query, docs.ranks[0], docs.ranks[0])
    for text in [*EXACT, "AP", "AP@3", "F", "ERR", "Composite(weights={P@3: 1, AP: 2, Unjudged@2: 1})"]:
        found = pair_bounds(parse(text), a, a, shared)
        assert (found.low[0], found.high[0], found.exact[0]) == (0, 0, True), text
        assert found.summary(parse(text)) == (0, 0)


def test_ranks_that_do_not_fit_are_refused() -> None:
    a = aligned({"q": {"a": 1}}, {"q": ["u", "a"]})
    two = np.array([2])
    with pytest.raises(MeasureError, match="no unjudged document"):
        pair_bounds(parse("AP"), a, a, SharedUnjudged(two - 2, two, two))
