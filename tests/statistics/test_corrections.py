"""Corrections for many tests, against statsmodels."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from needs import import_peer
from steelyard.errors import PolicyError
from steelyard.statistics import CORRECTIONS, adjust

multitest = import_peer("statsmodels.stats.multitest")

P_VALUES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)
THEIR_NAMES = {"bonferroni": "bonferroni", "holm": "holm", "bh": "fdr_bh"}


@pytest.mark.parametrize("correction", sorted(THEIR_NAMES))
@settings(deadline=None)
@given(p=P_VALUES)
def test_equals_statsmodels(correction: str, p: list[float]) -> None:
    # statsmodels collects garbage at every call, which takes a tenth of a second here.
    with patch("gc.collect"):
        theirs = multitest.multipletests(p, method=THEIR_NAMES[correction])[1]
    np.testing.assert_allclose(adjust(p, correction), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("correction", CORRECTIONS)
@settings(deadline=None)
@given(p=P_VALUES)
def test_never_smaller_never_above_one_order_kept(correction: str, p: list[float]) -> None:
    adjusted = adjust(p, correction)
    assert (adjusted >= np.array(p) * (1 - 1e-12)).all()
    assert (adjusted <= 1.0).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0.0).all()


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_a_test_that_was_not_possible_is_not_counted(correction: str) -> None:
    adjusted = adjust([0.01, math.nan, 0.04], correction)
    assert math.isnan(adjusted[1])
    assert adjusted[[0, 2]].tolist() == adjust([0.01, 0.04], correction).tolist()


def test_holm_finds_at_least_what_bonferroni_finds() -> None:
    p = [0.001, 0.012, 0.02, 0.3]
    assert (adjust(p, "holm") <= adjust(p, "bonferroni")).all()


def test_nothing_in_nothing_out_and_unknown_names_refused() -> None:
    assert adjust([], "holm").tolist() == []
    with pytest.raises(PolicyError, match="holm"):
        adjust([0.1], "hollm")  # type: ignore[arg-type]
