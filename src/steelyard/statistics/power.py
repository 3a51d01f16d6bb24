"""What a set of queries can show: the power of the paired t-test.

Computed from the noncentral t distribution: with n queries and a true effect d (mean difference / standard
deviation of the differences), t is noncentral with n - 1 degrees of freedom and noncentrality d sqrt(n).
The number of queries needed for the difference seen takes that difference as the true one; it is a
plan for the next collection of queries, not evidence about these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy.typing as npt

from steelyard.statistics.arrays import checked_level, present
from steelyard.statistics.effect import cohens_d, mean_and_deviation
from steelyard.statistics.quantiles import normal_cdf, normal_quantile

MOST_QUERIES = 10_000_000
# Beyond this many degrees of freedom t is normal to more digits than anyone reads.
NORMAL_FROM = 20_000


@dataclass(frozen=True)
class PowerResult:
    """What n queries can detect between two runs.

    `smallest` is the smallest difference found with the given power. `needed` is the number of
    queries at which the difference seen would be found with that power: None where no difference was
    seen or more than 10,000,000 would be needed.
    """

    n: int
    difference: float
    deviation: float
    smallest: float
    needed: int | None
    sentence: str


def power_of_t(effect: float, n: int, alpha: float = 0.05) -> float:
    """The chance that a two-sided paired t-test on n queries finds a true effect (Cohen's d).

    >>> round(power_of_t(0.5, 34), 4)
    0.8078
    """
    if n < 2:
        return 0.0
    shift = abs(effect) * math.sqrt(n)
    if n > NORMAL_FROM or math.isinf(shift):
        critical = normal_quantile(1.0 - alpha / 2.0)
        return normal_cdf(shift - critical) + normal_cdf(-shift - critical)
    from scipy.special import nctdtr, stdtrit

    critical = float(stdtrit(n - 1, 1.0 - alpha / 2.0))
    tails = [float(nctdtr(n - 1, shift, t)) for t in (critical, -critical)]
    # scipy answers NaN for some shares too small to hold in a double.
    missed, wrong_way = (0.0 if math.isnan(tail) else tail for tail in tails)
    return 1.0 - missed + wrong_way


def detectable_effect(n: int, power: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest effect (Cohen's d) that n queries find with the given power; inf for fewer than two.

    >>> round(detectable_effect(50), 4)
    0.4042
    """
    checked_level(power)
    checked_level(alpha)
    if n < 2:
        return math.inf
    low, high = 0.0, 1.0
    while power_of_t(high, n, alpha) < power:
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if power_of_t(middle, n, alpha) < power else (low, middle)
    return high


def queries_needed(effect: float, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """The fewest queries that find an effect (Cohen's d) with the given power.

    None for no effect at all, or where it would take more than 10,000,000.

    >>> queries_needed(0.5)
    34
    """
    checked_level(power)
    checked_level(alpha)
    if power_of_t(effect, MOST_QUERIES, alpha) < power:
        return None
    low, high = 1, 2
    while power_of_t(effect, high, alpha) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if power_of_t(effect, middle, alpha) < power else (low, middle)
    return high


def power_analysis(
    differences: npt.ArrayLike, power: float = 0.8, alpha: float = 0.05, separated: bool | None = None
) -> PowerResult:
    """What these queries can detect between two runs, from the differences per query, and a sentence.

    `separated` says whether the two count as told apart; left out, the t-test at alpha decides. NaN
    differences are left out.

    >>> power_analysis([0.3, -0.2, 0.1, 0.2, -0.1, 0.0, 0.25, -0.15]).sentence
    '8 queries cannot separate these two: 117 would.'
    """
    from steelyard.statistics.paired import t_test

    values, _ = present(differences)
    n = len(values)
    if n < 2:
        what = "No query has" if n == 0 else "Only one query has"
        sentence = f"{what} a value in both runs: no test is possible."
        return PowerResult(n, float(values.mean()) if n else math.nan, math.nan, math.inf, None, sentence)
    mean, deviation = mean_and_deviation(values)
    smallest = detectable_effect(n, power, alpha) * deviation
    needed = queries_needed(cohens_d(values), power, alpha)
    apart = bool(t_test(values).p < alpha) if separated is None else separated
    sentence = power_sentence(n, mean, smallest, needed, apart, power)
    return PowerResult(n, mean, deviation, smallest, needed, sentence)


def power_sentence(
    n: int, difference: float, smallest: float, needed: int | None, separated: bool, power: float
) -> str:
    """One sentence on what n queries can and cannot show."""
    if separated:
        chance = f"{100.0 * power:g} %"
        return (
            f"{n:,} queries can tell these two apart: the difference seen is {abs(difference):.4f}, "
            f"and they find one of {smallest:.4f} {chance} of the time."
        )
    if difference == 0.0:
        return f"{n:,} queries show no difference between these two."
    if needed is None:
        return f"{n:,} queries cannot separate these two: not even {MOST_QUERIES:,} would."
    if needed <= n:
        return (
            f"{n:,} queries do not separate these two, though they could find a difference of {smallest:.4f}."
        )
    return f"{n:,} queries cannot separate these two: {needed:,} would."
