"""The functions that Spark calls on every worker to find the judged documents in a run.

A worker limits the threads of polars before polars is imported, with the first use of `pl`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from steelyard.alignment.hits import SHOWN_RUN_ONLY, Ints, Ordering
from steelyard.errors import SteelyardError
from steelyard.lazy import polars as pl
from steelyard.spark import blocks
from steelyard.spark.blocks import JudgedColumns, Seen, again, pack_arrays, stretches
from steelyard.spark.frames import arrow_schema

ROWS = 1 << 17
"""Rows that are packed at a time, and about the number of rows that are ranked at a time: they fit into a cache."""

MOST_OTHERS = 5000
"""Up to this many queries without judgments are reported of a partition; if one has more, Spark counts them."""
MOST_SPLIT = 1 << 10  # A partition with more queries than this in several blocks is not grouped by query.
MOST_EDGE = 1 << 18  # The first and the last list of a partition go to the driver if they have at most this many rows.
NUMBERS = {"score": "<f8", "row": "<i8", "rank": "<f8", "tokens": "<i8"}
"""The columns of a run beside its ids, and their types in packed rows."""


@dataclass(frozen=True)
class Task:
    """The work of the workers on the rows of one or several runs: each takes the batches of a partition.

    judged: the judged documents, from `pack_judged`. columns: those of NUMBERS that the run has. runs: whether a
    column names the run of each row. orderings: those under which the lists are ranked. ordered: whether the rows
    of a list are in ranking order, by `rank` and `row`, whatever their scores. buckets: the number of parts, each of
    whole queries, in which rows are packed.
    """

    judged: bytes
    columns: tuple[str, ...]
    runs: bool
    orderings: tuple[Ordering, ...]
    ordered: bool
    rows: int = ROWS
    buckets: int = 1

    @property
    def schema(self) -> str:
        """What a worker reports: the arrays of Hits of some lists, what else a block of rows shows, or packed rows."""
        return "bucket int, run string, hits binary, seen binary, " + ", ".join(f"{name} binary" for name in self.kinds)

    @property
    def kinds(self) -> dict[str, str]:
        """The columns of packed rows, and their types."""
        return {"query": "<i4", "size": "<i4", "text": "u1", **{name: NUMBERS[name] for name in self.columns}}

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that name a list."""
        return ("run", "query_id") if self.runs else ("query_id",)

    def _known(self) -> JudgedColumns:
        # Spark starts one worker per core, so a worker uses one thread.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        return blocks.unpack_judged(self.judged)

    def _of_runs(self, block: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
        """The rows of each run; the name is empty where there is one run only."""
        if not self.runs:
            return [("", block)]
        return [(part["run"][0], part.drop("run")) for part in block.partition_by("run", maintain_order=True)]

    def _found(self, run: str, block: pl.DataFrame, query: Ints, judged: JudgedColumns) -> dict[str, Any]:
        """The hits of complete lists, in a row; or the error that the rows raise."""
        try:
            hits = blocks.hits_of_rows(block, query, judged, self.orderings, self.ordered)
            return {"run": run, "hits": pack_arrays(hits)}
        except SteelyardError as error:
            return {"run": run, "seen": pack_arrays({"error": np.array([type(error).__name__, str(error)])})}

    def _seen(self, run: str, seen: Seen, reported: dict[str, set[str]]) -> list[dict[str, Any]]:
        """What else a block shows, in a row; without the queries that the partition reported before."""
        all_others = reported.setdefault(run, set())
        others = [query for query in seen.others if query not in all_others]
        if not (others or seen.faulty or seen.empty):
            return []
        all_others.update(others)
        arrays = {
            "others": np.frombuffer(json.dumps([] if len(all_others) > MOST_OTHERS else others).encode(), np.uint8),
            "many": np.array(len(all_others) > MOST_OTHERS),
            "faulty": np.array(seen.faulty),
            "empty": np.array(seen.empty, np.int64),
        }
        return [{"bucket": 0, "run": run, "seen": pack_arrays(arrays)}]

    def _batch(self, rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(rows, arrow_schema(self.schema))

    def pack(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack the rows of judged queries: some rows per bucket and block."""
        judged = self._known()
        reported: dict[str, set[str]] = {}
        for block in blocks.row_blocks(batches, self.rows):
            for run, rows in self._of_runs(block):
                yield from self._packed(run, rows, judged, reported)

    def _packed(
        self, run: str, block: pl.DataFrame, judged: JudgedColumns, reported: dict[str, set[str]]
    ) -> Iterator[pa.RecordBatch]:
        if (packed := blocks.packed_by_kernel(block, judged, self.buckets)) is not None:
            parts, seen = packed
            yield self._batch([*self._seen(run, seen, reported), *({"run": run, **part} for part in parts)])
            return
        rows, query, seen = blocks.judged_rows(block, judged)
        yield self._batch(self._seen(run, seen, reported))
        if not len(query):
            return
        bucket = (query.astype(np.int64) * self.buckets // len(judged.queries)).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        bucket = bucket[order]
        bounds = np.flatnonzero(np.concatenate([[True], bucket[1:] != bucket[:-1], [True]]))
        cut = blocks.cut_rows(blocks.pack_rows(rows[order], query[order]), bounds)
        packed_rows = ({name: values.tobytes() for name, values in part.items()} for part in cut)
        numbered = zip(bucket[bounds[:-1]].tolist(), packed_rows, strict=True)
        yield self._batch([{"bucket": number, "run": run, **part} for number, part in numbered])

    def rank_in_place(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rank lists whose rows are adjacent, where they are: the hits of about `rows` rows at a time.

        The first and the last list of a partition may go on in another one: their rows are packed for the driver. A
        partition is given up if it has many queries in several places, or such a list with very many rows.
        """
        judged = self._known()
        queries: dict[str, list[Ints]] = {}
        reported: dict[str, set[str]] = {}
        first, block = True, None
        for following in chain(blocks.list_blocks(batches, self.rows, self.keys), [None]):
            if block is not None:
                starts = [*stretches(*(block[key] for key in self.keys)).tolist(), block.height]
                begin = starts[1] if first else 0
                end = max(begin, starts[-2]) if following is None else block.height
                edges = [part for part in (block[:begin], block[end:]) if part.height]
                mixed = any(again(np.concatenate(parts)) > MOST_SPLIT for parts in queries.values())
                if mixed or any(part.height > MOST_EDGE for part in edges):
                    yield self._batch([{"run": "", "seen": pack_arrays({"mixed": np.array(True)})}])
                    return
                for run, part in (pair for edge in edges for pair in self._of_runs(edge)):
                    rows, query, seen = blocks.judged_rows(part, judged)
                    packed = {name: values.tobytes() for name, values in blocks.pack_rows(rows, query).items()}
                    yield self._batch([{"run": run, **packed}, *self._seen(run, seen, reported)])
                yield from self._ranked(block[begin:end], judged, queries, reported)
                first = False
            block = following

    def _ranked(
        self, block: pl.DataFrame, judged: JudgedColumns, queries: dict[str, list[Ints]], reported: dict[str, set[str]]
    ) -> Iterator[pa.RecordBatch]:
        for run, part in self._of_runs(block) if block.height else []:
            if (ranked := blocks.hits_of_block(part, judged, self.orderings)) is not None:
                arrays, seen = ranked
                queries.setdefault(run, []).append(arrays["queries"])
                hits = {"run": run, "hits": pack_arrays(arrays)}
            else:
                rows, query, seen = blocks.judged_rows(part, judged)
                queries.setdefault(run, []).append(np.unique(query))
                hits = self._found(run, rows, query, judged)
            yield self._batch([hits, *self._seen(run, seen, reported)])

    def find_stretches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Find the adjacent rows of each query in some rows of a partition, from the ids of the queries alone.

        Per run, the query of every stretch but the first and the last, which may go on elsewhere.
        """
        judged = self._known()
        for block in blocks.row_blocks(batches, self.rows):
            starts = stretches(*(block[key] for key in self.keys))
            for run, part in self._of_runs(block[starts[1:-1]]):
                query = judged.numbers(part["query_id"])
                yield self._batch([{"run": run, "seen": pack_arrays({"query": query[query >= 0]})}])

    def rank_packed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rank the lists of the packed rows of whole buckets: the hits of about `rows` rows at a time."""
        judged = self._known()
        parts: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for batch in batches:
            yield from self._sorted_out(batch, parts)
            del batch
        keys = sorted(parts)
        while keys:
            run, taken, count = keys[0][0], list[dict[str, Any]](), 0
            while keys and keys[0][0] == run and count < self.rows:
                some = parts.pop(keys.pop(0))
                count += sum(part["query"].size // 4 for part in some)
                taken += some
            columns = {name: [part[name] for part in taken] for name in self.kinds}
            # Keep no reference to what was read, so that a long list is not in memory twice.
            del taken, some
            hits = blocks.hits_of_packed(columns, self.kinds, judged, self.orderings)
            if hits is not None:
                yield self._batch([{"run": run, "hits": pack_arrays(hits)}])
            else:
                yield self._batch([self._found(run, *blocks.unpack_rows(columns, self.kinds), judged)])

    def _sorted_out(
        self, batch: pa.RecordBatch, parts: dict[tuple[str, int], list[dict[str, Any]]]
    ) -> Iterator[pa.RecordBatch]:
        """Add the packed rows of a batch to `parts`, by run and bucket; what else was seen is passed on."""
        for place in range(batch.num_rows):
            part = {name: batch.column(name)[place] for name in batch.schema.names}
            if part["seen"].is_valid:
                yield self._batch([{"run": part["run"].as_py(), "seen": part["seen"].as_py()}])
            else:
                key = part["run"].as_py(), part["bucket"].as_py()
                parts.setdefault(key, []).append({name: part[name].as_buffer() for name in self.kinds})


COUNTED = "count long, first array<string>"


def count_ids(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The number of the ids of a partition, and the first of them."""
    count, first = 0, list[str]()
    for batch in batches:
        count += batch.num_rows
        first = sorted([*first, *batch.column(0).to_pylist()])[:SHOWN_RUN_ONLY]
    yield pa.RecordBatch.from_pylist([{"count": count, "first": first}], arrow_schema(COUNTED))
