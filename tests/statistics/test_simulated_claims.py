"""The simulations of docs/validation.md, with fewer draws."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.claims import (
    below_best,
    coverage,
    false_claims,
    false_coverage,
    one_missing,
    reached_power,
    tied_coverage,
)

pytestmark = pytest.mark.slow
EQUAL, APART = np.zeros(5), np.array([0.0, 0.0, 0.05, 0.1, 0.3])


@pytest.mark.parametrize("method", ["holm", "tukey", "max-t"])
@pytest.mark.parametrize("shifts", [EQUAL, APART], ids=["equal", "unequal"])
def test_simultaneous_intervals_cover(method, shifts):
    assert coverage(method, shifts, 50, 300) >= 0.92


def test_uncorrected_intervals_do_not_cover_together_and_those_by_false_coverage_rate_do_where_they_claim():
    assert coverage("none", EQUAL, 50, 300) < 0.85
    assert false_coverage(APART, 50, 300) <= 0.08


def test_the_queries_needed_have_the_power_under_the_correction():
    assert reached_power(10, 0.12, 300, corrected=True)[1] >= 0.75
    assert reached_power(10, 0.12, 300, corrected=False)[1] < 0.6


def test_the_last_against_the_best():
    plain, corrected = below_best(10, 100, 0.0, 400)
    assert corrected <= 0.08 < plain
    assert below_best(10, 100, 0.04, 200)[1] >= 0.9


def test_tukey_with_unequal_spread():
    spread = np.array([0.6, 0.15, 0.15, 0.15, 0.15])
    assert false_claims("max-t", spread, 50, 300) <= 0.08 < false_claims("tukey", spread, 50, 300)


def test_intervals_with_most_queries_tied_are_too_narrow():
    assert max(tied_coverage(50, 0.1, 300).values()) < 0.93


@pytest.mark.parametrize("test", ["t", "wilcoxon", "max-t"])
def test_one_missing_judgment_leaves_no_clear_claim_undecided(test):
    assert one_missing(test, 60)[1] == 0
