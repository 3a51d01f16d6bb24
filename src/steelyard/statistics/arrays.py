"""The arrays that all statistics work on: checks of the input, exact sums, quantiles and matrix products.

A series has one number per query, a matrix is series x queries. A query with NaN is left out; infinity is an error.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
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
    """The quantile of the standard normal at p.

    >>> round(normal_quantile(0.975), 12)
    1.95996398454
    """
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


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
