"""The randomisation test: had the runs been swapped at random on each query, how often such a difference?

Under 'no difference' the sign of every query's difference is a coin toss. The p-value is the share of
sign vectors whose mean is at least as far from 0 as the one seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import (
    Array,
    Pair,
    checked_count,
    checked_seed,
    many_series,
    one_series,
    row_differences,
)
from steelyard.statistics.exact import whole_columns, whole_numbers
from steelyard.statistics.outcome import TestResult, settled
from steelyard.statistics.resampling import SIGNED_BITS, SignVectors, tally_signed_sums

# With so many non-zero differences 2**32 sign vectors are still counted out in milliseconds.
EXACT_DIFFERENCES = 32


def permutation_test(differences: npt.ArrayLike, permutations: int = 100_000, seed: int = 0) -> TestResult:
    """`permutation_tests` for one series of differences.

    >>> permutation_test([0.1, 0.3, 0.0, 0.2, 0.1]).p
    0.125
    """
    return permutation_tests(one_series(differences)[None, :], permutations, seed)[0]


def permutation_tests(
    matrix: npt.ArrayLike,
    permutations: int = 100_000,
    seed: int = 0,
    pairs: Sequence[Pair] | None = None,
) -> list[TestResult]:
    """The randomisation test, two-sided, for every row of a matrix tests x queries of differences.

    With `pairs` the rows are scores, and each pair of row numbers (i, j) is a test of row i minus
    row j: for all pairs of many runs this is less work than handing over the differences.

    Up to 32 non-zero differences all sign vectors are counted, so p is exact. Beyond that b of m random
    sign vectors reach the mean seen and p = (b + 1) / (m + 1), which is never 0 and keeps the level.
    All tests share the sign vectors. A mean that equals the one seen but for rounding counts as reaching
    it. The statistic is the mean difference.
    """
    rows = many_series(matrix)
    checked_count(permutations, "permutations")
    checked_seed(seed)
    if pairs is None:
        differences = rows
    else:
        chosen = list(pairs)
        differences = row_differences(rows, chosen)
    missing = np.isnan(differences)
    results: dict[int, TestResult] = {}
    for test, (row, gone) in enumerate(zip(differences, missing, strict=True)):
        values, left_out = row[~gone], int(gone.sum())
        result = settled(values, left_out)
        if result is None and np.count_nonzero(values) <= EXACT_DIFFERENCES:
            whole, _ = whole_numbers(values, len(values))
            p = exact_p(whole[whole != 0.0], slack=len(values))
            result = TestResult(float(values.mean()), p, len(values), left_out, "exact")
        if result is not None:
            results[test] = result
    drawn = [test for test in range(len(differences)) if test not in results]
    if drawn:
        involved = sorted({row for test in drawn for row in chosen[test]}) if pairs is not None else []
        if pairs is not None and len(involved) < len(drawn) and not missing[drawn].any():
            places = {row: place for place, row in enumerate(involved)}
            terms = [(places[chosen[test][0]], places[chosen[test][1]]) for test in drawn]
            p_values = monte_carlo_p(np.nan_to_num(rows[involved]), terms, permutations, seed)
        else:
            columns = np.nan_to_num(differences[drawn])
            p_values = monte_carlo_p(columns, None, permutations, seed)
        for test, p in zip(drawn, p_values, strict=True):
            values = differences[test][~missing[test]]
            left_out = int(missing[test].sum())
            method = f"{permutations:,} permutations"
            results[test] = TestResult(float(values.mean()), float(p), len(values), left_out, method)
    return [results[test] for test in range(len(differences))]


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


def monte_carlo_p(rows: Array, pairs: Sequence[Pair] | None, permutations: int, seed: int) -> Array:
    """(b + 1) / (m + 1) for the difference of every pair of rows, or for every row itself."""
    n = rows.shape[1]
    whole, shifts = whole_columns(np.ascontiguousarray(rows.T), n, SIGNED_BITS)
    # Rounding to whole units may move each side by half a unit per query.
    units = np.ldexp(float(n), -shifts)
    first, second = zip(*pairs, strict=True) if pairs is not None else (range(len(rows)), ())
    first_of, second_of = (np.array(side, dtype=np.int64) for side in (first, second))

    def gaps(sums: Array) -> Array:
        scaled: Array = np.ldexp(sums, -shifts)
        size = scaled[:, first_of]
        return np.abs(size - scaled[:, second_of] if pairs is not None else size)

    slack = units[first_of] + (units[second_of] if pairs is not None else 0.0)
    reached = gaps(whole.sum(axis=0)[None, :])[0] - slack
    vectors = SignVectors.random(n, permutations, seed)
    hits = tally_signed_sums(whole, vectors, lambda sums: np.count_nonzero(gaps(sums) >= reached, axis=0))
    return (hits.astype(np.float64) + 1.0) / (permutations + 1.0)
