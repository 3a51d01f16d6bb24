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


@pytest.mark.parametrize("family", FAMILIES)
def test_family_wise_error_over_2000_null_draws(family: object) -> None:
    rng = np.random.default_rng(20)
    false_alarms = [min(family(scores(rng, 5, 40), 299, seed=draw).p) < 0.05 for draw in range(2000)]
    assert 0.03 <= np.mean(false_alarms) <= 0.07


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


@pytest.mark.parametrize("runs", [2, 8, 9, 40])
def test_the_kernel_draws_the_same_ranges(runs, monkeypatch):
    whole = np.random.default_rng(runs).integers(-(2**30), 2**30, (700, runs)).astype(float)
    native = shuffled_ranges(whole, 1_700, 3)
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    assert np.array_equal(shuffled_ranges(whole, 1_700, 3), native)


@needs_kernel
def test_the_kernel_checks_what_it_is_given():
    from steelyard._kernel import shuffled_ranges as of_kernel

    scores, orders = np.zeros((3, 2)), np.array([[0, 1], [1, 0]], dtype=np.uint8)
    picked, ranges = np.zeros((4, 3), dtype=np.int64), np.empty(4)
    of_kernel(scores, orders, picked, ranges)
    for wrong in (
        (scores, orders[:, :1].copy(), picked, ranges),
        (scores, orders + np.uint8(1), picked, ranges),
        (scores, orders, picked + 2, ranges),
        (scores, orders, picked - 1, ranges),
        (scores, orders, picked, ranges[:2].copy()),
    ):
        with pytest.raises(ValueError, match="order|belong"):
            of_kernel(*wrong)
