"""Several runs on the cluster: evaluated in one pass, compared, fused and pooled as on one machine."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from spark_data import in_spark, judgments, run

import steelyard as sy
from needs import import_peer
from pooled_collection import collection
from steelyard.errors import InputError, PolicyError

import_peer("pyspark")
pytestmark = pytest.mark.spark

import steelyard.spark  # noqa: E402
from steelyard.spark.worker import LOWEST, exact_sum  # noqa: E402

MEASURES = ["nDCG@10", "AP", "Repeats@10", "NumRet"]
RUNS = {"one": run(2), "two": run(3), "file": run(4, repeats=False)}
LONG = pl.concat([listed.with_columns(system=pl.lit(name)) for name, listed in RUNS.items()]).sample(
    fraction=1, shuffle=True, seed=1
)


@pytest.mark.parametrize("grouped", [False, True])
def test_runs_of_one_frame_are_evaluated_together(spark, grouped):
    qrels = judgments(1)
    listed = LONG.sort("query_id", "system", maintain_order=True) if grouped else LONG
    found = steelyard.spark.evaluate_runs(spark, in_spark(spark, qrels), in_spark(spark, listed), MEASURES)
    assert sorted(found) == sorted(RUNS)
    for name, scores in found.items():
        here = sy.evaluate(qrels, RUNS[name], MEASURES, name=name)
        assert scores.name == name
        assert np.array_equal(scores.matrix, here.matrix, equal_nan=True)
        assert scores.coverage == here.coverage


def test_comparison(spark):
    qrels = judgments(1)
    chosen: dict[str, Any] = {"baseline": "two", "composite": {"nDCG@10": 0.5, "AP": 0.5}, "at": [3, 10]}
    frames = {name: in_spark(spark, listed) for name, listed in RUNS.items()}
    here = sy.compare(qrels, {name: sy.Run(listed) for name, listed in RUNS.items()}, ["nDCG", "AP"], **chosen)
    judged = in_spark(spark, qrels)
    there = steelyard.spark.compare(spark, judged, frames, ["nDCG", "AP"], **chosen)
    values = ["run", "k", "nDCG", "AP"]
    assert there.leaderboard.select(values).equals(here.leaderboard.select(values))
    for column in ("run", "baseline", "measure", "difference", "p", "p_adjusted", "low", "high"):
        assert there.pairs[column].to_list() == here.pairs[column].to_list()
    assert there.coverage == here.coverage
    assert "nDCG" in there.to_markdown()
    long = in_spark(spark, LONG.rename({"system": "who"}))
    again = steelyard.spark.compare(spark, judged, long, ["nDCG", "AP"], run="who", **chosen)
    assert sorted(again.leaderboard["nDCG"].to_list()) == sorted(here.leaderboard["nDCG"].to_list())


@pytest.mark.filterwarnings("ignore::steelyard.SteelyardWarning")
@pytest.mark.parametrize("ranked", [False, True])
def test_differences_that_depend_on_unjudged_documents_are_undecided(spark, ranked):
    _, judged, runs = collection()
    frames = {
        name: each.frame.select("query_id", "doc_id", "rank" if ranked else "score") for name, each in runs.items()
    }
    here = sy.compare(judged, frames, ["nDCG@10", "AP"])
    rows = [
        {"query_id": query, "doc_id": doc, "grade": grade}
        for query, docs in judged.items()
        for doc, grade in docs.items()
    ]
    in_frames = {name: in_spark(spark, frame) for name, frame in frames.items()}
    there = steelyard.spark.compare(spark, in_spark(spark, pl.DataFrame(rows)), in_frames, ["nDCG@10", "AP"])
    assert "undecided" in here.pairs["verdict"].to_list()
    assert there.pairs.equals(here.pairs, null_equal=True)
    assert there.leaderboard.equals(here.leaderboard, null_equal=True)
    assert there.verdict == here.verdict
    assert there.source is None


def test_mistakes_with_several_runs(spark, monkeypatch):
    qrels, frame = {"q1": ["d1"]}, in_spark(spark, LONG.head(3).with_columns(system=pl.lit(None, pl.String)))
    with pytest.raises(InputError, match=r"column 'system' \(run\) is empty in 3 rows"):
        steelyard.spark.evaluate_runs(spark, qrels, frame, "RR")
    with pytest.raises(InputError, match="no column of the frame names the run of each row"):
        steelyard.spark.compare(spark, qrels, frame.drop("system"), "RR")
    with pytest.raises(InputError, match="the runs are a list; expected a Spark frame"):
        steelyard.spark.compare(spark, qrels, [frame], "RR")
    with pytest.raises(InputError, match="predicted is not available on Spark"):
        steelyard.spark.compare(spark, qrels, {"a": frame}, "RR", predicted=qrels)
    monkeypatch.setattr("steelyard.spark.evaluation.MOST_JUDGMENTS", 0)
    with pytest.raises(InputError, match="more than .* judgments; evaluate the runs one by one"):
        steelyard.spark.compare(spark, qrels, {"a": frame}, "RR")


def test_repeats_of_one_of_several_runs_are_an_error(spark):
    frames = {name: in_spark(spark, RUNS[name]) for name in ("file", "one")}
    with pytest.raises(PolicyError) as there:
        steelyard.spark.compare(spark, judgments(1), frames, "RR", duplicates="error")
    with pytest.raises(PolicyError) as here:
        sy.compare(judgments(1), {name: RUNS[name] for name in frames}, "RR", duplicates="error")
    assert str(there.value).splitlines()[0] == str(here.value).splitlines()[0]


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


@pytest.mark.parametrize(
    ("method", "chosen"),
    [("rrf", {"k": 10, "weights": [1, 2, 0.5]}), ("combsum", {"norm": "z"}), ("combmnz", {"depth": 4})],
)
def test_fused_runs(spark, method, chosen):
    fused = sy.fuse({name: sy.Run(listed) for name, listed in RUNS.items()}, method, **chosen)
    empty = set(fused.queries) - set(fused.table["query_id"].to_list())
    expected = [*fused.table.select("query_id", "doc_id", "score").rows(), *((q, None, None) for q in empty)]
    frames = {name: in_spark(spark, listed) for name, listed in RUNS.items()}
    assert rows(steelyard.spark.fuse(frames, method, **chosen)) == sorted(expected, key=str)


def test_all_comb_methods_and_ranked_lists_fuse_on_a_worker():
    from steelyard.spark.lists import fused_lists

    names = ("a", "b", "c")
    listed = {name: run(seed, repeats=False).drop_nulls("doc_id") for name, seed in zip(names, (2, 3, 4), strict=True)}
    block = pl.concat(
        [
            each.with_row_index("row").select(
                "query_id",
                "doc_id",
                "row",
                value="score",
                place=pl.lit(place),
                kind=pl.lit(1),
                label=pl.lit(None, pl.String),
            )
            for place, each in enumerate(listed.values())
        ]
    ).sort("query_id")
    batches = block.cast({"kind": pl.Int8}).to_arrow().to_batches()
    for method in ("combsum", "combmnz", "combanz", "combmax", "combmin", "combmed", "rrf", "borda", "condorcet"):
        out = pl.concat([pl.from_arrow(part) for part in fused_lists(iter(batches), names, {"method": method})])
        here = sy.fuse({name: sy.Run(each) for name, each in listed.items()}, method).table
        assert sorted(out.rows()) == sorted(here.select("query_id", "doc_id", "score").rows())


def test_mistakes_in_fusion_and_pools(spark):
    frame = in_spark(spark, RUNS["one"])
    for call, text in (
        (lambda: steelyard.spark.fuse([frame]), "expected two or more runs to fuse, got one"),
        (lambda: steelyard.spark.fuse([frame, frame], "rff"), "rff"),
        (lambda: steelyard.spark.fuse([frame, frame], depth=0), "depth"),
        (lambda: steelyard.spark.fuse("runs"), "expected a mapping or a list of Spark frames"),
        (lambda: steelyard.spark.fuse([frame, {"q": ["d"]}]), "the run is a dict; expected a Spark frame"),
        (lambda: steelyard.spark.pool([frame], depth=0), "depth must be at least 1"),
        (lambda: steelyard.spark.pool([]), "There are no runs to pool"),
    ):
        with pytest.raises(InputError, match=text):
            call()


@pytest.mark.parametrize("budget", [None, 25])
def test_pool(spark, budget):
    qrels = judgments(1)
    expected = sy.pool(RUNS, qrels, depth=3, budget=budget).frame
    names = ["query_id", "doc_id", "priority", "runs", "ranks"]
    frames = {name: in_spark(spark, listed) for name, listed in RUNS.items()}
    found = steelyard.spark.pool(frames, in_spark(spark, qrels), depth=3, budget=budget)
    assert found.columns == names
    assert [tuple(row) for row in found.collect()] == expected.select(names).rows()


def test_means_on_the_cluster(spark, monkeypatch):
    monkeypatch.setattr("steelyard.spark.evaluation.MOST_JUDGMENTS", -1)
    monkeypatch.setattr("steelyard.spark.evaluation.MOST_QUERIES", 10)
    qrels, measures = judgments(1), ["nDCG@10", "GMAP", "NumRet", "Accuracy"]
    there = steelyard.spark.evaluate(spark, in_spark(spark, qrels), in_spark(spark, RUNS["one"]), measures)
    here = sy.evaluate(qrels, RUNS["one"], measures)
    for key, value in there.means.items():
        assert value == pytest.approx(here.means[key], rel=1e-14)
    values = [Fraction(value) for value in here.values("nDCG@10").tolist()]
    assert there.means["nDCG@10"] == float(sum(values) / len(values))
    there.unpersist()


def test_exact_sums_do_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=1000) * 10.0 ** rng.integers(-300, 300, 1000), [5e-324, -5e-324, 0.0]])
    total = exact_sum(values)
    assert total == exact_sum(values[::-1]) == exact_sum(values[:300]) + exact_sum(values[300:])
    assert total / 2**LOWEST == math.fsum(values)
    assert exact_sum(np.zeros(0)) == 0
