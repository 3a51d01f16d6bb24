"""The paired bootstrap test: resample the queries as if there were no difference."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import Array, checked_count, checked_seed, many_series, one_series
from steelyard.statistics.effect import mean_and_deviation
from steelyard.statistics.exact import whole_numbers
from steelyard.statistics.outcome import TestResult, settled
from steelyard.statistics.resampling import resampled_sums


def bootstrap_test(differences: npt.ArrayLike, draws: int = 10_000, seed: int = 0) -> TestResult:
    """`bootstrap_tests` for one series of differences.

    >>> bootstrap_test([0.1, 0.3, 0.0, 0.2, 0.1] * 4).p < 0.001
    True
    """
    return bootstrap_tests(one_series(differences)[None, :], draws, seed)[0]


def bootstrap_tests(differences: npt.ArrayLike, draws: int = 10_000, seed: int = 0) -> list[TestResult]:
    """The studentised paired bootstrap test for every row of a matrix tests x queries, two-sided.

    The differences are shifted to mean 0 and their queries resampled with replacement; b of m
    resamples have a |t| of at least the one seen, and p = (b + 1) / (m + 1). A resample of one value
    only, which has no t, counts as reaching. Rows with the same queries share the resamples. The
    statistic is t.
    """
    matrix = many_series(differences)
    checked_count(draws, "draws")
    checked_seed(seed)
    missing = np.isnan(matrix)
    results: dict[int, TestResult] = {}
    by_queries: dict[bytes, list[int]] = {}
    for row, gone in enumerate(missing):
        values, left_out = matrix[row][~gone], int(gone.sum())
        result = settled(values, left_out)
        if result is None and mean_and_deviation(values)[1] == 0.0:
            reason = "the difference is the same on every query"
            t = math.copysign(math.inf, values[0])
            result = TestResult(t, 1.0 / (draws + 1.0), len(values), left_out, f"{draws:,} resamples", reason)
        if result is not None:
            results[row] = result
        else:
            by_queries.setdefault(gone.tobytes(), []).append(row)
    for rows in by_queries.values():
        kept = ~missing[rows[0]]
        left_out = int(missing[rows[0]].sum())
        for row, (t, p) in zip(rows, studentised(matrix[rows][:, kept], draws, seed), strict=True):
            results[row] = TestResult(t, p, int(kept.sum()), left_out, f"{draws:,} resamples")
    return [results[row] for row in range(len(matrix))]


def studentised(values: Array, draws: int, seed: int) -> list[tuple[float, float]]:
    """(t, p) of every row of complete differences, over shared resamples."""
    tests, n = values.shape
    mean, deviation = np.array([mean_and_deviation(np.ascontiguousarray(row)) for row in values]).T
    # Standardised, one unit serves all rows, and the squares have a known size.
    standard = (values - mean[:, None]) / deviation[:, None]
    columns, shift = whole_numbers(standard.T, n)
    squares, square_shift = whole_numbers(standard.T**2, n)
    sums = resampled_sums(np.hstack([columns, squares]), draws, seed)
    means = np.ldexp(sums[:, :tests], -shift) / n
    variances = (np.ldexp(sums[:, tests:], -square_shift) - n * means**2) / (n - 1)
    seen = mean / (deviation / math.sqrt(n))
    # |t*| >= |t| without dividing: a resample of equal values has no deviation to divide by.
    reach = n * means**2 >= seen**2 * np.maximum(variances, 0.0) * (1.0 - 1e-9)
    p = (np.count_nonzero(reach, axis=0) + 1.0) / (draws + 1.0)
    return [(float(t), float(chance)) for t, chance in zip(seen, p, strict=True)]
