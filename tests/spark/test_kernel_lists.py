"""Workers pack and rank rows with the kernel as without it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from needs import import_peer, needs_kernel
from steelyard import Qrels
from steelyard.alignment.hits import Ordering

import_peer("pyspark")
pa = import_peer("pyarrow")
pytestmark = [pytest.mark.spark, needs_kernel]

import pyarrow.compute  # noqa: E402

from steelyard.spark.blocks import hits_of_arrays, pack_judged, unpack_arrays, unpack_judged  # noqa: E402
from steelyard.spark.tasks import Task  # noqa: E402

QUERIES = [f"q{number}" for number in range(6)] + ["a query with a long id"]
DOCS = [f"d{number}" for number in range(15)] + ["é", "", "a document with a long id"]
ORDERINGS = (Ordering(), Ordering("docid-asc", "collapse"), Ordering("docid-desc", "hold", single=True))


def rows(seed: int, nulls: bool = False) -> Any:
    """Rows in no order with repeats, equal scores and queries without judgments."""
    draw = random.Random(seed)
    count = draw.choice([1, 3, 40, 300])
    docs: list[str | None] = draw.choices(DOCS, k=count)
    if nulls:
        docs[0] = None
    return pa.RecordBatch.from_pydict(
        {
            "query_id": pa.array(draw.choices([*QUERIES, "unknown"], k=count), pa.string()),
            "doc_id": pa.array(docs, pa.string()),
            "score": pa.array([draw.choice([0.1, 0.1 + 1e-12, 1.5, -2.0, draw.random()]) for _ in range(count)]),
            "faulty": pa.array([False] * count),
        }
    )


def tasks(rows_at_a_time: int = 64) -> dict[str, Any]:
    draw = random.Random(1)
    qrels = Qrels({query: {doc: draw.randint(0, 2) for doc in draw.sample(DOCS, 4)} for query in QUERIES})
    return {
        "judged": pack_judged(qrels.judged),
        "columns": ("score",),
        "runs": False,
        "orderings": ORDERINGS,
        "ordered": False,
        "rows": rows_at_a_time,
    }


def exchanged(batch: Any) -> list[Any]:
    """The hits under every ordering, and what else was seen."""
    pack, rank = Task(**tasks(), buckets=3).pack, Task(**tasks()).rank_packed
    halves = [batch[: batch.num_rows // 2], batch[batch.num_rows // 2 :]]
    packed = [part for half in halves for part in pack(iter([half]))]
    return gathered(rank(iter(packed)))


def in_place(batch: Any) -> list[Any]:
    """The same for rows whose lists are adjacent, but for the lists at the edges."""
    order = pyarrow.compute.sort_indices(batch.column("query_id"))
    return gathered(Task(**tasks()).rank_in_place(iter([batch.take(order)])))


def gathered(batches: Iterator[Any]) -> list[Any]:
    found = [row for batch in batches for row in batch.to_pylist()]
    parts = [unpack_arrays(row["hits"]) for row in found if row["hits"] is not None]
    seen = [unpack_arrays(row["seen"]) for row in found if row["seen"] is not None]
    nothing = np.zeros(0, np.int64)
    hits = [hits_of_arrays(parts, nothing, len(QUERIES), number) for number in range(len(ORDERINGS))]
    others = sorted(query for each in seen for query in json.loads(each["others"].tobytes()))
    empty = sorted(query for each in seen for query in each["empty"].tolist())
    packed = [row.get("text") for row in found if row["hits"] is None and row["seen"] is None]
    return [*({**vars(each), "repeats": vars(each.repeats)} for each in hits), others, empty, packed]


@pytest.mark.parametrize("seed", range(60))
def test_the_kernel_finds_what_is_found_without_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = rows(seed, nulls=seed % 10 == 0)
    with_kernel = [exchanged(batch), in_place(batch)]
    unpack_judged.cache_clear()
    monkeypatch.setenv("STEELYARD_NATIVE", "0")
    without = [exchanged(batch), in_place(batch)]
    unpack_judged.cache_clear()
    np.testing.assert_equal(with_kernel, without)


def test_the_kernel_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from steelyard.spark import blocks

    def refused(*_: Any) -> None:
        raise AssertionError("the rows were ranked without the kernel")

    monkeypatch.setattr(blocks, "scan_rows", refused)
    monkeypatch.setattr(blocks, "judged_rows", refused)
    assert exchanged(rows(3))
