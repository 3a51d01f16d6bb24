"""Statistics over several datasets: both tests of macro means, Friedman and Nemenyi, Borda counts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from steelyard.errors import InputError, PolicyError
from steelyard.statistics.datasets import (
    borda,
    dataset_ranks,
    datasets_like_these,
    friedman,
    smallest_dataset_p,
    these_datasets,
)


def values_of(rng, runs, queries, level, effects=0.0):
    """Scores from 0 to 1 with many zeros, as of nDCG: a common difficulty of each query, and noise."""
    difficulty = rng.normal(level, 0.45, queries)
    return np.clip(difficulty + effects + rng.normal(0.0, 0.3, (runs, queries)), 0.0, 1.0)


def test_every_dataset_weighs_the_same_whatever_its_number_of_queries():
    rng = np.random.default_rng(3)
    small, large = values_of(rng, 2, 10, 0.7), values_of(rng, 2, 500, 0.3)
    found = these_datasets([small, large], draws=500)
    gaps = [float((each[0] - each[1]).mean()) for each in (small, large)]
    assert found.differences[0] == pytest.approx(sum(gaps) / 2, abs=1e-12)


def test_an_interval_excludes_0_exactly_where_the_uncorrected_test_is_significant():
    rng = np.random.default_rng(5)
    for shift in (0.0, 0.02, 0.05, 0.1):
        pair = [values_of(rng, 2, 40, 0.5, np.array([[0.0], [shift]])) for _ in range(3)]
        found = these_datasets(pair, draws=999)
        low, high = found.intervals[0]
        assert (low > 0 or high < 0) == (found.p[0] < 0.05)


def test_the_p_values_without_a_dataset_are_those_of_the_others_alone():
    rng = np.random.default_rng(7)
    first, second, third = (values_of(rng, 3, n, 0.5) for n in (20, 30, 40))
    whole = these_datasets([first, second, third], draws=400)
    assert whole.without[2] == these_datasets([first, second], draws=400).p


def test_values_that_differ_by_rounding_are_ties():
    values = np.array([[0.1 + 0.2, 0.5, 0.6, 0.7, 0.9, 0.4], [0.3, 0.5 - 1e-16, 0.6 - 1e-16, 0.7, 0.9, 0.4]])
    assert (values[0, :3] > values[1, :3]).all()
    assert (dataset_ranks(values) == 1.5).all()
    assert borda(values).tolist() == [3.0, 3.0]
    assert borda(values[::-1], "measured").tolist() == [12.0, 6.0]
    found = friedman(values)
    assert (found.p, found.nemenyi) == (1.0, (1.0,))


def test_constant_differences_have_the_p_value_of_equal_signs():
    two = np.array([[1.0, 1.0], [0.5, 0.5]])
    found = these_datasets([two, two], draws=999)
    assert found.p == (2 / 2**4,)
    assert found.without == ((0.5,), (0.5,))
    # With differences of other signs, other choices of signs reach the difference of the means.
    assert these_datasets([two, two[::-1] / 5], draws=999).p == (0.5,)
    assert these_datasets([two.repeat(10, axis=1)] * 2, draws=999).p[0] == pytest.approx(0.001)


def test_runs_that_are_equal_on_every_query_do_not_differ():
    values = np.tile(np.random.default_rng(0).random(20), (2, 1))
    found = these_datasets([values, values], draws=100)
    assert found.p == (1.0,)
    assert found.differences == (0.0,)


def test_a_dataset_of_one_query_is_not_tested():
    found = these_datasets([[[0.5], [0.4]], [[0.5, 0.6], [0.4, 0.2]]], draws=100)
    assert np.isnan(found.p[0])
    assert "one query" in found.reason


def test_a_missing_value_is_an_error():
    with pytest.raises(InputError, match="every run and query"):
        these_datasets([[[0.5, np.nan], [0.4, 0.3]]])


def test_the_same_seed_gives_the_same_numbers():
    rng = np.random.default_rng(1)
    data = [values_of(rng, 3, 25, 0.4) for _ in range(2)]
    assert these_datasets(data, seed=4, draws=300) == these_datasets(data, seed=4, draws=300)
    assert these_datasets(data, seed=4, draws=300).p != these_datasets(data, seed=5, draws=300).p


@pytest.mark.parametrize("count", [2, 5, 8, 12])
def test_the_smallest_p_value_over_datasets_is_reached_where_all_differences_have_one_sign(count):
    gaps = np.linspace(0.1, 0.2, count)
    found = datasets_like_these([0.5 + gaps, np.full(count, 0.5)])
    assert found.p[0] == pytest.approx(smallest_dataset_p(count))


def test_the_interval_over_datasets_is_students():
    rng = np.random.default_rng(2)
    table = rng.random((2, 9))
    gap = table[0] - table[1]
    low, high = stats.t.interval(0.95, 8, gap.mean(), stats.sem(gap))
    assert datasets_like_these(table).intervals[0] == pytest.approx((low, high))


def test_friedman_and_nemenyi_agree_with_scipy():
    table = np.random.default_rng(11).random((4, 7)).round(1)
    found = friedman(table)
    chi2 = stats.friedmanchisquare(*table).statistic
    f = 6 * chi2 / (7 * 3 - chi2)
    assert found.statistic == pytest.approx(f)
    assert found.p == pytest.approx(stats.f.sf(f, 3, 18))
    unit = np.sqrt(4 * 5 / (6 * 7))
    for (i, j), p in zip(found.pairs, found.nemenyi, strict=True):
        gap = abs(found.mean_ranks[i] - found.mean_ranks[j]) / unit * np.sqrt(2)
        assert p == pytest.approx(stats.studentized_range.sf(gap, 4, np.inf), abs=1e-6)
    critical = stats.studentized_range.isf(0.05, 4, np.inf) / np.sqrt(2) * unit
    assert found.critical_difference == pytest.approx(critical, abs=1e-6)


def test_friedman_of_runs_that_are_always_in_the_same_order():
    """As often as by chance, where every order of a dataset's values is as likely as any other."""
    assert friedman([[3.0] * 5, [2.0] * 5, [1.0] * 5]).p == pytest.approx(6.0**-4)
    assert friedman([[2.0] * 5, [1.0] * 5]).p == pytest.approx(stats.binomtest(5, 5).pvalue)
    assert friedman([[2.0] * 6, [1.0] * 6, [1.0] * 6]).p == pytest.approx(3.0**-5)
    assert friedman([[2.0] * 6, [1.0] * 6, [1.0] * 6, [1.0] * 5 + [0.5]]).p >= 4.0**-6
    assert friedman([[1.0] * 5, [1.0] * 5]).p == 1.0


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 3), st.integers(2, 4), st.randoms(use_true_random=False))
def test_no_p_of_friedmans_test_is_below_the_smallest_of_all_permutations(runs, count, random):
    """By enumeration: the share of the tables, with each dataset's values in any order, that all have one order."""
    columns = [[random.choice((1.0, 2.0, 3.0)) for _ in range(runs)] for _ in range(count)]
    orders = [set(itertools.permutations(column)) for column in columns]
    rank = [[tuple(stats.rankdata(one)) for one in found] for found in orders]
    alike = sum(all(one == first for one in table) for table in itertools.product(*rank) for first in table[:1])
    found = friedman(np.array(columns).T)
    if alike:
        assert found.p >= alike / math.prod(map(len, orders)) - 1e-12


tables = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 6), st.integers(1, 6)), elements=st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5])
)


@given(tables)
def test_a_borda_count_is_the_runs_beaten_plus_half_of_the_ties(table):
    plain = [
        sum(
            (x > y) + 0.5 * (x == y)
            for i, row in enumerate(table)
            if i != run
            for x, y in zip(table[run], row, strict=True)
        )
        for run in range(len(table))
    ]
    for rule in ("complete", "all"):
        assert borda(table, rule).tolist() == pytest.approx(plain)


@given(tables, st.randoms(use_true_random=False))
def test_the_rules_differ_by_the_runs_that_were_not_measured(table, random):
    table = table.copy()
    table[random.randrange(len(table)), random.randrange(table.shape[1])] = np.nan
    measured = ~np.isnan(table)
    expected = [0.0] * len(table)
    for column in table.T:
        ranked = sorted((-value, run) for run, value in enumerate(column) if value == value)
        for rank, (_, run) in enumerate(ranked, start=1):
            expected[run] += len(ranked) - rank + 1
    assert borda(table, "measured").tolist() == expected
    apart = table + 1e-3 * np.arange(len(table))[:, None]  # no ties
    absent = (~measured).sum(axis=0)
    gained = (measured * (absent - 1)).sum(axis=1)
    assert (borda(apart, "all") - borda(apart, "measured")).tolist() == gained.tolist()
    assert np.isnan(borda(table, "complete")).tolist() == (~measured.all(axis=1)).tolist()


def test_ranks_are_among_the_runs_that_were_measured():
    assert dataset_ranks([[0.1], [np.nan], [0.2]])[:, 0].tolist()[::2] == [2.0, 1.0]


def test_an_unknown_rule_is_an_error():
    with pytest.raises(PolicyError, match="measured"):
        borda([[0.1, 0.2]], "mesured")


# Simulations


def family_wise_error(test, simulate, count, seed):
    rng = np.random.default_rng(seed)
    return np.mean([min(test(simulate(rng), number).p) < 0.05 for number in range(count)])


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.1], ids=["no difference", "differences that cancel"])
def test_the_family_wise_error_on_these_datasets_is_5_percent(spread):
    """Four runs with the same macro mean: equal on every dataset, or each better on one and worse on another."""
    sizes, levels = (25, 40, 60), (0.3, 0.6, 0.5)

    def simulate(rng):
        shifts = spread * np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0]])
        return [
            np.clip(rng.normal(level, 0.15, size) + shift[:, None] + rng.normal(0, 0.1, (4, size)), -1, 2)
            for size, level, shift in zip(sizes, levels, shifts.T, strict=True)
        ]

    error = family_wise_error(lambda data, seed: these_datasets(data, draws=400, seed=seed), simulate, 1000, 1)
    assert 0.03 <= error <= 0.07


@pytest.mark.slow
def test_macro_intervals_on_these_datasets_cover_95_percent():
    sizes, levels = (25, 40, 60), (0.3, 0.6, 0.1)
    rng = np.random.default_rng(12)
    truth = np.mean([values_of(rng, 1, 400_000, level).mean() for level in levels])
    covered = []
    for number in range(600):
        data = [values_of(rng, 3, size, level) for size, level in zip(sizes, levels, strict=True)]
        found = these_datasets(data, draws=400, seed=number)
        covered += [low <= truth <= high for low, high in found.run_intervals]
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("count", [8, 12, 20])
def test_the_family_wise_error_on_datasets_like_these_is_5_percent(count):
    """Runs with the same mean over a population of datasets, which differ on each of them; datasets of all sizes."""

    def simulate(rng):
        sizes = rng.integers(10, 400, count)
        effects = rng.normal(0.0, 0.05, (4, count))
        return rng.normal(0.5, 0.2, count) + effects + rng.normal(0, 0.3, (4, count)) / np.sqrt(sizes)

    def test(data, seed):
        return datasets_like_these(data, seed=seed)

    error = family_wise_error(test, simulate, 1500 if count <= 12 else 1000, 2)
    assert 0.03 <= error <= 0.07


@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 8, 11])
def test_macro_intervals_on_datasets_like_these_cover_95_percent(count):
    rng = np.random.default_rng(4)
    covered = []
    for _ in range(1500):
        table = 0.5 + rng.normal(0.0, 0.15, (1, count)) + rng.normal(0, 0.03, (2, count))
        covered += [low <= 0.5 <= high for low, high in datasets_like_these(table).run_intervals]
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.slow
def test_a_difference_that_all_datasets_share_is_found():
    rng = np.random.default_rng(9)
    found = {"these": 0, "like": 0}
    for number in range(100):
        data = [values_of(rng, 3, 60, 0.5, np.array([[0.15], [0.0], [0.0]])) for _ in range(8)]
        these, like = (these_datasets(data, draws=300, seed=number), datasets_like_these(np.mean(data, axis=2).T))
        for name, tests in (("these", these), ("like", like)):
            best = [p for (i, _), p in zip(tests.pairs, tests.p, strict=True) if i == 0]
            found[name] += all(p < 0.05 for p in best)
    assert found["these"] >= 90
    assert found["like"] >= 80


def test_pairs_are_every_two_runs():
    found = datasets_like_these(np.random.default_rng(0).random((4, 6)))
    assert found.pairs == tuple(itertools.combinations(range(4), 2))
