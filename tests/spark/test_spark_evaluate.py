"""steelyard.spark.evaluate gives what steelyard.evaluate gives, bit for bit, for every measure and policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from spark_data import in_spark, judgments, run

import steelyard as sy
from needs import import_peer
from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.dialects import dialects
from steelyard.errors import InputError
from steelyard.measures import registry
from steelyard.measures.grammar import Measure, parse
from steelyard.measures.registry import definitions
from steelyard.options import resolve

import_peer("pyspark")
pytestmark = pytest.mark.spark

import steelyard.spark  # noqa: E402
from steelyard.spark import evaluation as spark_evaluation  # noqa: E402
from steelyard.spark.rows import by_query  # noqa: E402
from steelyard.spark.scan import RunScan  # noqa: E402

CUTOFFS: dict[str, list[float]] = {"rank": [1, 5], "recall": [0.4], "multiple": [0.5]}
SOME = ["nDCG@10", "AP", "RR", "P@5", "R(per=target)@10", "ERR@10", "Repeats@10", "Confusion@3", "NumRet"]


def every_measure() -> list[Measure]:
    """All measures that a run in a frame has the data for, with and without cutoffs."""
    found = [
        parse("Composite(weights={nDCG@3: 0.5, ERR: 0.3, Confusion@2: 0.2})"),
        parse("R(budget=60)"),
        parse("Abstain(threshold=2.5)"),
    ]
    for definition in definitions().values():
        if definition.name in ("Composite", "Latency") or definition.family == "spans":
            continue
        bare = Measure(definition)
        found += [] if definition.cutoff == "required" else [bare]
        found += [] if definition.cutoff == "none" else [bare @ k for k in CUTOFFS[definition.cutoff_kind]]
    return found


WAYS = ("in place", "exchanged", "shuffled")
"""The ways to evaluate a run: lists that are in one place; packed rows are exchanged; all rows are shuffled."""


def refused(*_: Any) -> Any:
    raise AssertionError("rows are exchanged")


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    if request.param == "in place":
        monkeypatch.setattr(RunScan, "_exchanged", refused)
    elif request.param == "exchanged":
        monkeypatch.setattr(RunScan, "_found_in_place", lambda *_: None)
    else:
        monkeypatch.setattr("steelyard.spark.evaluation.MOST_JUDGMENTS", -1)
    return request.param


def assert_same(
    spark: Any, qrels: pl.DataFrame, listed: pl.DataFrame, measures: Any, way: str = "", **chosen: Any
) -> Any:
    if way == "in place":
        listed = listed.sort("query_id", maintain_order=True)
    here = sy.evaluate(qrels, listed, measures, **chosen)
    there = steelyard.spark.evaluate(spark, in_spark(spark, qrels), in_spark(spark, listed), measures, **chosen)
    gathered = there.to_scores()
    assert gathered.queries == list(here.queries)
    differ = [
        key
        for key, one, other in zip(here.measures, here.matrix, gathered.matrix, strict=True)
        if not np.array_equal(one, other, equal_nan=True)
    ]
    assert differ == []
    assert {k: repr(v) for k, v in there.means.items()} == {k: repr(v) for k, v in here.means.items()}
    assert expected_notes(there.coverage) == here.coverage
    assert gathered.fingerprint == here.fingerprint
    there.unpersist()
    return there


def expected_notes(coverage: Any) -> Any:
    """The coverage without the note on how Spark evaluated the run."""
    return replace(coverage, notes=tuple(note for note in coverage.notes if note.code != "rows-shuffled"))


@pytest.mark.parametrize("targets", [False, True])
def test_every_measure(spark, targets, way):
    assert_same(spark, judgments(1, targets=targets), run(2), every_measure(), way)


def dialect_groups() -> list[list[str]]:
    """The dialects, grouped by their policies: one evaluation covers a group."""
    groups: dict[str, list[str]] = {}
    for name, dialect_ in dialects().items():
        groups.setdefault(str(resolve(dialect_.policies, {})), []).append(name)
    return list(groups.values())


def _filled(text: str) -> str:
    """A dialect's measure name with a cutoff, which for some measures is a share or a probability."""
    share = any(part in text.lower() for part in ("prec_at_recall", "iprec", "rbp"))
    return text.replace("{k}", "0.5" if share else "5").replace("{rel}", "2")


@pytest.mark.parametrize("names", dialect_groups(), ids=lambda names: names[0])
def test_every_dialect_with_its_policies(spark, names):
    qrels = judgments(3, targets=True)
    listed = run(4, repeats=resolve(dialects()[names[0]].policies, {}).duplicates != "error")
    measures: list[Measure] = []
    for name in names:
        texts = [_filled(text) for text in dialects()[name].names] or SOME
        meant = [dialects()[name].measure(text) for text in texts if "{" not in text]
        assert len(meant) >= 0.75 * len(texts)
        # Spark's frames have neither times nor the ranges of chunks.
        measures += [m for m in meant if m.name != "Latency" and m.definition.family != "spans"]
    assert_same(spark, qrels, listed, list(dict.fromkeys(measures)), dialect=names[0])


@pytest.mark.parametrize(
    "chosen",
    [
        {"ties": "docid-asc", "missing": "skip", "no_relevant": "skip", "depth": 7},
        {"ties": "stable", "duplicates": "collapse", "rel": 2},
        {"ties": "docid-desc", "duplicates": "collapse", "missing": "skip"},
        {"dialect": "trec_eval-9", "ties": "stable", "no_relevant": "skip", "duplicates": "hold"},
        {"unjudged": "remove", "depth": 3},
    ],
)
def test_policies(spark, chosen, way):
    assert_same(spark, judgments(5, targets=True), run(6), SOME, way, **chosen)


def test_measures_with_their_own_order_of_ties(spark, way):
    measures = ["RR@5", "RR", "Judged@3", "RBP(rel=1)", "Accuracy", "Compat", "ERR@5", "alpha_nDCG@5", "R@1000"]
    assert_same(spark, judgments(5, targets=True), run(6), measures, way, dialect="ir_measures")


def test_expected_value_over_tie_orders(spark):
    assert_same(spark, judgments(5), run(6, repeats=False), ["nDCG@5", "AP", "P@3"], ties="expected")


def test_run_with_its_own_order(spark, way):
    listed = run(7).drop_nulls("doc_id").with_columns(rank=pl.int_range(pl.len(), dtype=pl.Int64) // 2)
    assert_same(spark, judgments(8), listed.rename({"rank": "own_rank"}), [*SOME, "Abstain(threshold=2.5)"], way)
    assert_same(spark, judgments(8), listed.drop("score"), SOME, way)
    assert_same(spark, judgments(8), listed.drop("score", "rank"), SOME, way)
    assert_same(spark, judgments(8), listed.drop("rank").with_columns(score=pl.lit(None, pl.Float64)), SOME, way)


def test_scores_take_precedence_over_unnamed_ranks(spark):
    listed = run(7, repeats=False).drop_nulls("doc_id")
    stale = listed.with_columns(rank=pl.col("score").rank("ordinal").cast(pl.Int64))
    assert_same(spark, judgments(8), listed.with_columns(rank=-pl.col("score")), SOME)
    frames = in_spark(spark, judgments(8)), in_spark(spark, stale)
    for rank, held in ((None, sy.Run(listed)), ("rank", sy.Run(stale, rank="rank"))):
        found = steelyard.spark.evaluate(spark, *frames, SOME, rank=rank)
        assert found.means == sy.evaluate(judgments(8), held, SOME).means
        found.unpersist()


def test_integer_ids_and_other_column_names(spark):
    qrels = pl.DataFrame({"topic": [1, 1, 2], "passage": [10, 11, 12], "label": [1, 2, 1]})
    listed = pl.DataFrame({"qid": [1, 1, 2, 3], "docno": [11, 9, 9, 9], "sim": [0.5, 0.5, 0.25, 1.0]})
    result = steelyard.spark.evaluate(
        spark, in_spark(spark, qrels), in_spark(spark, listed), ["RR", "R"], doc_id="passage", name="mine"
    )
    here = sy.evaluate(sy.Qrels(qrels, doc_id="passage"), sy.Run(listed, name="mine"), ["RR", "R"])
    assert result.means == here.means == {"RR": 0.25, "R": 0.25}
    assert result.coverage == here.coverage
    assert result.name == "mine"


def test_empty_frames(spark):
    assert_same(spark, judgments(1), run(1).clear(), SOME)
    empty = judgments(1).clear()
    for listed in (run(1).clear(), run(1)):
        with pytest.raises(InputError) as here:
            sy.evaluate(empty, listed, SOME)
        there = steelyard.spark.evaluate(spark, in_spark(spark, empty), in_spark(spark, listed), SOME)
        for compute in (there.to_scores, lambda there=there: there.means, lambda there=there: there.coverage):
            with pytest.raises(InputError, match="no document has a grade") as error:
                compute()
            assert str(error.value) == str(here.value)


def test_grades_below_1_and_unjudged_documents(spark):
    faint = judgments(5).with_columns(pl.col("grade") / 4)
    there = assert_same(spark, faint, run(6), ["AP", "nDCG@5"], no_relevant="skip")
    assert there.coverage.below_rel > 0
    assert "a grade above 0 but below 1" in str(there.coverage)
    strict = assert_same(spark, judgments(5), run(6), ["nDCG@5", "P(rel=3)@5"])
    assert "no document with grade 3 or above and score 0 on P(rel=3)@5" in str(strict.coverage)
    loud = run(6).with_columns(doc_id=pl.lit("corpus:") + pl.col("doc_id"))
    result = steelyard.spark.evaluate(spark, in_spark(spark, judgments(5)), in_spark(spark, loud), "AP")
    assert result.coverage.notes[0].code == "document-ids-differ"
    assert result.coverage.notes[0]["difference"] == "the prefix 'corpus:' of the run's ids"
    assert result.policies["unjudged"] == "keep"


def test_run_with_other_queries(spark, way):
    listed = run(2).sort("query_id").with_columns(query_id=pl.lit("x") + pl.col("query_id"))
    qrels = judgments(1)
    here = sy.evaluate(qrels, listed, SOME)
    result = steelyard.spark.evaluate(spark, in_spark(spark, qrels), in_spark(spark, listed), SOME)
    assert result.coverage.counts() == here.coverage.counts()
    found, expected = result.coverage.notes[0], here.coverage.notes[0]
    assert found.code == expected.code == "no-shared-query"
    assert all(query.startswith("x") for query in found["run"])
    assert found["qrels"] == expected["qrels"]


def test_more_judged_queries_than_the_limit_for_sending(spark, monkeypatch):
    monkeypatch.setattr("steelyard.spark.evaluation.MOST_JUDGMENTS", -1)
    monkeypatch.setattr("steelyard.spark.evaluation.SENT_QUERIES", 0)
    assert_same(spark, judgments(1), run(2), SOME)


def test_rows_of_queries_without_judgments_are_not_shuffled(spark, monkeypatch):
    listed = pl.DataFrame({"query_id": ["q1", *["z"] * 500], "doc_id": "d", "score": 1.0})
    result = steelyard.spark.evaluate(spark, {"q1": ["d"]}, in_spark(spark, listed), "RR")
    shuffled = []
    monkeypatch.setattr(spark_evaluation, "by_query", lambda *frames: shuffled.append(by_query(*frames)) or shuffled[0])
    result._shuffled()
    assert sorted(row["query_id"] for row in shuffled[0].select("query_id").collect()) == ["q1", "q1", "z"]


def test_frame_of_values(spark):
    qrels, listed = judgments(1), run(2)
    measures = ["nDCG@10", "iprec_at_recall_0.20", "Accuracy"]
    result = steelyard.spark.evaluate(spark, in_spark(spark, qrels), in_spark(spark, listed), measures)
    frame = result.per_query
    assert frame.columns == ["query_id", *measures]
    found = {row["query_id"]: row for row in frame.collect()}
    expected = sy.evaluate(qrels, listed, measures).per_query
    for query, *values in expected.iter_rows():
        assert [float("nan") if v is None else v for v in found[query][1:]] == pytest.approx(
            values, abs=0, rel=0, nan_ok=True
        )
    assert any(row["Accuracy"] is None for row in found.values())


def test_qrels_on_the_driver(spark, tmp_path):
    qrels = sy.Qrels({"q1": [["a", "b"], ["c"]], "q2": {"d": 2, "x": -1}})
    listed = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "doc_id": ["b", "x", "x"], "score": [2.0, 1.0, 1.0]})
    qrels.write(tmp_path / "qrels.json")
    expected = sy.evaluate(qrels, listed, SOME)
    for given in (qrels, str(tmp_path / "qrels.json")):
        result = steelyard.spark.evaluate(spark, given, in_spark(spark, listed), SOME)
        assert repr(result.means) == repr(expected.means)
        assert result.coverage == expected.coverage


def test_the_scale_of_the_qrels_and_composites_as_measures(spark):
    qrels = sy.Qrels({"q1": {"a": 1, "b": 2}, "q2": {"c": 1}})
    qrels.relevant_from = 2.0
    listed = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "doc_id": ["a", "b", "c"], "score": [2.0, 1.0, 1.0]})
    measures = ["P@1", "RR", "nDCG@2", "Composite(weights={P@2: 1, RR: 3})"]
    for chosen in ({}, {"rel": 1}, {"no_relevant": "skip"}):
        expected = sy.evaluate(qrels, listed, measures, **chosen)
        found = steelyard.spark.evaluate(spark, qrels, in_spark(spark, listed), measures, **chosen)
        (of_runs,) = steelyard.spark.evaluate_runs(
            spark, qrels, {"one": in_spark(spark, listed)}, measures, **chosen
        ).values()
        assert repr(found.means) == repr(of_runs.means) == repr(expected.means)


def test_repr_before_and_after_the_computation(spark):
    result = steelyard.spark.evaluate(
        spark, in_spark(spark, judgments(1)), in_spark(spark, run(2)), ["nDCG@10", "RR"], name="bm25"
    )
    assert repr(result) == "SparkScores of 'bm25': nDCG@10, RR (not computed yet)"
    assert result["nDCG@10"] == result.means["nDCG@10"]
    lines = repr(result).splitlines()
    assert lines[0] == "SparkScores of 'bm25' over 40 queries"
    assert lines[1] == f"  nDCG@10  {result.means['nDCG@10']:.4f}"
    with pytest.raises(sy.SteelyardError, match="'AP' was not measured"):
        result["AP"]


def test_scores_from_the_cluster_can_be_compared(spark):
    qrels = judgments(1)
    runs = {"one": run(2), "two": run(3)}
    measures = ["nDCG@10", "RR"]
    frames = []
    for name, listed in runs.items():
        result = steelyard.spark.evaluate(spark, in_spark(spark, qrels), in_spark(spark, listed), measures, name=name)
        frames.append(result.to_scores().per_query.with_columns(run=pl.lit(name)))
    there = sy.compare_scores(pl.concat(frames), measures, baseline="one")
    here = sy.compare(qrels, {name: sy.Run(listed) for name, listed in runs.items()}, measures, baseline="one")
    assert there.pairs["p"].to_list() == here.pairs["p"].to_list()
    assert there.pairs["difference"].to_list() == here.pairs["difference"].to_list()


def test_a_new_measure_is_one_declaration_on_spark_too(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_DEFINITIONS", dict(definitions()))
    try:

        @registry.measure("HalfFound", bounded="additive", expected="linear", high=float("inf"))
        def half(a: Alignment, k: int | None = None, rel: float = 1) -> Floats:
            """Half the number of relevant documents in the first k.

            HalfFound@k = |relevant in the first k| / 2
            """
            return a.per_query((a.grade >= rel) * a.within(k)) / 2

        qrels, listed = {"q1": {"a": 1, "b": 0, "c": 2}}, {"q1": {"a": 3.0, "c": 2.0, "x": 1.0}}
        frame = spark.createDataFrame(
            [("q1", doc, score) for doc, score in listed["q1"].items()], "qid string, doc_id string, score double"
        )
        measures = ["HalfFound@2", "HalfFound(rel=2)"]
        found = steelyard.spark.evaluate(spark, qrels, frame, measures)
        assert (
            found.means == sy.evaluate(qrels, listed, measures).means == {"HalfFound@2": 1.0, "HalfFound(rel=2)": 0.5}
        )
    finally:
        registry.names.cache_clear()
