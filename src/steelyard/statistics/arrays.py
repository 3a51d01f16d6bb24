"""What comes in: numbers per query, checked once.

A series is one number per query; a matrix is series x queries. NaN means 'not applicable to this
query' and is left out wherever it is met; an infinity is a mistake and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from steelyard.errors import InputError
from steelyard.wording import counted, worded

Array = npt.NDArray[np.float64]
Pair = tuple[int, int]


def one_series(values: npt.ArrayLike) -> Array:
    """The values as one float64 array, one number per query."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(
            f"Expected one number per query, got an array of {array.ndim} dimensions (shape {array.shape}). "
            "Give a flat list or array."
        )
    return refuse_infinities(array)


def present(values: npt.ArrayLike) -> tuple[Array, int]:
    """The values of one series that are numbers, and how many were not."""
    series = one_series(values)
    kept = series[~np.isnan(series)]
    return kept, len(series) - len(kept)


def many_series(values: npt.ArrayLike) -> Array:
    """The values as a float64 matrix, series x queries."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2:
        raise InputError(
            f"Expected a matrix of series x queries, got {array.ndim} dimensions (shape {array.shape}). "
            "Give one row per run or measure, one column per query."
        )
    return refuse_infinities(array)


def refuse_infinities(array: Array) -> Array:
    """The array itself, or an error that says where the first infinity is."""
    infinite = np.isinf(array)
    if infinite.any():
        where = ", ".join(str(int(i)) for i in np.argwhere(infinite)[0])
        raise InputError(
            f"{int(infinite.sum()):,} of {counted(array.size, 'value')} "
            f"{worded(int(infinite.sum()), 'is', 'are')} infinite, the first at position {where}. "
            "Values must be finite; use NaN where a query has no value."
        )
    return array


def differences(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """a - b, query by query; NaN where either has no value.

    >>> differences([0.5, 1.0, float("nan")], [0.25, 1.0, 0.5])
    array([0.25, 0.  ,  nan])
    """
    first, second = one_series(a), one_series(b)
    if len(first) != len(second):
        raise InputError(
            f"Paired series must cover the same queries, got {len(first):,} and {len(second):,} values. "
            "Join them by query id first, with NaN where one has no value."
        )
    return first - second


def checked_seed(seed: int) -> int:
    """The seed itself, or an error: it must be a whole number of at least 0."""
    if seed < 0:
        raise InputError(f"The seed must be a whole number of at least 0, got {seed}.")
    return seed


def checked_level(level: float) -> float:
    """The level itself, or an error: it must lie between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise InputError(f"A level lies strictly between 0 and 1, got {level}. Write 0.95 for 95 %.")
    return level


def checked_count(count: int, what: str) -> int:
    """The count itself, or an error: there must be at least one."""
    if count < 1:
        raise InputError(f"The number of {what} must be at least 1, got {count}.")
    return count


def checked_pairs(pairs: Sequence[Pair], rows: int) -> list[Pair]:
    """The pairs as a list, or an error that names the first that is not two different rows."""
    for i, j in pairs:
        if not (0 <= i < rows and 0 <= j < rows and i != j):
            raise InputError(
                f"The pair ({i}, {j}) does not name two of the {rows} rows: expected two different "
                f"numbers from 0 to {rows - 1}."
            )
    return list(pairs)


def row_differences(rows: Array, pairs: Sequence[Pair]) -> Array:
    """Row i minus row j for every pair (i, j)."""
    chosen = checked_pairs(pairs, len(rows))
    subtracted: Array = rows[[i for i, _ in chosen]] - rows[[j for _, j in chosen]]
    return subtracted
