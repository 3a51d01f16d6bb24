"""Bad input is reported once, with the number of rows and examples, as for frames in memory."""

from __future__ import annotations

from typing import Any

import pytest

import steelyard as sy
from needs import import_peer
from steelyard.errors import InputError, MeasureError, PackageError, PolicyError

import_peer("pyspark")
pytestmark = pytest.mark.spark

from pyspark.errors import PySparkException  # noqa: E402

import steelyard.spark  # noqa: E402
from steelyard.spark.evaluation import SparkScores  # noqa: E402
from steelyard.spark.frames import map_in_arrow  # noqa: E402

NAN, INF = float("nan"), float("inf")
QRELS: list[tuple[Any, ...]] = [("q1", "d1", 1.0), ("q2", "d2", 2.0)]
RUN: list[tuple[Any, ...]] = [("q1", "d1", 3.0), ("q2", "d9", 1.0)]


def evaluated(spark: Any, qrels: Any = QRELS, run: Any = RUN, **chosen: Any) -> Any:
    kinds = {"score": chosen.pop("kind", "double"), "grade": chosen.pop("grades", "double")}
    qrels = spark.createDataFrame(qrels, f"query_id string, doc_id string, grade {kinds['grade']}")
    run = spark.createDataFrame(run, f"query_id string, doc_id string, score {kinds['score']}")
    return steelyard.spark.evaluate(spark, qrels, run, chosen.pop("measures", ["RR", "AP"]), **chosen)


@pytest.mark.parametrize(
    ("qrels", "run", "chosen", "expected"),
    [
        (QRELS, [*RUN, ("q1", "d5", NAN), ("zz", "d6", INF)], {}, [
            "2 rows of the run have a score that is not a finite number:",
            "query 'q1', document 'd5', score nan", "query 'zz', document 'd6', score inf",
        ]),
        (QRELS, [*RUN, ("q1", "d5", None)], {}, ["1 row of the run has a score that is not a finite number"]),
        (QRELS, [*RUN, ("q1", None, 2.0)], {}, ["has a score or rank but no document", "query 'q1'"]),
        (QRELS, [*RUN, (None, "d5", 2.0)], {}, ["column 'query_id' (query_id) is empty in 1 row", "'d5'"]),
        (QRELS, [*RUN, ("q1", "d5", "high")], {"kind": "string"}, [
            "column 'score' (score) does not hold a number in 1 row:", "query 'q1', document 'd5': 'high'",
        ]),
        ([*QRELS, (None, "d5", 2.0)], RUN, {}, ["column 'query_id' (query_id) is empty in 1 row"]),
        ([*QRELS, ("q1", "d5", None)], RUN, {}, ["1 judgment has no grade", "query 'q1', document 'd5'"]),
        ([*QRELS, ("q1", "d5", NAN)], RUN, {}, ["document 'd5' for query 'q1': grade nan is not a finite number"]),
        ([*QRELS, ("q1", "d5", "good")], RUN, {"grades": "string"}, ["'grade' (grade) does not hold a number"]),
        ([*QRELS, ("q1", "d1", 2.0), ("q2", "d2", 1.0), ("q2", "d2", 2.0)], RUN, {}, [
            "2 judgments disagree with an earlier one of the same query and document:",
            "query 'q1', document 'd1': graded 1 and 2", "Keep one grade for each",
        ]),
    ],
)  # fmt: skip
def test_unreadable_rows_are_reported(spark, qrels, run, chosen, expected):
    if chosen.get("kind") == "string":
        run = [(query, doc, str(score)) for query, doc, score in run]
    if chosen.get("grades") == "string":
        qrels = [(query, doc, str(grade)) for query, doc, grade in qrels]
    result = evaluated(spark, qrels, run, **chosen)
    with pytest.raises(InputError) as caught:
        _ = result.means
    for text in expected:
        assert text in str(caught.value)
    assert "java" not in str(caught.value).lower()


def test_numbers_stored_as_text_are_read(spark):
    run = [(query, doc, str(score)) for query, doc, score in RUN]
    assert evaluated(spark, run=run, kind="string").means == evaluated(spark).means


def test_no_frame_of_values_if_a_row_is_faulty(spark):
    result = evaluated(spark, run=[("q1", "d1", NAN)])
    with pytest.raises(InputError, match="not a finite number"):
        _ = result.per_query


def test_policies_that_raise_errors(spark):
    twice = [*RUN, ("q1", "d1", 2.0), ("q2", "d9", 0.5), ("q2", "d9", 0.25)]
    with pytest.raises(
        PolicyError,
        match=r"3 documents are repeated in the list of a query \(duplicates=error\):\s+query 'q1': document 'd1'",
    ):
        _ = evaluated(spark, run=twice, duplicates="error").means
    qrels = [*QRELS, ("q3", "d1", 1.0), ("q4", "d1", 1.0)]
    with pytest.raises(PolicyError) as caught:
        _ = evaluated(spark, qrels, missing="error").means
    mapping = {"q1": {"d1": 1}, "q2": {"d2": 1}, "q3": {"d1": 1}, "q4": {"d1": 1}}
    with pytest.raises(PolicyError) as here:
        sy.evaluate(mapping, {"q1": ["d1"], "q2": ["d9"]}, missing="error")
    assert str(caught.value) == str(here.value)
    evaluated(spark, missing="error", duplicates="error").means  # noqa: B018


def test_measure_error_that_depends_on_the_rows(spark):
    run = [("q1", "d1", 1.0, 5), ("q1", "d2", 1.0, 5)]
    run = spark.createDataFrame(run, "query_id string, doc_id string, score double, tokens int")
    result = steelyard.spark.evaluate(spark, {"q1": ["d1"]}, run, "R(budget=7)", ties="expected")
    with pytest.raises(MeasureError, match="query 'q1' has a relevant document that ties"):
        _ = result.means


@pytest.mark.parametrize(
    ("chosen", "error", "expected"),
    [
        ({"measures": "nDGC@10"}, MeasureError, "Did you mean"),
        ({"measures": []}, MeasureError, "no measure given"),
        ({"measures": "Latency"}, MeasureError, "needs the time of each query"),
        ({"measures": "SpanR@5"}, MeasureError, "where the spans and the chunks are"),
        ({"measures": "R(budget=100)"}, MeasureError, "needs the length of each document"),
        ({"measures": "Repeats(near=True)"}, MeasureError, "texts"),
        ({"measures": "Counted(of=ERR, known=returned)"}, MeasureError, "max_grade"),
        ({"measures": "infAP", "ties": "expected"}, MeasureError, "ties=expected is not defined"),
        ({"dialect": "trec"}, MeasureError, "unknown dialect 'trec'; expected one of steelyard"),
        ({"ties": "random"}, PolicyError, "ties='random' is not a policy"),
        ({"depth": 0}, PolicyError, "depth is 0"),
        ({"doc_id": "passage"}, InputError, "no column 'passage' for doc_id"),
        ({"kind": "timestamp", "run": []}, InputError, "has the type timestamp"),
    ],
)
def test_mistakes_in_the_call_are_reported_at_once(spark, chosen, error, expected):
    with pytest.raises(error, match=expected):
        evaluated(spark, **chosen)


def test_frames_of_other_types_are_refused(spark):
    with pytest.raises(InputError, match=r"the run is a dict; expected a Spark frame.*steelyard\.evaluate"):
        steelyard.spark.evaluate(spark, {"q1": ["d1"]}, {"q1": ["d1"]}, "RR")
    odd = spark.createDataFrame([(1.5, "d", 1.0)], "query_id double, doc_id string, score double")
    with pytest.raises(InputError, match=r"'query_id' \(query_id\) holds double; expected text or whole numbers"):
        steelyard.spark.evaluate(spark, {"q1": ["d1"]}, odd, "RR")
    bare = spark.createDataFrame([("q", 1.0)], "query_id string, score double")
    with pytest.raises(InputError, match="no column holds the doc_id"):
        steelyard.spark.evaluate(spark, {"q1": ["d1"]}, bare, "RR")


def test_steelyard_missing_on_the_workers(spark, monkeypatch):
    def frame_importing(module: str) -> Any:
        frame = spark.createDataFrame([("{}",)], "tally string")
        return map_in_arrow(frame, importing(module), "tally string")

    monkeypatch.setattr("steelyard.spark.evaluation.MOST_JUDGMENTS", -1)
    result = evaluated(spark)
    monkeypatch.setattr(SparkScores, "_shuffled", lambda self: frame_importing("steelyard"))
    with pytest.raises(PackageError, match="steelyard is not installed in the Python of the workers"):
        _ = result.means
    monkeypatch.setattr(SparkScores, "_shuffled", lambda self: frame_importing("another"))
    with pytest.raises(PySparkException, match="No module named 'another'"):
        _ = result.means


def importing(module: str) -> Any:
    """A function for Spark workers that fails to import a module."""

    def fail(batches: Any) -> Any:
        raise ModuleNotFoundError(f"No module named {module!r}")
        yield from batches

    return fail
