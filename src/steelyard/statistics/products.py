"""Matrix products in pieces so small that the linear algebra library starts no threads of its own.

A library such as OpenBLAS splits one large product over all processors and lets them wait for one another
in busy loops. Where other programs use the machine too, that was measured to be ten to eighty times
slower than the same product on one processor. Pieces below its threshold are computed at once by the
thread that asks, and threads over independent blocks do the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", np.float32, np.float64)
Result = TypeVar("Result")

# OpenBLAS uses one thread up to rows x inner x columns = 2**18.
ROWS, INNER, COLUMNS = 64, 64, 64


def product(left: npt.NDArray[Number], right: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """left @ right, added up in pieces of 64 x 64 x 64."""
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
                stack = left[top : top + stacked, start : start + INNER].reshape(
                    stacked // height, height, -1
                )
                pieces += stack @ right[start : start + INNER, column : column + COLUMNS]
            target += pieces.reshape(stacked, -1)
    return total


def in_threads(work: Callable[[int], Result], jobs: Iterable[int]) -> list[Result]:
    """work(job) for every job, in order, over the processors this process may use (at most eight)."""
    numbers = list(jobs)
    workers = min(processors(), 8, len(numbers))
    if workers < 2:
        return [work(number) for number in numbers]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, numbers))


def processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1
