"""Effect size and power: how large a difference is, what a number of queries detects, and how a p-value is shown.

Power is that of the paired t-test: the differences that queries can detect, and the queries that a difference needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from steelyard.lazy import special
from steelyard.statistics import arrays
from steelyard.statistics.arrays import ROUNDING, mean_and_deviation, present
from steelyard.statistics.paired import t_test

MOST_QUERIES = 10_000_000
NORMAL_FROM = 20_000  # With more degrees of freedom t is normal to more digits than are shown.
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


@dataclass(frozen=True)
class Tally:
    """The number of queries that a run wins, ties and loses."""

    wins: int
    ties: int
    losses: int


def cohens_d(differences: npt.ArrayLike) -> float:
    """Cohen's d for paired data: mean difference / standard deviation of the differences (n - 1).

    About 0.2 is small, 0.5 medium, 0.8 large. 0 if the mean is 0, +-inf if all differences are equal and
    not 0, NaN for fewer than two queries.

    >>> round(cohens_d([0.1, 0.3, 0.0, 0.2, 0.1]), 6)
    1.227881
    """
    values, _ = present(differences)
    if len(values) < 2:
        return math.nan
    mean, deviation = mean_and_deviation(values)
    if abs(mean) < ROUNDING:
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
    """*** for p < 0.001, ** for p < 0.01, * for p < 0.05, ns otherwise; empty if there is no p.

    >>> [stars(p) for p in (0.0002, 0.003, 0.04, 0.05)]
    ['***', '**', '*', 'ns']
    """
    if math.isnan(p):
        return ""
    return next((mark for below, mark in STARS if p < below), "ns")


def shown_p(p: float) -> str:
    """A p-value as text: three decimals, more if rounding would change its stars, and `<0.001` below that.

    >>> [shown_p(p) for p in (0.5, 0.0123, 0.0496, 0.00004)]
    ['0.500', '0.012', '0.0496', '<0.001']
    """
    if math.isnan(p):
        return "no test"
    if p < 0.001:
        return "<0.001"
    texts = [f"{p:.{digits}f}" for digits in range(3, 8)]
    return next((text for text in texts if stars(float(text)) == stars(p)), texts[-1])


@dataclass(frozen=True)
class PowerResult:
    """What n queries can detect between two runs.

    `smallest` is the smallest difference that is detected with the given `power`. `needed` is the number of
    queries at which a true difference as large as the observed one is detected with that power: None if the
    observed difference is 0 or more than 10,000,000 queries would be needed. `significant` is whether the
    difference is significant; None if fewer than two queries have a value in both runs.
    """

    n: int
    difference: float
    deviation: float
    smallest: float
    needed: int | None
    significant: bool | None
    power: float = 0.8

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        clause = self.clauses[0]
        return f"{clause[0].upper()}{clause[1:]}."

    @property
    def clauses(self) -> tuple[str, ...]:
        """The result as a part of a sentence, the longest text first. `needed` is rounded to two significant digits."""
        if self.significant is None:
            which = "no query has" if self.n == 0 else "only one query has"
            return (f"{which} a value in both runs: no test is possible", "not tested")
        detects = f"a difference of {self.smallest:.4f} in {100.0 * self.power:g}% of cases"
        if self.significant:
            return (
                f"significant with {self.n:,} queries: the difference is {abs(self.difference):.4f}, "
                f"and this many queries detect {detects}",
                f"significant with {self.n:,} queries",
            )
        if self.difference == 0.0:
            return (f"no difference in the mean over {self.n:,} queries",)
        not_yet = f"not significant with {self.n:,} queries"
        if self.needed is None:
            return (
                f"{not_yet}; even {MOST_QUERIES:,} would be too few if the true difference is this small",
                f"not significant ({self.n:,} queries; over {MOST_QUERIES:,} needed)",
                not_yet,
            )
        if self.needed <= self.n:
            return (not_yet, "not significant")
        about = float(f"{self.needed:.2g}")
        about = about if about > self.n else self.needed
        return (
            f"{not_yet}; about {about:,.0f} would be needed if the true difference is this large",
            f"not significant ({self.n:,} queries; about {about:,.0f} needed)",
            f"not significant ({self.n:,} queries; {about:,.0f} needed)",
            not_yet,
            "not significant",
        )


def power_of_t(effect: float, n: int, alpha: float = 0.05) -> float:
    """The probability that a two-sided paired t-test on n queries detects a true effect (Cohen's d).

    >>> round(power_of_t(0.5, 34), 4)
    0.8078
    """
    if n < 2:
        return 0.0
    shift = abs(effect) * math.sqrt(n)
    if n > NORMAL_FROM or math.isinf(shift):
        critical = arrays.normal_quantile(1.0 - alpha / 2.0)
        return arrays.normal_cdf(shift - critical) + arrays.normal_cdf(-shift - critical)
    critical = float(special.stdtrit(n - 1, 1.0 - alpha / 2.0))
    tails = [float(special.nctdtr(n - 1, shift, t)) for t in (critical, -critical)]
    # scipy returns NaN for some probabilities that are too small for a double.
    missed, wrong_way = (0.0 if math.isnan(tail) else tail for tail in tails)
    return 1.0 - missed + wrong_way


@cache
def detectable_effect(n: int, power: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest effect (Cohen's d) that n queries detect with the given power; inf for fewer than two.

    >>> round(detectable_effect(50), 4)
    0.4042
    """
    arrays.checked_level(power)
    arrays.checked_level(alpha)
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
    """The smallest number of queries that detects an effect (Cohen's d) with the given power.

    None if there is no effect, or if more than 10,000,000 queries would be needed.

    >>> queries_needed(0.5)
    34
    """
    arrays.checked_level(power)
    arrays.checked_level(alpha)
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
    differences: npt.ArrayLike,
    power: float = 0.8,
    alpha: float = 0.05,
    significant: bool | None = None,
    p: float | None = None,
) -> PowerResult:
    """What these queries can detect between two runs, from the differences per query. NaN is left out.

    `significant` is whether the difference is significant by a test of the caller's; by default the t-test at
    alpha decides. `p` is the two-sided p-value of a test that is not one of the mean (ranks or signs): the number of
    queries that it needs follows from its own z, n ((z(1 - alpha / 2) + z(power)) / z(p))^2.

    >>> result = power_analysis([0.3, -0.2, 0.1, 0.2, -0.1, 0.0, 0.25, -0.15])
    >>> result.needed, result.sentence
    (117, 'Not significant with 8 queries; about 120 would be needed if the true difference is this large.')
    """
    values, _ = present(differences)
    n = len(values)
    if n < 2:
        mean = float(values.mean()) if n else math.nan
        return PowerResult(n, mean, math.nan, math.inf, None, None, power)
    mean, deviation = mean_and_deviation(values)
    return PowerResult(
        n=n,
        difference=mean,
        deviation=deviation,
        smallest=detectable_effect(n, power, alpha) * deviation,
        needed=queries_needed(cohens_d(values), power, alpha) if p is None else _needed_by_rank(p, n, power, alpha),
        significant=bool(t_test(values).p < alpha) if significant is None else significant,
        power=power,
    )


def _needed_by_rank(p: float, n: int, power: float, alpha: float) -> int | None:
    """The queries that a test with this p-value on n queries needs, by the normal approximation."""
    observed = arrays.normal_quantile(1.0 - p / 2.0) if p > 1e-15 else math.inf
    if not observed > 0.0:
        return None
    needed = math.ceil(
        n * ((arrays.normal_quantile(1.0 - alpha / 2.0) + arrays.normal_quantile(power)) / observed) ** 2
    )
    return max(needed, 2) if needed <= MOST_QUERIES else None
