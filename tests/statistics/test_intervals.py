"""Intervals: coverage by simulation, agreement of the closed form with the bootstrap, edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.errors import InputError, PolicyError
from steelyard.statistics import INTERVAL_METHODS, difference_interval, mean_interval, mean_intervals
from steelyard.statistics.arrays import normal_quantile, student_quantile

Shape = Callable[[np.random.Generator, int], np.ndarray]
RANK_CHANCES = np.array([0.35, 0.12, 0.07, 0.05, 0.03, 0.025, 0.02, 0.015, 0.01, 0.01])


def beta_scores(rng: np.random.Generator, n: int) -> np.ndarray:
    """nDCG-like: mean 0.4."""
    return rng.beta(2.0, 3.0, (2000, n))


def skewed_scores(rng: np.random.Generator, n: int) -> np.ndarray:
    """AP-like: mean 0.2, many near 0."""
    return rng.beta(0.5, 2.0, (2000, n))


def reciprocal_ranks(rng: np.random.Generator, n: int) -> np.ndarray:
    """RR@10-like: 0 for three queries in ten, otherwise 1/rank."""
    ranks = rng.choice(11, p=[1.0 - RANK_CHANCES.sum(), *RANK_CHANCES], size=(2000, n))
    return np.where(ranks == 0, 0.0, 1.0 / np.maximum(ranks, 1))


def gated_scores(rng: np.random.Generator, n: int) -> np.ndarray:
    """Recall-like: 0 for four queries in ten, otherwise around 0.5."""
    return rng.beta(2.0, 2.0, (2000, n)) * (rng.random((2000, n)) < 0.6)


MEANS: dict[Shape, float] = {
    beta_scores: 0.4,
    skewed_scores: 0.2,
    reciprocal_ranks: float((RANK_CHANCES / np.arange(1, 11)).sum()),
    gated_scores: 0.3,
}


def coverage(data: np.ndarray, true_mean: float, **settings: object) -> float:
    ends = np.array(mean_intervals(data, **settings))
    return float(np.mean((ends[:, 0] <= true_mean) & (true_mean <= ends[:, 1])))


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 50, 99, 100, 400])
@pytest.mark.parametrize("shape", MEANS, ids=lambda shape: shape.__name__)
def test_the_default_interval_covers_95_percent(shape: Shape, n: int) -> None:
    data = shape(np.random.default_rng(n), n)
    # Below 100 queries the default draws; 2,000 resamples shared by all draws keep the test short.
    draws = 2000 if n < 100 else None
    assert 0.93 <= coverage(data, MEANS[shape], draws=draws, seed=1) <= 0.97


@pytest.mark.parametrize("n", [2, 3, 4])
def test_with_few_queries_the_default_is_students_and_covers(n: int) -> None:
    """The bootstrap cannot leave the range of so few values, and covers 50%, 74% and 89%."""
    data = beta_scores(np.random.default_rng(n), n)
    assert 0.93 <= coverage(data, 0.4) <= 0.97
    assert coverage(data, 0.4, draws=2000) < 0.9
    assert mean_interval(data[0]) == pytest.approx(mean_interval(data[0], method="t"), abs=0.002)


@pytest.mark.parametrize("method", ["bca", "t"])
def test_the_other_intervals_cover_at_100_queries(method: str) -> None:
    data = beta_scores(np.random.default_rng(3), 100)
    assert 0.93 <= coverage(data, 0.4, draws=2000, method=method) <= 0.97


def test_a_difference_interval_covers() -> None:
    rng = np.random.default_rng(4)
    hard = rng.normal(0.0, 0.2, (2000, 50))
    a, b = (hard + rng.beta(2.0, 3.0, (2000, 50)) for _ in range(2))
    assert 0.93 <= coverage(a - b, 0.0, draws=2000) <= 0.97
    assert difference_interval(a[0], b[0]) == mean_interval(a[0] - b[0])


@pytest.mark.parametrize("shape", MEANS, ids=lambda shape: shape.__name__)
def test_the_closed_form_is_the_limit_of_many_draws(shape: Shape) -> None:
    values = shape(np.random.default_rng(5), 150)[0]
    error = values.std() / math.sqrt(150)
    computed, drawn = mean_interval(values), mean_interval(values, draws=100_000)
    assert computed == pytest.approx(drawn, abs=0.03 * error)


def test_wider_than_the_plain_percentile_by_as_much_as_t() -> None:
    values = np.random.default_rng(6).normal(size=20)
    low, high = mean_interval(values, draws=50_000)
    t_low, t_high = mean_interval(values, method="t")
    assert high - low == pytest.approx(t_high - t_low, rel=0.05)


def test_t_interval_equals_scipy() -> None:
    for n in (2, 5, 60):
        values = np.random.default_rng(n).random(n)
        theirs = stats.t.interval(0.9, n - 1, values.mean(), stats.sem(values))
        assert mean_interval(values, 0.9, method="t") == pytest.approx(theirs, rel=1e-12)


def test_bca_equals_scipy_up_to_chance() -> None:
    values = np.random.default_rng(7).exponential(size=60)
    np.random.seed(1)  # the one way to seed it that every version of scipy takes
    theirs = stats.bootstrap((values,), np.mean, n_resamples=50_000, method="BCa")
    ours = mean_interval(values, draws=50_000, method="bca")
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.1 * values.std() / math.sqrt(60))


@pytest.mark.parametrize("method", INTERVAL_METHODS)
def test_series_with_missing_values_do_not_change_the_others(method: str) -> None:
    data = np.random.default_rng(8).random((4, 40))
    data[1, [3, 9]] = math.nan
    together = mean_intervals(data, method=method)
    assert together[1] == mean_interval(data[1][~np.isnan(data[1])], method=method)
    assert together[2] == mean_interval(data[2], method=method)


@pytest.mark.parametrize("method", INTERVAL_METHODS)
@pytest.mark.parametrize("n", [2, 3, 99, 100])
def test_constant_and_tiny_series(method: str, n: int) -> None:
    low, high = mean_interval([0.3] * n, method=method)
    assert low == pytest.approx(0.3, abs=1e-12)
    assert high == pytest.approx(0.3, abs=1e-12)
    assert all(math.isnan(end) for end in mean_interval([0.3], method=method))
    assert all(math.isnan(end) for end in mean_interval([math.nan] * n, method=method))


@settings(deadline=None)
@given(values=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=30), level=st.floats(0.5, 0.99))
def test_the_default_lies_around_the_mean_and_within_the_data(values: list[float], level: float) -> None:
    low, high = mean_interval(values, level, draws=200)
    assert min(values) <= low <= high <= max(values)


def test_reproducible_to_the_bit() -> None:
    values = np.random.default_rng(9).random(60)
    assert mean_interval(values, seed=5) == mean_interval(values, seed=5)
    assert mean_interval(values, seed=5) != mean_interval(values, seed=6)
    tenths = np.arange(30) % 11 / 8.0
    assert mean_interval(tenths, draws=999, seed=1) == (0.42916666666666664, 0.7125)


def test_quantiles_equal_scipy() -> None:
    for p in (1e-12, 0.001, 0.025, 0.3, 0.5, 0.9, 0.995):
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12, abs=1e-12)
    for freedom, tolerance in ((1, 1e-10), (2, 1e-10), (3, 2e-3), (5, 3e-4), (10, 1e-5), (30, 1e-7), (500, 1e-10)):
        assert student_quantile(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=tolerance)


def test_intervals_of_a_high_level_have_scipys_quantile() -> None:
    for level in (0.97, 0.99, 0.999, 0.9999):
        for freedom in (3, 4, 9, 10, 30):
            upper = 0.5 + level / 2.0
            assert student_quantile(upper, freedom) == pytest.approx(stats.t.ppf(upper, freedom), rel=1e-9)
    values = [1.0, 0.5, 1 / 3, 0.25]
    low, high = mean_interval(values, level=0.999)
    assert high - low == pytest.approx(12.92398 * np.std(values, ddof=1), rel=1e-6)


def test_bad_input_is_refused_with_a_reason() -> None:
    with pytest.raises(PolicyError, match="percentile"):
        mean_interval([0.1, 0.2], method="percentil")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"0\.95"):
        mean_interval([0.1, 0.2], level=95)
    with pytest.raises(InputError, match="same queries"):
        difference_interval([0.1, 0.2], [0.1])
