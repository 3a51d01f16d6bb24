"""Quantiles of the normal and of Student's t, without importing scipy.

An interval goes with every mean that is printed, and importing scipy costs more than all the rest of
a small evaluation. Tests of significance import scipy.special; intervals use these.
"""

from __future__ import annotations

import math


def normal_cdf(x: float) -> float:
    """The share of a standard normal below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def normal_quantile(p: float) -> float:
    """The x with a share p of a standard normal below it: a rational start, then Newton steps.

    >>> round(normal_quantile(0.975), 12)
    1.95996398454
    """
    if p > 0.5:
        return -normal_quantile(1.0 - p)
    if p <= 0.0:
        return -math.inf
    t = math.sqrt(-2.0 * math.log(p))
    x = (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    ) - t
    for _ in range(4):
        density = math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
        error = (normal_cdf(x) - p) / density
        x -= error / (1.0 + 0.5 * x * error)
    return x


def student_quantile(p: float, freedom: int) -> float:
    """The quantile of Student's t: exact for 1 and 2 degrees of freedom, else four terms in 1/freedom.

    The series (Abramowitz and Stegun 26.7.5) errs by less than 0.2 % for 3 degrees of freedom at
    p = 0.975, and by less than 1e-5 from 10 on.

    >>> round(student_quantile(0.975, 49), 6)
    2.009575
    """
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    if freedom == 2:
        return (2.0 * p - 1.0) / math.sqrt(2.0 * p * (1.0 - p))
    z = normal_quantile(p)
    s = z * z
    terms = (
        z * (s + 1.0) / 4.0,
        z * ((5.0 * s + 16.0) * s + 3.0) / 96.0,
        z * (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0,
        z * ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92160.0,
    )
    return z + math.fsum(term / float(freedom) ** power for power, term in enumerate(terms, start=1))
