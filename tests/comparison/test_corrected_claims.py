"""Intervals, power and notes at the level of the correction."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from steelyard.comparison.compare import compare_scores
from steelyard.statistics import max_t, power_analysis, tukey
from steelyard.statistics.corrections import student_margin


def table(values, measure="nDCG@10"):
    """A score table of runs x queries."""
    return pl.DataFrame(
        [
            {"run": f"r{run}", "query_id": f"q{number}", measure: float(value)}
            for run, row in enumerate(values)
            for number, value in enumerate(row)
        ]
    )


def noisy(runs=8, queries=40, seed=3, spread=0.1):
    rng = np.random.default_rng(seed)
    return np.clip(rng.beta(2, 3, queries) + spread * rng.normal(size=(runs, queries)), 0, 1)


@pytest.mark.parametrize("test", ["tukey", "max-t"])
def test_simultaneous_intervals_are_possible_differences_and_follow_the_test(test):
    result = compare_scores(table(noisy()), test=test, permutations=2000)
    assert max(pair.p for pair in result.tested_pairs) > 0.9
    for pair in result.tested_pairs:
        assert -1 <= pair.low <= pair.difference <= pair.high <= 1
        assert not (pair.low > 0 or pair.high < 0) or pair.p_adjusted < 0.05
    widths = {round(pair.high - pair.low, 9) for pair in result.tested_pairs}
    assert len(widths) == (1 if test == "tukey" else len(result.tested_pairs))


@pytest.mark.parametrize("joint", [tukey, max_t])
@pytest.mark.parametrize("seed", range(4))
def test_the_margin_is_the_smallest_significant_difference(joint, seed):
    values = noisy(4, 30, seed) + np.array([[0.0], [0.02], [0.04], [0.06]])
    result = joint(values, 999, seed)
    one_step = joint(values, 999, seed, [(0, 3)])
    for (i, j), p, margin in zip(result.pairs, result.p, result.margins, strict=True):
        difference = abs(float(np.mean(values[i] - values[j])))
        assert p < 0.05 or difference <= margin
        # The step-down of max-T finds more than its simultaneous intervals show.
        assert joint is max_t or (difference > margin) == (p < 0.05)
    assert one_step.margins[0] <= result.margins[result.pairs.index((0, 3))] + 1e-12


def test_too_few_queries_for_any_simultaneous_interval():
    assert max_t(noisy(3, 4)).margins == (np.inf,) * 3
    pair = sy.compare(
        {f"q{n}": {"a": 1} for n in range(4)},
        {
            name: {f"q{n}": ["a", "b"][:: 1 if (n + shift) % 3 else -1] for n in range(4)}
            for shift, name in enumerate("xyz")
        },
        ["RR"],
        test="max-t",
    ).tested_pairs[0]
    assert (pair.low, pair.high) == (-1.0, 1.0), "the range of a difference of RR"


@pytest.mark.parametrize(
    ("test", "correction"),
    [
        *product(["t", "wilcoxon", "sign", "permutation"], ["none", "holm", "bonferroni", "bh"]),
        *product(["tukey", "max-t"], ["holm"]),
    ],
)
def test_no_sentence_contradicts_its_numbers(test, correction):
    shifts = np.linspace(0, 0.12, 8)[:, None]
    result = compare_scores(table(noisy() + shifts, "x"), test=test, correction=correction, permutations=1000)
    for pair in result.tested_pairs:
        assert "although" not in pair.sentence
        if pair.verdict == "not significant":
            assert pair.needed is None or pair.needed > pair.queries


def test_the_queries_needed_grow_with_the_number_of_pairs():
    values = noisy(10)
    alone = compare_scores(table(values[:2], "x")).tested_pairs[0]
    among = next(p for p in compare_scores(table(values, "x")).tested_pairs if p.names == {"r0", "r1"})
    gap = (values[0] - values[1]) * (1 if alone.run == "r0" else -1)
    assert alone.needed == power_analysis(gap).needed
    assert among.needed == power_analysis(gap, alpha=0.05 / 45).needed > alone.needed
    assert among.smallest > alone.smallest


@pytest.mark.parametrize("test", ["tukey", "max-t", "bootstrap", "permutation"])
def test_permutations_are_those_of_the_test(test):
    values = noisy(3) + np.array([[0.0], [0.1], [0.3]])
    few = compare_scores(table(values, "x"), test=test, permutations=99, correction="holm")
    assert min(pair.p for pair in few.tested_pairs) == pytest.approx(0.01)
    assert json.loads(few.to_json())["permutations"] == 99
    default = {"permutation": 100_000}.get(test, 10_000)
    assert json.loads(compare_scores(table(values, "x"), test=test).to_json())["permutations"] == default


def test_a_test_without_draws_records_none():
    assert json.loads(compare_scores(table(noisy(2), "x")).to_json())["permutations"] is None


def test_tukey_warns_of_unequal_spread_and_names_max_t():
    rng = np.random.default_rng(1)
    values = rng.beta(2, 3, 60) + np.array([0.05, 0.05, 0.3])[:, None] * rng.normal(size=(3, 60))
    (note,) = [each for each in compare_scores(table(values, "x"), test="tukey").notes if each.code == "unequal-spread"]
    assert note.severity == "warning"
    assert "--test max-t" in str(note)
    codes = [each.code for each in compare_scores(table(values, "x"), test="max-t").notes]
    assert "unequal-spread" not in codes
    equal = rng.beta(2, 3, 60) + 0.1 * rng.normal(size=(3, 60))
    assert "unequal-spread" not in [each.code for each in compare_scores(table(equal, "x"), test="tukey").notes]


def test_intervals_by_false_coverage_rate_are_students_where_all_pairs_are_significant():
    values = np.random.default_rng(5).beta(2, 3, (3, 40)) * 0.3 + np.array([[0.0], [0.3], [0.6]])
    found = compare_scores(table(values, "x"), correction="bh")
    assert found.intervals_are.startswith("Student's intervals by false coverage rate")
    for pair in found.tested_pairs:
        gaps = values[int(pair.run[1:])] - values[int(pair.baseline[1:])]
        assert (pair.high - pair.low) / 2 == pytest.approx(student_margin(gaps, 0.05))


def test_mostly_tied_pairs_are_reported():
    base = np.full(50, 0.5)
    moved = base.copy()
    moved[:4] = 1.0
    result = compare_scores(table([base, moved], "RR"))
    (note,) = [each for each in result.notes if each.code == "mostly-tied"]
    assert "(46 of 50)" in str(note)
    (pair,) = result.tested_pairs
    assert (pair.high - pair.low) / 2 == pytest.approx(student_margin(moved - base, 0.05))
    assert result.intervals_are == "Student's intervals of each pair alone"
    both = table([base, moved], "RR").with_columns(P=np.concatenate([base, np.linspace(0, 1, 50)]))
    many = "bootstrap or, with under 5 queries or 80% ties, Student's intervals of each pair alone"
    assert compare_scores(both).intervals_are == many
    assert compare_scores(both.select("run", "query_id", "P")).intervals_are == "bootstrap intervals of each pair alone"
    few = compare_scores(both.select("run", "query_id", "P").filter(pl.col("query_id").is_in(["q1", "q2", "q9"])))
    assert few.intervals_are == "Student's intervals of each pair alone"
    moved[:20] = np.linspace(0.1, 0.9, 20)
    assert "mostly-tied" not in [each.code for each in compare_scores(table([base, moved], "RR")).notes]
