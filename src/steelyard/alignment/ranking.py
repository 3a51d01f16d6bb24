"""Ranks by the rules of `Ordering`, one list at a time, and the gathering of many lists into Hits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from steelyard.alignment.hits import Floats, Hits, Ints, JudgedDocs, Ordering
from steelyard.errors import PolicyError
from steelyard.wording import counted

SHOWN_RUN_ONLY = 3
"""How many of the queries that only the run has are named."""

Id = TypeVar("Id", str, bytes)


@dataclass
class Places:
    """Where judged documents stand in the lists read so far; queries by their number in the JudgedDocs.

    Rows, end to end: `lists` (query, retrieved) and a `top_score` for each, `hits` (query, doc, rank,
    tie_first, tie_size) and `repeats` (query, rank). `repeated` is the first query with a repeat,
    and the best-ranked document that is one.
    """

    lists: list[int] = field(default_factory=list)
    top_scores: list[float] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)
    repeated: tuple[int, str] | None = None
    run_only: dict[str, None] = field(default_factory=dict)

    def note_repeated(self, query: int, doc_id: str) -> None:
        """A query with repeats, and the best-ranked document of them."""
        if self.repeated is None or query < self.repeated[0]:
            self.repeated = query, doc_id

    def absorb(self, later: Places) -> None:
        """What was read after this."""
        self.lists += later.lists
        self.top_scores += later.top_scores
        self.hits += later.hits
        self.repeats += later.repeats
        self.run_only.update(later.run_only)
        if later.repeated is not None:
            self.note_repeated(*later.repeated)

    def to_hits(self, judged: JudgedDocs, ordering: Ordering, tag: str | None = None) -> Hits:
        """All of it, in the order of the queries; a repeat is an error where the ordering says so."""
        if self.repeated is not None and ordering.duplicates == "error":
            raise repeat_error(len(self.repeats) // 2, judged.query_ids[self.repeated[0]], self.repeated[1])
        size = len(judged.query_ids)
        lists, hits, repeats = _rows(self.lists, 2), _rows(self.hits, 5), _rows(self.repeats, 2)
        hits = hits[np.lexsort((hits[:, 2], hits[:, 0]))]
        repeats = repeats[np.lexsort((repeats[:, 1], repeats[:, 0]))]
        retrieved, answered = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
        top_score = np.full(size, np.nan)
        retrieved[lists[:, 0]] = lists[:, 1]
        answered[lists[:, 0]] = True
        top_score[lists[:, 0]] = self.top_scores
        names = "query", "doc", "rank", "tie_first", "tie_size", "repeat_query", "repeat_rank"
        columns: dict[str, Any] = dict(
            zip(names, map(np.ascontiguousarray, (*hits.T, *repeats.T)), strict=True)
        )
        only, examples = len(self.run_only), tuple(self.run_only)[:SHOWN_RUN_ONLY]
        return Hits(
            retrieved,
            answered,
            top_score,
            **columns,
            run_only_queries=only,
            run_only_examples=examples,
            tag=tag,
        )


def _rows(flat: list[int], width: int) -> Ints:
    return np.array(flat, dtype=np.int64).reshape(-1, width)


def compared(scores: Sequence[float], ordering: Ordering) -> list[float]:
    """Scores as they are compared: rounded to 32 bits where the ordering says so."""
    return rounded(np.array(scores, dtype=np.float64)).tolist() if ordering.single else list(scores)


def rounded(scores: Floats) -> Floats:
    """Scores rounded to 32 bits."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def rank_list(
    places: Places,
    query: int,
    ids: Sequence[Id],
    scores: Sequence[float],
    wanted: Mapping[Id, int],
    ordering: Ordering,
) -> None:
    """Rank one whole list, repeats and all, by sorting it. `wanted` has the judged documents' numbers."""
    keys = compared(scores, ordering)
    order = list(range(len(ids)))
    if ordering.ties != "stable":
        order.sort(key=ids.__getitem__, reverse=ordering.ties != "docid-asc")
    order.sort(key=keys.__getitem__, reverse=True)
    seen: set[Id] = set()
    again = [row for row in order if ids[row] in seen or seen.add(ids[row])]  # type: ignore[func-returns-value]
    if again:
        first = ids[again[0]]
        places.note_repeated(query, first if isinstance(first, str) else first.decode())
    if again and ordering.duplicates == "collapse":
        dropped = set(again)
        order = [row for row in order if row not in dropped]
    rank_of: dict[Id, int] = {}
    begin = end = 0
    for at, row in enumerate(order):
        if at == end:
            begin = at
            while end < len(order) and keys[order[end]] == keys[row]:
                end += 1
        if ids[row] in rank_of:
            places.repeats += query, at + 1
            continue
        rank_of[ids[row]] = at + 1
        if (doc := wanted.get(ids[row])) is not None:
            places.hits += query, doc, at + 1, begin + 1, end - begin
    if ordering.duplicates == "collapse":
        for row in again:
            places.repeats += query, rank_of[ids[row]]
    places.lists += query, len(order)
    places.top_scores.append(max(scores, default=math.nan))


def repeat_error(repeats: int, query_id: str, doc_id: str) -> PolicyError:
    """What `duplicates="error"` raises: how many documents are repeated, and the first."""
    count = counted(repeats, "document comes", "documents come")
    return PolicyError(
        f"{count} more than once in a query's list (duplicates=error), first: query {query_id!r}, document "
        f"{doc_id!r}.\nTake the repeats out, or choose duplicates=hold or duplicates=collapse."
    )
