"""The randomisation test: had the runs been swapped at random on each query, how often such a difference?

Under 'no difference' the sign of every query's difference is a coin toss. The p-value is the share of
sign vectors whose mean is at least as far from 0 as the one seen.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import Array, checked_count, checked_seed, many_series, one_series
from steelyard.statistics.exact import whole_columns
from steelyard.statistics.outcome import TestResult, settled
from steelyard.statistics.resampling import random_sign_bits, signed_sums

# With so many non-zero differences 2**32 sign vectors are still counted out in milliseconds.
EXACT_DIFFERENCES = 32


def permutation_test(differences: npt.ArrayLike, permutations: int = 100_000, seed: int = 0) -> TestResult:
    """`permutation_tests` for one series of differences.

    >>> permutation_test([0.1, 0.3, 0.0, 0.2, 0.1]).p
    0.125
    """
    return permutation_tests(one_series(differences)[None, :], permutations, seed)[0]


def permutation_tests(
    differences: npt.ArrayLike, permutations: int = 100_000, seed: int = 0
) -> list[TestResult]:
    """The randomisation test for every row of a matrix tests x queries, two-sided.

    Up to 32 non-zero differences all sign vectors are counted, so p is exact. Beyond that b of m random
    sign vectors reach the mean seen and p = (b + 1) / (m + 1), which is never 0 and keeps the level.
    All rows share the sign vectors. A mean that equals the one seen but for rounding counts as reaching
    it. The statistic is the mean difference.
    """
    matrix = many_series(differences)
    checked_count(permutations, "permutations")
    missing = np.isnan(matrix)
    whole, _ = whole_columns(np.where(missing, 0.0, matrix).T, matrix.shape[1])
    results: list[TestResult | None] = []
    for row, gone, column in zip(matrix, missing, whole.T, strict=True):
        values, left_out = row[~gone], int(gone.sum())
        result = settled(values, left_out)
        if result is None and np.count_nonzero(values) <= EXACT_DIFFERENCES:
            p = exact_p(column[column != 0.0], slack=len(values))
            result = TestResult(float(values.mean()), p, len(values), left_out, "exact")
        results.append(result)
    open_rows = [row for row, result in enumerate(results) if result is None]
    if open_rows:
        counted = monte_carlo_p(whole[:, open_rows], permutations, checked_seed(seed))
        for row, p in zip(open_rows, counted, strict=True):
            values = matrix[row][~missing[row]]
            method = f"{permutations:,} permutations"
            left_out = int(missing[row].sum())
            results[row] = TestResult(float(values.mean()), float(p), len(values), left_out, method)
    return [result for result in results if result is not None]


def exact_p(whole: Array, slack: float) -> float:
    """The share of all sign vectors whose sum is at least as far from 0 as the sum of `whole`.

    The differences are split in two halves. With the sums of the second half sorted, each sum of the
    first half needs two binary searches: 2**(n/2) steps instead of 2**n.
    """
    middle = len(whole) // 2
    first, second = all_signed_sums(whole[:middle]), np.sort(all_signed_sums(whole[middle:]))
    reached = abs(float(whole.sum())) - slack
    if reached <= 0.0:
        return 1.0
    above = len(second) - np.searchsorted(second, reached - first, side="left")
    below = np.searchsorted(second, -reached - first, side="right")
    return float(int(above.sum() + below.sum()) / 2 ** len(whole))


def all_signed_sums(whole: Array) -> Array:
    """The sums under all 2**n choices of signs."""
    sums = np.zeros(1)
    for value in whole:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def monte_carlo_p(whole: Array, permutations: int, seed: int) -> Array:
    """(b + 1) / (m + 1) for every column of whole numbers (queries x tests)."""
    queries = len(whole)
    reached = np.abs(whole.sum(axis=0)) - queries
    hits = np.zeros(whole.shape[1], dtype=np.int64)
    for sums in signed_sums(whole, random_sign_bits(queries, permutations, seed)):
        hits += np.count_nonzero(np.abs(sums) >= reached, axis=0)
    return (hits.astype(np.float64) + 1.0) / (permutations + 1.0)
