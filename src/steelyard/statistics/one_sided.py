"""One-sided tests: have the values fallen? For gates, which ask about one direction only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import Array, many_series, present
from steelyard.statistics.effect import ROUNDING
from steelyard.statistics.outcome import TestResult
from steelyard.statistics.paired import mean_ranks
from steelyard.statistics.tests import PairedTest, paired_tests


def fall_tests(
    matrix: npt.ArrayLike,
    test: PairedTest = "t",
    permutations: int = 100_000,
    draws: int = 10_000,
    seed: int = 0,
) -> list[TestResult]:
    """One test for every row of differences: are they below 0? One-sided p, not adjusted.

    Under 'no difference' each of these tests is as likely to lean down as up, so p is half the
    two-sided one where the data lean down, and at least a half where they do not. Where every difference
    is 0, p is 1. What leans is what the test looks at: the mean, the signed ranks, or the signs.

    >>> [round(result.p, 4) for result in fall_tests([[-0.1, -0.3, 0.0, -0.2], [0.1, 0.3, 0.0, 0.2]])]
    [0.0514, 0.9486]
    """
    rows = many_series(matrix)
    results = paired_tests(rows, test, permutations, draws, seed)
    return [_lower(result, row, test) for result, row in zip(results, rows, strict=True)]


def smallest_p(test: PairedTest, n: int, permutations: int = 100_000, draws: int = 10_000) -> float:
    """The smallest p that `fall_tests` can give for n queries: nothing below it can ever be found.

    >>> smallest_p("sign", 4), smallest_p("t", 4)
    (0.0625, 0.0)
    """
    if test == "t":
        return 0.0
    if test == "bootstrap":
        return 0.5 / (draws + 1.0)
    exact = 0.5**n
    return max(exact, 0.5 / (permutations + 1.0)) if test == "permutation" and n > 32 else exact


def _lower(result: TestResult, row: Array, test: PairedTest) -> TestResult:
    values, _ = present(row)
    if np.isnan(result.p) or not values.any():
        return result
    half = result.p / 2.0
    return replace(result, p=half if _lean(values, test) < 0 else 1.0 - half)


def _lean(values: Array, test: PairedTest) -> float:
    """Below 0 where the data lean down, in what the test looks at."""
    if test == "sign":
        return float(np.sign(values[np.abs(values) > ROUNDING]).sum())
    if test == "wilcoxon":
        moved = values[values != 0.0]
        ranks, _ = mean_ranks(np.abs(moved))
        return float(np.sum(np.sign(moved) * ranks))
    return float(values.mean())
