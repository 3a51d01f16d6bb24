"""The work of a Spark worker, without a cluster: values do not depend on the batches and blocks of rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from spark_data import judgments, run

import steelyard as sy
from needs import import_peer
from steelyard.dialects import dialect
from steelyard.evaluation import Lengths, named_measures
from steelyard.measures.compute import QrelsTraits
from steelyard.options import Options

import_peer("pyspark")
pa = import_peer("pyarrow")
pytestmark = pytest.mark.spark

from steelyard.spark.rows import Fault, Kind  # noqa: E402
from steelyard.spark.worker import EvaluationTally, EvaluationTask, query_blocks, total  # noqa: E402

MEASURES = ["nDCG@10", "AP", "ERR", "NumRet"]


def rows(qrels: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Rows as a worker receives them, sorted by query."""
    judged = qrels.with_row_index("row").select(
        "query_id",
        "doc_id",
        kind=pl.lit(int(Kind.JUDGMENT), pl.Int8),
        value="grade",
        label=pl.lit(None, pl.String),
        row=pl.col("row").cast(pl.Int64),
    )
    found = listed.select("query_id", "doc_id", kind=pl.lit(int(Kind.RETRIEVED), pl.Int8), value="score")
    return pl.concat([found, judged], how="diagonal").sort("query_id")


def batches(frame: pl.DataFrame, size: int) -> list[pa.RecordBatch]:
    schema = pa.schema(
        [
            (
                name,
                pa.string()
                if dtype == pl.String
                else {pl.Int8: pa.int8(), pl.Int64: pa.int64(), pl.Float64: pa.float64()}[type(dtype)],
            )
            for name, dtype in frame.schema.items()
        ]
    )
    return [
        batch
        for start in range(0, frame.height, size)
        for batch in frame[start : start + size].to_arrow().cast(schema).to_batches()
    ]


@pytest.mark.parametrize(("batch", "block"), [(1, 1), (3, 10), (7, 50), (1000, 100_000), (1000, 1)])
def test_values_do_not_depend_on_batches(batch, block):
    qrels, listed = judgments(1), run(2)
    here = sy.evaluate(qrels, listed, MEASURES)
    highest = float(qrels["grade"].max())
    task = EvaluationTask(named_measures(MEASURES, dialect("steelyard")), Options(), {}, "run", True, highest, block)
    frame = pl.concat([pl.from_arrow(out) for out in task(iter(batches(rows(qrels, listed), batch)))])
    values = frame.filter(pl.col("tally").is_null()).sort("place")
    assert values["query_id"].to_list() == list(here.queries)
    assert np.array_equal(values.select("m0", "m1", "m2", "m3").to_numpy().T, here.matrix, equal_nan=True)
    counts = total(frame["tally"].drop_nulls().to_list()).counts
    assert counts == here.coverage.counts()
    if batch == 1:
        assert frame["tally"].drop_nulls().len() > 20


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_blocks_have_only_complete_queries(size, batch):
    queries = [None, None, "a", "a", "a", "a", "a", "b", "c", "c", "d"]
    frame = pl.DataFrame({"query_id": queries, "value": list(map(float, range(11)))})
    blocks = list(query_blocks(iter(batches(frame, batch)), size))
    assert pl.concat(blocks).equals(frame)
    held = [set(block["query_id"].to_list()) for block in blocks]
    assert sum(map(len, held)) == len(set(queries))
    assert len(blocks) > 1 or size == 100 or batch == 100


def test_no_batches_give_no_blocks():
    assert list(query_blocks(iter([]), 10)) == []


def test_tallies_add_up_in_any_order():
    one = EvaluationTally(
        counts={"queries": 2},
        lengths=Lengths(5, 1, 2, 3),
        traits=QrelsTraits(lowest_positive=0.5),
        faults={Kind.NO_GRADE: Fault(2, ["b", "c"])},
        missing=[(9, "x")],
        judged=[(9, "x")],
        retrieved=["D2"],
    )
    other = EvaluationTally(
        counts={"queries": 1},
        lengths=Lengths(3, 1, 1, 1),
        faults={Kind.NO_GRADE: Fault(1, ["a"])},
        missing=[(1, "y")],
        run_only=["s"],
        retrieved=["D1"],
        known=["d1"],
        repeated=(4, "q", "d"),
        error=("MeasureError", "no"),
    )
    texts = [one.to_text(), other.to_text()]
    assert (
        total(texts)
        == total(texts[::-1])
        == EvaluationTally(
            counts={"queries": 3},
            lengths=Lengths(5, 1, 3, 4),
            traits=QrelsTraits(lowest_positive=0.5),
            retrieved=["D1", "D2"],
            known=["d1"],
            faults={Kind.NO_GRADE: Fault(3, ["a", "b", "c"])},
            missing=[(1, "y"), (9, "x")],
            judged=[(9, "x")],
            run_only=["s"],
            repeated=(4, "q", "d"),
            error=("MeasureError", "no"),
        )
    )
