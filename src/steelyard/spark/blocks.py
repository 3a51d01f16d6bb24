"""The work of a Spark worker on blocks of rows of a run: where the judged documents of each query are.

Rows that have to go to another worker are packed: one binary value per column holds thousands of rows, so Spark
moves a few large values and no rows.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.alignment.hits import Hits, Ints, JudgedDocs, Ordering, Repeats
from steelyard.alignment.scans import scan_rows
from steelyard.lazy import polars as pl
from steelyard.native import arrays_from, kernel, options

Arrays = Mapping[str, NDArray[Any]]

DENSE = 4
"""Queries are numbered by counting if their numbers span at most this many times the number of rows; and rows are
looked up as groups of adjacent rows of a query if there are at least this many rows per group."""
SAMPLE = 1000  # Rows that show whether the rows of a query are adjacent.


def pack_arrays(arrays: Arrays) -> bytes:
    """Arrays by name, as bytes."""
    sink = io.BytesIO()
    np.savez(sink, allow_pickle=False, **arrays)
    return sink.getvalue()


def unpack_arrays(data: bytes) -> Arrays:
    """The arrays that `pack_arrays` wrote."""
    with np.load(io.BytesIO(data)) as arrays:
        return dict(arrays)


# The judged documents


@dataclass(frozen=True, eq=False)
class JudgedColumns:
    """The judged documents as a worker holds them: those of query i are docs[starts[i]:starts[i + 1]].

    kind: the ids of the queries as a type, whose values are numbers.
    """

    queries: pl.Series
    kind: pl.Enum
    docs: pl.Series
    starts: Ints

    @cached_property
    def in_kernel(self) -> Any:
        """The same for the kernel; None without it."""
        native = kernel()
        return None if native is None else native.Judged.of_columns(self.queries, self.starts, self.docs)

    def numbers(self, ids: pl.Series) -> Ints:
        """The number of each query; -1 where it has no judgments."""
        few = len(stretches(ids[:SAMPLE])) < len(ids[:SAMPLE]) / DENSE
        starts = stretches(ids) if few else np.arange(len(ids))
        heads = ids.gather(starts) if few else ids
        numbers = heads.cast(self.kind, strict=False).to_physical().cast(pl.Int32).fill_null(-1).to_numpy()
        return np.repeat(numbers, np.diff(starts, append=len(ids))) if few else numbers

    def of_queries(self, numbers: Ints) -> tuple[JudgedDocs, Ints]:
        """The documents of some queries, and their places among all documents."""
        first, sizes = self.starts[numbers], self.starts[numbers + 1] - self.starts[numbers]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(starts[-1]) + np.repeat(first - starts[:-1], sizes)
        return JudgedDocs(self.queries.gather(numbers).to_list(), starts, self.docs.gather(places).to_list()), places


def pack_judged(judged: JudgedDocs) -> bytes:
    """The judged documents, as bytes for the workers."""
    sink = io.BytesIO()
    sizes = np.diff(judged.starts)
    pl.DataFrame({"query_id": pl.Series(judged.query_ids, dtype=pl.String), "size": sizes}).write_ipc_stream(sink)
    pl.DataFrame({"doc_id": pl.Series(judged.doc_ids, dtype=pl.String)}).write_ipc_stream(sink)
    return sink.getvalue()


@lru_cache(maxsize=1)
def unpack_judged(data: bytes) -> JudgedColumns:
    """What `pack_judged` wrote; kept for the next partition, which has the same."""
    source = pa.BufferReader(data)
    queries, docs = (pl.DataFrame(pl.from_arrow(pa.ipc.open_stream(source).read_all())) for _ in range(2))
    ids, starts = queries["query_id"], np.concatenate([[0], np.cumsum(queries["size"].to_numpy())])
    return JudgedColumns(ids, pl.Enum(ids), docs["doc_id"], starts)


# Rows


def stretches(*columns: pl.Series) -> Ints:
    """The first row of each group of adjacent rows that have the same values."""
    begins = np.logical_or.reduce([column.ne_missing(column.shift(1)).to_numpy() for column in columns])
    begins[:1] = True
    return np.flatnonzero(begins)


def row_blocks(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pl.DataFrame]:
    """The rows in blocks of at least `size`, but for the last."""
    parts: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        parts.append(batch)
        count += batch.num_rows
        if count >= size:
            yield pl.DataFrame(pl.from_arrow(pa.Table.from_batches(parts)))
            parts, count = [], 0
    if count:
        yield pl.DataFrame(pl.from_arrow(pa.Table.from_batches(parts)))


def list_blocks(batches: Iterator[pa.RecordBatch], size: int, keys: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The rows in blocks of about `size`; adjacent rows with the same keys are in one block."""
    rest: list[pl.DataFrame] = []
    for block in row_blocks(batches, size):
        last = int(stretches(*(block[key] for key in keys))[-1])
        if rest and rest[-1].select(keys).row(-1) != block.select(keys).row(0):
            yield pl.concat(rest)
            rest = []
        if last:
            yield pl.concat([*rest, block[:last]])
            rest = []
        rest.append(block[last:])
    if rest:
        yield pl.concat(rest)


@dataclass(frozen=True)
class Seen:
    """What else a block of rows shows: queries without judgments, whether a row is faulty, and the numbers of judged
    queries that have a row without a document."""

    others: Sequence[str] = ()
    faulty: bool = False
    empty: Sequence[int] = ()


def judged_rows(block: pl.DataFrame, judged: JudgedColumns) -> tuple[pl.DataFrame, Ints, Seen]:
    """The documents of judged queries, the numbers of their queries, and what else the block shows."""
    query = judged.numbers(block["query_id"])
    in_qrels = query >= 0
    listed = in_qrels & block["doc_id"].is_not_null().to_numpy() if block["doc_id"].null_count() else in_qrels
    seen = Seen(
        others=() if in_qrels.all() else block["query_id"].filter(pl.Series(~in_qrels)).unique().to_list(),
        faulty=is_faulty(block),
        empty=np.unique(query[in_qrels & ~listed]).tolist() if listed is not in_qrels else (),
    )
    block = block.drop("query_id", "faulty", strict=False)
    if not listed.all():
        block, query = block.filter(pl.Series(listed)), query[listed]
    return block, query, seen


def is_faulty(block: pl.DataFrame) -> bool:
    """Whether a row is faulty: as Spark marked it; otherwise, of a run with scores, if it has no query, if it has a
    document without a finite score and rank, or if it has one of these without a document."""
    if "faulty" in block.columns:
        return bool(block["faulty"].any())
    if block["query_id"].null_count():
        return True
    numbers = [block[name] for name in ("score", "rank") if name in block.columns]
    named = block["doc_id"].is_not_null()
    return not all(
        (number.is_finite().fill_null(False) == named).all() and (number.is_null() | named).all() for number in numbers
    )


def packed_by_kernel(
    block: pl.DataFrame, judged: JudgedColumns, buckets: int
) -> tuple[list[dict[str, Any]], Seen] | None:
    """The packed rows of judged queries by bucket, and what else the block shows; None without the kernel, and for
    blocks with more than scores, with faulty rows or without some documents."""
    native, scores = kernel(), _scores_for_kernel(block, judged)
    if native is None or scores is None:
        return None
    packed = native.pack_rows(block["query_id"], block["doc_id"], scores, judged.in_kernel, buckets)
    if packed is None:
        return None
    others, parts = packed
    return [dict(zip(("bucket", "query", "size", "text", "score"), part, strict=True)) for part in parts], Seen(others)


def _scores_for_kernel(block: pl.DataFrame, judged: JudgedColumns) -> Any:
    """The scores of a block that the kernel can read; otherwise None."""
    plain = {"query_id", "doc_id", "score", "faulty"}.issuperset(block.columns)
    if judged.in_kernel is None or not plain or block["score"].null_count() or is_faulty(block):
        return None
    return np.ascontiguousarray(block["score"].to_numpy())


def pack_rows(block: pl.DataFrame, query: Ints) -> dict[str, NDArray[Any]]:
    """The columns of some rows as arrays: query, the bytes and the lengths of the ids, and the numbers."""
    ids = block["doc_id"].to_arrow()
    ids = ids.cast(pa.large_string()) if ids.type != pa.large_string() else ids
    offsets = np.frombuffer(ids.buffers()[1], np.int64)[ids.offset : ids.offset + len(ids) + 1]
    data = ids.buffers()[2]
    text = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    numbers = {name: block[name].to_numpy() for name in block.columns if name != "doc_id"}
    text, size = text[offsets[0] : offsets[-1]], np.diff(offsets).astype(np.int32)
    return {"query": query.astype(np.int32), "text": text, "size": size, **numbers}


def cut_rows(rows: Arrays, bounds: Ints) -> Iterator[dict[str, NDArray[Any]]]:
    """The packed rows between consecutive bounds."""
    through = np.concatenate([[0], np.cumsum(rows["size"], dtype=np.int64)])
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield {
            name: values[through[start] : through[stop]] if name == "text" else values[start:stop]
            for name, values in rows.items()
        }


def unpack_rows(parts: dict[str, list[Any]], kinds: Mapping[str, Any]) -> tuple[pl.DataFrame, Ints]:
    """The rows of several packed parts, and the numbers of their queries. The parts are used up."""
    joined = {name: np.frombuffer(b"".join(parts.pop(name)), kind) for name, kind in kinds.items()}
    offsets = np.concatenate([[0], np.cumsum(joined.pop("size"), dtype=np.int64)])
    text, query = joined.pop("text"), joined.pop("query")
    packed = pa.LargeStringArray.from_buffers(len(query), pa.py_buffer(offsets), pa.py_buffer(text))
    ids = pl.Series(pl.from_arrow(packed))
    return pl.DataFrame({"doc_id": ids, **{name: pl.Series(values) for name, values in joined.items()}}), query


# Hits

_SHARED = ("retrieved", "top_score", "rank", "tie_first", "tie_size", "tokens_through")
"""The fields of Hits that do not number queries and documents."""


def hits_of_rows(
    block: pl.DataFrame, query: Ints, judged: JudgedColumns, orderings: Sequence[Ordering], ordered: bool
) -> dict[str, NDArray[Any]]:
    """Where the judged documents are in complete lists: the arrays of Hits, with the numbers of all qrels."""
    in_order = [block[name].to_numpy() for name in ("row", "rank") if name in block.columns]
    if in_order:
        order = np.lexsort(in_order)
        block, query = block[order], query[order]
    numbers, local = _numbered(query)
    docs, places = judged.of_queries(numbers)
    arrays: dict[str, NDArray[Any]] = {"queries": numbers}
    for number, ordering in enumerate(orderings):
        hits = scan_rows(local, block, docs, ordering, ordered)
        shared = {name: getattr(hits, name) for name in _SHARED}
        own = {"doc": places[hits.doc], "query": numbers[hits.query]}
        own |= {"repeat_query": numbers[hits.repeats.query], "repeat_rank": hits.repeats.rank}
        arrays |= {f"{name} {number}": values for name, values in {**shared, **own}.items() if values is not None}
    return arrays


def hits_of_block(
    block: pl.DataFrame, judged: JudgedColumns, orderings: Sequence[Ordering]
) -> tuple[dict[str, NDArray[Any]], Seen] | None:
    """The hits of complete lists, and what else the block shows, by the kernel; None as for `packed_by_kernel`."""
    native, scores = kernel(), _scores_for_kernel(block, judged)
    if native is None or scores is None:
        return None
    columns = block["query_id"], block["doc_id"], scores, judged.in_kernel
    ranked = [native.rank_rows(*columns, *options(ordering)) for ordering in orderings]
    if None in ranked:
        return None
    return _arrays_of(part[1:] for part in ranked), Seen(ranked[0][0])


def hits_of_packed(
    parts: dict[str, list[Any]], kinds: Mapping[str, Any], judged: JudgedColumns, orderings: Sequence[Ordering]
) -> dict[str, NDArray[Any]] | None:
    """The hits of packed rows of complete lists, by the kernel; None without it, and for rows with more than scores."""
    native = kernel()
    if native is None or set(kinds) != {"query", "size", "text", "score"}:
        return None
    rows = list(zip(*(parts[name] for name in ("query", "size", "text", "score")), strict=True))
    return _arrays_of(native.rank_packed(rows, judged.in_kernel, *options(ordering)) for ordering in orderings)


def _arrays_of(parts: Iterable[tuple[bytes, tuple[bytes, ...]]]) -> dict[str, NDArray[Any]]:
    """The arrays of Hits under each ordering, with the numbers of all qrels."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, (queries, columns) in enumerate(parts):
        hits = arrays_from(columns)
        arrays["queries"] = numbers = np.frombuffer(queries, np.int64)
        arrays |= {f"{name} {number}": hits[name] for name in (*_SHARED, "doc", "repeat_rank") if name in hits}
        arrays |= {f"{name} {number}": numbers[hits[name]] for name in ("query", "repeat_query")}
    return arrays


def again(numbers: Ints) -> int:
    """How many numbers are repeats of others."""
    return len(numbers) - len(np.unique(numbers))


def _numbered(query: Ints) -> tuple[Ints, Ints]:
    """The different numbers, ascending, and the place of each row's number among them."""
    if not len(query):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    lowest = int(query.min())
    span = int(query.max()) - lowest + 1
    if span > DENSE * len(query):
        numbers, local = np.unique(query, return_inverse=True)
        return numbers.astype(np.int64), local.astype(np.int64)
    present = np.bincount(query - lowest, minlength=span) > 0
    return np.flatnonzero(present) + lowest, (np.cumsum(present) - 1)[query - lowest]


def hits_of_arrays(parts: Sequence[Arrays], empty: Ints, size: int, number: int) -> Hits:
    """The Hits of `size` queries under one of the orderings, from the arrays of all blocks."""

    def joined(name: str, kind: Any = np.int64) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, kind), *(part[name] for part in parts)]).astype(kind)

    queries = joined("queries")
    retrieved, answered, top_score = np.zeros(size, np.int64), np.zeros(size, np.bool_), np.full(size, np.nan)
    retrieved[queries] = joined(f"retrieved {number}")
    top_score[queries] = joined(f"top_score {number}", np.float64)
    answered[queries] = True
    answered[empty] = True
    query, rank = joined(f"query {number}"), joined(f"rank {number}")
    order = np.lexsort((rank, query))
    repeat_query, repeat_rank = joined(f"repeat_query {number}"), joined(f"repeat_rank {number}")
    repeats = np.lexsort((repeat_rank, repeat_query))
    tokens = all(f"tokens_through {number}" in part for part in parts) and bool(parts)
    return Hits(
        retrieved=retrieved,
        answered=answered,
        top_score=top_score,
        query=query[order],
        doc=joined(f"doc {number}")[order],
        rank=rank[order],
        tie_first=joined(f"tie_first {number}")[order],
        tie_size=joined(f"tie_size {number}")[order],
        repeats=Repeats(repeat_query[repeats], repeat_rank[repeats]),
        tokens_through=joined(f"tokens_through {number}")[order] if tokens else None,
    )
