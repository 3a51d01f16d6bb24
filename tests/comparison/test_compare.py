"""compare(): leaderboards, pairs, composites, slices, movers, and errors for wrong input."""

from __future__ import annotations

import json
from collections import namedtuple
from functools import partial

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from steelyard.cli import run
from steelyard.comparison.scores import label, read_weights
from steelyard.errors import InputError, MeasureError, PolicyError
from steelyard.statistics import adjust


@pytest.fixture(scope="module")
def qrels():
    rng = np.random.default_rng(7)
    return {
        f"q{i}": {f"d{j}": int(rng.integers(-1, 3)) for j in rng.choice(40, int(rng.integers(1, 12)), replace=False)}
        for i in range(60)
    }


def noisy(qrels, noise, seed):
    rng = np.random.default_rng(seed)
    return {
        q: {f"d{x}": judged.get(f"d{x}", 0) + noise * float(rng.normal()) for x in range(40)}
        for q, judged in qrels.items()
    }


@pytest.fixture(scope="module")
def runs(qrels):
    return {"good": noisy(qrels, 0.5, 1), "fair": noisy(qrels, 1.5, 2), "poor": noisy(qrels, 6.0, 3)}


def test_leaderboard_is_best_first_with_the_means_of_evaluate(qrels, runs):
    result = sy.compare(qrels, runs, ["nDCG@10", "RR@10"])
    assert result.leaderboard["run"].to_list() == ["good", "fair", "poor"]
    assert result.leaderboard["rank"].to_list() == [1, 2, 3]
    for row in result.leaderboard.iter_rows(named=True):
        alone = sy.evaluate(qrels, runs[row["run"]], ["nDCG@10", "RR@10"])
        assert row["nDCG@10"] == alone["nDCG@10"]
        assert row["RR@10"] == alone["RR@10"]
        assert row["nDCG@10 low"] < row["nDCG@10"] < row["nDCG@10 high"]
        assert row["rank_low"] <= row["rank"] <= row["rank_high"]


def test_pairs_without_a_baseline_are_all_pairs(qrels, runs):
    pairs = sy.compare(qrels, runs, ["nDCG@10", "AP"]).pairs
    assert pairs.select("run", "baseline").unique().height == 3
    assert pairs.height == 6
    for measure in ("nDCG@10", "AP"):
        family = pairs.filter(pl.col("measure") == measure)
        assert family["p_adjusted"].to_list() == adjust(family["p"].to_list(), "holm").tolist()


def test_p_values_of_a_measure_do_not_depend_on_other_measures(qrels, runs):
    alone = sy.compare(qrels, runs, ["nDCG@10"]).pairs
    among = sy.compare(qrels, runs, ["nDCG@10", "AP", "RR", "P@5"]).pairs.filter(pl.col("measure") == "nDCG@10")
    assert alone["p_adjusted"].to_list() == among["p_adjusted"].to_list()


def test_pairs_with_a_baseline(qrels, runs):
    result = sy.compare(qrels, runs, ["nDCG@10"], baseline="fair", correction="none")
    assert set(result.pairs["baseline"]) == {"fair"}
    for row in result.pairs.iter_rows(named=True):
        gap = sy.evaluate(qrels, runs[row["run"]], ["nDCG@10"]).values("nDCG@10") - sy.evaluate(
            qrels, runs["fair"], ["nDCG@10"]
        ).values("nDCG@10")
        from scipy import stats

        assert row["difference"] == pytest.approx(gap.mean(), abs=1e-12)
        assert row["p"] == pytest.approx(stats.ttest_1samp(gap, 0).pvalue, abs=1e-12)
        assert row["p_adjusted"] == row["p"]
        assert row["effect"] == pytest.approx(gap.mean() / gap.std(ddof=1), abs=1e-12)
        assert row["wins"] + row["ties"] + row["losses"] == len(gap)
        assert row["low"] < row["difference"] < row["high"]


def test_lower_is_better_reverses_order_and_wins(qrels, runs):
    result = sy.compare(qrels, runs, ["Confusion@10"], baseline="poor")
    means = result.leaderboard["Confusion@10"].to_list()
    assert means == sorted(means)
    good = next(pair for pair in result.tested_pairs if pair.run == "good")
    assert good.difference < 0
    assert good.wins > good.losses


def test_composite_is_the_weighted_mean_with_inverted_measures(qrels, runs):
    weights = {"nDCG@10": 3.0, "Confusion@10": 1.0}
    result = sy.compare(qrels, runs, ["nDCG@10", "Confusion@10"], composite=weights)
    for row in result.leaderboard_rows:
        expected = (3 * row.means["nDCG@10"] + (1 - row.means["Confusion@10"])) / 4
        assert row.means["composite"] == pytest.approx(expected, abs=1e-12)
    measured = sy.evaluate(qrels, runs["good"], ["Composite(weights={nDCG@10: 3, Confusion@10: 1})"])
    top = next(row for row in result.leaderboard_rows if row.run == "good")
    assert list(measured.means.values())[0] == pytest.approx(top.means["composite"], abs=1e-12)


def test_composite_components_need_not_be_shown(qrels, runs):
    result = sy.compare(qrels, runs, ["AP"], composite={"RR@10": 1})
    assert result.keys == ["composite", "AP"]
    assert result.leaderboard_rows[0].means["composite"] == sy.evaluate(qrels, runs["good"], "RR@10")["RR@10"]
    assert result.stability().top_changes == 0


def test_weights_from_a_file(qrels, runs, tmp_path):
    file = tmp_path / "weights.yaml"
    file.write_text("nDCG@10: 0.5\nRR@10: 0.5\n")
    result = sy.compare(qrels, runs, ["nDCG@10"], composite=file)
    assert result.weights == {"nDCG@10": 0.5, "RR@10": 0.5}


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        *[({"AP": -1}, "0 or more"), ({"AP": 0}, "all 0"), ({}, "all 0"), ({"AP": "much"}, "expected a number")],
        ({"AP": 1e308, "nDCG@10": 1e308}, r"the weight of AP is 1e\+308; expected 0 or more, a number up to 1e\+15"),
    ],
)
def test_bad_weights(qrels, runs, weights, said):
    with pytest.raises(MeasureError, match=said):
        sy.compare(qrels, runs, ["AP"], composite=weights)


def test_measures_are_an_array_or_a_series(qrels, runs):
    names = ["nDCG@10", "AP"]
    for measures in (np.array(names), pl.Series(names), iter(names)):
        assert sy.compare(qrels, runs, measures).keys == names
    with pytest.raises(MeasureError, match="'' is not a measure"):
        sy.compare(qrels, runs, "")


def test_every_key_of_a_mapping_names_a_run(qrels, runs):
    assert sy.compare(qrels, dict(zip((None, 2), runs.values(), strict=False)), ["AP"]).runs == ("None", "2")


def test_rows_per_cutoff(qrels, runs):
    result = sy.compare(qrels, runs, ["P", "nDCG"], at=[1, 3])
    assert result.leaderboard["k"].to_list() == [1, 1, 1, 3, 3, 3]
    third = result.leaderboard.filter((pl.col("k") == 3) & (pl.col("run") == "good"))
    assert third["P"][0] == sy.evaluate(qrels, runs["good"], "P@3")["P@3"]


def test_cutoffs_may_be_repeated_or_empty_and_must_be_whole_numbers(qrels, runs):
    repeated = sy.compare(qrels, runs, ["P"], at=[3, 3])
    assert repeated.to_dict() == sy.compare(qrels, runs, ["P"], at=[3]).to_dict()
    assert sy.compare(qrels, runs, ["P@3"], at=[]).to_dict() == sy.compare(qrels, runs, ["P@3"]).to_dict()
    for cutoff in (0, 1.5, "3", True):
        with pytest.raises(PolicyError, match="a cutoff of `at` is .*; expected a whole number, 1 or more"):
            sy.compare(qrels, runs, ["P"], at=[cutoff])


def test_groups_never_contradict_the_pairs(qrels):
    runs = {f"r{i}": noisy(qrels, 1.0 + i / 4, i) for i in range(6)}
    result = sy.compare(qrels, runs, ["nDCG@10", "AP", "RR"])
    against = sy.compare(qrels, runs, ["nDCG@10", "AP", "RR"], baseline="r3")
    for found in (result, against):
        group = {row.run: row.group for row in found.leaderboard_rows}
        for pair in found.tested_pairs:
            if pair.measure == "nDCG@10":
                shared = set(group[pair.run]) & set(group[pair.baseline])
                assert bool(shared) == (pair.p_adjusted >= 0.05 or pair.verdict == "undecided")


def test_runs_that_all_differ_from_the_baseline_are_not_in_its_group():
    qrels = {f"q{i}": {"a": 1} for i in range(40)} | {"q0": {"a": 1, "never retrieved": 0}}
    base = {q: ["x", "y", "a"] for q in qrels}
    better = {q: ["a"] if i % 3 else ["x", "a"] for i, q in enumerate(qrels)}
    best = {q: ["a"] if i % 4 else ["x", "a"] for i, q in enumerate(qrels)}
    result = sy.compare(qrels, {"base": base, "better": better, "best": best}, ["RR"], baseline="base")
    group = {row.run: row.group for row in result.leaderboard_rows}
    assert all(pair.stars == "***" for pair in result.tested_pairs)
    assert group["better"] == group["best"] != group["base"]


def test_slices_by_complexity_and_reversals(qrels, runs):
    result = sy.compare(qrels, runs, ["nDCG@10"], by="complexity")
    assert [cut.value for cut in result.slices] == ["simple", "medium", "complex"]
    assert sum(cut.queries for cut in result.slices) == 60
    simple = [q for q, judged in qrels.items() if sum(g > 0 for g in judged.values()) <= 3]
    alone = sy.evaluate({q: qrels[q] for q in simple}, runs["good"], "nDCG@10")
    assert result.slices[0].means["good"]["nDCG@10"] == pytest.approx(alone["nDCG@10"], abs=1e-12)


def test_a_slice_with_a_different_ranking_is_reported():
    qrels = {f"q{i}": ["a"] for i in range(10)}
    left = {f"q{i}": ["a"] if i < 7 else ["x", "a"] for i in range(10)}
    right = {f"q{i}": ["x", "a"] if i < 7 else ["a"] for i in range(10)}
    kinds = {f"q{i}": "common" if i < 7 else "rare" for i in range(10)}
    result = sy.compare(qrels, {"left": left, "right": right}, ["RR"], by="kind", queries=kinds)
    assert [str(note) for note in result.notes if note.code != "relevant-documents-only"] == [
        "the ranking by RR differs in these slices of kind: rare (right above left by 0.5000 on 3 queries, "
        "3 won and 0 lost) (few queries, not tested: this may be noise)"
    ]
    assert result.slices[1].reverses.pairs == 1


def test_a_different_ranking_on_many_queries_is_reported_as_not_tested():
    qrels = {f"q{i}": ["a"] for i in range(100)}
    left = {f"q{i}": ["a"] if i < 65 else ["x", "a"] for i in range(100)}
    right = {f"q{i}": ["x", "a"] if i < 65 else ["a"] for i in range(100)}
    kinds = {f"q{i}": "common" if i < 65 else "rare" for i in range(100)}
    runs = {"left": left, "right": right, "again": left}
    (note,) = sy.compare(qrels, runs, ["RR"], by="kind", queries=kinds).notes[:1]
    assert "rare (right above left by 0.5000 on 35 queries, 35 won and 0 lost; 2 of 3 pairs reversed)" in str(note)
    assert str(note).endswith(" (not tested)")


def test_rounding_does_not_reverse_a_ranking():
    qrels = {f"q{i}": ["a"] for i in range(6)}
    ranks = {"left": [1, 2, 3, 4, 1, 1], "right": [4, 1, 2, 3, 2, 2]}
    runs = {name: {f"q{i}": [*"wxyz"[: rank - 1], "a"] for i, rank in enumerate(of)} for name, of in ranks.items()}
    assert np.mean([1, 1 / 2, 1 / 3, 1 / 4]) < np.mean([1 / 4, 1, 1 / 2, 1 / 3])
    kinds = {f"q{i}": "equal" if i < 4 else "clear" for i in range(6)}
    result = sy.compare(qrels, runs, ["RR"], by="kind", queries=kinds)
    assert [cut.reverses for cut in result.slices] == [None, None]


def test_complexity_is_derived_where_the_queries_do_not_have_it(qrels, runs):
    texts = {query: {"text": "why?"} for query in qrels}
    result = sy.compare(qrels, runs, ["nDCG@10"], by="complexity", queries=texts)
    assert [cut.value for cut in result.slices] == ["simple", "medium", "complex"]


def test_documents_that_moved_have_the_ranks_that_were_measured():
    qrels = {"q": {"a": 1}}
    runs = {"tied": {"q": {"a": 1.0, "b": 1.0}}, "last": {"q": {"a": 1.0, "b": 3.0, "c": 2.0}}}
    result = sy.compare(qrels, runs, ["RR"], baseline="last", ties="docid-asc")
    (move,) = result.movers("tied")[0].documents
    assert (move.before, move.after) == (3, 1)


def test_movers_of_every_run(qrels, runs):
    result = sy.compare(qrels, runs, ["nDCG@10"], baseline="poor")
    good, fair = result.movers_by_run(2)
    assert (good.run, fair.run, good.baseline) == ("good", "fair", "poor")
    pair = next(pair for pair in result.tested_pairs if pair.run == "good")
    assert (good.queries_won, good.queries_lost) == (pair.wins, pair.losses)
    assert len(good.won) == 2
    assert good.won[0].difference >= good.won[1].difference > 0
    assert all(mover.difference < 0 for mover in good.lost)
    made = json.loads(result.to_json(movers=2))
    assert made["movers"][0]["won"][0]["query_id"] == good.won[0].query_id
    assert made["movers"][0]["won"][0]["documents"][0]["doc_id"] == good.won[0].documents[0].doc_id
    assert "movers" not in json.loads(result.to_json())


def test_movers_name_the_documents(qrels, runs):
    result = sy.compare(qrels, runs, ["nDCG@10"], baseline="poor")
    moved = result.movers("good", most=3)
    assert len(moved) == 3
    assert abs(moved[0].difference) >= abs(moved[1].difference) >= abs(moved[2].difference)
    assert all(move.before != move.after for mover in moved for move in mover.documents)


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign", "permutation", "bootstrap", "tukey", "max-t"])
def test_every_test_by_name(qrels, runs, test):
    result = sy.compare(qrels, runs, ["nDCG@10"], test=test, permutations=2000)
    assert result.tested_pairs[0].run == "good"
    assert 0 < result.pairs["p"].max() <= 1
    again = sy.compare(qrels, runs, ["nDCG@10"], test=test, permutations=2000)
    assert again.to_json() == result.to_json()


def test_errors_for_wrong_input(qrels, runs):
    with pytest.raises(PolicyError, match="good, fair, poor.*Did you mean good"):
        sy.compare(qrels, runs, ["AP"], baseline="goood")
    with pytest.raises(InputError, match="two runs are called 'same'"):
        sy.compare(qrels, [sy.Run(runs["good"], name="same"), sy.Run(runs["fair"], name="same")], ["AP"])
    with pytest.raises(PolicyError, match="unknown test 'anova'; expected one of t, "):
        sy.compare(qrels, runs, ["AP"], test="anova")
    with pytest.raises(PolicyError, match="unknown correction 'hochberg'; expected one of none, "):
        sy.compare(qrels, runs, ["AP"], correction="hochberg")
    with pytest.raises(PolicyError, match="rel is '1'; expected a number"):
        sy.compare(qrels, runs, ["AP"], rel="1")
    for alpha in (0, 1e-17, 1, 2, float("nan")):
        with pytest.raises(PolicyError, match="alpha is .*; expected a number above 0 and below 1"):
            sy.compare(qrels, runs, ["AP"], alpha=alpha)
    with pytest.raises(InputError, match="needs the queries' columns"):
        sy.compare(qrels, runs, ["AP"], by="type")
    with pytest.raises(MeasureError, match="no measure"):
        sy.compare(qrels, runs, [])
    with pytest.raises(MeasureError, match="run 'good'.*seconds"):
        sy.compare(qrels, runs, ["Latency"])


def test_one_query_is_not_tested_and_a_note_gives_the_reason():
    result = sy.compare({"q": ["a"]}, {"x": {"q": ["a"]}, "y": {"q": ["b"]}}, ["RR"])
    assert result.pairs["p"].is_nan().all()
    note = result.notes[0]
    assert note.code == "not-tested"
    assert str(note).startswith("no test of x vs y: one query only")


def test_constant_differences():
    qrels = {f"q{i}": ["a"] for i in range(5)}
    ahead = {q: ["a"] for q in qrels}
    behind = {q: ["x", "a"] for q in qrels}
    result = sy.compare(qrels, {"ahead": ahead, "behind": behind, "same": behind}, ["RR"])
    p = {(pair.run, pair.baseline): pair.p for pair in result.tested_pairs}
    assert p["ahead", "behind"] == 2 / 2**5
    assert p["behind", "same"] == 1


@pytest.mark.parametrize("test", ["t", "wilcoxon", "sign", "permutation", "bootstrap", "max-t", "tukey"])
def test_equal_values_with_other_rounding_errors_are_equal(test):
    # 1 / 3 + 2 / 10 + 3 / 12 and its like in another order of addition differ by 5.6e-17.
    fill = [f"x{i}" for i in range(12)]
    qrels = {f"q{i}": {"r1": 1, "r2": 1, "r3": 1, "r4": 1, **dict.fromkeys(fill, 0)} for i in range(20)}
    runs = {"A": ["r1", "r2", *fill], "B": ["r1", "x1", "r2", "x2", "x3", "x4", "x5", "x6", "r3", *fill[7:]]}
    result = sy.compare(qrels, {name: dict.fromkeys(qrels, docs) for name, docs in runs.items()}, ["AP"], test=test)
    means = result.leaderboard["AP"]
    assert 0 < abs(means[0] - means[1]) < 1e-15
    (pair,) = result.tested_pairs
    assert (pair.p, pair.verdict, pair.effect, pair.difference) == (1.0, "equal", 0.0, 0.0)
    assert (pair.low, pair.high, pair.ties) == (0.0, 0.0, 20)
    assert "no difference on any query" in result.verdict


def test_runs_with_the_same_mean_do_not_lead():
    qrels = {f"q{i}": ["a"] for i in range(4)}
    ranks = {"left": [1, 2, 3, 4], "right": [4, 1, 2, 3]}
    runs = {name: {f"q{i}": [*"wxyz"[: rank - 1], "a"] for i, rank in enumerate(of)} for name, of in ranks.items()}
    for order in (runs, dict(reversed(runs.items()))):
        result = sy.compare(qrels, order, ["RR"])
        assert result.verdict.startswith(f"{' and '.join(order)} have the same mean on RR (0.5208): no difference in")
        assert result.tested_pairs[0].difference == 0.0
        assert result.leaderboard["run"].to_list() == list(order)


def test_runs_over_different_queries_are_reported():
    qrels = {f"q{i}": ["a"] for i in range(6)}
    whole = {q: ["a"] for q in qrels}
    part = {q: ["a"] for q in list(qrels)[:4]}
    zero = sy.compare(qrels, {"whole": whole, "part": part}, ["RR"])
    assert zero.leaderboard["RR"].to_list() == [1.0, 4 / 6]
    assert zero.coverage["part"].missing == 2
    assert "part: 2 queries are missing from the run and score 0." in zero.to_markdown()
    skip = sy.compare(qrels, {"whole": whole, "part": part}, ["RR"], missing="skip")
    assert [str(note) for note in skip.notes] == [
        "the runs are compared on the 4 of 6 queries that every run has a value for: part has none for 2 (q4, q5)"
    ]
    assert skip.tested_pairs[0].queries == 4


@pytest.mark.parametrize("dialect", ["trec_eval-9", "trec_eval-10", "beir", "mteb"])
def test_a_run_does_not_lead_by_leaving_hard_queries_out(dialect):
    """With missing=skip a run that answers only easy queries has the highest mean of its own, and is worse."""
    from steelyard.dialects import dialect as dialect_of

    hard, easy = [f"h{i}" for i in range(30)], [f"e{i}" for i in range(30)]
    qrels = {q: ["r"] for q in [*hard, *easy]}
    full = {**{q: ["x", "y", "z", "r"] for q in hard}, **{q: ["r"] for q in easy}, "h0": ["x", "y", "z"]}
    picky = {q: ["r"] if i % 3 else ["x", "r"] for i, q in enumerate(easy)}
    measure = {"beir": "MRR@10", "mteb": "mrr_at_10"}.get(dialect, "recip_rank")
    assert dialect_of(dialect).policies["missing"] == "skip"
    own = {
        name: sy.evaluate(qrels, run, [measure], dialect=dialect) for name, run in (("full", full), ("picky", picky))
    }
    assert own["picky"][measure] > own["full"][measure]
    result = sy.compare(qrels, {"picky": picky, "full": full}, [measure], dialect=dialect)
    assert result.verdict.headline.startswith("full leads picky")
    assert [row.run for row in result.leaderboard_rows] == ["full", "picky"]
    assert result.leaderboard_rows[0].means[measure] == 1.0
    pair = result.tested_pairs[0]
    rows = {row.run: row.means[measure] for row in result.leaderboard_rows}
    assert (pair.run, pair.verdict, pair.queries) == ("full", "better", 30)
    assert pair.difference == pytest.approx(rows["full"] - rows["picky"])
    assert result.leaderboard_rows[0].intervals[measure] == (1.0, 1.0)
    assert r"\textbf{1.0000}" in result.to_latex()
    assert "on the 30 of 60 queries that every run has a value for" in result.to_markdown()


def test_three_runs_are_all_compared_on_the_same_queries(qrels, runs):
    some = {**runs, "part": {q: runs["fair"][q] for q in list(runs["fair"])[:20]}}
    result = sy.compare(qrels, some, ["nDCG@10"], missing="skip")
    whole = sy.compare({q: qrels[q] for q in list(qrels)[:20]}, some, ["nDCG@10"])
    assert {row.run: row.means for row in result.leaderboard_rows} == {
        row.run: row.means for row in whole.leaderboard_rows
    }
    assert [(p.run, p.p_adjusted, p.queries) for p in result.tested_pairs] == [
        (p.run, p.p_adjusted, p.queries) for p in whole.tested_pairs
    ]


def test_runs_without_a_shared_query_cannot_be_compared():
    qrels = {f"q{i}": ["a"] for i in range(4)}
    parts = [{q: ["a"] for q in list(qrels)[:2]}, {q: ["a"] for q in list(qrels)[2:]}]
    with pytest.raises(InputError, match=r"no query has a value of RR in every run.*missing=zero"):
        sy.compare(qrels, dict(zip("xy", parts, strict=True)), ["RR"], missing="skip")
    assert sy.compare(qrels, dict(zip("xy", parts, strict=True)), ["RR"]).tested_pairs[0].queries == 4


def test_json_has_the_promised_keys(qrels, runs):
    made = json.loads(sy.compare(qrels, runs, ["AP"], composite={"AP": 1}, baseline="poor").to_json())
    assert {"steelyard", "baseline", "test", "correction", "leaderboard", "pairs"} <= set(made)
    assert {"rank", "run", "k", "composite", "AP"} <= set(made["leaderboard"][0])
    assert set(made["pairs"][0]) >= {
        "run", "baseline", "measure", "difference", "relative", "p", "p_adjusted", "stars", "low", "high",
        "effect", "wins", "ties", "losses",
    }  # fmt: skip
    one = sy.compare({"q": ["a"]}, {"x": {"q": ["a"]}, "y": {"q": ["b"]}}, ["RR"]).to_json()
    assert "Infinity" not in one, "JSON has no infinite numbers"
    assert json.loads(one)["pairs"][0]["smallest"] is None
    plain = json.loads(sy.compare(qrels, runs, ["AP"]).to_json())["leaderboard"][0]
    assert plain["k"] is None
    assert plain["composite"] is None


def test_tables_escape_names(qrels, runs):
    hostile = {"a|b": runs["good"], "<script>": runs["fair"], "50%_&": runs["poor"]}
    result = sy.compare(qrels, hostile, ["AP"])
    assert "a\\|b" in result.to_markdown()
    assert "<script>" not in result.to_html()
    assert r"50\%\_\&" in result.to_latex()
    assert result._repr_html_() == result.to_html()


TWO_EACH = {f"q{number}": {"a": 1, "b": 1} for number in range(30)} | {"q0": {"a": 1, "b": 1, "never retrieved": 0}}
GOOD = {query: ["a", "x", "b"] for query in TWO_EACH}
WORSE = {query: ["x", "a"] if number % 3 else ["x"] for number, query in enumerate(TWO_EACH)}
NEARLY = {**GOOD, "q4": ["x", "a", "b"]}


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ({"one": GOOD, "two": GOOD}, "one and two both score 0.9197 on nDCG@10: no difference on any query."),
        (
            {"one": GOOD, "two": GOOD, "three": GOOD},
            "one, two and three all score 0.9197 on nDCG@10: no difference on any query.",
        ),
        (
            {"one": GOOD, "two": GOOD, "worse": WORSE},
            "one and two (no difference on any query) lead worse on nDCG@10 by 0.6618 (0.9197): "
            "the difference is significant.",
        ),
        (
            {"one": GOOD, "two": GOOD, "nearly": NEARLY},
            "one and two (no difference on any query) lead nearly on nDCG@10 by 0.0075 (0.9197): not significant with "
            "30 queries; about 320 would be needed if the true difference is this large. "
            "Not significantly below the leader: nearly.",
        ),
    ],
)
def test_verdict_on_runs_without_a_difference_on_any_query(runs, verdict):
    assert sy.compare(TWO_EACH, runs, ["nDCG@10"]).verdict == verdict


@pytest.mark.parametrize("place", ["qrels.tsv", "qrels/test.tsv"])
def test_queries_beside_the_judgments_slice(tmp_path, place, capsys):
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "?", "type": "a"}\n{"_id": "q2", "type": "b"}\n')
    qrels = tmp_path / place
    qrels.parent.mkdir(exist_ok=True)
    qrels.write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n")
    (tmp_path / "one.run").write_text("q1 Q0 d1 1 2 one\nq2 Q0 d1 1 2 one\n")
    found = sy.compare(qrels, [tmp_path / "one.run"], ["RR"], by="type")
    assert [(cut.value, cut.means["one"]["RR"]) for cut in found.slices] == [("a", 1.0), ("b", 0.0)]
    command = ["compare", str(qrels), str(tmp_path / "one.run"), "-m", "RR", "--by", "type", "--format", "json"]
    assert run(command) == 0
    assert [cut["value"] for cut in json.loads(capsys.readouterr().out)["slices"]] == ["a", "b"]
    (tmp_path / "queries.jsonl").unlink()
    with pytest.raises(InputError, match="--set queries=FILE"):
        sy.compare(qrels, [tmp_path / "one.run"], ["RR"], by="type")


def test_files_are_compared_as_they_are_read_and_the_baseline_may_be_a_file_name(tmp_path, qrels, runs):
    paths = []
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        for name in list(runs)[:2]:
            sy.Run(runs[name], name="tag").write(tmp_path / folder / f"{name}.trec")
            paths.append(tmp_path / folder / f"{name}.trec")
    first, second = list(runs)[:2]
    result = sy.compare(qrels, paths[:2], ["AP"], baseline=f"{second}.trec")
    assert set(result.runs) == {first, second}
    assert result.plan.baseline == second
    assert set(sy.compare(qrels, paths, ["AP"]).runs) == set(map(str, paths))
    with pytest.raises(PolicyError, match="'nobody' is not one of the runs"):
        sy.compare(qrels, paths[:2], ["AP"], baseline="nobody")
    with pytest.raises(InputError, match="two runs are called"):
        sy.compare(qrels, [sy.Run(runs[first], name="a"), sy.Run(runs[second], name="a")], ["AP"])


def test_measures_with_their_own_cutoff_are_reported(qrels, runs):
    for own in ("nDCG@10", "nDCG@3"):
        notes = sy.compare(qrels, runs, ["P", own], at=[1, 3]).notes
        assert [str(note) for note in notes if note.code == "measures-with-own-cutoff"] == [
            f"{own} has its own cutoff and is the same in every row of a run"
        ]
    notes = sy.compare(qrels, runs, ["P", "RR"], at=[1, 3]).notes
    assert "measures-with-own-cutoff" not in [note.code for note in notes]


def test_runs_from_iterators_are_kept(qrels):
    row = namedtuple("row", "query_id doc_id score")
    rows = [row(query, "x", 1.0) for query in qrels]
    result = sy.compare(qrels, {"once": iter(rows), "listed": rows}, ["RR"])
    assert len(result.source.run("once")) == len(qrels)
    assert result.coverage["once"] == result.coverage["listed"]


def test_measures_that_need_whole_lists_have_no_condensed_difference():
    qrels = {f"q{number}": {"a": 1, "b": 0} for number in range(20)}
    texts = {doc: f"some words about {doc}" for doc in "abcde"}
    lists = {"good": ["a", "c", "b"], "poor": ["c", "b", "d", "a"]}
    runs = {name: sy.Run(dict.fromkeys(qrels, order), texts=texts) for name, order in lists.items()}
    budget, rr = sy.compare(qrels, runs, ["R(budget=12)@3", "RR"]).tested_pairs
    assert (budget.condensed, budget.imputed, budget.unjudged) == (None, None, 40)
    assert rr.condensed == 0.5


def gmap_case():
    """Two runs: `steady` is better on every hard query, `spiky` by much on one easy query: the means disagree."""
    qrels = {f"q{i}": ["r"] for i in range(40)}
    lists = {
        "steady": {q: [f"x{n}" for n in range(9)] + ["r"] for q in qrels},
        "spiky": {q: [f"x{n}" for n in range(3 * (i % 10) + 20)] + ["r"] for i, q in enumerate(qrels)},
    }
    for i in range(6):
        lists["spiky"][f"q{i}"] = ["r"]
    return qrels, lists


@pytest.mark.parametrize("test", ["t", "wilcoxon", "permutation", "max-t"])
def test_geometric_means_are_tested_by_their_logarithms(test):
    from scipy import stats

    qrels, lists = gmap_case()
    result = sy.compare(qrels, lists, ["GMAP", "AP"], test=test, correction="none")
    gmap, mean = result.tested_pairs
    logs = [np.log(sy.evaluate(qrels, lists[name], ["AP"]).values("AP")) for name in (gmap.run, gmap.baseline)]
    values = {name: float(np.exp(log.mean())) for name, log in zip((gmap.run, gmap.baseline), logs, strict=True)}
    assert mean.difference < 0 < gmap.difference == pytest.approx(values["steady"] - values["spiky"])
    assert gmap.verdict != "different"
    assert np.sign(gmap.low) == np.sign(gmap.high) or gmap.low < 0 < gmap.high
    assert gmap.low < gmap.difference < gmap.high
    if test == "t":
        assert gmap.p == pytest.approx(stats.ttest_rel(*logs).pvalue)
        ratio = sy.statistics.difference_interval(*logs)
        assert (gmap.low, gmap.high) == pytest.approx(tuple(values["spiky"] * np.expm1(ratio)))
    assert "GMAP is a geometric mean: the logarithms are tested" in str(result.notes[0])
    row = result.leaderboard_rows[0]
    assert row.run == "steady"
    assert row.intervals["GMAP"] is not None
    assert row.intervals["GMAP"][0] <= row.means["GMAP"] <= row.intervals["GMAP"][1]


def test_the_interval_of_a_geometric_mean_is_of_the_logarithms():
    qrels, lists = gmap_case()
    scores = sy.evaluate(qrels, lists["spiky"], ["GMAP", "AP"])
    low, high = scores.interval("GMAP")
    assert (low, high) == pytest.approx(tuple(np.exp(sy.statistics.mean_interval(np.log(scores.values("AP"))))))
    assert low < scores["GMAP"] < high
    assert scores.intervals()["GMAP"] == (low, high)


def near_runs(spread, size=120):
    """Two runs whose reciprocal ranks differ by little noise, and a third that is far away."""
    random = np.random.default_rng(11)
    values = random.uniform(0.3, 0.7, size)
    rows = {"a": values, "b": values + random.normal(0.0, spread, size), "far": values - 0.2}
    names = np.repeat(list(rows), size)
    queries = np.tile(np.arange(size), 3)
    return pl.DataFrame({"run": names, "query": queries, "MRR": np.concatenate(list(rows.values()))})


def test_equivalence_is_reported_where_the_interval_shows_it():
    result = sy.compare_scores(near_runs(0.02), equivalence=0.01)
    found = {frozenset((pair.run, pair.baseline)): pair for pair in result.tested_pairs}
    same = found[frozenset("ab")]
    assert (same.equivalent, same.verdict) == (0.01, "not significant")
    assert -0.01 < same.low < same.high < 0.01
    assert [pair.equivalent for pair in result.tested_pairs if "far" in (pair.run, pair.baseline)] == [None, None]
    words = "equivalent within 0.01"
    assert result.verdict.headline.endswith(f"{words}.")
    for text in (result.to_text(), result.to_markdown(), result.to_latex(), result.to_html()):
        assert f"not significant, {words}" in text
    assert json.loads(result.to_json())["equivalence"] == 0.01
    assert result.pairs["equivalent"].to_list().count(0.01) == 1
    based = sy.compare_scores(near_runs(0.02), equivalence=0.01, baseline="a")
    assert "MRR equivalent" in based.to_csv().splitlines()[0]
    for other in (sy.compare_scores(near_runs(0.2), equivalence=0.01), sy.compare_scores(near_runs(0.02))):
        assert words not in other.to_text()
        assert other.pairs["equivalent"].null_count() == 3
    with pytest.raises(PolicyError, match="equivalence is 0; expected a margin above 0"):
        sy.compare_scores(near_runs(0.02), equivalence=0)


def test_a_significant_difference_can_be_equivalent():
    frame = near_runs(0.0).with_columns(pl.when(pl.col("run") == "b").then(pl.col("MRR") + 0.001).otherwise("MRR"))
    result = sy.compare_scores(frame, equivalence=0.01)
    pair = next(pair for pair in result.tested_pairs if {pair.run, pair.baseline} == {"a", "b"})
    assert (pair.verdict, pair.shown_verdict) == ("better", "better, equivalent within 0.01")


def test_equivalence_on_the_command_line(tmp_path, capsys):
    near_runs(0.02).write_csv(tmp_path / "scores.csv")
    assert run(["compare", "--scores", str(tmp_path / "scores.csv"), "--set", "equivalence=0.01"]) == 0
    printed = capsys.readouterr()
    assert "equivalent\n" in printed.out
    assert "equivalent within 0.01" in printed.err


def test_equivalence_that_depends_on_unjudged_documents_is_not_claimed():
    """Two runs with the same few judged documents; below them one has good documents that nobody judged."""
    random = np.random.default_rng(2)
    qrels, one, other = {}, {}, {}
    for number in range(60):
        query, docs = f"q{number}", [f"d{place}" for place in range(4)]
        qrels[query] = {doc: int(random.random() < 0.6) for doc in docs}
        one[query] = [*docs, *(f"x{place}" for place in range(6))]
        other[query] = [*docs, *(f"y{place}" for place in range(6))]
    result = sy.compare(qrels, {"one": one, "other": other}, ["P@10"], equivalence=0.06)
    (pair,) = result.tested_pairs
    assert (pair.difference, pair.low, pair.high) == (0.0, 0.0, 0.0)
    assert pair.imputed_low < -0.06 or pair.imputed_high > 0.06
    assert pair.equivalent is None
    judged = {
        query: {**known, **{f"{run}{place}": 0 for run in "xy" for place in range(6)}} for query, known in qrels.items()
    }
    assert (
        sy.compare(judged, {"one": one, "other": other}, ["P@10"], equivalence=0.06).tested_pairs[0].equivalent == 0.06
    )


def test_runs_without_any_difference_are_equivalent_only_if_enough_queries_show_it():
    """0 of n queries differ: at 97.5%, up to a share 1 - 0.025 ** (1 / n) of all queries may; the rule of three."""
    for queries, margin in ((182, None), (183, 0.02)):
        qrels = {f"q{number}": {"d": 1} for number in range(queries)}
        result = sy.compare(
            qrels, {"a": {q: ["d"] for q in qrels}, "b": {q: ["d"] for q in qrels}}, "RR", equivalence=0.02
        )
        (pair,) = result.tested_pairs
        assert (pair.verdict, pair.low, pair.high, pair.equivalent) == ("equal", 0.0, 0.0, margin)


def test_the_documents_that_explain_a_mover_come_first():
    qrels = sy.Qrels({"q1": {"good": 2, "bad": 0, "worse": 0}})
    others = [f"x{number}" for number in range(20)]
    before = {"q1": ["worse", *others[:2], "good", *others[2:15], "bad"]}
    after = {"q1": ["good", *others, "worse"]}
    (mover,) = sy.compare(qrels, {"a": after, "b": before}, ["nDCG@10"]).movers("a", "b", most=1)
    assert [move.doc_id for move in mover.documents] == ["good", "bad", "worse"]


def test_policies_and_statistics_are_dictionaries_that_functions_share():
    qrels = {f"q{number}": {"a": 1, "b": 2} for number in range(8)}
    runs = {"x": {query: ["a", "b"] for query in qrels}, "y": {query: ["b", "a"] for query in qrels}}
    policies: sy.Policies = {"rel": 2}
    statistics: sy.Statistics = {"test": "sign", "correction": "none", "alpha": 0.01}
    result = sy.compare(qrels, runs, ["RR"], **policies, **statistics)
    assert result.leaderboard["RR"].to_list() == [1.0, 0.5]
    assert sy.evaluate(qrels, runs["x"], "RR", **policies)["RR"] == 0.5
    assert (result.plan.test, result.plan.correction, result.plan.alpha, result.plan.seed) == ("sign", "none", 0.01, 0)
    for call in (partial(sy.compare, qrels, runs), partial(sy.compare_scores, "x.csv"), partial(sy.gate, "result")):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'tests'.*Did you mean test"):
            call(tests="sign")
        with pytest.raises(TypeError, match=r"Pass a dictionary as keywords: \*\*statistics\."):
            call(statistics=statistics)


def test_intervals_of_a_composite_are_within_its_range():
    qrels = {"q1": {"a": 1, "x": -1}, "q2": {"c": 1}}
    runs = {"one": {"q1": ["a"], "q2": ["x"]}, "two": {"q1": ["x"], "q2": ["c"]}}
    weights = {"nDCG@10": 0.7, "Confusion@3": 0.1}
    comparison = sy.compare(qrels, runs, ["nDCG@10"], composite=weights, baseline="two")
    assert {row.intervals["composite"] for row in comparison.leaderboard_rows} == {(0.0, 1.0)}
    (pair,) = (pair for pair in comparison.tested_pairs if pair.measure == "composite")
    assert (pair.low, pair.high) == (-1, 1)
    table = json.loads(comparison.to_json())["leaderboard"]
    assert {tuple(row["intervals"]["composite"]) for row in table} == {(0.0, 1.0)}
    # A measure without a highest value, inverted, has no lowest.
    unlimited = sy.compare(qrels, runs, ["nDCG@10"], composite={"nDCG@10": 1, "DCG@10": 1}, baseline="two")
    (row, _) = unlimited.leaderboard_rows
    low, high = row.intervals["composite"]
    assert (low, high > 1) == (0, True)
    written = sy.evaluate(qrels, runs["one"], "Composite(weights={nDCG@10: 0.7, Counted(of=Confusion@3): 0.1})")
    assert list(written.intervals().values()) == [(0.0, 1.0)]


def test_labels_and_weights():
    assert (label("nDCG", 3), label("nDCG@10", None)) == ("nDCG at 3", "nDCG@10")
    assert read_weights({"nDCG@10": 1, "RR@10": 3}) == {"nDCG@10": 1.0, "RR@10": 3.0}


def test_complexity_counts_what_is_relevant():
    qrels = sy.Qrels({"q1": {**{f"d{i}": 1 for i in range(8)}, "e": 2}, "q2": {"a": 2, "b": 2}})
    runs = {"x": {"q1": ["e", "d1"], "q2": ["a"]}, "y": {"q1": ["d1", "e"], "q2": ["b", "a"]}}

    def sizes(**options):
        return [(cut.value, cut.queries) for cut in sy.compare(qrels, runs, ["R@5"], by="complexity", **options).slices]

    assert sizes() == [("simple", 1), ("complex", 1)]
    assert sizes(rel=2) == [("simple", 2)]
    qrels.relevant_from = 2.0
    assert sizes() == [("simple", 2)]
    assert sizes(rel=1) == [("simple", 1), ("complex", 1)]
