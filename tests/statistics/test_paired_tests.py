"""The classical paired tests, against scipy and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from steelyard.errors import InputError, PolicyError
from steelyard.statistics import PAIRED_TESTS, fall_tests, paired_tests, sign_test, t_test, wilcoxon_test

SCIPY = tuple(int(part) for part in scipy.__version__.split(".")[:2])
SIZES = [2, 3, 5, 12, 13, 14, 30, 50, 51, 120, 1000]


def score_differences(n: int, kind: str, seed: int) -> np.ndarray:
    """Differences without ties, with ties, or with ties and zeros, never all zero."""
    rng = np.random.default_rng(seed)
    if kind == "plain":
        return rng.normal(0.05, 0.2, n)
    steps = rng.integers(1, 6, n) * rng.choice([-1, 1], n, p=[0.4, 0.6]) / 8.0
    if kind == "zeros":
        steps[rng.random(n) < 0.3] = 0.0
        steps[0] = 0.5
    return steps


@pytest.mark.parametrize("kind", ["plain", "ties", "zeros"])
@pytest.mark.parametrize("n", SIZES)
def test_t_equals_scipy(n: int, kind: str) -> None:
    for seed in range(5):
        d = score_differences(n, kind, seed)
        if np.ptp(d) == 0.0:
            continue
        ours, theirs = t_test(d), stats.ttest_1samp(d, 0.0)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-12, abs=1e-300)


@pytest.mark.slow
# scipy before 1.15 answers small tied samples with the normal approximation.
@pytest.mark.parametrize("kind", ["plain", "ties", "zeros"] if SCIPY >= (1, 15) else ["plain"])
@pytest.mark.parametrize("n", SIZES)
def test_wilcoxon_equals_scipy(n: int, kind: str) -> None:
    # scipy goes through all sign vectors one by one for 12 or 13 tied queries.
    for seed in range(1 if n in (12, 13) else 5):
        d = score_differences(n, kind, seed)
        ours, theirs = wilcoxon_test(d), stats.wilcoxon(d)
        assert ours.statistic == theirs.statistic
        assert ours.p == pytest.approx(theirs.pvalue, rel=1e-12, abs=1e-12)


def test_equal_sizes_are_ties_whatever_their_last_bits() -> None:
    # P@10 of two runs in tenths: 0.3 - 0.2 and 0.2 - 0.1 differ in their last bits.
    a = np.array([2, 1, 0, 5, 7, 0, 1, 6, 8, 8, 4, 2, 4, 7, 4, 8, 4])
    b = np.array([3, 1, 0, 6, 7, 0, 0, 7, 7, 7, 4, 1, 3, 7, 3, 7, 5])
    result, whole = wilcoxon_test(a / 10 - b / 10), wilcoxon_test(a - b)
    assert len(set(np.abs(a / 10 - b / 10))) > 2
    assert (result.p, result.statistic) == (whole.p, whole.statistic)
    assert result.p == pytest.approx(stats.wilcoxon(a - b, correction=False, method="approx").pvalue)
    (fall,) = fall_tests([b / 10 - a / 10], "wilcoxon")
    assert fall.p == result.p / 2


@pytest.mark.parametrize("kind", ["plain", "zeros"])
@pytest.mark.parametrize("n", SIZES)
def test_sign_equals_scipy(n: int, kind: str) -> None:
    for seed in range(5):
        d = score_differences(n, kind, seed)
        theirs = stats.binomtest(int((d > 0).sum()), int((d != 0).sum()), 0.5).pvalue
        assert sign_test(d).p == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("test", PAIRED_TESTS)
def test_one_query_gives_no_test_and_a_reason(test: str) -> None:
    (one,) = paired_tests([[0.3]], test)
    assert math.isnan(one.p)
    assert "one query" in one.reason
    (none,) = paired_tests([[math.nan, math.nan]], test)
    assert math.isnan(none.p)
    assert (none.n, none.left_out) == (0, 2)
    assert "no query" in none.reason


@pytest.mark.parametrize("test", PAIRED_TESTS)
def test_no_difference_anywhere_is_p_1(test: str) -> None:
    (result,) = paired_tests([[0.0] * 40], test)
    assert result.p == 1.0
    assert result.statistic == 0.0


@pytest.mark.parametrize("test", PAIRED_TESTS)
def test_a_constant_difference_is_significant_without_warnings(test: str) -> None:
    (result,) = paired_tests([[0.1] * 40], test)
    assert result.p < 0.001
    (opposite,) = paired_tests([[-0.1] * 40], test)
    assert opposite.p == result.p


def test_a_constant_difference_gives_an_infinite_t_and_the_chance_of_one_sign() -> None:
    a = np.array([0.7, 0.4, 0.9])
    for result, p in ((t_test((a + 0.1) - a), 0.25), (t_test([0.5, 0.5]), 0.5)):
        assert result.statistic == math.inf
        assert result.p == p


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("test", PAIRED_TESTS)
def test_a_constant_difference_has_the_p_value_of_equal_signs(test: str, n: int) -> None:
    (result,) = paired_tests([(0.1 + np.arange(n) / 7) - np.arange(n) / 7], test)
    assert result.p == 2 / 2**n
    (smallest,) = paired_tests([[0.1] * 20], "bootstrap", draws=99)
    assert smallest.p == 0.01


@pytest.mark.parametrize("test", PAIRED_TESTS)
def test_missing_pairs_are_left_out_and_counted(test: str) -> None:
    d = score_differences(60, "zeros", 1)
    with_gap = np.insert(d, [60], math.nan)
    (full,), (rest,) = paired_tests([d], test), paired_tests([with_gap], test)
    assert (rest.n, rest.left_out) == (60, 1)
    if test in ("t", "wilcoxon", "sign", "bootstrap"):
        assert rest.p == full.p


@pytest.mark.parametrize("test", PAIRED_TESTS)
@settings(deadline=None)
@given(
    d=st.lists(st.integers(-8, 8).map(lambda i: i / 8.0), min_size=2, max_size=14),
    order=st.randoms(use_true_random=False),
)
def test_laws_of_every_test(test: str, d: list[float], order: object) -> None:
    (result,) = paired_tests([d], test, permutations=200, draws=200)
    (negated,) = paired_tests([[-x for x in d]], test, permutations=200, draws=200)
    assert 0.0 <= result.p <= 1.0
    assert negated.p == pytest.approx(result.p, rel=1e-12)
    if test != "bootstrap":
        shuffled = list(d)
        order.shuffle(shuffled)
        (moved,) = paired_tests([shuffled], test)
        assert moved.p == pytest.approx(result.p, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("test", PAIRED_TESTS)
def test_pairs_of_rows_are_their_differences(test: str) -> None:
    scores = np.random.default_rng(3).random((3, 50))
    by_pair = paired_tests(scores, test, 500, 500, pairs=[(2, 0), (0, 1)])
    assert by_pair == paired_tests([scores[2] - scores[0], scores[0] - scores[1]], test, 500, 500)
    assert paired_tests(scores, test, pairs=[]) == []


def test_bad_input_is_refused_with_a_reason() -> None:
    with pytest.raises(InputError, match="position 1"):
        t_test([0.1, math.inf])
    with pytest.raises(InputError, match="series x queries"):
        paired_tests([0.1, 0.2], "t")
    with pytest.raises(PolicyError, match="wilcoxon"):
        paired_tests([[0.1, 0.2]], "wilcoxn")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="runs x queries"):
        paired_tests([[0.1, 0.2]], "max-t")  # type: ignore[arg-type]
