"""What next: steps that follow from the numbers of a comparison."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from needs import import_peer
from steelyard.comparison.compare import compare_scores
from steelyard.comparison.next_steps import next_steps
from steelyard.report.page.page import page_html
from steelyard.report.page.subject import Subject, comparison_subject
from steelyard.report.summary import verdict_lines

QUERIES = [f"q{number}" for number in range(40)]


def compared(values, **options):
    """A comparison of values by run."""
    rows = [
        {"run": run, "query_id": query, "RR": float(value)}
        for run, own in values.items()
        for query, value in zip(QUERIES, own, strict=True)
    ]
    return compare_scores(pl.DataFrame(rows), **options)


def noise(seed):
    return np.random.default_rng(seed).uniform(0.3, 0.7, len(QUERIES))


def codes(steps):
    return [step.note.code for step in steps]


def test_a_tied_run_that_is_faster_is_named_with_both_times():
    found = compared({"slow": noise(1) + 0.01, "fast": noise(2)})
    leader = found.leaderboard_rows[0].run
    other = ({"slow", "fast"} - {leader}).pop()
    steps = next_steps(found, {leader: 0.008, other: 0.001})
    assert str(steps[0]) == (
        f"Consider {other}: it is tied with {leader} on RR and 8 times faster (median 1 vs 8 ms per query)."
    )
    assert steps[0].view == {"run": other, "against": leader}
    assert "step-faster" not in codes(next_steps(found, {leader: 0.001, other: 0.001}))


def test_the_times_of_a_step_are_medians_that_are_called_so_or_those_of_the_leaderboard():
    lists = {query: {"d1": 1.0, "d2": 0.5} for query in QUERIES[:3]}
    times = {"a slow": [0.002, 0.002, 0.005], "fast": [0.001, 0.001, 0.001]}  # Tied: the first name leads.
    runs = [sy.Run(lists, name=name, seconds=dict(zip(lists, own, strict=True))) for name, own in times.items()]
    found = sy.compare({query: {"d1": 1} for query in lists}, runs, ["RR", "Latency"])
    tied = "Consider fast: it is tied with a slow on RR and"
    assert str(next_steps(found)[0]) == f"{tied} 3 times faster (1 vs 3 ms per query)."
    medians = comparison_subject(found).seconds
    assert str(next_steps(found, medians)[0]) == f"{tied} 2 times faster (median 1 vs 2 ms per query)."


def test_the_time_of_a_run_is_the_median_of_its_queries():
    costs = [{"run": "slow", "p50_seconds": 0.002, "mean_seconds": 0.9}, {"run": "fast", "median_seconds": 0.001}]
    assert Subject(compared({"slow": noise(1), "fast": noise(2)}), costs=costs).seconds == {
        "slow": 0.002,
        "fast": 0.001,
    }


def test_the_page_shows_the_median_times_and_says_so():
    import_peer("altair")
    lists = {query: {"d1": 1.0} for query in QUERIES[:3]}
    times = {"slow": [0.001, 0.001, 0.5], "fast": [0.001, 0.003, 0.1]}
    runs = [sy.Run(lists, name=name, seconds=dict(zip(lists, own, strict=True))) for name, own in times.items()]
    subject = comparison_subject(sy.compare({query: {"d1": 1} for query in lists}, runs, "RR"))
    assert subject.seconds == {"slow": 0.001, "fast": 0.003}
    assert "milliseconds per query (median, log scale)" in page_html(subject)


def test_a_leader_that_is_better_than_every_run_is_recommended():
    base = noise(1)
    steps = next_steps(compared({"good": base + 0.2, "poor": base, "worse": base - 0.2}))
    assert str(steps[0]) == "Use good: it is significantly better than every other run on RR."


def test_the_slice_where_the_baseline_loses_most():
    base = noise(1)
    gain = np.where(np.arange(len(QUERIES)) < 10, 0.25, 0.01)
    found = compared({"base": base, "new": base + gain}, baseline="base")
    kinds = {"kind": {query: "hard" if number < 10 else "easy" for number, query in enumerate(QUERIES)}}
    (step,) = (step for step in next_steps(found, columns=kinds) if step.note.code == "step-slice")
    assert str(step) == "Look at the 10 queries with kind hard, where base loses most to new (0.2500 on RR)."
    assert step.view == {"run": "base", "against": "new", "slice": "kind:hard"}


def test_the_number_of_queries_needed_names_the_pair():
    found = compared({"one": noise(1) + 0.04, "other": noise(2)})
    pair = found.leading_pair
    assert pair.queries < pair.needed <= 10 * pair.queries
    (step,) = (step for step in next_steps(found) if step.note.code == "step-more-queries")
    assert step.note["needed"] == pair.needed
    assert f"decide {pair.run} vs {pair.baseline}: about " in str(step)
    hopeless = compared({"one": noise(1), "other": noise(2)})
    assert hopeless.leading_pair.needed > 10_000
    assert "step-more-queries" not in codes(next_steps(hopeless))


def test_unjudged_documents_that_only_one_of_two_runs_has_are_counted():
    qrels = {query: {"a": 1, "b": 0} for query in QUERIES}
    runs = {
        "one": {query: ["b", "a", "x", "both"] if n % 2 else ["a", "x", "both"] for n, query in enumerate(QUERIES)},
        "two": {query: ["a", "b", "both"] if n % 2 else ["b", "a", "both"] for n, query in enumerate(QUERIES)},
        "random": {query: ["z"] for query in QUERIES},
    }
    found = sy.compare(qrels, runs, ["nDCG@10"])
    steps = {step.note.code: step for step in next_steps(found, controls=("random",))}
    assert steps["step-judge"].note["count"] == len(QUERIES), "only x: both runs have the other one"
    assert steps["step-judge"].view["pool"] == "40"
    assert all("random" not in str(step) for step in steps.values())


def test_at_most_four_steps():
    for seed in range(5):
        assert len(next_steps(compared({f"run-{n}": noise(seed * 7 + n) for n in range(4)}))) <= 4


@pytest.mark.parametrize("width", [24, 40, 60])
def test_a_narrow_terminal_shows_whether_the_difference_is_significant(width):
    for shift, outcome in ((0.0, "not significant"), (0.2, "significant")):
        found = compared({"a-run-with-a-long-name": noise(1) + shift, "another-one-with-a-name": noise(2)})
        lines = verdict_lines(found.verdict, width)
        assert all(len(line) <= width for line in lines)
        text = " ".join(lines)
        assert f": {outcome}" in text
