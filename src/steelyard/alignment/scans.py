"""Hits of a run, however it is held: by the native kernel in one pass, from a table, or as they were read elsewhere.

The kernel keeps only where the judged documents are, and copies and changes nothing. It reads clean files: one with
anything unusual in it (a byte order mark, comments, a score that is not a finite number, control bytes, too few
columns, text that is not UTF-8, a query whose lines are in several places) is left to the readers of steelyard.io,
which read it or report what is wrong. A run in memory has dicts of scores, ranked lists of ids or of (id, score) pairs;
one with anything unusual (ids that are not text, scores that are not finite numbers, dicts beside lists, other types)
is left to the constructor of Run. So is every run where the kernel is not available: its table gives the same hits.

Frames, Parquet and every other format are tables: query_id, doc_id, score and perhaps tokens. The kernel reads the
columns of a table where they are, if the rows of each query are together.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.alignment.hits import SHOWN_RUN_ONLY, Bools, Floats, Hits, Ints, JudgedDocs, Ordering, Repeats
from steelyard.alignment.ranges import Ranges
from steelyard.alignment.ranking import compared, first_of_group, group_starts, repeat_error, table_order
from steelyard.errors import PolicyError, problem_report
from steelyard.io.files import CHUNK, changed, open_chunks, unchanged
from steelyard.lazy import polars as pl
from steelyard.native import PIECE, hits_from, kernel, options, read_result
from steelyard.notes import Note
from steelyard.run import Run
from steelyard.wording import counted

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
_JSON = (b"{", b"[")
_CHANGED = 3  # Outcome in src/kernel/run_lines.hpp
Words: TypeAlias = NDArray[np.uint64]

NEARLY = 0.9  # Two texts nearly repeat each other if they share this much of their word 3-grams (Jaccard).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # An odd number that spreads small ones over 64 bits.


def scan_file(
    path: Path, judged: JudgedDocs, ordering: Ordering, *, threads: int | None = None, piece: int | None = None
) -> Hits | None:
    """Where the judged documents are in a run file; None if the file is not a clean TREC run, or without the kernel.

    Compressed files (gzip, Zstandard, LZ4, recognised by their first bytes) are read as they are decompressed; one
    that is cut short is an InputError. `threads` and `piece`, the bytes read at a time, change only the speed.
    """
    native = kernel()
    if native is None:
        return None
    judged_docs = judged.once("texts", lambda: native.Judged(judged.query_ids, judged.starts, judged.doc_ids))
    with path.open("rb") as file, unchanged(file, path):
        start = file.read(4)
        if start.startswith(_JSON):
            return None
        order = options(ordering)
        if start.startswith(_COMPRESSED):
            result = _scan_compressed(path, native.Stream(judged_docs, *order), piece)
        else:
            state, workers = os.fstat(file.fileno()), threads or os.cpu_count() or 1
            result = read_result(state, judged_docs, order) or native.scan(
                file.fileno(), state.st_size, judged_docs, *order, workers, piece or PIECE
            )
        if result == _CHANGED:
            raise changed(path)
    return hits_from(result, judged, ordering) if isinstance(result, tuple) else None


def _scan_compressed(path: Path, stream: Any, piece: int | None) -> Any:
    """The result of a compressed file; its next chunk is decompressed while the current one is read."""
    from concurrent.futures import ThreadPoolExecutor

    rest, chunks = b"", open_chunks(path, piece or CHUNK)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, b"")
        while chunk := coming.result():
            coming = pool.submit(next, chunks, b"")
            data = rest + chunk
            rest = data[stream.feed(data, False) :]
            if not stream.clean():
                break
    stream.feed(rest, True)
    return stream.finish()


def scan_mapping(
    run: Mapping[str, Mapping[str, float] | Sequence[str] | Sequence[tuple[str, float]]],
    judged: JudgedDocs,
    ordering: Ordering,
) -> Hits | None:
    """Where the judged documents are in a run in memory; None if the run has anything unusual, or without the kernel.

    Ranked lists keep their order: nothing ties in them.
    """
    if (native := kernel()) is None:
        return None
    strings = judged.once("strings", lambda: native.JudgedStrings(judged.query_ids, judged.starts, judged.doc_ids))
    plain = run if type(run) is dict else dict(run)
    result = native.scan_mapping(plain, strings, np.floating, np.integer, *options(ordering))
    return None if result is None else hits_from(result, judged, ordering)


@dataclass(frozen=True, eq=False)
class ScannedRun:
    """What `align` needs of a run that was read elsewhere, as on a cluster, without its lists.

    hits: the ranks of the judged documents under an ordering; always of the same qrels. documents: the
    retrieved documents of some queries. lists: reads the lists of the judged queries, which may take long; None
    where they cannot be read. ordered: the run has an order of its own, whatever its scores.
    """

    name: str
    ordered: bool
    notes: tuple[Note, ...]
    hits: Callable[[Ordering], Hits]
    documents: Callable[[Sequence[str]], list[str]]
    lists: Callable[[], Run] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    """The rows of judged queries, ranked: per row the number of its query, its place in the table, its score as it is
    compared, and a hash of query and document. `docs` are the documents of the table."""

    query: Ints
    place: Ints
    docs: pl.Series
    key: Floats
    hash: Words
    tokens: pl.Series | None

    def only(self, kept: Bools) -> _Rows:
        """Some of the rows."""
        tokens = None if self.tokens is None else self.tokens.filter(pl.Series(kept))
        return _Rows(self.query[kept], self.place[kept], self.docs, self.key[kept], self.hash[kept], tokens)

    def documents(self, rows: Ints | None = None) -> pl.Series:
        """The documents of some rows, or of all."""
        return self.docs.gather(self.place if rows is None else self.place[rows])

    def ranks(self) -> Ints:
        """The rank of each row in its list."""
        return np.arange(1, len(self.query) + 1) - first_of_group(self.query)


def scan_frame(run: Run, judged: JudgedDocs, ordering: Ordering, ranges: Ranges | None = None) -> Hits:
    """Where the judged documents are in a run held as a table; with `ranges`, where each retrieved chunk is."""
    hits = None if ranges else _scan_native(run, judged, ordering)
    if hits is not None:
        return hits
    table = run.table
    # The number of each row's query; -1 for a query without judgments.
    columns = {"query_id": _texts(judged.query_ids), "query": np.arange(len(judged.query_ids))}
    numbers = pl.DataFrame(columns, schema={"query_id": pl.String, "query": pl.Int64})
    joined = table.select("query_id").join(numbers, on="query_id", how="left", maintain_order="left")
    query = joined["query"].fill_null(-1).to_numpy()
    if np.any(query < 0):
        table, query = table.filter(pl.Series(query >= 0)), query[query >= 0]
    hits = scan_rows(query, table, judged, ordering, run.ordered, run.tokens, run.texts, ranges)
    queries, judged_queries = run.queries, set(judged.query_ids)
    listed, others = set(queries), [query for query in queries if query not in judged_queries]
    answered = np.fromiter((query in listed for query in judged.query_ids), np.bool_, len(judged.query_ids))
    examples = tuple(others[:SHOWN_RUN_ONLY])
    return replace(hits, answered=answered, run_only_queries=len(others), run_only_examples=examples)


def _scan_native(run: Run, judged: JudgedDocs, ordering: Ordering) -> Hits | None:
    """The same by the kernel; None without it, and for runs with tokens or texts or whose queries interleave."""
    native = kernel()
    table = run.table
    if native is None or run.tokens is not None or run.texts is not None or "tokens" in table.columns:
        return None
    judged_docs = judged.once("texts", lambda: native.Judged(judged.query_ids, judged.starts, judged.doc_ids))
    columns = table["query_id"], table["doc_id"], scores_of(table)
    result = native.scan_frame(*columns, judged_docs, run.ordered, *options(ordering))
    if not isinstance(result, tuple):
        return None
    hits = hits_from(result, judged, ordering)
    if not run.empty:
        return hits
    # Queries whose list is empty have no row.
    number = {query: place for place, query in enumerate(judged.query_ids)}
    answered = hits.answered.copy()
    answered[[number[query] for query in run.empty if query in number]] = True
    only = [query for query in run.empty if query not in number]
    examples = (*hits.run_only_examples, *only)[:SHOWN_RUN_ONLY]
    count = hits.run_only_queries + len(only)
    return replace(hits, answered=answered, run_only_queries=count, run_only_examples=examples)


def scores_of(table: pl.DataFrame) -> Floats:
    """The scores of a table, NaN where there are none."""
    score = table["score"]
    return np.ascontiguousarray((score.fill_null(np.nan) if score.null_count() else score).to_numpy())


def scan_rows(
    query: Ints,
    table: pl.DataFrame,
    judged: JudgedDocs,
    ordering: Ordering,
    ordered: bool,
    tokens: dict[str, int] | None = None,
    texts: dict[str, str] | None = None,
    ranges: Ranges | None = None,
) -> Hits:
    """Where the judged documents are in a table of lists; `query` has the number of each row's query.

    A query without a row is not answered. `ordered`: the rows of a query are in ranking order.
    """
    size = len(judged.query_ids)
    scores, docs = scores_of(table), table["doc_id"]
    order = table_order(query, docs, None if ordered else scores, ordering)
    hashes = row_hashes(docs, query)[order]
    query, scores = query[order], scores[order]
    counts = table["tokens"] if tokens is None and "tokens" in table.columns else token_counts(docs, tokens)
    rows = _Rows(
        query, order, docs, compared(scores, ordering), hashes, None if counts is None else counts.gather(order)
    )
    top_score = np.full(size, np.nan)
    starts = group_starts(query)
    if len(starts):
        top_score[query[starts]] = np.fmax.reduceat(scores, starts)
    ranks = rows.ranks()
    again = _repeated_rows(rows)
    repeats = np.flatnonzero(again)
    repeats = repeats[np.lexsort((ranks[repeats], rows.query[repeats]))]
    if len(repeats) and ordering.duplicates == "error":
        raise repeat_error(len(repeats), judged.query_ids[rows.query[int(repeats[0])]], rows.documents(repeats[:1])[0])
    repeat_query, repeat_rank = rows.query[repeats], ranks[repeats]
    if len(repeats) and ordering.duplicates == "collapse":
        removed = rows.only(again)
        rows, again = rows.only(~again), np.zeros(len(ranks) - len(repeats), dtype=np.bool_)
        ranks = rows.ranks()
        # The query of each removed repeat and the rank of its first occurrence, sorted.
        places = pl.DataFrame({"query": rows.query, "doc_id": rows.documents(), "rank": ranks})
        removed_rows = pl.DataFrame({"query": removed.query, "doc_id": removed.documents()})
        removed_rows = removed_rows.join(places, on=["query", "doc_id"], how="left").sort("query", "rank")
        repeat_query, repeat_rank = removed_rows["query"].to_numpy(), removed_rows["rank"].to_numpy()
    hits, doc = _judged_rows(rows, again, judged)
    order = np.lexsort((ranks[hits], rows.query[hits]))
    hits, doc = hits[order], doc[order]
    tie_first, tie_size = ranks[hits], np.ones_like(hits)
    if not ordered:
        starts = group_starts(rows.query, rows.key)
        group = np.searchsorted(starts, hits, side="right") - 1
        tie_first = ranks[starts[group]]
        ends = starts[np.minimum(group + 1, len(starts) - 1)]
        tie_size = np.where(group + 1 < len(starts), ends, len(ranks)) - starts[group]
    near = _near_repeats(rows, texts)
    through = None if rows.tokens is None else _tokens_through(rows)
    retrieved = np.bincount(rows.query, minlength=size).astype(np.int64)
    retrieved_ranges = None
    if ranges is not None:
        listed = pl.DataFrame({"query": rows.query, "doc_id": rows.documents(), "rank": ranks})
        retrieved_ranges = ranges.retrieved(judged.query_ids, listed, through)
    return Hits(
        retrieved=retrieved,
        answered=retrieved > 0,
        top_score=top_score,
        query=rows.query[hits],
        doc=doc,
        rank=ranks[hits],
        tie_first=tie_first,
        tie_size=tie_size,
        repeats=Repeats(repeat_query, repeat_rank),
        tokens_through=None if through is None else through[hits],
        near_repeats=None if near is None else Repeats(rows.query[near], ranks[near]),
        ranges=retrieved_ranges,
    )


def _texts(ids: Sequence[str]) -> list[str | None]:
    """Ids as a frame can hold them: one that has no UTF-8 form is in no frame."""
    try:
        "".join(ids).encode()
    except UnicodeEncodeError:
        return [None if any("\ud800" <= letter <= "\udfff" for letter in text) else text for text in ids]
    return list(ids)


def row_hashes(docs: pl.Series, query: Ints) -> Words:
    """A hash of each document and its query."""
    hashes = query.astype(np.uint64)
    hashes *= _SPREAD
    hashes ^= docs.hash().to_numpy()
    return hashes


def _repeated_rows(rows: _Rows) -> Bools:
    """Which rows have a document that is already in the list. Only rows whose hash is not unique are compared."""
    again = np.zeros(len(rows.query), dtype=np.bool_)
    ascending = np.sort(rows.hash)
    suspects = _rows_among(rows.hash, ascending[1:][ascending[1:] == ascending[:-1]])
    pairs = pl.DataFrame({"query": rows.query[suspects], "doc_id": rows.documents(suspects)})
    again[suspects] = ~pairs.select(pl.struct("query", "doc_id").is_first_distinct()).to_series().to_numpy()
    return again


def _rows_among(hashes: Words, some: Words) -> Ints:
    """The rows whose hash is one of `some`. A table of the first bits rules most of the others out."""
    bits = min(24, len(some).bit_length() + 6)
    maybe = np.zeros(1 << bits, dtype=np.bool_)
    maybe[some >> np.uint64(64 - bits)] = True
    rows = np.flatnonzero(maybe[hashes >> np.uint64(64 - bits)])
    return rows[np.isin(hashes[rows], some)]


def _judged_rows(rows: _Rows, again: Bools, judged: JudgedDocs) -> tuple[Ints, Ints]:
    """The rows that have a judged document for the first time, and the numbers of the documents."""
    query = np.repeat(np.arange(len(judged.query_ids)), np.diff(judged.starts))
    columns = {"query": query, "doc_id": _texts(judged.doc_ids), "doc": np.arange(len(judged.doc_ids))}
    documents = pl.DataFrame(columns, schema={"query": pl.Int64, "doc_id": pl.String, "doc": pl.Int64})
    candidates = _rows_among(rows.hash, row_hashes(documents["doc_id"], documents["query"].to_numpy()))
    candidates = candidates[~again[candidates]]
    listed = pl.DataFrame({"query": rows.query[candidates], "doc_id": rows.documents(candidates), "row": candidates})
    hits = listed.join(documents, on=["query", "doc_id"], how="inner")
    return hits["row"].to_numpy(), hits["doc"].to_numpy()


def token_counts(docs: pl.Series, tokens: dict[str, int] | None) -> pl.Series | None:
    """The tokens of each row's document, null where they are unknown."""
    if tokens is None:
        return None
    columns = {"doc_id": list(tokens), "tokens": list(tokens.values())}
    lengths = pl.DataFrame(columns, schema={"doc_id": pl.String, "tokens": pl.Int64})
    return docs.to_frame("doc_id").join(lengths, on="doc_id", how="left", maintain_order="left")["tokens"]


def _tokens_through(rows: _Rows) -> Ints:
    """The tokens of each list down to each of its documents."""
    assert rows.tokens is not None
    unknown = rows.documents(np.flatnonzero(rows.tokens.is_null().to_numpy()))
    if len(unknown):
        problems = [f"document {doc!r}" for doc in unknown.unique(maintain_order=True).to_list()]
        count = counted(len(problems), "returned document has", "returned documents have")
        advice = "A budget counts every returned document: give the run a length for each (tokens=, texts=)."
        raise PolicyError(problem_report(f"{count} no token count:", problems, advice))
    total_before = np.concatenate([[0], np.cumsum(rows.tokens.to_numpy().astype(np.int64))])
    return np.asarray(total_before[1:] - total_before[first_of_group(rows.query)])


def _near_repeats(rows: _Rows, texts: dict[str, str] | None) -> Ints | None:
    """The rows whose document, or nearly its text, is already in the list."""
    if texts is None:
        return None
    docs = rows.documents()
    shingles = {doc: _shingles(texts.get(doc, doc)) for doc in docs.unique().to_list()}
    texts_with = Counter(chain.from_iterable(shingles.values()))
    leading = {doc: _leading(text_shingles, texts_with) for doc, text_shingles in shingles.items()}
    repeated: list[int] = []
    seen: set[str] = set()
    above: dict[str, list[frozenset[str]]] = {}
    last = -1
    for row, (query, doc) in enumerate(zip(rows.query.tolist(), docs.to_list(), strict=True)):
        if query != last:
            seen, above, last = set(), {}, query
        mine = shingles[doc]
        if doc in seen or any(_nearly(mine, other) for shingle in leading[doc] for other in above.get(shingle, ())):
            repeated.append(row)
        seen.add(doc)
        for shingle in leading[doc]:
            above.setdefault(shingle, []).append(mine)
    places = np.array(repeated, dtype=np.int64)
    return places[np.argsort(rows.query[places], kind="stable")]


def _shingles(text: str) -> frozenset[str]:
    words = text.lower().split()
    return frozenset(" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2)))


def _leading(shingles: frozenset[str], texts_with: Mapping[str, int]) -> list[str]:
    """The rarest shingles of a text, enough that any text that nearly repeats it has one of them.

    Two such texts share at least NEARLY of the shingles of each, so that the others cannot hold all that they share.
    Shingles of one text only are left out.
    """
    shared = [shingle for shingle in shingles if texts_with[shingle] > 1]
    count = len(shared) - math.ceil(NEARLY * len(shingles)) + 1
    return sorted(shared, key=lambda shingle: (texts_with[shingle], shingle))[: max(0, count)]


def _nearly(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared >= NEARLY * (len(one) + len(other) - shared)
