"""Sums that come out the same to the bit on every machine.

A sum of floating-point numbers depends on the order of its terms, and a matrix product may take any
order: it changes with the processor, the library and the number of threads. Sums of whole numbers below
2**53 are exact in float64, whatever the order. So values are first rounded to whole multiples of a
small unit (about a million-millionth of the largest), and all resampling happens on whole numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import Array

RESOLUTION_BITS = 40
EXACT_BITS = 53


def whole_numbers(values: Array, terms: int, resolution: int = RESOLUTION_BITS) -> tuple[Array, int]:
    """(w, shift): w = values * 2**shift rounded, such that sums of `terms` of them are exact.

    The unit is 2**-resolution of the largest value, or coarser where there are many terms. Each
    rounding errs by at most half a unit, so a sum errs by at most terms / 2 units. Values that should
    be equal but differ in their last bits become equal, which is what counting ties needs.

    >>> whole_numbers(np.array([0.5, -0.25]), 2)
    (array([ 5.49755814e+11, -2.74877907e+11]), 40)
    """
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0.0:
        return np.zeros_like(values), 0
    bits = min(resolution, EXACT_BITS - 1 - int(terms).bit_length())
    shift = bits - int(np.frexp(largest)[1])
    return np.rint(np.ldexp(values, shift)), shift


def whole_columns(
    columns: Array, terms: int, resolution: int = RESOLUTION_BITS
) -> tuple[Array, npt.NDArray[np.int64]]:
    """`whole_numbers` for each column by itself, with one shift per column."""
    whole = np.empty_like(columns)
    shifts = np.zeros(columns.shape[1], dtype=np.int64)
    for column in range(columns.shape[1]):
        whole[:, column], shifts[column] = whole_numbers(columns[:, column], terms, resolution)
    return whole, shifts
