"""Non-inferiority and equivalence: decided by the interval of the difference, not by the lack of a finding."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.comparison.rules import parse_rule
from steelyard.errors import InputError
from steelyard.gating import gate as check
from steelyard.statistics import mean_intervals


def result(values: np.ndarray) -> dict[str, object]:
    per_query = {f"q{number}": {"RR": float(value)} for number, value in enumerate(values)}
    return {"runs": [{"name": "a", "per_query": per_query}]}


def verdict(gap: np.ndarray, rule: str) -> bool:
    base = np.linspace(0.3, 0.7, len(gap))
    return check(result(base + gap), [rule], baseline=result(base)).passed


def test_rules_are_parsed():
    rule = parse_rule("nDCG@10[type=hard] not worse than baseline by 0.01")
    assert (rule.kind, rule.measure, rule.number, rule.column) == ("not worse", "nDCG@10", 0.01, "type")
    for text in ("RR equivalent to baseline within 0.02", "RR equivalent within 0.02"):
        assert (parse_rule(text).kind, parse_rule(text).number) == ("equivalent", 0.02)
    with pytest.raises(InputError, match="the margin 0 is not above 0"):
        parse_rule("RR not worse than baseline by 0")
    with pytest.raises(InputError, match="'x' is not a number"):
        parse_rule("RR not worse than baseline by x")


def test_few_noisy_queries_do_not_show_that_nothing_was_lost():
    noise = np.random.default_rng(0).normal(0.0, 0.2, 20)
    assert verdict(noise, "no significant drop in RR")
    assert not verdict(noise, "RR not worse than baseline by 0.01")


def test_queries_that_would_be_needed_are_stated_with_their_assumption():
    noise = np.random.default_rng(0).normal(0.0, 0.2, 20)
    gap, base = noise - noise.mean() - 0.02, np.linspace(0.3, 0.7, 20)
    drop = check(result(base + gap), ["no significant drop in RR"], baseline=result(base)).rows[0]
    assert drop.why.endswith("about 473 would be needed if the true drop is this large")
    margin = check(result(base + gap + 0.02), ["RR not worse than baseline by 0.01"], baseline=result(base)).rows[0]
    assert margin.why.endswith("would be needed if the true difference is the measured one")


def test_a_small_loss_passes_and_a_larger_one_does_not():
    noise = np.random.default_rng(1).normal(0.0, 0.01, 200)
    noise -= noise.mean()
    assert verdict(noise - 0.005, "RR not worse than baseline by 0.01")
    assert not verdict(noise - 0.02, "RR not worse than baseline by 0.01")
    assert verdict(noise + 0.05, "RR not worse than baseline by 0.01")
    assert verdict(noise + 0.005, "RR equivalent within 0.01")
    assert not verdict(noise + 0.05, "RR equivalent within 0.01")


def test_lower_is_better_for_some_measures():
    base = np.full(50, 0.1) + np.random.default_rng(2).normal(0, 0.001, 50)
    per = lambda values: {  # noqa: E731
        "runs": [{"name": "a", "per_query": {f"q{n}": {"Confusion@3": float(v)} for n, v in enumerate(values)}}]
    }
    rule = ["Confusion@3 not worse than baseline by 0.01"]
    assert check(per(base - 0.05), rule, baseline=per(base)).passed
    assert not check(per(base + 0.05), rule, baseline=per(base)).passed


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "skewed", "discrete"])
@pytest.mark.parametrize("queries", [30, 100])
def test_a_loss_of_the_margin_passes_at_most_five_times_in_a_hundred(shape, queries):
    # The first draws also through the gate itself, which decides by the same intervals.
    random, draws, margin = np.random.default_rng(7), 2000, 0.02
    if shape == "normal":
        gaps = random.normal(0.0, 0.1, (draws, queries))
    elif shape == "skewed":
        gaps = random.exponential(0.1, (draws, queries)) - 0.1
    else:
        gaps = random.choice([-0.5, 0.0, 0.5], (draws, queries), p=[0.1, 0.8, 0.1])
    low = np.array(mean_intervals(gaps - margin))[:, 0]
    assert np.mean(low > -margin) <= 0.05
    decided = [verdict(gap, f"RR not worse than baseline by {margin}") for gap in gaps[:50] - margin]
    assert decided == (low[:50] > -margin).tolist()


def test_a_margin_of_a_sum_is_an_error_and_not_a_failure():
    per_query = {f"q{number}": {"NumRelRet": float(number % 3)} for number in range(20)}
    values = {"runs": [{"name": "a", "per_query": per_query}]}
    with pytest.raises(InputError, match=r"NumRelRet is not a mean over queries.*`NumRelRet >= baseline - NUMBER`"):
        check(values, ["NumRelRet not worse than baseline by 1"], baseline=values)
