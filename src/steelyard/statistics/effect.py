"""How large a difference is, whatever its p-value: effect size, wins, relative change, stars."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import Array, checked_level, normal_cdf, normal_quantile, present

# Two scores that differ by less than this differ by rounding only.
ROUNDING = 1e-12
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


@dataclass(frozen=True)
class Tally:
    """How many queries a run wins, ties and loses."""

    wins: int
    ties: int
    losses: int


def mean_and_deviation(values: Array) -> tuple[float, float]:
    """Mean and standard deviation (n - 1); a deviation that is rounding only counts as 0."""
    mean = float(values.mean())
    deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return mean, 0.0 if deviation <= 1e-14 * abs(mean) else deviation


def cohens_d(differences: npt.ArrayLike) -> float:
    """Cohen's d for paired data: mean difference / standard deviation of the differences (n - 1).

    About 0.2 is small, 0.5 medium, 0.8 large. 0 where all differences are 0, +-inf where all are alike
    and not 0, NaN for fewer than two queries.

    >>> round(cohens_d([0.1, 0.3, 0.0, 0.2, 0.1]), 6)
    1.227881
    """
    values, _ = present(differences)
    if len(values) < 2:
        return math.nan
    mean, deviation = mean_and_deviation(values)
    if mean == 0.0:
        return 0.0
    return mean / deviation if deviation else math.copysign(math.inf, mean)


def tally(differences: npt.ArrayLike, tolerance: float = ROUNDING) -> Tally:
    """Wins, ties and losses over the queries that have a value in both runs.

    >>> tally([0.2, 0.0, -0.1, 0.3])
    Tally(wins=2, ties=1, losses=1)
    """
    values, _ = present(differences)
    wins, losses = int(np.sum(values > tolerance)), int(np.sum(values < -tolerance))
    return Tally(wins, len(values) - wins - losses, losses)


def relative_change(value: float, baseline: float) -> float:
    """(value - baseline) / |baseline|; NaN for a baseline of 0.

    >>> relative_change(0.5, 0.4) > 0.2499
    True
    """
    return (value - baseline) / abs(baseline) if baseline else math.nan


def stars(p: float) -> str:
    """*** for p < 0.001, ** for p < 0.01, * for p < 0.05, else ns; nothing where there is no p.

    >>> [stars(p) for p in (0.0002, 0.003, 0.04, 0.05)]
    ['***', '**', '*', 'ns']
    """
    if math.isnan(p):
        return ""
    return next((mark for below, mark in STARS if p < below), "ns")


def shown_p(p: float) -> str:
    """A p-value to read: three digits, and more where rounding would move it across a star; or below a thousandth.

    >>> [shown_p(p) for p in (0.5, 0.0123, 0.0496, 0.00004)]
    ['0.500', '0.012', '0.0496', '<0.001']
    """
    if p != p:
        return "no test"
    if p < 0.001:
        return "<0.001"
    texts = [f"{p:.{digits}f}" for digits in range(3, 8)]
    return next((text for text in texts if stars(float(text)) == stars(p)), texts[-1])


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
