"""The arrays that all statistics work on: checks of the input, exact sums, quantiles, random signs and resamples.

A series has one number per query, a matrix is series x queries. A query with NaN is left out; infinity is an error.
The random bits are the raw output of PCG64, whose stream numpy keeps stable, and every sum is over whole numbers. The
same seed gives the same sums to the last bit, whatever the processor, the number of threads or the version of numpy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from steelyard.checks import whole_number
from steelyard.errors import InputError
from steelyard.lazy import special
from steelyard.wording import counted, worded

Array = npt.NDArray[np.float64]
Pair = tuple[int, int]
ROUNDING = 1e-12  # A smaller difference between two scores is rounding.


def one_series(values: npt.ArrayLike) -> Array:
    """The values as one float64 array, one number per query."""
    return _finite(values, 1, "one number per query, got an array of", "Give a flat list or array.")


def present(values: npt.ArrayLike) -> tuple[Array, int]:
    """The values of one series that are numbers, and how many were not."""
    series = one_series(values)
    kept = series[~np.isnan(series)]
    return kept, len(series) - len(kept)


def many_series(values: npt.ArrayLike) -> Array:
    """The values as a float64 matrix, series x queries."""
    advice = "Give one row per run or measure, one column per query."
    return _finite(values, 2, "a matrix of series x queries, got", advice)


def _finite(values: npt.ArrayLike, dimensions: int, expected: str, advice: str) -> Array:
    """The values as an array, or an error for other dimensions and for infinite values."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions:
        raise InputError(f"Expected {expected} {array.ndim} dimensions (shape {array.shape}). {advice}")
    infinite = np.isinf(array)
    if infinite.any():
        where = ", ".join(str(int(i)) for i in np.argwhere(infinite)[0])
        raise InputError(
            f"{int(infinite.sum()):,} of {counted(array.size, 'value')} "
            f"{worded(int(infinite.sum()), 'is', 'are')} infinite, the first at position {where}. "
            "Values must be finite; use NaN where a query has no value."
        )
    return array


def snapped(gaps: Array) -> Array:
    """The differences, with those that are only rounding as 0."""
    return np.where(np.abs(gaps) < ROUNDING, 0.0, gaps)


def differences(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """a - b, query by query; NaN where either has no value. A difference below 1e-12 is 0.

    >>> differences([0.5, 1.0, float("nan")], [0.25, 1.0, 0.5])
    array([0.25, 0.  ,  nan])
    """
    first, second = one_series(a), one_series(b)
    if len(first) != len(second):
        problem = f"Paired series must cover the same queries, got {len(first):,} and {len(second):,} values."
        raise InputError(f"{problem} Join them by query id first, with NaN where one has no value.")
    return snapped(first - second)


def rounding(mean: npt.ArrayLike) -> Array:
    """The standard deviation up to which values with this mean are equal: the documented 1e-12, more for large ones."""
    return np.maximum(ROUNDING, 1e-14 * np.abs(mean))


def same_sign_p(n: npt.ArrayLike) -> Array:
    """The p-value of n queries that all differ by the same amount: the chance of n equal signs, 2 / 2**n."""
    return 2.0 * 0.5 ** np.asarray(n, dtype=np.float64)


def mean_and_deviation(values: Array) -> tuple[float, float]:
    """Mean and standard deviation (n - 1); a deviation that is only rounding is 0."""
    mean = float(values.mean())
    deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return mean, 0.0 if deviation <= rounding(mean) else deviation


def checked_level(level: float) -> float:
    """The level itself, or an error: it must be above 0 and below 1."""
    if not 0.0 < level < 1.0:
        raise InputError(f"A level is above 0 and below 1, got {level}. Write 0.95 for 95%.")
    return level


def checked_count(count: int, what: str) -> int:
    """The count as an int, or an error: it must be a whole number, 1 or more."""
    return whole_number(f"the number of {what}", count, 1)


def checked_pairs(pairs: Sequence[Pair], rows: int) -> list[Pair]:
    """The pairs as a list, or an error for the first that is not two different rows."""
    for i, j in pairs:
        if not (0 <= i < rows and 0 <= j < rows and i != j):
            problem = f"The pair ({i}, {j}) does not name two of the {rows} rows:"
            raise InputError(f"{problem} expected two different numbers from 0 to {rows - 1}.")
    return list(pairs)


def row_differences(rows: Array, pairs: Sequence[Pair]) -> Array:
    """Row i minus row j for every pair (i, j); a difference below 1e-12 is 0."""
    chosen = checked_pairs(pairs, len(rows))
    return snapped(rows[[i for i, _ in chosen]] - rows[[j for _, j in chosen]])


# Sums of whole numbers are exact, so they do not depend on the order of addition.
RESOLUTION_BITS = 40
EXACT_BITS = 53


def whole_numbers(values: Array, terms: int, resolution: int = RESOLUTION_BITS) -> tuple[Array, int]:
    """(w, shift): w = values * 2**shift rounded, such that sums of `terms` of them are exact.

    The unit is 2**-resolution of the largest value, or coarser where there are many terms. Each
    rounding errs by at most half a unit, so a sum errs by at most terms / 2 units. Values that should
    be equal but differ in their last bits become equal, as counting ties requires.

    >>> whole_numbers(np.array([0.5, -0.25]), 2)
    (array([ 5.49755814e+11, -2.74877907e+11]), 40)
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0.0:
        return np.zeros_like(values), 0
    bits = min(resolution, EXACT_BITS - 1 - int(terms).bit_length())
    shift = bits - int(np.frexp(largest)[1])
    return np.rint(np.ldexp(values, shift)), shift


def whole_columns(columns: Array, terms: int, resolution: int = RESOLUTION_BITS) -> tuple[Array, npt.NDArray[np.int64]]:
    """`whole_numbers` for each column by itself, with one shift per column."""
    whole = np.empty_like(columns)
    shifts = np.zeros(columns.shape[1], dtype=np.int64)
    for column in range(columns.shape[1]):
        whole[:, column], shifts[column] = whole_numbers(columns[:, column], terms, resolution)
    return whole, shifts


def normal_cdf(x: float) -> float:
    """The distribution function of the standard normal."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def normal_quantile(p: float) -> float:
    """The quantile of the standard normal at p, above 0 and below 1.

    Newton's steps on the logarithm of the distribution function. It is concave and the start lies below the quantile,
    so every step comes closer; six reach the precision of a float. The module statistics would be slow to import.

    >>> round(normal_quantile(0.975), 12)
    1.95996398454
    """
    if p > 0.5:
        return -normal_quantile(1.0 - p)
    x = -math.sqrt(-2.0 * math.log(2.0 * p))
    for _ in range(6):
        cdf = normal_cdf(x)
        x -= math.log(cdf / p) * cdf * math.sqrt(2.0 * math.pi) * math.exp(0.5 * x * x)
    return x


def student_quantile(p: float, freedom: int) -> float:
    """The quantile of Student's t: exact for 1 and 2 degrees of freedom and above p = 0.98, otherwise a series.

    The series (Abramowitz and Stegun 26.7.5) errs by less than 0.2% for 3 degrees of freedom, and by less than 1e-5
    from 10 on. scipy is slow to import, and every evaluation has an interval.

    >>> round(student_quantile(0.975, 49), 6)
    2.009575
    """
    if not 0.5 <= p <= 0.98:
        return float(special.stdtrit(freedom, p))
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    if freedom == 2:
        return (2.0 * p - 1.0) / math.sqrt(2.0 * p * (1.0 - p))
    z = normal_quantile(p)
    s = z * z
    terms = (
        z * (s + 1.0) / 4.0,
        z * ((5.0 * s + 16.0) * s + 3.0) / 96.0,
        z * (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0,
        z * ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92160.0,
    )
    return z + math.fsum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))


Number = TypeVar("Number", np.float32, np.float64)
Result = TypeVar("Result")

# OpenBLAS uses one thread up to rows x inner x columns = 2**18.
ROWS, INNER, COLUMNS = 64, 64, 64


def product(left: npt.NDArray[Number], right: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """left @ right, summed over blocks of 64 x 64 x 64, so that BLAS uses one thread and the result is reproducible."""
    rows, inner = left.shape
    total = np.zeros((rows, right.shape[1]), dtype=left.dtype)
    whole = rows // ROWS * ROWS
    for top, stacked in ((0, whole), (whole, rows - whole)):
        if not stacked:
            continue
        height = min(ROWS, stacked)
        for column in range(0, right.shape[1], COLUMNS):
            target = total[top : top + stacked, column : column + COLUMNS]
            pieces = np.zeros((stacked // height, height, target.shape[1]), dtype=left.dtype)
            for start in range(0, inner, INNER):
                stack = left[top : top + stacked, start : start + INNER].reshape(stacked // height, height, -1)
                pieces += stack @ right[start : start + INNER, column : column + COLUMNS]
            target += pieces.reshape(stacked, -1)
    return total


def in_threads(work: Callable[[int], Result], jobs: Iterable[int]) -> list[Result]:
    """work(job) for every job, in order, in one thread per available processor (at most eight)."""
    numbers = list(jobs)
    workers = min(processors(), 8, len(numbers))
    if workers < 2:
        return [work(number) for number in numbers]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, numbers))


def processors() -> int:
    """The number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


# Random sign flips and bootstrap resamples, as matrix products

# 1,024 sign vectors x 64 bytes of signs as float32 are 2 MB, which fits in a core's cache.
VECTORS_PER_BLOCK = 1024
BYTES_PER_TILE = 64
# Halves of 15 bits summed over the 2**9 queries of a tile stay within the 2**24 that float32 holds exactly.
SIGNED_BITS = 30
HALF = 2.0 ** (SIGNED_BITS // 2)
RESAMPLED_PER_BLOCK = 2**19

Bits = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]


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

    counts = in_threads(one_block, range(0, vectors.count, VECTORS_PER_BLOCK))
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
        sums += product(signs.reshape(rows, -1)[:, : len(part)], part)
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
        return product(_resamples(queries, start, min(block, draws - start), seed), columns)

    return np.concatenate(in_threads(one_block, range(0, draws, block)))


@lru_cache(maxsize=2)
def _resamples(queries: int, start: int, rows: int, seed: int) -> Array:
    """The counts of the resamples from `start` on; kept for the other intervals of a comparison of few queries."""
    generator = np.random.PCG64(seed)
    generator.advance(start * -(-queries // 2))
    drawn = random_positions(queries, rows, queries, generator)
    drawn += np.arange(rows, dtype=np.int64)[:, None] * queries
    counts: Array = np.bincount(drawn.reshape(-1), minlength=rows * queries).astype(np.float64)
    return counts.reshape(rows, queries)


def resampled_moments(rows: Array, draws: int, seed: int) -> tuple[Array, Array]:
    """The mean of every row in each resample of its queries, and the sum of squares about it (draws x rows)."""
    count, n = rows.shape
    columns, shift = whole_numbers(rows.T, n)
    squares, square_shift = whole_numbers(rows.T**2, n)
    sums = resampled_sums(np.hstack([columns, squares]), draws, seed)
    means = np.ldexp(sums[:, :count], -shift) / n
    return means, np.ldexp(sums[:, count:], -square_shift) - n * means**2
