"""The result of one paired test, and the cases that need none: apart from the tests, as two modules have some."""

from __future__ import annotations

import math
from dataclasses import dataclass

from steelyard.statistics.arrays import Array


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


def no_test(n: int, left_out: int) -> TestResult:
    """The result where fewer than two queries have a value in both runs."""
    reason = "no query has a value in both runs" if n == 0 else "one query only: the variance cannot be estimated"
    return TestResult(math.nan, math.nan, n, left_out, "none", reason)


def trivial_result(values: Array, left_out: int) -> TestResult | None:
    """The result for fewer than two queries, or for no difference on any query (p = 1); None otherwise."""
    if len(values) < 2:
        return no_test(len(values), left_out)
    if not values.any():
        return TestResult(0.0, 1.0, len(values), left_out, "exact", "the runs score the same on every query")
    return None
