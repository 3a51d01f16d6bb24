"""Resampling: random sign flips and bootstrap resamples as matrix products, and the two tests that use them.

The random bits are the raw output of PCG64, whose stream numpy keeps stable, and every sum is over whole numbers. The
same seed gives the same sums to the last bit, whatever the processor, the number of threads or the version of numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from steelyard.checks import whole_number
from steelyard.statistics import arrays
from steelyard.statistics.arrays import Array, Pair, mean_and_deviation, same_sign_p

# 1,024 sign vectors x 64 bytes of signs as float32 are 2 MB, which fits in a core's cache.
VECTORS_PER_BLOCK = 1024
BYTES_PER_TILE = 64
# Halves of 15 bits summed over the 2**9 queries of a tile stay within the 2**24 that float32 holds exactly.
SIGNED_BITS = 30
HALF = 2.0 ** (SIGNED_BITS // 2)
RESAMPLED_PER_BLOCK = 2**19
# With this many non-zero differences all 2**32 sign vectors are still counted in milliseconds.
EXACT_DIFFERENCES = 32

Bits = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]


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


@dataclass(frozen=True)
class SignVectors:
    """Vectors of signs, one sign per query: random ones or, without a seed, all 2**queries of them, each once."""

    queries: int
    count: int
    seed: int | None

    def bits(self, start: int, stop: int) -> Bits:
        """The vectors from start (a multiple of 8) to stop as bits: one row per vector, eight queries per byte."""
        width = -(-self.queries // 8)
        rows = stop - start
        if self.seed is None:
            numbers = np.arange(start, stop, dtype=np.uint64) << np.uint64(8 * width - self.queries)
            bytes_: Bits = numbers.astype(">u8").view(np.uint8).reshape(rows, 8)
            return bytes_[:, -width:]
        generator = np.random.PCG64(self.seed)
        generator.advance(start * width // 8)
        words = generator.random_raw(-(-rows * width // 8)).astype("<u8")
        return words.view(np.uint8)[: rows * width].reshape(rows, width)


def tally_signed_sums(columns: Array, vectors: SignVectors, tally: Callable[[Array], Counts]) -> Counts:
    """The sum of tally(sums) over blocks of sums of the columns (queries x columns) under sign vectors.

    The columns must be whole numbers of at most 30 bits: the products of their halves are exact in float32, and fast.
    """
    upper = np.rint(columns / HALF)
    halves = np.hstack([upper, columns - upper * HALF]).astype(np.float32)

    def one_block(start: int) -> Counts:
        return tally(signed_sums(halves, vectors.bits(start, min(start + VECTORS_PER_BLOCK, vectors.count))))

    counts = arrays.in_threads(one_block, range(0, vectors.count, VECTORS_PER_BLOCK))
    return np.asarray(np.sum(counts, axis=0))


def signed_sums(halves: npt.NDArray[np.float32], bits: Bits) -> Array:
    """Sums of the columns under each row of bits; a table converts a byte to eight signs."""
    every_byte = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    signs_of_byte = np.float32(1.0) - np.float32(2.0) * every_byte.astype(np.float32)
    rows, width = bits.shape
    buffer = np.empty(rows * min(width, BYTES_PER_TILE) * 8, dtype=np.float32)
    sums = np.zeros((rows, halves.shape[1]))
    for start in range(0, width, BYTES_PER_TILE):
        tile = bits[:, start : start + BYTES_PER_TILE]
        part = halves[8 * start : 8 * (start + BYTES_PER_TILE)]
        signs = buffer[: tile.size * 8].reshape(rows, tile.shape[1], 8)
        # mode="wrap" lets numpy write directly into the buffer; a byte is never out of range.
        np.take(signs_of_byte, tile, axis=0, out=signs, mode="wrap")
        sums += arrays.product(signs.reshape(rows, -1)[:, : len(part)], part)
    upper, lower = np.hsplit(sums, 2)
    return upper * HALF + lower


def random_positions(positions: int, rows: int, width: int, generator: np.random.PCG64) -> npt.NDArray[np.int64]:
    """rows x width random whole numbers below `positions`, 32 random bits each (bias below positions / 2**32)."""
    words = -(-width // 2)
    raw = generator.random_raw(rows * words).astype("<u8").view("<u4").reshape(rows, 2 * words)[:, :width]
    numbers: npt.NDArray[np.int64] = raw.astype(np.int64)
    numbers *= positions
    numbers >>= 32
    return numbers


def resampled_sums(columns: Array, draws: int, seed: int) -> Array:
    """Sums of the columns (queries x columns) over `draws` bootstrap resamples of the queries.

    A matrix product of the counts of each query with the columns, which must be whole numbers and share the resamples.
    """
    queries = len(columns)
    block = max(1, RESAMPLED_PER_BLOCK // queries)

    def one_block(start: int) -> Array:
        return arrays.product(_resamples(queries, start, min(block, draws - start), seed), columns)

    return np.concatenate(arrays.in_threads(one_block, range(0, draws, block)))


@lru_cache(maxsize=2)
def _resamples(queries: int, start: int, rows: int, seed: int) -> Array:
    """The counts of the resamples from `start` on; kept for the other intervals of a comparison of few queries."""
    generator = np.random.PCG64(seed)
    generator.advance(start * -(-queries // 2))
    drawn = random_positions(queries, rows, queries, generator)
    drawn += np.arange(rows, dtype=np.int64)[:, None] * queries
    counts: Array = np.bincount(drawn.reshape(-1), minlength=rows * queries).astype(np.float64)
    return counts.reshape(rows, queries)


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


def resampled_moments(rows: Array, draws: int, seed: int) -> tuple[Array, Array]:
    """The mean of every row in each resample of its queries, and the sum of squares about it (draws x rows)."""
    count, n = rows.shape
    columns, shift = arrays.whole_numbers(rows.T, n)
    squares, square_shift = arrays.whole_numbers(rows.T**2, n)
    sums = resampled_sums(np.hstack([columns, squares]), draws, seed)
    means = np.ldexp(sums[:, :count], -shift) / n
    return means, np.ldexp(sums[:, count:], -square_shift) - n * means**2


def studentised(values: Array, draws: int, seed: int) -> list[tuple[float, float]]:
    """(t, p) of every row of complete differences, over shared resamples."""
    n = values.shape[1]
    mean, deviation = np.array([mean_and_deviation(np.ascontiguousarray(row)) for row in values]).T
    # Standardised values have one unit for all rows, and squares of a known size.
    means, squares = resampled_moments((values - mean[:, None]) / deviation[:, None], draws, seed)
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
    whole, shifts = arrays.whole_columns(np.ascontiguousarray(rows.T), n, SIGNED_BITS)
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
    vectors = SignVectors(n, permutations, seed)
    hits = tally_signed_sums(whole, vectors, lambda sums: np.count_nonzero(gaps(sums) >= reached, axis=0))
    return (hits.astype(np.float64) + 1.0) / (permutations + 1.0)
