"""A note names the pairs whose interval and corrected p-value disagree, with the reason; only those."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from steelyard.comparison.compare import compare_scores
from steelyard.report.summary import summary


def table(**values):
    """A score table of some runs, one measure."""
    return pl.DataFrame(
        [
            {"run": run, "query_id": f"q{number}", "RR": value}
            for run, row in values.items()
            for number, value in enumerate(row)
        ]
    )


def shifted(mean, size=40):
    """Values around 0.5 whose mean is exactly that much above it, with a standard deviation of 0.1."""
    noise = np.random.default_rng(3).normal(size=size)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    return 0.5 + mean + 0.1 * noise


BASE = [0.5] * 40
# t of 2.4 on 40 queries: p is 0.021 alone, and 0.063 times three.
BORDER = shifted(2.4 * 0.1 / 40**0.5)


def disagreements(comparison):
    return [str(note) for note in comparison.notes if note.code == "interval-and-p-disagree"]


def beside_clear_differences(**options):
    """BORDER beside two clear differences: Holm's correction leaves its p at 0.021, and Bonferroni's is 0.064."""
    return compare_scores(
        table(base=BASE, border=BORDER, up=shifted(0.2), down=shifted(-0.2)), baseline="base", **options
    )


def test_a_p_by_holm_below_alpha_and_a_simultaneous_interval_with_0():
    found = beside_clear_differences()
    (note,) = disagreements(found)
    assert note == (
        "interval and p-value disagree for 1 pair: border vs base on RR (the interval contains 0, p is 0.021). "
        "Intervals are Student's intervals at the Bonferroni level: simultaneous for the pairs of a measure; p is from "
        "the paired t test, corrected (holm) for the pairs of a measure. Verdicts follow p"
    )
    pair = next(pair for pair in found.tested_pairs if pair.run == "border")
    assert pair.low < 0 < pair.high
    assert pair.verdict == "better"


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh", "none"])
def test_an_interval_excludes_0_where_the_corrected_p_is_below_alpha(correction):
    runs = table(base=BASE, border=BORDER, same=shifted(0.001), other=shifted(-0.001))
    found = compare_scores(runs, baseline="base", correction=correction)
    assert not disagreements(found)
    pair = next(pair for pair in found.tested_pairs if pair.run == "border")
    assert (pair.low > 0) == (pair.p_adjusted < 0.05) == (correction == "none")


def test_the_note_is_in_every_format():
    found = beside_clear_differences()
    (note,) = disagreements(found)
    for form in (found.to_text(), found.to_markdown(), found.to_latex(), found.to_html(), found.to_json()):
        assert form.replace("&#x27;", "'").count(note[1:]) == 1


@pytest.mark.parametrize(("seed", "significant"), [(418, True), (86, False)])
def test_a_pair_alone_whose_test_and_interval_disagree_is_uncertain(seed, significant):
    gaps = np.random.default_rng(seed).choice([-1, 0, 0.5, 1], p=[0.1, 0.5, 0.2, 0.2], size=12)
    found = compare_scores(table(base=[0.0] * 12, other=gaps), baseline="base")
    (pair,) = found.tested_pairs
    assert (pair.p < 0.05, pair.low <= 0 <= pair.high) == (significant, significant)
    (note,) = (note for note in found.notes if note.code == "uncertain-difference")
    assert note.severity == "warning"
    assert str(note) == (
        "interval and p-value disagree for 1 pair: other vs base on RR (the interval "
        f"{'contains' if significant else 'excludes'} 0, p is {pair.p:.3f}). Intervals are bootstrap intervals of each "
        "pair alone; p is from the paired t test. Verdicts follow p: treat these as uncertain"
    )
    assert not disagreements(found)
    for form in (found.to_text(), found.to_markdown(), found.to_html(), found.to_json()):
        assert "disagree for 1 pair: other vs base on RR" in form
    assert "! other vs base on RR is uncertain: the t test and the interval disagree about 0" in summary(found).warnings


def test_no_note_where_they_agree():
    assert not disagreements(compare_scores(table(base=BASE, border=BORDER), baseline="base"))
    clear = compare_scores(table(base=BASE, up=shifted(0.2), down=shifted(-0.2)), baseline="base")
    assert not disagreements(clear)
    assert [pair.verdict for pair in clear.tested_pairs] == ["better", "worse"]


def test_p_below_alpha_and_an_interval_with_0():
    rare = np.array([0.52] * 32 + [0.30] * 8)
    found = compare_scores(table(base=BASE, rare=rare), baseline="base", test="sign")
    (note,) = disagreements(found)
    assert "rare vs base on RR (the interval contains 0, p is <0.001)" in note
    assert "p is from the paired sign test. Verdicts follow p" in note
    assert found.tested_pairs[0].difference < 0 < found.tested_pairs[0].wins - found.tested_pairs[0].losses
    assert found.tested_pairs[0].verdict == "different"


RARE = np.array([0.52] * 32 + [0.30] * 8)


def test_the_note_gives_another_alpha():
    found = compare_scores(table(base=BASE, rare=RARE), baseline="base", test="sign", alpha=0.01)
    (note,) = disagreements(found)
    assert "p is from the paired sign test, at alpha 0.01. Verdicts follow p" in note
    assert found.interval_heading == "99% interval"


def test_the_note_on_a_test_with_its_own_correction():
    (note,) = disagreements(beside_clear_differences(test="max-t"))
    assert "p is from the paired max-t test, which corrects for all pairs of a measure. Verdicts follow p" in note


def test_of_many_pairs_the_first_ten_are_named():
    runs = {f"r{number}": np.where(RARE > 0.5, RARE + number * 1e-4, RARE) for number in range(12)}
    (note,) = disagreements(compare_scores(table(base=BASE, **runs), baseline="base", test="sign"))
    assert "disagree for 12 pairs" in note
    named = note.partition(": ")[2].partition(" vs base on RR (the interval contains 0, p is 0.")[0]
    assert len(re.findall(r"r\d+", named)) == 10
    assert "; and 2 more." in note


@pytest.mark.parametrize(("measure", "verdict"), [("RR", "better"), ("Confusion@5", "worse"), ("Latency", "worse")])
def test_the_verdict_depends_on_the_direction_of_the_measure(measure, verdict):
    frame = table(base=BASE, up=shifted(0.2)).rename({"RR": measure})
    assert compare_scores(frame, baseline="base").tested_pairs[0].verdict == verdict


def test_verdicts_of_equal_runs_and_of_a_single_query():
    assert compare_scores(table(base=BASE, same=BASE), baseline="base").tested_pairs[0].verdict == "equal"
    assert compare_scores(table(base=[0.5], up=[0.6]), baseline="base").tested_pairs[0].verdict == "not tested"


def test_a_pair_uses_the_queries_that_both_runs_have():
    frame = table(base=BASE, part=[*BORDER[:39], float("nan")])
    pair = compare_scores(frame, baseline="base", missing="skip").tested_pairs[0]
    assert pair.queries == 39
    assert pair.difference == pytest.approx(float(np.mean(BORDER[:39])) - 0.5, abs=1e-12)
    assert pair.low < pair.difference < pair.high
