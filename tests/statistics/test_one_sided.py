"""One-sided tests: half the two-sided p in the tested direction, as in scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.statistics import fall_tests, smallest_p


@pytest.fixture
def differences():
    return np.random.default_rng(3).normal(-0.05, 0.2, 40)


def test_t_equals_scipy_one_sided(differences):
    for row in (differences, -differences):
        expected = stats.ttest_1samp(row, 0.0, alternative="less").pvalue
        assert fall_tests([row], "t")[0].p == pytest.approx(expected, rel=1e-12)


def test_wilcoxon_equals_scipy_one_sided_where_the_data_are_negative(differences):
    expected = stats.wilcoxon(differences, alternative="less").pvalue
    assert fall_tests([differences], "wilcoxon")[0].p == pytest.approx(expected, rel=1e-9)
    assert fall_tests([-differences], "wilcoxon")[0].p > 0.5


def test_sign_is_the_binomial_tail(differences):
    expected = stats.binomtest(int((differences > 0).sum()), 40, alternative="less").pvalue
    assert fall_tests([differences], "sign")[0].p == pytest.approx(expected, rel=1e-12)


def test_permutation_counts_the_lower_tail_only():
    assert fall_tests([[-3.0, -2.0, -1.0, -4.0]], "permutation")[0].p == 1 / 16
    assert fall_tests([[-3.0, -2.0, 1.0, -4.0]], "permutation")[0].p == 2 / 16


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign", "permutation", "bootstrap"])
def test_an_increase_is_not_a_decrease_and_no_change_gives_p_1(test, differences):
    decreased, increased, same = fall_tests([differences - 0.3, 0.3 - differences, 0 * differences], test)
    assert decreased.p < 0.001
    assert increased.p > 0.99
    assert same.p == 1.0


def test_the_direction_of_the_sign_test_is_that_of_the_signs():
    row = [0.1] * 9 + [-9.0]
    assert fall_tests([row], "sign")[0].p > 0.5
    assert fall_tests([row], "permutation")[0].p <= 0.5


def test_the_smallest_p_is_reached():
    for test in ("sign", "wilcoxon", "permutation"):
        row = -np.arange(1.0, 6.0)
        assert fall_tests([row], test)[0].p == smallest_p(test, 5) == 1 / 32
    assert smallest_p("permutation", 100, permutations=9) == 0.05
    assert smallest_p("bootstrap", 100, draws=9) == 0.05
