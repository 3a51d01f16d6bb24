"""The exact top k equals a full sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.retrievers.base import top_k


@given(st.lists(st.sampled_from([0.0, 1.0, 2.5, -1.0, 7.0]), min_size=1, max_size=40), st.integers(1, 50))
def test_short_lists(scores: list[float], k: int) -> None:
    expected = sorted(range(len(scores)), key=lambda place: (-scores[place], place))[:k]
    assert top_k(np.array(scores), k).tolist() == expected


@pytest.mark.parametrize("levels", [2, 50, 10**9])
@pytest.mark.parametrize("k", [1, 10, 100])
def test_long_lists(levels: int, k: int) -> None:
    scores = np.random.default_rng(levels + k).integers(0, levels, 30_011).astype(float)
    assert top_k(scores, k).tolist() == np.argsort(-scores, kind="stable")[:k].tolist()


def test_equal_scores_are_in_order() -> None:
    scores = np.zeros(20_000)
    scores[15_000] = 1.0
    assert top_k(scores, 4).tolist() == [15_000, 0, 1, 2]
