"""The paired tests by name, for many rows of differences at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy.typing as npt

from steelyard.errors import PolicyError, did_you_mean
from steelyard.statistics.arrays import Pair, many_series, row_differences
from steelyard.statistics.outcome import TestResult

PairedTest = Literal["t", "wilcoxon", "sign", "permutation", "bootstrap"]
FamilyTest = Literal["tukey", "max-t"]
PAIRED_TESTS: tuple[PairedTest, ...] = get_args(PairedTest)
FAMILY_TESTS: tuple[FamilyTest, ...] = get_args(FamilyTest)
TESTS: tuple[str, ...] = (*PAIRED_TESTS, *FAMILY_TESTS)


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
    `tukey` and `max-t` are not here: they need all runs of one measure, not their differences.

    >>> [round(result.p, 4) for result in paired_tests([[0.1, 0.3, 0.0, 0.2], [0.1, -0.1, 0.1, -0.1]], "t")]
    [0.1027, 1.0]
    """
    rows = many_series(matrix)
    if test == "permutation":
        from steelyard.statistics.permutation import permutation_tests

        return permutation_tests(rows, permutations, seed, pairs)
    rows = rows if pairs is None else row_differences(rows, pairs)
    if test == "bootstrap":
        from steelyard.statistics.bootstrap import bootstrap_tests

        return bootstrap_tests(rows, draws, seed)
    from steelyard.statistics import paired

    classical = {"t": paired.t_test, "wilcoxon": paired.wilcoxon_test, "sign": paired.sign_test}
    if test not in classical:
        raise unknown_test(test)
    return [classical[test](row) for row in rows]


def unknown_test(test: str) -> PolicyError:
    """The error for a test that does not exist, or that does not work on differences."""
    if test in FAMILY_TESTS:
        name = test.replace("-", "_")
        return PolicyError(
            f"{test!r} tests all runs of a measure at once: call statistics.{name} with a matrix "
            "of runs x queries."
        )
    return PolicyError(
        f"Unknown test {test!r}: expected one of {', '.join(TESTS)}.{did_you_mean(test, TESTS)}"
    )
