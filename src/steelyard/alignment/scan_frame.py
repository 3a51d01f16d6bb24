"""Reading a Run held in a frame: only judged documents are looked up, and only lists out of order are sorted.

Ids are told apart by hashes first, and compared as text where those agree. Queries that repeat a
document, and runs whose measures need every row, go the plain way (`sorted_frame`), the reference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.alignment.frame_rows import (
    Words,
    answered_by,
    documents_of,
    group_begins,
    keys_of,
    query_numbers,
)
from steelyard.alignment.hits import Bools, Floats, Hits, Ints, JudgedDocs, Ordering
from steelyard.alignment.sorted_frame import hits_by_sorting
from steelyard.runs import Run

_LONG = 64
"""Lists of so many rows on average are sorted one by one, shorter ones all together."""


def scan_frame(run: Run, judged: JudgedDocs, ordering: Ordering) -> Hits:
    """Where the judged documents stand."""
    table = run.table
    if run.tokens is not None or run.texts is not None or "tokens" in table.columns:
        return hits_by_sorting(run, table, judged, ordering)
    lists = _lists_of(table, query_numbers(table, judged))
    keys = keys_of(lists.docs, lists.row_query)
    repeating = np.unique(lists.row_query[_rows_among(keys, _repeated(keys))])
    if not repeating.size:
        return _hits(lists, keys, run, judged, ordering)
    plain = np.isin(lists.row_query, repeating)
    clean = _hits(lists.some(~plain), keys[~plain], run, judged, ordering)
    ids = pl.Series(judged.query_ids, dtype=pl.String).gather(repeating)
    rest = table.filter(pl.col("query_id").is_in(ids.to_list()))
    return _joined(clean, hits_by_sorting(run, rest, judged, ordering))


@dataclass(frozen=True, eq=False, repr=False)
class _Lists:
    """The rows of judged queries, as they came but for one query's standing together.

    Per row the number of its query, its document and its score; `begins` is the first row of each list.
    """

    row_query: Ints
    docs: pl.Series
    scores: Floats
    begins: Ints

    @property
    def query(self) -> Ints:
        """The number of each list's query."""
        return self.row_query[self.begins]

    @property
    def sizes(self) -> Ints:
        return np.diff(self.begins, append=len(self.row_query))

    def some(self, rows: Bools) -> _Lists:
        """Whole lists out of these."""
        return _lists(self.row_query[rows], self.docs.filter(pl.Series(rows)), self.scores[rows])


def _lists_of(table: pl.DataFrame, numbers: Ints) -> _Lists:
    docs, scores = table["doc_id"], table["score"].to_numpy()
    judged = numbers >= 0
    if not judged.all():
        numbers, docs, scores = numbers[judged], docs.filter(pl.Series(judged)), scores[judged]
    lists = _lists(numbers, docs, scores)
    if len(np.unique(lists.query)) == len(lists.query):
        return lists
    # Short numbers are sorted by counting them.
    short = numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers
    order = np.argsort(short, kind="stable")
    return _lists(numbers[order], docs.gather(order), scores[order])


def _lists(numbers: Ints, docs: pl.Series, scores: Floats) -> _Lists:
    return _Lists(numbers, docs, scores, group_begins(numbers[1:] != numbers[:-1], len(numbers)))


def _repeated(keys: Words) -> Words:
    """The keys that come more than once."""
    rising = np.sort(keys)
    return np.unique(rising[1:][rising[1:] == rising[:-1]])


def _rows_among(keys: Words, some: Words) -> Ints:
    """The rows whose key is one of some; a table of the keys' first bits tells most others apart at once."""
    bits = min(24, len(some).bit_length() + 6)
    maybe = np.zeros(1 << bits, dtype=np.bool_)
    maybe[some >> np.uint64(64 - bits)] = True
    rows = np.flatnonzero(maybe[keys >> np.uint64(64 - bits)])
    return rows[np.isin(keys[rows], some)]


def _hits(lists: _Lists, keys: Words, run: Run, judged: JudgedDocs, ordering: Ordering) -> Hits:
    """The same for lists without repeats."""
    size = len(judged.query_ids)
    retrieved, top = np.zeros(size, dtype=np.int64), np.full(size, np.nan)
    retrieved[lists.query] = lists.sizes
    if len(lists.begins):
        top[lists.query] = np.fmax.reduceat(lists.scores, lists.begins)
    documents = documents_of(judged)
    rows = _rows_among(keys, keys_of(documents["doc_id"], documents["query"].to_numpy()))
    met = (
        pl.DataFrame({"query": lists.row_query[rows], "doc_id": lists.docs.gather(rows), "row": rows})
        .join(documents, on=["query", "doc_id"], how="inner")
        .sort("row")
    )
    rows = met["row"].to_numpy()
    begin = lists.begins[np.searchsorted(lists.begins, rows, side="right") - 1]
    place, first, count = (rows, rows, np.ones_like(rows)) if run.ordered else _places(lists, rows, ordering)
    order = np.lexsort((place, met["query"].to_numpy()))
    answered, run_only, examples = answered_by(run, judged)
    return Hits(
        retrieved,
        answered,
        top,
        query=met["query"].to_numpy()[order],
        doc=met["doc"].to_numpy()[order],
        rank=(place - begin + 1)[order],
        tie_first=(first - begin + 1)[order],
        tie_size=count[order],
        repeat_query=np.zeros(0, dtype=np.int64),
        repeat_rank=np.zeros(0, dtype=np.int64),
        run_only_queries=run_only,
        run_only_examples=examples,
    )


def _places(lists: _Lists, rows: Ints, ordering: Ordering) -> tuple[Ints, Ints, Ints]:
    """Where rows come to stand, by score, when each list is put in order; and where their group of equal scores
    begins, and how many it holds."""
    scores: NDArray[Any] = lists.scores
    if ordering.single:
        with np.errstate(over="ignore"):
            scores = scores.astype(np.float32)
    order = _by_score(lists, scores)
    if order is not None:
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        scores, rows = scores[order], places[rows]
    differs = scores[1:] != scores[:-1]
    differs[lists.begins[1:] - 1] = True
    groups = np.append(group_begins(differs, len(scores)), len(scores))
    group = np.searchsorted(groups, rows, side="right") - 1
    first = groups[group]
    count = groups[group + 1] - first
    tied = count > 1
    if ordering.ties == "stable" or not tied.any():
        return rows, first, count
    chosen = np.unique(group[tied])
    sizes = groups[chosen + 1] - groups[chosen]
    inside = np.repeat(groups[chosen] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    ids = lists.docs.gather(inside if order is None else order[inside])
    by_id = pl.DataFrame({"group": np.repeat(chosen, sizes), "doc_id": ids, "place": inside}).sort(
        "group", "doc_id", descending=[False, ordering.ties != "docid-asc"]
    )
    ranked = np.empty_like(inside)
    ranked[np.searchsorted(inside, by_id["place"].to_numpy())] = inside
    rows = rows.copy()
    rows[tied] = ranked[np.searchsorted(inside, rows[tied])]
    return rows, first, count


def _by_score(lists: _Lists, scores: NDArray[Any]) -> Ints | None:
    """The rows in the order of their lists and scores, equal ones as they came; None where they stand so."""
    rises = scores[1:] > scores[:-1]
    rises[lists.begins[1:] - 1] = False
    uneven = np.unique(np.searchsorted(lists.begins, np.flatnonzero(rises), side="right") - 1)
    if not uneven.size:
        return None
    order = np.arange(len(scores))
    if lists.sizes[uneven].sum() >= _LONG * len(uneven):
        for begin, size in zip(lists.begins[uneven].tolist(), lists.sizes[uneven].tolist(), strict=True):
            order[begin : begin + size] = begin + np.argsort(-scores[begin : begin + size], kind="stable")
        return order
    chosen = np.zeros(len(lists.begins), dtype=np.bool_)
    chosen[uneven] = True
    rows = np.flatnonzero(np.repeat(chosen, lists.sizes))
    order[rows] = rows[np.lexsort((-scores[rows], np.repeat(np.arange(len(chosen)), lists.sizes)[rows]))]
    return order


def _joined(clean: Hits, plain: Hits) -> Hits:
    """What was found in some queries, and what in the others; both know which were answered."""
    other = plain.retrieved > 0
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(clean, name), getattr(plain, name)])
        for name in ("query", "doc", "rank", "tie_first", "tie_size")
    }
    order = np.lexsort((columns["rank"], columns["query"]))
    return replace(
        clean,
        retrieved=np.where(other, plain.retrieved, clean.retrieved),
        top_score=np.where(other, plain.top_score, clean.top_score),
        repeat_query=plain.repeat_query,
        repeat_rank=plain.repeat_rank,
        **{name: column[order] for name, column in columns.items()},
    )
