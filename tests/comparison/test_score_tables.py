"""Score tables of other tools: wide, long, with repetitions, missing values and repeated queries."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import steelyard as sy
from steelyard.cli import run as command
from steelyard.comparison.next_steps import next_steps
from steelyard.comparison.scores import TableOptions
from steelyard.errors import InputError, MeasureError, PolicyError

WIDE = pl.DataFrame(
    {
        "method": ["a"] * 4 + ["b"] * 4,
        "query_id": ["1", "2", "3", "4"] * 2,
        "MRR": [1.0, 0.5, 1.0, 0.2, 0.5, 0.5, 0.25, 0.1],
        "Latency": [0.1] * 4 + [0.2] * 4,
    }
)


def test_wide_and_long_agree(tmp_path):
    wide, long = tmp_path / "wide.csv", tmp_path / "long.parquet"
    WIDE.write_csv(wide)
    WIDE.unpivot(["MRR", "Latency"], index=["method", "query_id"], variable_name="measure").write_parquet(long)
    options = TableOptions(run_column="method", query_column="query_id")
    first = sy.compare_scores(wide, ["MRR"], options=options)
    second = sy.compare_scores(long, ["MRR"], options=options)
    assert first.to_json() == second.to_json()
    assert first.leaderboard["MRR"].to_list() == [0.675, pytest.approx(0.3375)]


def test_measures_are_detected_and_lower_latency_is_better():
    result = sy.compare_scores(WIDE)
    assert result.keys == ["MRR", "Latency"]
    faster = next(pair for pair in result.tested_pairs if pair.measure == "Latency")
    assert (faster.run, faster.wins) == ("a", 4)


def test_a_column_called_composite_is_not_mixed_up_with_weights():
    table = WIDE.rename({"Latency": "composite"})
    assert sy.compare_scores(table).keys == ["MRR", "composite"]
    with pytest.raises(InputError, match="a column of the table is called composite"):
        sy.compare_scores(table, ["MRR", "composite"], composite={"MRR": 1})


def test_repetitions_are_averaged_or_kept_and_reported():
    seeds = pl.concat([WIDE.with_columns(pl.lit(s).alias("seed"), pl.col("MRR") * s) for s in (1, 2)])
    averaged = sy.compare_scores(seeds, ["MRR"])
    assert averaged.leaderboard["MRR"].to_list()[0] == pytest.approx(0.675 * 1.5)
    assert [str(note) for note in averaged.notes] == [
        "2 repetitions of each query (column 'seed'): averaged before testing"
    ]
    blocks = sy.compare_scores(seeds, ["MRR"], options=TableOptions(repeats="blocks"))
    assert blocks.tested_pairs[0].queries == 4
    assert blocks.tested_pairs[0].p == pytest.approx(averaged.tested_pairs[0].p)
    expected = "2 repetitions of each query (column 'seed'): paired by repetition and averaged before testing"
    assert expected in map(str, blocks.notes)


def test_blocks_are_the_repetitions_that_every_run_has():
    frame = pl.DataFrame(
        {
            "run": ["a"] * 4 + ["b"] * 3,
            "query": ["1", "1", "2", "2", "1", "1", "2"],
            "seed": [1, 2, 1, 2, 1, 2, 1],
            "MRR": [0.2, 0.4, 0.5, 1.0, 0.1, 0.3, 0.5],
        }
    )
    blocks = sy.compare_scores(frame, options=TableOptions(repeats="blocks"), missing="skip")
    assert dict(blocks.leaderboard.select("run", "MRR").rows()) == {
        "a": pytest.approx((0.3 + 0.5) / 2),
        "b": pytest.approx((0.2 + 0.5) / 2),
    }
    average = sy.compare_scores(frame, missing="skip")
    assert dict(average.leaderboard.select("run", "MRR").rows())["a"] == pytest.approx((0.3 + 0.75) / 2)
    zero = sy.compare_scores(frame, options=TableOptions(repeats="blocks"))
    assert dict(zero.leaderboard.select("run", "MRR").rows())["b"] == pytest.approx((0.2 + 0.25) / 2)


@pytest.mark.slow
def test_repetitions_do_not_make_equal_runs_significant():
    """Two runs of the same quality, each better on its own queries, five seeds, little noise: 5% are significant."""
    random, draws, queries, seeds = np.random.default_rng(5), 400, 30, 5
    significant = 0
    for _ in range(draws):
        quality = random.normal(0.5, 0.15, (2, queries, 1)) + random.normal(0.0, 0.03, (2, queries, seeds))
        frame = pl.DataFrame(
            {
                "run": np.repeat(["a", "b"], queries * seeds),
                "query": np.tile(np.repeat(np.arange(queries), seeds), 2),
                "seed": np.tile(np.arange(seeds), 2 * queries),
                "MRR": quality.ravel(),
            }
        )
        found = sy.compare_scores(frame, ["MRR"], options=TableOptions(repeats="blocks"))
        significant += found.tested_pairs[0].p < 0.05
    assert 0.025 <= significant / draws <= 0.075


def test_missing_values_follow_the_policy():
    incomplete = WIDE.filter(~((pl.col("method") == "b") & (pl.col("query_id") == "4")))
    zero = sy.compare_scores(incomplete, ["MRR"])
    assert zero.leaderboard["MRR"].to_list()[1] == pytest.approx(1.25 / 4)
    assert [str(note) for note in zero.notes] == [
        "1 value is missing from the score table and scores 0 (the first: run 'b', query '4', MRR)"
    ]
    skipped = sy.compare_scores(incomplete, ["MRR"], missing="skip")
    assert skipped.tested_pairs[0].queries == 3
    with pytest.raises(PolicyError, match="run 'b', query '4'"):
        sy.compare_scores(incomplete, ["MRR"], missing="error")


def test_a_repeated_query_of_a_run_is_an_error():
    with pytest.raises(InputError, match=r"(?s)run 'a', query '1'.*--set columns=repeat="):
        sy.compare_scores(pl.concat([WIDE, WIDE.head(1)]), ["MRR"])


def test_unknown_columns_are_reported(tmp_path):
    with pytest.raises(InputError, match=r"no measure 'MMR'.*Did you mean MRR"):
        sy.compare_scores(WIDE, ["MMR"])
    with pytest.raises(InputError, match="no column 'methd'"):
        sy.compare_scores(WIDE, ["MRR"], options=TableOptions(run_column="methd"))
    with pytest.raises(InputError, match="there is no such file"):
        sy.compare_scores(tmp_path / "absent.csv")


def test_stars_and_queries_without_a_relevant_document():
    """The stars of a paired t-test at p < 0.001, 0.01 and 0.05; a query without a relevant document scores 0."""
    from scipy import stats

    rng = np.random.default_rng(3)
    base = rng.random(40)
    seen = set()
    for shift in (0.0, 0.05, 0.1, 0.14, 0.3):
        other = base + shift + 0.2 * rng.normal(size=40)
        frame = pl.DataFrame({"run": ["b"] * 40 + ["m"] * 40, "query": [*range(40)] * 2, "MRR": [*base, *other]})
        pair = sy.compare_scores(frame, baseline="b", correction="none").tested_pairs[0]
        p = stats.ttest_rel(other, base).pvalue
        expected = "***" if p < 0.001 else "**" if p < 0.01 else "*" if p < 0.05 else "ns"
        assert pair.stars == expected
        seen.add(expected)
    assert {"***", "ns"} <= seen
    undefined = sy.evaluate({"q1": ["a"], "q2": ["z"]}, {"q1": ["a"], "q2": ["x"]}, ["MRR"])
    assert undefined["MRR"] == 0.5


def test_a_column_of_the_table_slices_it():
    frame = pl.DataFrame(
        {
            "method": ["a", "a", "a", "b", "b", "b"],
            "query_id": [1, 2, 3] * 2,
            "kind": ["x", "y", "x"] * 2,
            "MRR": [0.5, 0.3, 0.25, 0.6, 0.4, 0.75],
        }
    )
    found = sy.compare_scores(frame, ["MRR"], by="kind")
    assert {(cut.value, cut.queries): cut.means["b"]["MRR"] for cut in found.slices} == {
        ("x", 2): pytest.approx(0.675),
        ("y", 1): 0.4,
    }
    assert len(sy.compare_scores(frame, ["MRR"], by="query_id").slices) == 3
    seeds = pl.concat([frame.with_columns(seed=pl.lit(1)), frame.with_columns(seed=pl.lit(2))])
    blocks = sy.compare_scores(seeds, ["MRR"], by="kind", options=TableOptions(repeats="blocks"))
    assert [cut.queries for cut in blocks.slices] == [2, 1]
    with pytest.raises(InputError, match=r"query '1' has more than one value in column 'kind'.*'x', 'z'"):
        sy.compare_scores(frame.with_columns(kind=pl.Series(["x", "y", "x", "z", "y", "x"])), ["MRR"], by="kind")
    with pytest.raises(InputError, match=r"slicing by 'knd'.*Did you mean kind"):
        sy.compare_scores(frame, ["MRR"], by="knd")
    numbers = frame.with_columns(size=pl.Series([3, 5, 3] * 2))
    assert sy.compare_scores(numbers, by="size").keys == ["MRR"]


@pytest.mark.parametrize("absent", [None, float("nan")])
@pytest.mark.parametrize("missing", ["zero", "skip"])
def test_a_repetition_without_a_value_does_not_count(absent, missing):
    values = [0.8, absent, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5]
    query, seed = ["q1", "q1", "q2", "q2"] * 2, [1, 2] * 4
    frame = pl.DataFrame({"run": ["a"] * 4 + ["b"] * 4, "query": query, "seed": seed, "m": values})
    board = sy.compare_scores(frame, ["m"], missing=missing).leaderboard
    assert dict(board.select("run", "m").rows()) == pytest.approx({"a": 0.7, "b": 0.5})


def test_an_unknown_policy_is_an_error():
    frame = pl.DataFrame({"run": ["a", "b"], "query": ["q", "q"], "m": [0.5, 0.4]})
    with pytest.raises(PolicyError, match="missing='skp' is not a policy; expected one of zero, skip, error"):
        sy.compare_scores(frame, missing="skp")


def test_columns_have_the_summary_of_the_measure_and_keep_the_scale_of_the_table():
    columns = {"run": ["a", "a", "b", "b"], "query": ["q1", "q2"] * 2, "GMAP": [50.0, 2.0, 20.0, 20.0]}
    columns |= {"NumRelRet": [1.0, 2.0, 3.0, 4.0], "nDCG@10": [45.3, 55.1, 40.2, 41.0]}
    latency = "Latency(stat=max)"
    found = sy.compare_scores(pl.DataFrame({**columns, latency: [120.0, 80.0, 90.0, 200.0]}))
    means = {row.run: row.means for row in found.leaderboard_rows}
    assert means["a"] == pytest.approx({"GMAP": 10.0, "NumRelRet": 3.0, "nDCG@10": 50.2, latency: 120.0})
    assert means["b"] == pytest.approx({"GMAP": 20.0, "NumRelRet": 7.0, "nDCG@10": 40.6, latency: 200.0})
    assert found.leaderboard_rows[0].intervals["GMAP"] == pytest.approx((20, 20))
    differences = {pair.measure: abs(pair.difference) for pair in found.tested_pairs}
    assert differences["nDCG@10"] == pytest.approx(9.6)
    assert latency in differences
    assert f"{latency} ms" not in str(found)


def test_ids_with_leading_zeros_are_kept(tmp_path):
    table, queries = tmp_path / "scores.csv", tmp_path / "queries.csv"
    table.write_text("run,Number,RR\n01,007,1.0\n01,7,0.5\n02,007,0.2\n02,7,0.1\n")
    queries.write_text("query_id,type\n007,a\n7,b\n")
    options = TableOptions(query_column="Number")
    result = sy.compare_scores(table, ["RR"], options=options, by="type", queries=queries)
    assert result.score_tables[0].queries == ("007", "7")
    assert result.runs == ("01", "02")
    assert [(cut.value, cut.means["01"]["RR"]) for cut in result.slices] == [("a", 1.0), ("b", 0.5)]


@pytest.mark.parametrize("twice", ["run", "query_id", "RR"])
def test_two_columns_of_the_name_that_is_read_are_an_error(tmp_path, twice):
    table = tmp_path / "scores.csv"
    table.write_text(f"run,query_id,RR,note,note,{twice}\na,1,1.0,x,y,0\nb,1,0.5,x,y,0\n")
    with pytest.raises(InputError, match=rf"scores.csv: two columns are called '{twice}'; rename one of them"):
        sy.compare_scores(table, ["RR"])


def test_half_of_a_character_in_another_column_does_not_stop_the_slices(tmp_path):
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"_id": "1", "text": "cut \\ud83d", "type": "a"}\n{"_id": "2", "text": "whole", "type": "b"}\n')
    scores = {"run": ["x", "x", "y", "y"], "query_id": ["1", "2"] * 2, "RR": [1.0, 0.5, 0.2, 0.1]}
    result = sy.compare_scores(pl.DataFrame(scores), ["RR"], by="type", queries=queries)
    assert [(cut.value, cut.queries) for cut in result.slices] == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [("[1]", "line 1: a list, not an object"), ("{}\n{bad", "line 2: not JSON at column 2"), ("", "the file is empty")],
)
def test_wrong_json_lines_are_named(tmp_path, lines, message):
    table = tmp_path / "scores.jsonl"
    table.write_text(lines)
    with pytest.raises(InputError, match=message):
        sy.compare_scores(table, ["RR"])


@pytest.mark.parametrize("name", ["error rate", "error_rate", "latency_ms", "time", "cost_usd", "WER", "Distance"])
def test_a_name_with_a_word_for_a_cost_is_one_whose_lower_values_are_better(name):
    result = sy.compare_scores(WIDE.rename({"Latency": name}).select("method", "query_id", name))
    assert result.leaderboard["run"].to_list() == ["a", "b"]
    assert [str(note) for note in result.notes if note.code == "directions-by-name"] == [
        f"lower values of {name} are taken to be better; TableOptions(lower=['NAME']) names others whose lower values "
        "are better"
    ]


def test_the_direction_of_other_names_is_assumed_aloud_and_can_be_given(tmp_path, capsys):
    table = WIDE.rename({"Latency": "p95"})
    assumed = sy.compare_scores(table)
    assert any("higher values of p95 are taken to be better" in str(note) for note in assumed.notes)
    given = sy.compare_scores(table, "p95", options=TableOptions(lower=["p95"]))
    assert given.leaderboard["run"].to_list() == ["a", "b"]
    assert not [note for note in given.notes if note.code == "directions-by-name"]
    table.write_csv(tmp_path / "t.csv")
    assert command(["compare", "--scores", str(tmp_path / "t.csv"), "-m", "p95", "--set", "lower=p95"]) == 0
    assert "a leads b" in capsys.readouterr().err.replace("(0.1000) ", "")
    with pytest.raises(MeasureError, match="'p96' was not measured"):
        sy.compare_scores(table, options=TableOptions(lower=["p96"]))


@pytest.mark.parametrize("column", ["method", "query_id"])
@pytest.mark.parametrize("empty", [None, ""])
def test_a_row_without_a_run_or_a_query_is_refused(column, empty):
    values = [*WIDE[column].to_list()[:-1], empty]
    with pytest.raises(InputError, match=rf"column '{column}' \(\w+\) is empty in 1 row:\n  row 8\n"):
        sy.compare_scores(WIDE.with_columns(pl.Series(column, values)))


def test_the_interval_of_a_difference_of_geometric_means_is_within_their_range():
    qrels = {f"q{number}": {"a": 1} for number in range(4)}
    first = {query: ["a"] for query in qrels}
    (pair,) = sy.compare(qrels, {"A": first, "B": {**first, "q0": ["x", "a"], "q3": ["w"]}}, ["GMAP"]).tested_pairs
    assert 0 < pair.difference <= pair.high <= 1


@pytest.mark.parametrize("test", ["sign", "wilcoxon"])
def test_a_run_is_not_recommended_where_the_test_contradicts_the_means(test):
    """a wins 20 queries by a little and loses 4 by much: its mean is lower, and the test is for it."""
    gaps = [0.02 + 0.0001 * number for number in range(20)] + [-0.4] * (4 if test == "sign" else 2)
    rows = [
        {"run": run, "query_id": f"q{number}", "m": 0.5 + (gap if run == "a" else 0)}
        for run in "ab"
        for number, gap in enumerate(gaps)
    ]
    result = sy.compare_scores(pl.DataFrame(rows), test=test)
    (pair,) = result.tested_pairs
    assert pair.p_adjusted < 0.05
    assert pair.verdict == "different"
    assert "the test and the means disagree, so neither is called better" in result.verdict.headline
    assert result.verdict.tied == ("b", "a")
    assert not result.verdict.lead.significant
    assert result.leaderboard.select("rank_low", "rank_high").rows() == [(1, 2), (1, 2)]
    assert "step-use" not in [step.note.code for step in next_steps(result)]
