"""Effect size, tallies, relative change and stars."""

from __future__ import annotations

import math

import numpy as np
import pytest

from steelyard.errors import InputError
from steelyard.statistics import (
    Tally,
    cohens_d,
    difference_interval,
    differences,
    relative_change,
    stars,
    t_test,
    tally,
)


def test_cohens_d() -> None:
    d = np.random.default_rng(1).normal(0.3, 1.0, 50)
    assert cohens_d(d) == pytest.approx(d.mean() / d.std(ddof=1), rel=1e-14)
    assert cohens_d([0.0, 0.0]) == 0.0
    assert cohens_d([-0.1] * 7) == -math.inf
    assert math.isnan(cohens_d([0.1]))
    assert cohens_d([0.1, 0.3, math.nan]) == cohens_d([0.1, 0.3])


def test_tally_ignores_rounding_and_missing_values() -> None:
    assert tally([0.1, 1e-17, -0.2, math.nan, 0.0, 0.3]) == Tally(wins=2, ties=2, losses=1)
    assert tally([0.1, -0.2], tolerance=0.15) == Tally(wins=0, ties=1, losses=1)


def test_relative_change() -> None:
    assert relative_change(0.44, 0.4) == pytest.approx(0.1)
    assert relative_change(-0.1, -0.2) == pytest.approx(0.5)
    assert math.isnan(relative_change(0.3, 0.0))


@pytest.mark.parametrize(
    ("p", "mark"),
    [
        (0.0, "***"),
        (0.0009999, "***"),
        (0.001, "**"),
        (0.00999, "**"),
        (0.01, "*"),
        (0.0499, "*"),
        (0.05, "ns"),
        (1.0, "ns"),
    ],
)
def test_stars(p: float, mark: str) -> None:
    assert stars(p) == mark


def test_no_stars_without_a_test() -> None:
    assert stars(math.nan) == ""


def test_differences_need_the_same_queries() -> None:
    with pytest.raises(InputError, match="2 and 3"):
        differences([1, 2], [1, 2, 3])


def test_the_same_difference_of_different_values_has_no_deviation() -> None:
    d = differences([0.4771, 0.8654], [0.4770, 0.8653])
    assert d[0] != d[1]
    assert t_test(d).p == 0.5
    assert cohens_d(d) == math.inf
    low, high = difference_interval([0.4771, 0.8654], [0.4770, 0.8653])
    assert low == high == pytest.approx(0.0001)
    assert cohens_d([1e-16] * 20) == 0.0
