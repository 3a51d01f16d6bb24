"""Power of the paired t-test, against statsmodels and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from needs import import_peer
from steelyard.statistics import PowerResult, detectable_effect, power_analysis, power_of_t, queries_needed


@pytest.mark.parametrize("n", [2, 5, 20, 60, 500, 6980])
@pytest.mark.parametrize("effect", [0.01, 0.1, 0.5, 2.0])
def test_power_equals_statsmodels(n: int, effect: float) -> None:
    peer = import_peer("statsmodels.stats.power")
    theirs = peer.TTestPower().power(effect, n, 0.05, alternative="two-sided")
    if math.isnan(theirs):  # the chance of a miss is too small for their sum
        assert power_of_t(effect, n) > 1.0 - 1e-9
    else:
        assert power_of_t(effect, n) == pytest.approx(theirs, abs=1e-9)
    assert power_of_t(-effect, n) == power_of_t(effect, n)


def test_power_is_what_a_simulation_finds() -> None:
    draws = np.random.default_rng(1).normal(0.4, 1.0, (20_000, 50))
    found = np.mean(stats.ttest_1samp(draws, 0.0, axis=1).pvalue < 0.05)
    assert power_of_t(0.4, 50) == pytest.approx(found, abs=0.01)


def test_normal_and_noncentral_t_meet() -> None:
    assert power_of_t(0.02, 20_001) == pytest.approx(power_of_t(0.02, 20_000), abs=1e-3)


@pytest.mark.parametrize("n", [2, 3, 10, 50, 400, 6980, 100_000])
def test_detectable_effect_and_queries_needed_are_inverse(n: int) -> None:
    effect = detectable_effect(n)
    assert power_of_t(effect, n) == pytest.approx(0.8, abs=1e-9)
    assert queries_needed(effect * (1 + 1e-9)) == n


def test_effects_that_cannot_be_detected() -> None:
    assert queries_needed(0.0) is None
    assert queries_needed(1e-6) is None
    assert queries_needed(math.inf) == 2
    assert detectable_effect(1) == math.inf


def test_fields_and_sentences() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(0.0, 0.2, 60)
    noise -= noise.mean()
    close = power_analysis(noise + 0.028)
    assert close.needed is not None
    assert close.needed > 60
    assert (close.n, close.significant, close.power) == (60, False, 0.8)
    about = float(f"{close.needed:.2g}")
    assert close.sentence == (
        f"Not significant with 60 queries; about {about:,.0f} would be needed if the true difference is this large."
    )
    assert close.sentence == f"N{close.clauses[0][1:]}."
    far = power_analysis(noise + 0.2)
    assert far.significant is True
    assert far.sentence == (
        "Significant with 60 queries: the difference is 0.2000, and this many queries detect a difference of "
        f"{far.smallest:.4f} in 80% of cases."
    )
    assert far.needed is not None
    assert far.needed < 60
    assert power_analysis([0.1, -0.1]).sentence == "No difference in the mean over 2 queries."
    assert "even 10,000,000 would be too few" in power_analysis(noise + 1e-6).sentence
    assert power_analysis(noise + 0.2, significant=False).sentence == "Not significant with 60 queries."
    assert power_analysis([0.5]).significant is None
    assert power_analysis([0.5]).sentence == "Only one query has a value in both runs: no test is possible."
    assert power_analysis([math.nan]).sentence == "No query has a value in both runs: no test is possible."
    constant = power_analysis([0.5, 0.5, 0.5, math.nan])
    assert (constant.n, constant.needed, constant.smallest) == (3, 2, 0.0)


@pytest.mark.parametrize(
    ("n", "needed", "shown"), [(115, 7409, "7,400"), (8, 117, "120"), (2, 7, "7"), (100, 104, "104")]
)
def test_the_sentence_rounds_the_number_of_queries_but_not_below_those_there_are(
    n: int, needed: int, shown: str
) -> None:
    result = PowerResult(n, 0.01, 0.2, 0.05, needed, False)
    assert f"about {shown} would be needed" in result.sentence
    assert result.needed == needed
