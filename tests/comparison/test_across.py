"""across: runs over several datasets in one table, its tests, its notes and its formats."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from steelyard.errors import InputError, MeasureError, PolicyError

SHIFTS = {
    "x": {"a": 0.15, "b": 0.0, "c": 0.0},
    "y": {"a": 0.12, "b": 0.01, "c": 0.0},
    "z": {"a": 0.10, "b": 0.0, "c": -0.02},
}


def comparison(seed, shifts, queries=40, measure="nDCG@10", prefix="q"):
    """A comparison of runs that differ by shifts of a common difficulty."""
    rng = np.random.default_rng(seed)
    level = rng.normal(0.4, 0.15, queries)
    rows = [
        (run, f"{prefix}{place}", float(value))
        for run, shift in shifts.items()
        for place, value in enumerate(np.clip(level + shift + rng.normal(0, 0.08, queries), 0, 1))
    ]
    return sy.compare_scores(pl.DataFrame(rows, schema=["run", "query_id", measure], orient="row"))


@pytest.fixture(scope="module")
def three():
    sizes = {"x": 40, "y": 80, "z": 20}
    return {name: comparison(seed, shifts, sizes[name]) for seed, (name, shifts) in enumerate(SHIFTS.items())}


@pytest.fixture(scope="module")
def many(three):
    return sy.across(three, measure="nDCG@10")


def means_of(three, run):
    return {name: {row.run: row.means["nDCG@10"] for row in each.leaderboard_rows}[run] for name, each in three.items()}


def test_macro_and_micro_means_are_those_of_the_comparisons(three, many):
    for row in many.table.iter_rows(named=True):
        own = means_of(three, row["run"])
        assert {name: row[name] for name in own} == own
        assert row["macro"] == pytest.approx(np.mean(list(own.values())), abs=1e-12)
        sizes = {"x": 40, "y": 80, "z": 20}
        weighted = sum(own[name] * size for name, size in sizes.items()) / sum(sizes.values())
        assert row["micro"] == pytest.approx(weighted, abs=1e-12)


def test_wins_mean_rank_and_borda_are_counted_by_hand():
    values = {"x": {"a": 0.5, "b": 0.4, "c": 0.3}, "y": {"a": 0.2, "b": 0.6, "c": 0.2}}
    found = sy.across({name: published_comparison(means) for name, means in values.items()})
    rows = {row["run"]: row for row in found.table.iter_rows(named=True)}
    assert [rows[run]["wins"] for run in "abc"] == [1, 1, 0]
    assert [rows[run]["mean_rank"] for run in "abc"] == [1.75, 1.5, 2.75]
    assert [rows[run]["borda"] for run in "abc"] == [2.5, 3.0, 0.5]


def published_comparison(means):
    """A comparison of two queries, with these means."""
    rows = [(run, f"q{n}", mean + d) for run, mean in means.items() for n, d in enumerate((-0.1, 0.1))]
    return sy.compare_scores(pl.DataFrame(rows, schema=["run", "query_id", "nDCG@10"], orient="row"))


def test_the_table_is_best_first_and_the_letters_follow_the_test(many):
    assert many.table["run"].to_list()[0] == "a"
    groups = dict(zip(many.table["run"], many.table["group"], strict=True))
    pairs = {frozenset((row["run"], row["baseline"])): row["these_verdict"] for row in many.pairs.iter_rows(named=True)}
    for pair, verdict in pairs.items():
        one, other = pair
        assert bool(set(groups[one]) & set(groups[other])) == (verdict == "not significant")


def test_both_questions_are_named_in_the_verdict(many):
    assert many.verdict.startswith("a leads b on nDCG@10 over 3 datasets by ")
    assert "significant on these datasets, not significant on datasets like these." in many.verdict


def test_few_datasets_are_said_to_show_little(many):
    (few,) = [each for each in many.notes if each.code == "across-few-datasets"]
    assert str(few) == (
        "with 3 datasets, the smallest p-value on datasets like these is 0.25, so no difference can be significant at "
        "0.05; at least 6 datasets are needed"
    )
    assert set(many.pairs["like_these_verdict"]) == {"not significant"}


def test_every_dataset_has_its_own_verdict_beside_the_others(three, many):
    row = next(row for row in many.pairs.iter_rows(named=True) if (row["run"], row["baseline"]) == ("a", "c"))
    for name, each in three.items():
        pair = next(p for p in each.every_pair if {p.run, p.baseline} == {"a", "c"})
        expected = pair.verdict if pair.run == "a" else {"better": "worse", "worse": "better"}[pair.verdict]
        assert row[name] == expected


def test_lower_values_are_better_where_the_measure_says_so():
    slow = {"a": 0.5, "b": 0.1}
    found = sy.across({name: comparison(seed, slow, measure="cost") for seed, name in enumerate("xy")})
    assert found.table["run"].to_list() == ["b", "a"]
    assert found.tested_pairs[0].these.verdict == "better"
    assert found.table["wins"].to_list() == [2, 0]


# Missing datasets


@pytest.fixture
def gap(three):
    rest = {run: shift for run, shift in SHIFTS["z"].items() if run != "b"}
    return {**three, "z": comparison(2, rest, 20)}


def test_a_missing_dataset_is_shown_and_the_mean_is_refused(gap):
    found = sy.across(gap)
    row = found.table.filter(pl.col("run") == "b").row(0, named=True)
    assert [row[name] for name in ("macro", "micro", "mean_rank", "borda", "z")] == [None] * 5
    assert row["x"] is not None
    assert found.table["run"].to_list()[-1] == "b"
    assert {"b"} & {pair.run for pair in found.tested_pairs} == set()
    (said,) = [str(each) for each in found.notes if each.code == "across-missing"]
    assert said.startswith("not measured: b on z. Their means are not given; missing=skip")
    assert "not measured" in found.to_text()
    assert "refused" in found.to_markdown()


def test_a_mean_over_the_measured_datasets_is_given_where_it_is_asked_for(gap):
    found = sy.across(gap, missing="skip")
    row = found.table.filter(pl.col("run") == "b").row(0, named=True)
    assert row["macro"] == pytest.approx((row["x"] + row["y"]) / 2)
    pair = next(pair for pair in found.tested_pairs if {pair.run, pair.baseline} == {"a", "b"})
    rows = {each["run"]: each for each in found.table.iter_rows(named=True)}
    shared = sum(rows["a"][name] - rows["b"][name] for name in "xy") / 2
    assert pair.difference == pytest.approx(shared)
    assert "across-shared-datasets" in {each.code for each in found.notes}
    assert found.table["macro_low"].null_count() == found.table.height


def test_the_verdict_is_of_the_datasets_that_every_run_has():
    """Its lead was that of means over different datasets, 0.05, and its test that of the shared one."""
    hits = {"easy": {"a": 38, "c": 4}, "hard": {"a": 12, "b": 22, "c": 34}}
    results = {}
    for name, of_runs in hits.items():
        runs = {run: {f"q{n}": ["r" if n < count else "x"] for n in range(40)} for run, count in of_runs.items()}
        results[name] = sy.compare({f"q{n}": ["r"] for n in range(40)}, runs, ["RR"])
    found = sy.across(results, measure="RR", missing="skip")
    assert [row.run for row in found.rows] == ["a", "b", "c"]
    said = "c leads b on RR over the 1 of 2 datasets that every run has by 0.3000 (macro mean 0.8500): significant"
    assert str(found.verdict).startswith(said)


def test_intervals_are_possible_differences():
    """With three queries, a resample nearly without spread gave intervals of thousands."""
    lists = {"a": [1, 2, 3, 1, 1, 2], "b": [3, 1, 4, 4, 3, 1]}
    results = {}
    for name, start in (("x", 0), ("y", 3)):
        runs = {
            run: {f"q{n}": [*"vwxyz"[: at - 1], "r"] for n, at in enumerate(ranks[start : start + 3])}
            for run, ranks in lists.items()
        }
        results[name] = sy.compare({f"q{n}": ["r"] for n in range(3)}, runs, ["RR"])
    found = sy.across(results)
    ends = [end for pair in found.tested_pairs for end in (pair.these.low, pair.these.high)]
    ends += [end for row in found.rows for end in row.these]
    assert max(map(abs, ends)) <= 1


def test_no_run_on_every_dataset_is_said(three):
    found = sy.across({"x": comparison(0, {"a": 0.0, "b": 0.1}), "y": comparison(1, {"c": 0.0, "d": 0.1})})
    assert found.verdict.startswith("No run was measured on all of the 2 datasets")
    assert found.tested_pairs == ()
    json.loads(found.to_json())


# One dataset decides


def test_a_difference_that_one_dataset_decides_is_reported():
    shifts = {"x": {"a": 0.4, "b": 0.0}, "y": {"a": -0.02, "b": 0.0}, "z": {"a": -0.02, "b": 0.0}}
    found = sy.across({name: comparison(seed, each, 60) for seed, (name, each) in enumerate(shifts.items())})
    assert ("a", "b", "x", "reversed") in found.deciding
    said = {each.code: str(each) for each in found.notes}
    assert said["across-leader-depends"] == "one dataset decides that a leads: without x, b leads"
    assert "a vs b (reversed without x)" in said["across-one-dataset-decides"]


def test_a_difference_that_needs_every_dataset_is_reported():
    shifts = {name: {"a": 0.01, "b": 0.0} for name in "xyz"}
    found = sy.across({name: comparison(seed, each, 60) for seed, (name, each) in enumerate(shifts.items())})
    (pair,) = found.tested_pairs
    assert pair.these.verdict == "better"
    assert found.deciding == ()
    assert found.need_every == (("a", "b"),)
    (said,) = [str(each) for each in found.notes if each.code == "across-every-dataset-needed"]
    assert said == "these differences are not significant if any one of the datasets is left out: a vs b"


def test_a_difference_of_all_datasets_is_not_reported(many):
    assert many.need_every == ()
    assert [each for each in many.deciding if each[:2] == ("a", "c")] == []
    assert many.leaders_without == {}


def test_a_dataset_with_the_opposite_verdict_is_reported():
    shifts = {"x": {"a": 0.5, "b": 0.0}, "y": {"a": 0.5, "b": 0.0}, "z": {"a": -0.2, "b": 0.0}}
    found = sy.across({name: comparison(seed, each, 60) for seed, (name, each) in enumerate(shifts.items())})
    (said,) = [str(each) for each in found.notes if each.code == "across-opposite"]
    assert said.endswith("a vs b (better over all, worse on z)")


def test_friedman_and_nemenyi_are_given_from_five_datasets_on():
    five = {f"d{n}": comparison(n, {"a": 0.1, "b": 0.0, "c": 0.0}, 20) for n in range(5)}
    found = sy.across(five)
    assert found.friedman is not None
    assert "Friedman's test of all runs" in found.to_text()
    assert sy.across({name: five[name] for name in list(five)[:4]}).friedman is None


# Errors


def test_means_that_differ_by_rounding_are_ties():
    ranks = [7, 9, 4, 5, 5, 8, 9]
    qrels = {f"q{i}": ["a"] for i in range(7)}
    one, other = (
        {f"q{i}": [*(f"x{n}" for n in range(1, rank)), "a"] for i, rank in enumerate(order)}
        for order in (ranks, sorted(ranks))
    )
    result = sy.across({f"d{n}": sy.compare(qrels, {"A": one, "B": other}, ["RR"]) for n in range(6)})
    assert 0 < abs(result.values[0, 0] - result.values[1, 0]) < 1e-15
    assert [(row.wins, row.mean_rank, row.borda) for row in result.rows] == [(6, 1.5, 3.0)] * 2
    assert (result.friedman.statistic, result.friedman.p) == (0.0, 1.0)
    assert result.verdict.startswith("A and B have the same mean on RR over 6 datasets (macro mean 0.1629): ")


def test_ids_of_queries_that_occur_in_two_datasets_are_not_mixed(three):
    same = sy.across(three).table
    renamed = {
        name: comparison(seed, SHIFTS[name], {"x": 40, "y": 80, "z": 20}[name], prefix=f"{name}-")
        for seed, name in enumerate(SHIFTS)
    }
    assert sy.across(renamed).table.equals(same)


def test_a_table_of_scores_with_the_same_query_in_two_datasets_is_refused():
    rows = [("a", "x", "q1", 0.5), ("b", "y", "q1", 0.4)]
    table = pl.DataFrame(rows, schema=["run", "dataset", "query_id", "AP"], orient="row")
    with pytest.raises(InputError, match=r"query 'q1' occurs in 2 datasets .* sy\.across"):
        sy.compare_scores(table)


def test_a_table_of_scores_of_several_datasets_is_reported_as_a_mean_over_queries():
    rows = [(run, d, f"{d}{n}", 0.1 * n) for run in "ab" for d in "xy" for n in range(3)]
    table = pl.DataFrame(rows, schema=["run", "dataset", "query_id", "AP"], orient="row")
    assert "datasets-merged" in {each.code for each in sy.compare_scores(table).notes}


def test_one_dataset_is_refused(three):
    with pytest.raises(InputError, match="there is 1 dataset"):
        sy.across({"x": three["x"]})


def test_an_unknown_measure_is_refused_with_those_there_are(three):
    with pytest.raises(MeasureError, match="expected one of nDCG@10"):
        sy.across(three, "RR@10")


def test_an_unknown_policy_is_refused(three):
    with pytest.raises(PolicyError, match="refuse, skip"):
        sy.across(three, missing="zero")


def test_a_comparison_without_a_name_is_refused(three):
    with pytest.raises(InputError, match="does not know its dataset"):
        sy.across([three["x"], three["y"]])


def test_different_definitions_are_refused():
    qrels, run = {"q1": {"d1": 1}, "q2": {"d2": 1}}, {"q1": ["d1"], "q2": ["d1", "d2"]}
    runs = {"a": run, "b": {"q1": ["d2", "d1"], "q2": ["d2"]}}
    plain = sy.compare(qrels, runs, ["AP"])
    other = sy.compare(qrels, runs, ["AP"], missing="skip")
    with pytest.raises(InputError, match="the settings of 'x' and 'y' differ"):
        sy.across({"x": plain, "y": other})


# Formats


def test_the_json_has_the_promised_fields(many):
    data = json.loads(many.to_json())
    assert data["datasets"] == ["x", "y", "z"]
    assert data["measure"] == "nDCG@10"
    promised = {"run", "macro", "micro", "wins", "mean_rank", "borda", "values"}
    assert all(promised <= row.keys() for row in data["table"])
    assert list(data["table"][0]["values"]) == ["x", "y", "z"]
    for pair in data["pairs"]:
        assert {"run", "baseline", "difference", "these", "like_these"} <= pair.keys()
        assert all({"p_adjusted", "low", "high", "verdict"} <= pair[test].keys() for test in ("these", "like_these"))


def test_every_format_has_every_run_and_every_dataset(many):
    for text in (many.to_text(), many.to_markdown(), many.to_latex(), many.to_html(), many._repr_html_()):
        assert "nDCG@10 over 3 datasets" in text
        assert all(f"{value:.4f}" in text for value in many.values.flatten())
    rows = list(csv.DictReader(io.StringIO(many.to_csv())))
    assert [row["run"] for row in rows] == many.table["run"].to_list()
    assert float(rows[0]["macro"]) == many.table["macro"][0]


@pytest.mark.parametrize("measure", ["Confusion", "nDCG"])
def test_other_measures_are_shaded_where_higher_is_better(measure):
    """Also with a cutoff in the label."""
    judged = {f"q{n}": {"a": 1, "b": 0} for n in range(6)}
    runs = {name: {query: list(name) for query in judged} for name in ("ab", "xa")}
    results = {name: sy.compare(judged, runs, ["RR", measure], at=[1, 2]) for name in "xy"}
    page = sy.across(results, "RR at 1").to_html()
    part = page[page.index(f"<h3>{measure} at 2</h3>") :]
    assert ('data-shade="column"' in part[: part.index("</table>")]) == (measure == "nDCG")


def test_hostile_names_are_escaped():
    name = "<script>alert(1)</script>|&\\"
    data = {name: comparison(0, {"<b>": 0.1, "b": 0.0}), "y": comparison(1, {"<b>": 0.1, "b": 0.0})}
    found = sy.across(data)
    for page, own in ((found.to_html(), 1), (found._repr_html_(), 0)):
        assert page.count("<script") == own, "that of the shell"
        assert "<b>" not in page
    assert re.search(r"(?<!\\)<script", found.to_markdown()) is None


def test_a_dataset_may_have_the_name_of_a_column(three):
    found = sy.across({"run": three["x"], "macro": three["y"]})
    assert "dataset run" in found.table.columns
    assert list(found.to_dict()["table"][0]["values"]) == ["run", "macro"]


def test_numbers_do_not_depend_on_the_order_of_the_datasets(three, many):
    turned = sy.across(dict(reversed(three.items())))
    assert turned.table["run"].to_list() == many.table["run"].to_list()
    assert turned.table["macro"].to_list() == pytest.approx(many.table["macro"].to_list())
    assert not any(math.isnan(value) for value in turned.table["macro"])
