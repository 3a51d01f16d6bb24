"""Classical paired tests of 'the two runs are equally good', two-sided.

Each takes the differences per query; NaN differences are left out and counted. With fewer than two
queries there is no test (p is NaN); with no difference anywhere p is 1.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import Array, present
from steelyard.statistics.effect import ROUNDING, mean_and_deviation
from steelyard.statistics.outcome import TestResult, settled

# Up to here the signed ranks are counted out, as scipy does: without and with ties or zeros.
EXACT_RANKS = 50
EXACT_TIED_RANKS = 13


def t_test(differences: npt.ArrayLike) -> TestResult:
    """Student's paired t: t = mean / (sd / sqrt(n)), n - 1 degrees of freedom.

    The default: robust at the sizes retrieval uses, and the most powerful of the simple tests.
    Differences that are all alike leave nothing to divide by: t is +-inf, and p is the chance that all of
    them have one sign, 2 / 2**n.

    >>> round(t_test([0.1, 0.3, 0.0, 0.2, 0.1]).p, 6)
    0.051606
    """
    from scipy.special import stdtr

    values, left_out = present(differences)
    if (result := settled(values, left_out)) is not None:
        return result
    n = len(values)
    mean, deviation = mean_and_deviation(values)
    if deviation == 0.0:
        reason = "the difference is the same on every query"
        return TestResult(math.copysign(math.inf, mean), 2.0 * 0.5**n, n, left_out, "exact", reason)
    t = mean / (deviation / math.sqrt(n))
    return TestResult(t, float(2.0 * stdtr(n - 1, -abs(t))), n, left_out, "student")


def sign_test(differences: npt.ArrayLike) -> TestResult:
    """The sign test: are wins and losses equally likely? Exact binomial; ties are left out.

    Asks only how often, not by how much. Differences below 1e-12 are ties. The statistic is the
    number of wins.

    >>> sign_test([1, 1, 1, 1, -1, 0]).p
    0.375
    """
    from scipy.special import bdtr

    values, left_out = present(differences)
    if (result := settled(values, left_out)) is not None:
        return result
    wins, losses = int(np.sum(values > ROUNDING)), int(np.sum(values < -ROUNDING))
    p = 1.0 if wins == losses else min(1.0, 2.0 * float(bdtr(min(wins, losses), wins + losses, 0.5)))
    return TestResult(float(wins), p, len(values), left_out, "exact")


def wilcoxon_test(differences: npt.ArrayLike) -> TestResult:
    """Wilcoxon's signed-rank test; zeros are dropped, ties share their mean rank.

    Ranks instead of sizes: less swayed by a few large differences, and it tests symmetry about zero
    rather than the mean. Exact for up to 50 queries without ties or zeros and up to 13 with them, else
    the normal approximation with the tie correction, as scipy's `wilcoxon` chooses. The statistic is
    the smaller of the two rank sums.

    >>> wilcoxon_test([0.1, 0.3, -0.05, 0.2, 0.15]).p
    0.125
    """
    values, left_out = present(differences)
    if (result := settled(values, left_out)) is not None:
        return result
    n = len(values)
    nonzero = values[values != 0.0]
    sizes = np.abs(nonzero)
    ranks, counts = mean_ranks(sizes)
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
    """The rank of every size, 1 smallest, ties at their mean rank; and how many share each size."""
    _, inverse, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Array = (last - (counts - 1) / 2.0)[inverse]
    return ranks, counts


def exact_rank_p(ranks: Array, positive: float) -> float:
    """Two-sided p of a positive rank sum: every choice of signs counted out by dynamic programming.

    Mean ranks are multiples of a half, so doubled ranks are whole and the sums can be tallied. Counts
    stay below 2**50 and are therefore exact.
    """
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] += ways[: len(ways) - rank].copy()
    place = round(2.0 * positive)
    tail = min(ways[: place + 1].sum(), ways[place:].sum()) / 2.0 ** len(doubled)
    return min(1.0, 2.0 * float(tail))
