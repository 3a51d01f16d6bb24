"""Tukey HSD and max-T: exactness in small cases, family-wise error and power by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from needs import needs_kernel
from steelyard.errors import InputError
from steelyard.statistics import adjust, max_t, permutation_test, t_test, tukey
from steelyard.statistics.corrections import FamilyResult, shuffled_ranges

FAMILIES = [tukey, max_t]


def scores(rng: np.random.Generator, runs: int, queries: int, shift: float = 0.0) -> np.ndarray:
    """Runs that share the difficulty of the queries; the first is better by `shift`."""
    table = rng.beta(1.0, 2.0, queries) + rng.normal(0.0, 0.15, (runs, queries))
    table[0] += shift
    return table


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_family_wise_error_over_2000_null_draws(family: object) -> None:
    rng = np.random.default_rng(20)
    false_alarms = [min(family(scores(rng, 5, 40), 299, seed=draw).p) < 0.05 for draw in range(2000)]
    assert 0.03 <= np.mean(false_alarms) <= 0.07


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_power_grows_with_the_difference(family: object) -> None:
    shares = []
    for shift in (0.0, 0.04, 0.08, 0.12, 0.18):
        rng = np.random.default_rng(21)
        found = [family(scores(rng, 4, 40, shift), 299, seed=i).p[0] < 0.05 for i in range(200)]
        shares.append(float(np.mean(found)))
    assert shares == sorted(shares)
    assert shares[0] < 0.05
    assert shares[-1] > 0.95


@pytest.mark.slow
def test_max_t_keeps_the_level_when_only_some_runs_are_equal() -> None:
    rng = np.random.default_rng(22)
    alarms = [max_t(scores(rng, 4, 40, shift=0.5), 299, seed=i).p[3:] for i in range(600)]
    assert np.mean([min(p) < 0.05 for p in alarms]) <= 0.07


@pytest.mark.parametrize("family", FAMILIES)
def test_two_runs_are_the_randomisation_test(family: object) -> None:
    rng = np.random.default_rng(23)
    a, b = scores(rng, 2, 14, shift=0.12)
    exact = permutation_test(a - b).p
    (p,) = family([a, b], 40_000).p
    assert p == pytest.approx(exact, abs=1e-12 if family is max_t else 4 * math.sqrt(exact / 40_000))


def test_tukey_equals_an_enumeration_of_every_order() -> None:
    table = np.array([[0.9, 0.5, 0.75, 0.5], [0.25, 0.5, 0.5, 0.25], [0.5, 0.25, 0.25, 0.5]])
    orders = [list(order) for order in itertools.permutations(range(3))]
    ranges = [
        np.ptp(sum(table[order, query] for query, order in enumerate(assignment)))
        for assignment in itertools.product(orders, repeat=4)
    ]
    result = tukey(table, 40_000)
    for (i, j), p in zip(result.pairs, result.p, strict=True):
        exact = np.mean(np.array(ranges) >= abs(table[i].sum() - table[j].sum()) - 1e-12)
        assert p == pytest.approx(exact, abs=4 * math.sqrt(exact / 40_000))


def test_tukey_agrees_with_the_studentized_range_on_normal_data() -> None:
    rng = np.random.default_rng(24)
    table = rng.normal(size=(4, 120)) + rng.normal(size=120)
    table[0] += 0.3
    centred = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    error = (centred**2).sum() / (3 * 119)
    result = tukey(table, 20_000)
    for statistic, p in zip(result.statistics, result.p, strict=True):
        q = abs(statistic) / math.sqrt(error / 120)
        assert p == pytest.approx(stats.studentized_range.sf(q, 4, 3 * 119), abs=0.015)


def test_max_t_lies_between_one_test_and_bonferroni() -> None:
    rng = np.random.default_rng(25)
    table = scores(rng, 5, 60, shift=0.06)
    result = max_t(table, 20_000)
    alone = np.array([t_test(table[i] - table[j]).p for i, j in result.pairs])
    assert (np.array(result.p) >= alone - 0.01).all()
    assert (np.array(result.p) <= adjust(alone, "holm") + 0.01).all()
    for (i, j), t in zip(result.pairs, result.statistics, strict=True):
        assert t == pytest.approx(t_test(table[i] - table[j]).statistic, rel=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_same_seed_same_bits_other_seed_other_draws(family: object) -> None:
    table = scores(np.random.default_rng(26), 4, 50, shift=0.03)
    assert family(table, 500, seed=1) == family(table, 500, seed=1)
    assert family(table, 500, seed=1).p != family(table, 500, seed=2).p


def test_more_than_eight_runs() -> None:
    table = scores(np.random.default_rng(27), 10, 60, shift=0.4)
    result = tukey(table, 500)
    assert len(result.p) == 45
    assert max(p for (i, _), p in zip(result.pairs, result.p, strict=True) if i == 0) < 0.05
    assert min(p for (i, _), p in zip(result.pairs, result.p, strict=True) if i > 0) > 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_pairs_can_be_chosen_and_reversed(family: object) -> None:
    table = scores(np.random.default_rng(28), 3, 30, shift=0.1)
    forth, back = family(table, 500, pairs=[(0, 1)]), family(table, 500, pairs=[(1, 0)])
    assert forth.p == back.p
    assert forth.statistics[0] == pytest.approx(-back.statistics[0])
    with pytest.raises(InputError, match="does not name two"):
        family(table, 500, pairs=[(0, 3)])


@pytest.mark.parametrize("family", FAMILIES)
def test_edges(family: object) -> None:
    def all_nan(result: FamilyResult) -> bool:
        return all(math.isnan(p) for p in result.p) and bool(result.reason)

    assert all_nan(family([[0.1], [0.2]]))
    assert family([[0.1, 0.2]]).reason
    assert family([[0.5] * 20] * 3, 99).p == (1.0, 1.0, 1.0)
    with_gap = family([[0.1, 0.2, math.nan, 0.4], [0.2, 0.3, 0.1, 0.6]], 99)
    assert (with_gap.n, with_gap.left_out) == (3, 1)
    constant = family(np.outer([1.0, 2.0], np.ones(30)), 999)
    assert constant.p[0] == pytest.approx(1 / 1000)


@pytest.mark.parametrize("runs", [2, 6, 7, 40])
def test_the_kernel_draws_the_same_ranges(runs, monkeypatch):
    whole = np.random.default_rng(runs).integers(-(2**30), 2**30, (700, runs)).astype(float)
    native = shuffled_ranges(whole, 1_700, 3)
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    assert np.array_equal(shuffled_ranges(whole, 1_700, 3), native)


@needs_kernel
def test_the_kernel_checks_what_it_is_given():
    from steelyard._kernel import add_shuffled

    scores, orders = np.zeros((3, 2)), np.array([[0, 1, 0, 1]], dtype=np.uint32)
    picked, sums = np.zeros((3, 4), dtype=np.int64), np.zeros((4, 2))
    add_shuffled(scores, orders, picked, sums)
    for wrong in (
        (scores, orders[:, :2].copy(), picked, sums),
        (scores, orders + np.uint32(1), picked, sums),
        (scores, orders, picked + 2, sums),
        (scores, orders, picked - 1, sums),
        (scores, orders, picked, sums[:2].copy()),
    ):
        with pytest.raises(ValueError, match="order|belong"):
            add_shuffled(*wrong)


@pytest.mark.parametrize("runs", [3, 9])
def test_ranges_are_those_of_independent_orders_for_many_queries(runs):
    """Sums of many queries are normal; the range of k of them has a known mean (Tippett 1925)."""
    mean_range = {3: 1.69257, 9: 2.97003}
    queries, row = 20_000, np.random.default_rng(runs).integers(0, 2**20, runs).astype(float)
    ranges = shuffled_ranges(np.tile(row, (queries, 1)), 2_000, 5)
    expected = mean_range[runs] * math.sqrt(queries * np.var(row, ddof=1))
    assert ranges.mean() == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize("runs", [3, 7])
def test_ranges_of_two_queries_are_those_of_all_orders(runs):
    """One query's order does not matter, so that all orders of the other give the distribution."""
    first, second = np.random.default_rng(runs).integers(0, 1000, (2, runs)).astype(float)
    exact = np.sort([np.ptp(first + order) for order in itertools.permutations(second)])
    drawn = np.sort(shuffled_ranges(np.stack([first, second]), 20_000, 1))
    at = np.unique(exact)
    difference = np.searchsorted(exact, at, "right") / len(exact) - np.searchsorted(drawn, at, "right") / len(drawn)
    assert np.abs(difference).max() < 0.015
