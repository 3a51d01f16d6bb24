"""One-sided tests: half the two-sided p in the direction asked about, as scipy has it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from steelyard.statistics import fall_tests, smallest_p


@pytest.fixture
def differences():
    return np.random.default_rng(3).normal(-0.05, 0.2, 40)


def test_t_is_scipys_one_sided(differences):
    for row in (differences, -differences):
        wanted = stats.ttest_1samp(row, 0.0, alternative="less").pvalue
        assert fall_tests([row], "t")[0].p == pytest.approx(wanted, rel=1e-12)


def test_wilcoxon_is_scipys_one_sided_where_the_data_lean_down(differences):
    wanted = stats.wilcoxon(differences, alternative="less").pvalue
    assert fall_tests([differences], "wilcoxon")[0].p == pytest.approx(wanted, rel=1e-9)
    assert fall_tests([-differences], "wilcoxon")[0].p > 0.5


def test_sign_is_the_binomial_tail(differences):
    wanted = stats.binomtest(int((differences > 0).sum()), 40, alternative="less").pvalue
    assert fall_tests([differences], "sign")[0].p == pytest.approx(wanted, rel=1e-12)


def test_permutation_counts_the_lower_tail_alone():
    assert fall_tests([[-3.0, -2.0, -1.0, -4.0]], "permutation")[0].p == 1 / 16
    assert fall_tests([[-3.0, -2.0, 1.0, -4.0]], "permutation")[0].p == 2 / 16


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign", "permutation", "bootstrap"])
def test_a_rise_is_no_fall_and_no_change_is_certain(test, differences):
    fallen, risen, same = fall_tests([differences - 0.3, 0.3 - differences, 0 * differences], test)
    assert fallen.p < 0.001
    assert risen.p > 0.99
    assert same.p == 1.0


def test_what_the_sign_test_looks_at_decides_which_way_it_leans():
    row = [0.1] * 9 + [-9.0]
    assert fall_tests([row], "sign")[0].p > 0.5
    assert fall_tests([row], "permutation")[0].p <= 0.5


def test_the_smallest_p_is_reached_and_never_passed():
    for test in ("sign", "wilcoxon", "permutation"):
        row = -np.arange(1.0, 6.0)
        assert fall_tests([row], test)[0].p == smallest_p(test, 5) == 1 / 32
    assert smallest_p("permutation", 100, permutations=9) == 0.05
    assert smallest_p("bootstrap", 100, draws=9) == 0.05
