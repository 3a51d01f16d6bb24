"""Paired tests over the differences per query: t, Wilcoxon and sign, one entry point, and one-sided p-values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from steelyard.checks import unknown_name
from steelyard.errors import PolicyError
from steelyard.lazy import special
from steelyard.statistics import arrays
from steelyard.statistics.arrays import ROUNDING, Array, Pair, mean_and_deviation, present, rounding, same_sign_p
from steelyard.statistics.resampling import TestResult, bootstrap_tests, permutation_tests, trivial_result

PairedTest = Literal["t", "wilcoxon", "sign", "permutation", "bootstrap"]
FamilyTest = Literal["tukey", "max-t"]
PAIRED_TESTS: tuple[PairedTest, ...] = get_args(PairedTest)
FAMILY_TESTS: tuple[FamilyTest, ...] = get_args(FamilyTest)
TESTS: tuple[str, ...] = (*PAIRED_TESTS, *FAMILY_TESTS)

# Up to this many queries the distribution of the signed ranks is exact, as in scipy: without and with ties or zeros.
EXACT_RANKS = 50
EXACT_TIED_RANKS = 13


def t_test(differences: npt.ArrayLike) -> TestResult:
    """Student's paired t: t = mean / (sd / sqrt(n)), n - 1 degrees of freedom.

    The default: robust for the usual numbers of queries, and the most powerful of the simple tests. If all differences
    are equal, the deviation is 0: t is +-inf, and p is the probability that all of them have the same sign, 2 / 2**n.

    >>> round(t_test([0.1, 0.3, 0.0, 0.2, 0.1]).p, 6)
    0.051606
    """
    values, left_out = present(differences)
    if (result := trivial_result(values, left_out)) is not None:
        return result
    n = len(values)
    mean, deviation = mean_and_deviation(values)
    if deviation == 0.0:
        reason = "the difference is the same on every query"
        return TestResult(math.copysign(math.inf, mean), float(same_sign_p(n)), n, left_out, "exact", reason)
    t = mean / (deviation / math.sqrt(n))
    return TestResult(t, float(2.0 * special.stdtr(n - 1, -abs(t))), n, left_out, "student")


def t_tests(matrix: Array) -> tuple[Array, Array]:
    """The mean and the p-value of `t_test` of every row, all at once; NaN for no value, and for fewer than two."""
    n, means, deviations = moments(matrix)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2.0 * special.stdtr(n - 1.0, -np.abs(means / (deviations / np.sqrt(n))))
    return means, np.where(deviations == 0.0, np.where(np.abs(means) < ROUNDING, 1.0, same_sign_p(n)), p)


def moments(matrix: Array) -> tuple[Array, Array, Array]:
    """The number, the mean and the standard deviation (as `mean_and_deviation`) of every row, without NaN."""
    present = ~np.isnan(matrix)
    n = np.count_nonzero(present, axis=1).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(present, matrix, 0.0).sum(axis=1) / n
        deviations = np.sqrt((np.where(present, matrix - means[:, None], 0.0) ** 2).sum(axis=1) / (n - 1.0))
    deviations[n < 2] = math.nan
    return n, means, np.where(deviations <= rounding(means), 0.0, deviations)


def sign_test(differences: npt.ArrayLike) -> TestResult:
    """The sign test: are wins and losses equally likely? Exact binomial; ties are left out.

    It uses the signs of the differences and not their sizes. Differences below 1e-12 are ties. The statistic: wins.

    >>> sign_test([1, 1, 1, 1, -1, 0]).p
    0.375
    """
    values, left_out = present(differences)
    if (result := trivial_result(values, left_out)) is not None:
        return result
    wins, losses = int(np.sum(values > ROUNDING)), int(np.sum(values < -ROUNDING))
    p = 1.0 if wins == losses else min(1.0, 2.0 * float(special.bdtr(min(wins, losses), wins + losses, 0.5)))
    return TestResult(float(wins), p, len(values), left_out, "exact")


def wilcoxon_test(differences: npt.ArrayLike) -> TestResult:
    """Wilcoxon's signed-rank test; zeros are dropped, ties share their mean rank.

    It uses ranks instead of sizes: it is less sensitive to a few large differences, and it tests symmetry about zero
    rather than the mean. Exact for up to 50 queries without ties or zeros and up to 13 with them, otherwise the normal
    approximation with the tie correction, as in scipy's `wilcoxon`; but differences that differ by rounding (1e-12) are
    ties here. The statistic is the smaller of the two rank sums.

    >>> wilcoxon_test([0.1, 0.3, -0.05, 0.2, 0.15]).p
    0.125
    """
    values, left_out = present(differences)
    if (result := trivial_result(values, left_out)) is not None:
        return result
    n = len(values)
    nonzero = values[np.abs(values) >= ROUNDING]
    ranks, counts = mean_ranks(np.abs(nonzero))
    positive = float(ranks[nonzero > 0.0].sum())
    statistic = min(positive, float(ranks.sum()) - positive)
    plain = len(counts) == n
    if n <= (EXACT_RANKS if plain else EXACT_TIED_RANKS):
        return TestResult(statistic, exact_rank_p(ranks, positive), n, left_out, "exact")
    m = float(len(nonzero))
    tied = float((counts.astype(np.float64) ** 3 - counts).sum())
    deviation = math.sqrt((m * (m + 1.0) * (2.0 * m + 1.0) - tied / 2.0) / 24.0)
    z = (positive - m * (m + 1.0) / 4.0) / deviation
    return TestResult(statistic, math.erfc(abs(z) / math.sqrt(2.0)), n, left_out, "normal approximation")


def mean_ranks(sizes: Array) -> tuple[Array, npt.NDArray[np.int64]]:
    """The rank of every size (1: smallest; ties, up to rounding, at their mean), and how often each size occurs."""
    order = np.argsort(sizes, kind="stable")
    steps = np.diff(sizes[order], prepend=sizes[order[:1]]) >= ROUNDING * np.max(np.abs(sizes), initial=1.0)
    place = np.empty(len(sizes), dtype=np.int64)
    place[order] = np.cumsum(steps)
    counts = np.bincount(place)
    ranks: Array = (np.cumsum(counts) - (counts - 1) / 2.0)[place]
    return ranks, counts


def exact_rank_p(ranks: Array, positive: float) -> float:
    """Two-sided p of a positive rank sum: all choices of signs, counted by dynamic programming, exact below 2**50."""
    # Mean ranks are multiples of a half.
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] += ways[: len(ways) - rank].copy()
    position = round(2.0 * positive)
    tail = min(ways[: position + 1].sum(), ways[position:].sum()) / 2.0 ** len(doubled)
    return min(1.0, 2.0 * float(tail))


def paired_tests(
    matrix: npt.ArrayLike,
    test: PairedTest = "t",
    permutations: int = 100_000,
    draws: int = 10_000,
    seed: int = 0,
    pairs: Sequence[Pair] | None = None,
) -> list[TestResult]:
    """One test for every row of a matrix tests x queries of differences; p is not adjusted (see `adjust`).

    With `pairs` the rows are scores, and each pair of row numbers (i, j) is a test of row i minus row j.
    `tukey` and `max-t` are separate functions: they need all runs of one measure, not their differences.

    >>> [round(result.p, 4) for result in paired_tests([[0.1, 0.3, 0.0, 0.2], [0.1, -0.1, 0.1, -0.1]], "t")]
    [0.1027, 1.0]
    """
    rows = arrays.many_series(matrix)
    if test == "permutation":
        return permutation_tests(rows, permutations, seed, pairs)
    rows = arrays.snapped(rows) if pairs is None else arrays.row_differences(rows, pairs)
    if test == "bootstrap":
        return bootstrap_tests(rows, draws, seed)
    classical = {"t": t_test, "wilcoxon": wilcoxon_test, "sign": sign_test}
    name: str = test
    if name in FAMILY_TESTS:
        call = f"call statistics.{name.replace('-', '_')} with a matrix of runs x queries."
        raise PolicyError(f"{name!r} tests all runs of a measure at once: {call}")
    if name not in classical:
        raise PolicyError(unknown_name("test", name, TESTS))
    return [classical[test](row) for row in rows]


def fall_tests(
    matrix: npt.ArrayLike, test: PairedTest = "t", permutations: int = 100_000, draws: int = 10_000, seed: int = 0
) -> list[TestResult]:
    """One one-sided test for every row of differences: are they below 0? p is not adjusted.

    Under the null hypothesis each of these tests is symmetric, so p is half the two-sided p where the
    direction of the data is negative, and 1 minus that where it is not. Where every difference is 0, p is 1.
    The direction is that of the mean, the signed ranks or the signs, whichever the test uses.

    >>> [round(result.p, 4) for result in fall_tests([[-0.1, -0.3, 0.0, -0.2], [0.1, 0.3, 0.0, 0.2]])]
    [0.0514, 0.9486]
    """
    rows = arrays.snapped(arrays.many_series(matrix))
    results = paired_tests(rows, test, permutations, draws, seed)
    lower = []
    for result, row in zip(results, rows, strict=True):
        values, _ = present(row)
        if not np.isnan(result.p) and values.any():
            half = result.p / 2.0
            result = replace(result, p=half if _direction(values, test) < 0 else 1.0 - half)
        lower.append(result)
    return lower


def smallest_p(test: PairedTest, n: int, permutations: int = 100_000, draws: int = 10_000) -> float:
    """The smallest p that `fall_tests` can give for n queries.

    >>> smallest_p("sign", 4), smallest_p("t", 4)
    (0.0625, 0.0)
    """
    if test == "t":
        return 0.0
    if test == "bootstrap":
        return 0.5 / (draws + 1.0)
    exact = 0.5**n
    return max(exact, 0.5 / (permutations + 1.0)) if test == "permutation" and n > 32 else exact


def _direction(values: Array, test: PairedTest) -> float:
    """The sign of what the test uses: the signs, the signed ranks or the mean."""
    if test == "sign":
        return float(np.sign(values[np.abs(values) > ROUNDING]).sum())
    if test == "wilcoxon":
        moved = values[np.abs(values) >= ROUNDING]
        ranks, _ = mean_ranks(np.abs(moved))
        return float(np.sum(np.sign(moved) * ranks))
    return float(values.mean())
