"""Hits of a run in memory: dicts of scores, ranked lists of ids, or ranked lists of (id, score) pairs.

Nothing is copied or changed. A run with anything unusual in it (ids that are not text, scores that are not finite
numbers, dicts beside lists, other types) is left to the constructor of Run, which reads it or reports what is
wrong.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.alignment.hits import SHOWN_RUN_ONLY, Hits, JudgedDocs, Ordering
from steelyard.alignment.ranking import compared, list_order, repeat_error
from steelyard.native import hits_from, kernel, options


def scan_mapping(
    run: Mapping[str, Mapping[str, float] | Sequence[str] | Sequence[tuple[str, float]]],
    judged: JudgedDocs,
    ordering: Ordering,
) -> Hits | None:
    """Where the judged documents are in a run in memory; None if the run has anything unusual.

    Ranked lists keep their order: nothing ties in them.
    """
    if type(run) is not dict:
        run = dict(run)
    if (native := kernel()) is None:
        return _scan(run, judged, ordering)
    known = judged.once(
        "strings", lambda: native.JudgedStrings(judged.query_ids, judged.starts, judged.doc_ids)
    )
    found = native.scan_mapping(run, known, np.floating, np.integer, *options(ordering))
    return None if found is None else hits_from(found, judged, ordering)


def _scan(run: dict[str, Any], judged: JudgedDocs, ordering: Ordering) -> Hits | None:
    """The same without the kernel."""
    if not _all_text(run):
        return None
    ordered = {not isinstance(listed, dict) for listed in run.values()}
    if len(ordered) > 1:
        return None
    if ordered == {True}:
        ordering = Ordering("stable", ordering.duplicates)
    numbers = {query_id: number for number, query_id in enumerate(judged.query_ids)}
    gathered = _Gathered(judged, ordering)
    run_only = []
    for query_id, listed in run.items():
        found = _scored(listed, ordering) if isinstance(listed, dict) else _ranked(listed)
        if found is None:
            return None
        if query_id in numbers:
            gathered.add(numbers[query_id], *found)
        else:
            run_only.append(query_id)
    return gathered.hits(run_only)


def _scored(listed: dict[str, float], ordering: Ordering) -> tuple[list[str], list[float], float] | None:
    """The ids of a dict of scores, the scores as they are compared, and the best score."""
    scores = _finite_numbers(listed.values())
    if scores is None or not _all_text(listed):
        return None
    keys: list[float] = compared(np.array(scores), ordering).tolist() if ordering.single else scores
    return list(listed), keys, max(scores, default=math.nan)


def _ranked(listed: Any) -> tuple[Sequence[str], Sequence[float], float] | None:
    """The same of a ranked list, with keys that keep its order."""
    if type(listed) not in (list, tuple):
        return None
    ids, best = listed, math.nan
    if listed and not isinstance(listed[0], str):
        if not all(type(pair) in (tuple, list) and len(pair) == 2 for pair in listed):
            return None
        ids, scores = [pair[0] for pair in listed], _finite_numbers([pair[1] for pair in listed])
        if scores is None:
            return None
        best = max(scores)
    return (ids, range(len(ids), 0, -1), best) if _all_text(ids) else None


def _all_text(ids: Iterable[Any]) -> bool:
    return set(map(type, ids)) <= {str}


def _finite_numbers(values: Iterable[Any]) -> list[float] | None:
    """The values as floats; None unless all are finite floats, ints or numpy numbers."""
    listed = list(values)
    number_types = (float, np.floating, np.integer)
    if not all(kind is int or issubclass(kind, number_types) for kind in set(map(type, listed))):
        return None
    try:
        numbers = list(map(float, listed))
    except OverflowError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


class _Gathered:
    """The hits of the lists added so far."""

    def __init__(self, judged: JudgedDocs, ordering: Ordering) -> None:
        size = len(judged.query_ids)
        self.judged, self.ordering = judged, ordering
        self.retrieved, self.answered, self.top_score = [0] * size, [False] * size, [math.nan] * size
        self.rows: list[tuple[int, int, int, int, int]] = []  # query, doc, rank, tie_first, tie_size
        self.repeats: list[tuple[int, int]] = []  # query, rank
        self.repeated: dict[int, str] = {}  # the best-ranked repeated document of each query that has one
        self._starts, self._doc_ids = judged.starts.tolist(), judged.doc_ids

    def add(self, query: int, ids: Sequence[str], keys: Sequence[float], top_score: float) -> None:
        """Rank one list and keep its judged documents."""
        order = list_order(ids, keys, self.ordering)
        again = _repeated([ids[row] for row in order]) if len(set(ids)) < len(ids) else []
        docs = [ids[order[place]] for place in again]
        if again and self.ordering.duplicates == "collapse":
            removed = set(again)
            order = [row for place, row in enumerate(order) if place not in removed]
        size = len(order)
        # Built from the end, so that the first occurrence of a document is the one that stays.
        rank_of = dict(zip([ids[row] for row in reversed(order)], range(size, 0, -1), strict=True))
        ascending = [-keys[row] for row in order]
        for doc in range(self._starts[query], self._starts[query + 1]):
            if (rank := rank_of.get(self._doc_ids[doc])) is not None:
                first = bisect_left(ascending, ascending[rank - 1])
                self.rows.append(
                    (query, doc, rank, first + 1, bisect_right(ascending, ascending[rank - 1]) - first)
                )
        if again:
            self.repeated[query] = docs[0]
            collapse = self.ordering.duplicates == "collapse"
            ranks = [rank_of[doc] for doc in docs] if collapse else [place + 1 for place in again]
            self.repeats += [(query, rank) for rank in ranks]
        self.retrieved[query], self.answered[query], self.top_score[query] = size, True, top_score

    def hits(self, run_only: Sequence[str]) -> Hits:
        """All of them by query and rank; a repeat is an error if the ordering makes it one."""
        if self.repeated and self.ordering.duplicates == "error":
            first = min(self.repeated)
            raise repeat_error(len(self.repeats), self.judged.query_ids[first], self.repeated[first])
        rows = np.array(sorted(self.rows, key=lambda row: (row[0], row[2])), dtype=np.int64).reshape(-1, 5)
        repeats = np.array(sorted(self.repeats), dtype=np.int64).reshape(-1, 2)
        query, doc, rank, tie_first, tie_size = map(np.ascontiguousarray, rows.T)
        repeat_query, repeat_rank = map(np.ascontiguousarray, repeats.T)
        return Hits(
            np.array(self.retrieved, dtype=np.int64),
            np.array(self.answered, dtype=np.bool_),
            np.array(self.top_score, dtype=np.float64),
            query,
            doc,
            rank,
            tie_first,
            tie_size,
            repeat_query,
            repeat_rank,
            run_only_queries=len(run_only),
            run_only_examples=tuple(run_only[:SHOWN_RUN_ONLY]),
        )


def _repeated(ids: Sequence[str]) -> list[int]:
    """The places of the ids that came before."""
    seen: set[str] = set()
    places = []
    for place, doc in enumerate(ids):
        if doc in seen:
            places.append(place)
        seen.add(doc)
    return places
