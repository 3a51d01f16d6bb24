"""Composite rank stability: drawn weights and the single weight that changes the best run."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.errors import InputError
from steelyard.statistics import rank_stability

MEANS = np.array([[0.80, 0.40, 0.30], [0.60, 0.70, 0.20], [0.30, 0.35, 0.90]])
WEIGHTS = np.array([0.5, 0.3, 0.2])
INVERTED = [False, False, True]


def composite(weights: np.ndarray) -> np.ndarray:
    values = np.where(INVERTED, 1.0 - MEANS, MEANS)
    return values @ weights / weights.sum()


def test_flips_are_where_the_top_changes() -> None:
    result = rank_stability(MEANS, WEIGHTS, INVERTED)
    top = result.order[0]
    assert top == int(np.argmax(composite(WEIGHTS)))
    assert result.flips
    for flip in result.flips:
        at, before, after = WEIGHTS.copy(), WEIGHTS.copy(), WEIGHTS.copy()
        step = np.sign(flip.flips_at - flip.weight) * 1e-6
        at[flip.measure] = flip.flips_at
        before[flip.measure] = flip.flips_at - step
        after[flip.measure] = flip.flips_at + step
        assert composite(at)[top] == pytest.approx(composite(at)[flip.new_top], abs=1e-12)
        assert np.argmax(composite(before)) == top
        assert np.argmax(composite(after)) == flip.new_top
    changes = [abs(flip.flips_at - flip.weight) for flip in result.flips]
    assert changes == sorted(changes)


def test_a_run_best_in_everything_never_falls() -> None:
    result = rank_stability([[0.9, 0.9], [0.5, 0.4], [0.4, 0.5]], [0.7, 0.3])
    assert result.top_changes == 0.0
    assert result.top_shares == (1.0, 0.0, 0.0)
    assert result.flips == ()
    assert 0.0 < result.order_changes < 1.0


def test_shares_add_up_and_grow_as_weights_loosen() -> None:
    tight = rank_stability(MEANS, WEIGHTS, INVERTED, concentration=2000.0)
    loose = rank_stability(MEANS, WEIGHTS, INVERTED, concentration=5.0)
    assert tight.order_changes <= loose.order_changes
    assert sum(loose.top_shares) == pytest.approx(1.0)
    assert loose.top_shares[loose.order[0]] == pytest.approx(1.0 - loose.top_changes)


def test_the_scale_of_weights_does_not_matter_and_zero_weights_stay_zero() -> None:
    once, tenfold = rank_stability(MEANS, WEIGHTS), rank_stability(MEANS, 10 * WEIGHTS)
    assert once.order_changes == tenfold.order_changes
    only = rank_stability(MEANS, [1.0, 0.0, 0.0])
    assert only.order == (0, 1, 2)
    assert only.order_changes == 0.0


def test_equal_runs_do_not_count_as_changes() -> None:
    result = rank_stability([[0.5, 0.5], [0.5, 0.5]], [1.0, 1.0])
    assert (result.order_changes, result.top_changes, result.flips) == (0.0, 0.0, ())


def test_one_measure_cannot_flip_anything() -> None:
    assert rank_stability([[0.5], [0.4]], [1.0]).flips == ()


def test_seeded() -> None:
    assert rank_stability(MEANS, WEIGHTS, seed=3) == rank_stability(MEANS, WEIGHTS, seed=3)


@pytest.mark.parametrize(
    ("weights", "words"),
    [([0.5, -0.1, 0.2], "at least 0"), ([0.0, 0.0, 0.0], "not all 0"), ([0.5, 0.5], "one weight per measure")],
)
def test_bad_weights_are_refused(weights: list[float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        rank_stability(MEANS, weights)
