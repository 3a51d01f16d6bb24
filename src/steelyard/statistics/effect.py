"""Effect size: how large a difference is, whatever its p-value. And how a p-value is shown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.statistics.arrays import ROUNDING, Array, present

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


@dataclass(frozen=True)
class Tally:
    """The number of queries that a run wins, ties and loses."""

    wins: int
    ties: int
    losses: int


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
