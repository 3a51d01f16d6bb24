"""Paired tests over the differences per query: one entry point, one-sided p-values, and every test by itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from steelyard.checks import unknown_name, whole_number
from steelyard.errors import PolicyError
from steelyard.lazy import special
from steelyard.statistics import arrays
from steelyard.statistics.arrays import ROUNDING, Array, Pair, mean_and_deviation, present, rounding, same_sign_p

PairedTest = Literal["t", "wilcoxon", "sign", "permutation", "bootstrap"]
FamilyTest = Literal["tukey", "max-t"]
PAIRED_TESTS: tuple[PairedTest, ...] = get_args(PairedTest)
FAMILY_TESTS: tuple[FamilyTest, ...] = get_args(FamilyTest)
TESTS: tuple[str, ...] = (*PAIRED_TESTS, *FAMILY_TESTS)

# Up to this many queries the distribution of the signed ranks is exact, as in scipy: without and with ties or zeros.
EXACT_RANKS = 50
EXACT_TIED_RANKS = 13
# With this many non-zero differences all 2**32 sign vectors are still counted in milliseconds.
EXACT_DIFFERENCES = 32


@dataclass(frozen=True)
class TestResult:
    """One paired test: its statistic, its two-sided p-value, and what it was computed from.

    `p` is NaN where no test is possible, and `reason` gives the reason. `left_out` is the number of queries
    without a value in one of the two runs.
    """

    __test__ = False  # keeps pytest from collecting it by its name

    statistic: float
    p: float
    n: int
    left_out: int
    method: str
    reason: str = ""


def trivial_result(values: Array, left_out: int) -> TestResult | None:
    """The result for fewer than two queries, or for no difference on any query (p = 1); None otherwise."""
    n = len(values)
    if n < 2:
        reason = "one query only: the variance cannot be estimated" if n else "no query has a value in both runs"
        return TestResult(math.nan, math.nan, n, left_out, "none", reason)
    if not arrays.snapped(values).any():
        return TestResult(0.0, 1.0, n, left_out, "exact", "the runs score the same on every query")
    return None


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
    """Two-sided p of a positive rank sum: all choices of signs, counted by dynamic programming."""
    # Mean ranks are multiples of a half, so doubled ranks are whole. Counts stay below 2**50 and are therefore exact.
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] += ways[: len(ways) - rank].copy()
    position = round(2.0 * positive)
    tail = min(ways[: position + 1].sum(), ways[position:].sum()) / 2.0 ** len(doubled)
    return min(1.0, 2.0 * float(tail))


def bootstrap_test(differences: npt.ArrayLike, draws: int = 10_000, seed: int = 0) -> TestResult:
    """`bootstrap_tests` for one series of differences.

    >>> bootstrap_test([0.1, 0.3, 0.0, 0.2, 0.1] * 4).p < 0.001
    True
    """
    return bootstrap_tests(arrays.one_series(differences)[None, :], draws, seed)[0]


def bootstrap_tests(differences: npt.ArrayLike, draws: int = 10_000, seed: int = 0) -> list[TestResult]:
    """The studentised paired bootstrap test for every row of a matrix tests x queries, two-sided.

    The differences are shifted to mean 0 and their queries resampled with replacement; b of m
    resamples have a |t| of at least the observed one, and p = (b + 1) / (m + 1). A resample of equal values,
    which has no t, is counted in b. If all differences are equal, p is that of `t_test`, 2 / 2**n, and not below
    1 / (m + 1). Rows with the same queries share the resamples. The statistic is t.
    """
    matrix = arrays.many_series(differences)
    draws = arrays.checked_count(draws, "draws")
    seed = whole_number("seed", seed)
    missing, method = np.isnan(matrix), f"{draws:,} resamples"
    results: dict[int, TestResult] = {}
    by_queries: dict[bytes, list[int]] = {}
    for row, absent in enumerate(missing):
        values, left_out = matrix[row][~absent], int(absent.sum())
        result = trivial_result(values, left_out)
        if result is None and mean_and_deviation(values)[1] == 0.0:
            reason = "the difference is the same on every query"
            p = max(float(same_sign_p(len(values))), 1.0 / (draws + 1.0))
            result = TestResult(math.copysign(math.inf, values[0]), p, len(values), left_out, method, reason)
        if result is not None:
            results[row] = result
        else:
            by_queries.setdefault(absent.tobytes(), []).append(row)
    for rows in by_queries.values():
        absent = missing[rows[0]]
        counts = int((~absent).sum()), int(absent.sum())
        for row, (t, p) in zip(rows, studentised(matrix[rows][:, ~absent], draws, seed), strict=True):
            results[row] = TestResult(t, p, *counts, method)
    return [results[row] for row in range(len(matrix))]


def studentised(values: Array, draws: int, seed: int) -> list[tuple[float, float]]:
    """(t, p) of every row of complete differences, over shared resamples."""
    n = values.shape[1]
    mean, deviation = np.array([mean_and_deviation(np.ascontiguousarray(row)) for row in values]).T
    # Standardised values have one unit for all rows, and squares of a known size.
    means, squares = arrays.resampled_moments((values - mean[:, None]) / deviation[:, None], draws, seed)
    observed = mean / (deviation / math.sqrt(n))
    # |t*| >= |t| without a division: the deviation of a resample of equal values is 0.
    reach = n * means**2 >= observed**2 * np.maximum(squares / (n - 1), 0.0) * (1.0 - 1e-9)
    p = (np.count_nonzero(reach, axis=0) + 1.0) / (draws + 1.0)
    return list(zip(observed.tolist(), p.tolist(), strict=True))


def permutation_test(differences: npt.ArrayLike, permutations: int = 100_000, seed: int = 0) -> TestResult:
    """`permutation_tests` for one series of differences.

    >>> permutation_test([0.1, 0.3, 0.0, 0.2, 0.1]).p
    0.125
    """
    return permutation_tests(arrays.one_series(differences)[None, :], permutations, seed)[0]


def permutation_tests(
    matrix: npt.ArrayLike, permutations: int = 100_000, seed: int = 0, pairs: Sequence[Pair] | None = None
) -> list[TestResult]:
    """The randomisation test, two-sided, for every row of a matrix tests x queries of differences.

    With `pairs` the rows are scores, and each pair of row numbers (i, j) is a test of row i minus
    row j: for all pairs of many runs this is faster than passing the differences.

    Up to 32 non-zero differences all sign vectors are counted, so p is exact. Beyond that b of m random sign vectors
    reach the observed mean and p = (b + 1) / (m + 1), which is never 0 and keeps the level. All tests share the sign
    vectors. A mean that equals the observed one up to rounding reaches it. The statistic is the mean difference.
    """
    rows = arrays.many_series(matrix)
    permutations = arrays.checked_count(permutations, "permutations")
    seed = whole_number("seed", seed)
    chosen = list(pairs or ())
    differences = rows if pairs is None else arrays.row_differences(rows, chosen)
    missing = np.isnan(differences)
    results: dict[int, TestResult] = {}
    for test, (row, absent) in enumerate(zip(differences, missing, strict=True)):
        values, left_out = row[~absent], int(absent.sum())
        result = trivial_result(values, left_out)
        if result is None and np.count_nonzero(values) <= EXACT_DIFFERENCES:
            whole, _ = arrays.whole_numbers(values, len(values))
            p = exact_p(whole[whole != 0.0], slack=len(values))
            result = TestResult(float(values.mean()), p, len(values), left_out, "exact")
        if result is not None:
            results[test] = result
    drawn = [test for test in range(len(differences)) if test not in results]
    if drawn:
        involved = sorted({row for test in drawn for row in chosen[test]}) if chosen else []
        if pairs is not None and len(involved) < len(drawn) and not missing[drawn].any():
            positions = {row: position for position, row in enumerate(involved)}
            terms = [(positions[chosen[test][0]], positions[chosen[test][1]]) for test in drawn]
            p_values = monte_carlo_p(np.nan_to_num(rows[involved]), terms, permutations, seed)
        else:
            p_values = monte_carlo_p(np.nan_to_num(differences[drawn]), None, permutations, seed)
        for test, p in zip(drawn, p_values, strict=True):
            values = differences[test][~missing[test]]
            counts = len(values), int(missing[test].sum())
            results[test] = TestResult(float(values.mean()), float(p), *counts, f"{permutations:,} permutations")
    return [results[test] for test in range(len(differences))]


def exact_p(whole: Array, slack: float) -> float:
    """The share of all sign vectors whose sum is at least as far from 0 as the sum of `whole`.

    With the sums of one half sorted, each sum of the other needs two binary searches: 2**(n/2) steps instead of 2**n.
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
    whole, shifts = arrays.whole_columns(np.ascontiguousarray(rows.T), n, arrays.SIGNED_BITS)
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
    vectors = arrays.SignVectors(n, permutations, seed)
    hits = arrays.tally_signed_sums(whole, vectors, lambda sums: np.count_nonzero(gaps(sums) >= reached, axis=0))
    return (hits.astype(np.float64) + 1.0) / (permutations + 1.0)


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
