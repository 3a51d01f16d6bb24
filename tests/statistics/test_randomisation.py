"""The permutation and bootstrap tests: exactness, level, ties, and the same bits every time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from needs import import_peer
from steelyard.errors import InputError
from steelyard.statistics import (
    arrays,
    bootstrap_test,
    bootstrap_tests,
    max_t,
    permutation_test,
    permutation_tests,
    t_test,
    tukey,
)
from steelyard.statistics.arrays import SignVectors, resampled_sums, tally_signed_sums, whole_numbers
from steelyard.statistics.paired import monte_carlo_p


def brute_force_p(d: np.ndarray) -> float:
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=len(d))))
    return float(np.mean(np.abs(signs @ d) >= abs(d.sum()) - 1e-12))


@pytest.mark.parametrize("n", [2, 3, 7, 10, 12])
@pytest.mark.parametrize("kind", ["plain", "ties"])
def test_exact_permutation_equals_scipy(n: int, kind: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        d = rng.normal(0.2, 1.0, n) if kind == "plain" else rng.integers(-4, 5, n) / 8.0
        if not d.any():
            continue
        theirs = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=False)
        ours = permutation_test(d)
        assert ours.method == "exact"
        assert ours.p == pytest.approx(theirs.pvalue, abs=1e-12)


def test_meeting_in_the_middle_counts_every_sign_vector() -> None:
    rng = np.random.default_rng(4)
    for d in (rng.normal(0.3, 1, 15), rng.choice([-0.1, 0.1, 0.3, 0.0], 16), rng.random(14) - 0.3):
        assert permutation_test(d).p == brute_force_p(d)


def test_zeros_change_nothing_so_many_queries_can_still_be_exact() -> None:
    d = np.zeros(5000)
    d[:20] = np.random.default_rng(0).normal(0.3, 1.0, 20)
    sparse = permutation_test(d)
    assert sparse.method == "exact"
    assert sparse.p == permutation_test(d[:20]).p


def test_monte_carlo_agrees_with_the_exact_answer_and_is_never_zero() -> None:
    rng = np.random.default_rng(1)
    d = rng.normal(0.25, 1.0, 32)
    exact = permutation_test(d).p
    (drawn,) = monte_carlo_p(d[None, :], None, 100_000, 5)
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 100_000))
    assert permutation_test(np.full(100, 0.5), permutations=999).p == 1 / 1000


def test_equal_statistics_count_as_reached_despite_rounding() -> None:
    # Every difference is +-0.1 up to rounding, so the probability of the observed sum is a binomial tail.
    rng = np.random.default_rng(2)
    base = rng.random(60)
    step = np.where(rng.random(60) < 0.62, 0.1, -0.1)
    d = (base + step) - base
    wins = int((step > 0).sum())
    exact = stats.binomtest(wins, 60, 0.5).pvalue
    p = permutation_test(d, permutations=200_000, seed=3).p
    assert p == pytest.approx(exact, abs=4 * math.sqrt(exact / 200_000))


def test_the_same_bits_for_any_number_of_threads_and_any_tiling(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = import_peer("threadpoolctl")
    d = np.random.default_rng(3).normal(0.02, 1.0, (7, 1500))
    with threads.threadpool_limits(1):
        alone = permutation_tests(d, permutations=3000, seed=11)
        drawn = resampled_sums(np.rint(d.T * 1e6), 200, 3)
    with threads.threadpool_limits(2):
        assert permutation_tests(d, permutations=3000, seed=11) == alone
    monkeypatch.setattr(arrays, "processors", lambda: 1)
    monkeypatch.setattr(arrays, "VECTORS_PER_BLOCK", 64)
    monkeypatch.setattr(arrays, "BYTES_PER_TILE", 24)
    monkeypatch.setattr(arrays, "RESAMPLED_PER_BLOCK", 4096)
    assert permutation_tests(d, permutations=3000, seed=11) == alone
    assert np.array_equal(resampled_sums(np.rint(d.T * 1e6), 200, 3), drawn)
    assert permutation_tests(d, permutations=3000, seed=12) != alone


def test_known_bits() -> None:
    """Pinned results: a change here means published p-values no longer reproduce."""
    d = (np.arange(100) * 7 % 13 - 6 + (np.arange(100) % 3 == 0) * 3) / 16.0
    assert permutation_test(d, permutations=9999, seed=0).p == 0.0237
    assert bootstrap_test(d, draws=9999, seed=0).p == 0.0265
    table = [np.roll(d, 7 * run) * (1 + run / 4) for run in range(4)]
    assert tukey(table, 9999).p == (0.9934, 0.9537, 0.8579, 0.9934, 0.9537, 0.9934)
    assert max_t(table, 9999).p == (0.9753, 0.9415, 0.8575, 0.9753, 0.9573, 0.9753)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    d = np.random.default_rng(5).normal(0.05, 1.0, (4, 90))
    d[2, 5] = math.nan
    for tests in (permutation_tests, bootstrap_tests):
        assert tests(d, 500)[1] == tests(d[1:2], 500)[0]


def test_pairs_of_rows_give_what_their_differences_give() -> None:
    rng = np.random.default_rng(9)
    scores = rng.beta(1.0, 2.0, (5, 80)) * np.array([[1.0], [1.0], [1.1], [1.2], [1.0]])
    pairs = list(itertools.combinations(range(5), 2))
    apart = permutation_tests([scores[i] - scores[j] for i, j in pairs], 5000, seed=2)
    assert permutation_tests(scores, 5000, seed=2, pairs=pairs) == apart
    assert permutation_tests(scores, 5000, seed=2, pairs=pairs[:2]) == apart[:2]
    scores[3, 7] = math.nan
    with_gap = permutation_tests(scores, 5000, seed=2, pairs=pairs)
    assert [result.left_out for result in with_gap] == [int(3 in pair) for pair in pairs]
    with pytest.raises(InputError, match=r"\(0, 5\)"):
        permutation_tests(scores, pairs=[(0, 5)])


@pytest.mark.parametrize("test", [permutation_test, bootstrap_test])
def test_close_to_t_where_t_is_right(test: object) -> None:
    rng = np.random.default_rng(6)
    for shift in (0.05, 0.15, 0.25):
        d = rng.normal(shift, 1.0, 200)
        assert test(d, 20_000).p == pytest.approx(t_test(d).p, abs=0.012)


@pytest.mark.parametrize("test", [permutation_tests, bootstrap_tests])
def test_the_level_is_kept_on_skewed_scores(test: object) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.beta(0.5, 2.0, (2, 2000, 40))
    p = np.array([result.p for result in test(a - b, 999)])
    assert 0.03 <= np.mean(p < 0.05) <= 0.07


def test_bootstrap_test_survives_resamples_of_one_value() -> None:
    assert 0.0 < bootstrap_test([0.0, 0.0, 1.0]).p <= 1.0
    assert bootstrap_test([0.1, 0.2]).p == bootstrap_test([-0.1, -0.2]).p


def test_every_sign_vector_comes_once() -> None:
    columns = np.ldexp(1.0, np.arange(12))[:, None]
    seen: list[float] = []

    def note(sums: np.ndarray) -> np.ndarray:
        seen.extend(sums[:, 0])
        return np.array([len(sums)])

    assert tally_signed_sums(columns, SignVectors(12, 2**12, None), note) == [4096]
    assert sorted(seen) == list(range(-4095, 4096, 2))


def test_signed_sums_are_exact_sums() -> None:
    rng = np.random.default_rng(10)
    columns = np.rint(rng.uniform(-(2.0**30), 2.0**30, (1300, 70)))
    vectors = SignVectors(1300, 100, 4)
    signs = 1.0 - 2.0 * np.unpackbits(vectors.bits(0, 100), axis=1)[:, :1300]
    expected = np.array([[math.fsum(s * column) for column in columns.T] for s in signs])
    seen: list[np.ndarray] = []

    def note(sums: np.ndarray) -> np.ndarray:
        seen.append(sums)
        return np.zeros(1, dtype=np.int64)

    tally_signed_sums(columns, vectors, note)
    assert np.array_equal(np.concatenate(seen), expected)
    assert abs(signs.mean()) < 0.01


def test_sums_of_whole_numbers_are_exact_and_close() -> None:
    rng = np.random.default_rng(8)
    for scale in (1e-300, 1e-9, 1.0, 1e12):
        values = rng.normal(size=5000) * scale
        whole, shift = whole_numbers(values, 5000)
        assert np.array_equal(whole, np.rint(whole))
        assert whole.sum() == whole[::-1].cumsum()[-1] == math.fsum(whole)
        assert np.allclose(np.ldexp(whole, -shift), values, rtol=0, atol=1e-11 * np.abs(values).max())


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match="permutations"):
        permutation_test([0.1, 0.2], permutations=0)
    with pytest.raises(InputError, match="seed"):
        permutation_test(np.arange(50.0), seed=-1)
    with pytest.raises(InputError, match="draws"):
        bootstrap_test([0.1, 0.2], draws=0)
