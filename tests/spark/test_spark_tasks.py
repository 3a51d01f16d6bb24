"""The tasks of Spark workers, without a cluster: they find the same hits as the scan of a frame in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from spark_data import judgments, run

import steelyard as sy
from needs import import_peer
from same_hits import same_hits
from steelyard.alignment.hits import Hits, Ordering
from steelyard.alignment.scans import scan_frame

import_peer("pyspark")
pa = import_peer("pyarrow")
pytestmark = pytest.mark.spark

from steelyard.spark.blocks import (  # noqa: E402
    hits_of_arrays,
    hits_of_rows,
    is_faulty,
    list_blocks,
    pack_judged,
    unpack_arrays,
    unpack_judged,
    unpack_rows,
)
from steelyard.spark.tasks import Task  # noqa: E402

ORDERINGS = (
    Ordering(),
    Ordering(ties="docid-asc"),
    Ordering(ties="stable"),
    Ordering(single=True),
    Ordering(duplicates="collapse"),
)


def batches(rows: pl.DataFrame, size: int) -> list[Any]:
    """Rows as a worker receives them."""
    kinds = {pl.String: pa.string(), pl.Int64: pa.int64(), pl.Float64: pa.float64(), pl.Boolean: pa.bool_()}
    schema = pa.schema([(name, kinds[type(kind)]) for name, kind in rows.schema.items()])
    return rows.to_arrow().cast(schema).to_batches(max_chunksize=size)


def partitions(listed: pl.DataFrame, count: int) -> list[pl.DataFrame]:
    rows = listed.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64), faulty=pl.lit(False))
    size = -(-rows.height // count)
    return [rows[start : start + size] for start in range(0, rows.height, size)]


def found_hits(task: Task, out: list[Any], size: int, number: int = 0) -> Hits:
    """The hits of what tasks found, as the driver joins them."""
    rows = [row for batch in out for row in batch.to_pylist()]
    parts = [unpack_arrays(row["hits"]) for row in rows if row["hits"]]
    seen = [unpack_arrays(row["seen"]) for row in rows if row["seen"]]
    packed = [row for row in rows if row.get("query")]
    if packed:
        block, query = unpack_rows({name: [row[name] for row in packed] for name in task.kinds}, task.kinds)
        parts.append(hits_of_rows(block, query, unpack_judged(task.judged), task.orderings, task.ordered))
    empty = np.concatenate([np.zeros(0, np.int64), *(each["empty"] for each in seen)]).astype(np.int64)
    return hits_of_arrays(parts, empty, size, number)


def by_exchange(task: Task, parts: list[pl.DataFrame], batch: int, buckets: int) -> list[Any]:
    pack = replace(task, buckets=buckets).pack
    packed = [out for part in parts for out in pack(iter(batches(part, batch)))]
    reducers: list[list[Any]] = [[], []]
    for out in packed:
        for place in range(out.num_rows):
            reducers[out.column("bucket")[place].as_py() % 2].append(out[place : place + 1])
    rank = task.rank_packed
    return [out for reducer in reducers for out in rank(iter(reducer))]


def in_place(task: Task, parts: list[pl.DataFrame], batch: int) -> list[Any]:
    rank = task.rank_in_place
    return [out for part in parts for out in rank(iter(batches(part, batch)))]


def without_others(hits: Hits) -> Hits:
    return replace(hits, run_only_queries=0, run_only_examples=())


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("count", "batch", "block"), [(1, 1000, 1 << 17), (3, 7, 1), (2, 50, 60)])
def test_hits_do_not_depend_on_the_partitions(grouped, count, batch, block):
    qrels, listed = sy.Qrels(judgments(1)), run(2).drop("tokens")
    listed = listed.sort("query_id", maintain_order=True) if grouped else listed
    task = Task(pack_judged(qrels.judged), ("score", "row"), False, ORDERINGS, False, block)
    size = len(qrels.judged.query_ids)
    ways = [by_exchange(task, partitions(listed, count), batch, buckets) for buckets in (1, 7, size)]
    if grouped:
        ways.append(in_place(task, partitions(listed, count), batch))
    for number, ordering in enumerate(ORDERINGS):
        expected = without_others(scan_frame(sy.Run(listed), qrels.judged, ordering))
        for out in ways:
            assert same_hits(found_hits(task, out, size, number), expected)


@pytest.mark.parametrize("batch", [3, 1000])
def test_lists_with_ranks_and_tokens(batch):
    qrels, listed = sy.Qrels(judgments(1)), run(2).drop_nulls("doc_id")
    listed = listed.with_columns(rank=(pl.int_range(pl.len()) % 11).cast(pl.Float64))
    expected = without_others(scan_frame(sy.Run(listed, rank="rank"), qrels.judged, Ordering()))
    columns = ("score", "row", "rank", "tokens")
    task = Task(pack_judged(qrels.judged), columns, False, (Ordering(),), True, 40)
    size = len(qrels.judged.query_ids)
    grouped = listed.sort("query_id", maintain_order=True)
    for out in (by_exchange(task, partitions(listed, 2), batch, 5), in_place(task, partitions(grouped, 2), batch)):
        assert same_hits(found_hits(task, out, size), expected)


def test_rows_that_are_faulty_or_of_other_queries_are_reported():
    qrels, listed = (sy.Qrels({"q1": ["a"]}), pl.DataFrame({"query_id": ["q1", "x"], "doc_id": "a", "score": 1.0}))
    task = Task(pack_judged(qrels.judged), ("score",), False, (Ordering(),), False)
    for rows, others, faulty in ((listed, ["x"], False), (listed[:1].with_columns(faulty=True), [], True)):
        rows = rows if "faulty" in rows.columns else rows.with_columns(faulty=pl.lit(False))
        seen = [row["seen"] for out in task.pack(iter(batches(rows, 10))) for row in out.to_pylist() if row["seen"]]
        found = [unpack_arrays(each) for each in seen]
        assert [(json.loads(each["others"].tobytes()), bool(each["faulty"])) for each in found] == [(others, faulty)]


NAN = float("nan")


@pytest.mark.parametrize(
    ("row", "faulty"),
    [
        (("q", "d", 1.0, 2.0), False),
        (("q", None, None, None), False),
        ((None, "d", 1.0, 2.0), True),
        ((None, None, None, None), True),
        (("q", None, 1.0, None), True),
        (("q", None, None, 2.0), True),
        (("q", None, NAN, None), True),
        (("q", "d", None, 2.0), True),
        (("q", "d", NAN, 2.0), True),
        (("q", "d", float("-inf"), 2.0), True),
        (("q", "d", 1.0, None), True),
        (("q", "d", 1.0, NAN), True),
    ],
)
def test_workers_find_faulty_rows_that_spark_did_not_mark(row, faulty):
    kinds = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64, "rank": pl.Float64}
    good = ("q", "d", 1.0, 2.0)
    assert is_faulty(pl.DataFrame([good, row, good], schema=kinds, orient="row")) is faulty


def test_queries_without_judgments_are_reported_once_per_partition_and_only_if_they_are_few(monkeypatch):
    listed = pl.DataFrame({"query_id": [f"x{n % 7}" for n in range(100)], "doc_id": "a", "score": 1.0})
    rows = batches(listed.with_columns(faulty=pl.lit(False)), 10)
    task = Task(pack_judged(sy.Qrels({"q1": ["a"]}).judged), ("score",), False, (Ordering(),), False, 10)
    for most, expected in ((7, [f"x{n}" for n in range(7)]), (6, [])):
        monkeypatch.setattr("steelyard.spark.tasks.MOST_OTHERS", most)
        found = [unpack_arrays(row["seen"]) for out in task.pack(iter(rows)) for row in out.to_pylist()]
        assert sorted(query for each in found for query in json.loads(each["others"].tobytes())) == expected
        assert any(each["many"] for each in found) == (most < 7)


def test_stretches_of_adjacent_rows_are_found_but_for_the_first_and_the_last():
    qrels = sy.Qrels({f"q{number}": ["a"] for number in range(10)})
    rows = pl.DataFrame({"query_id": [f"q{number // 2 % 10}" for number in range(50)]})
    task = Task(pack_judged(qrels.judged), ("score",), False, (Ordering(),), False, 50)
    (out,) = list(task.find_stretches(iter(batches(rows, 10))))
    assert unpack_arrays(out.to_pylist()[0]["seen"])["query"].tolist() == [n % 10 for n in range(1, 24)]


@pytest.mark.parametrize(("split", "edge"), [(5, 1000), (1000, 2)])
def test_a_partition_is_given_up(monkeypatch, split, edge):
    monkeypatch.setattr("steelyard.spark.tasks.MOST_SPLIT", split)
    monkeypatch.setattr("steelyard.spark.tasks.MOST_EDGE", edge)
    qrels = sy.Qrels({f"q{number}": ["a"] for number in range(10)})
    queries = [f"q{number // 3 % 10}" for number in range(300)]
    rows = pl.DataFrame({"query_id": queries, "doc_id": "a", "score": 1.0, "faulty": False})
    task = Task(pack_judged(qrels.judged), ("score",), False, (Ordering(),), False, 30)
    out = [row for part in task.rank_in_place(iter(batches(rows, 30))) for row in part.to_pylist()]
    assert "mixed" in unpack_arrays(out[-1]["seen"])


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_blocks_of_lists_have_only_complete_lists(size, batch):
    rows = pl.DataFrame(
        {"run": ["A"] * 6 + ["B"] * 5, "query_id": ["a", "a", "a", "a", "b", "c", "c", None, None, "d", "d"]}
    )
    blocks = list(list_blocks(iter(batches(rows, batch)), size, ("run", "query_id")))
    assert pl.concat(blocks).equals(rows)
    held = [set(block.rows()) for block in blocks]
    assert sum(map(len, held)) == len(set(rows.rows()))
    assert len(blocks) > 1 or size == 100 or batch == 100
