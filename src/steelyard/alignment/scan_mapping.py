"""Reading a run from memory: dicts of scores, or ranked lists of ids or (id, score) pairs.

Nothing is copied or changed. A run with anything unusual in it (ids that are not text, scores that
are not finite numbers, dicts beside lists, other types) is left to the careful constructor of Run.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.alignment.native import hits_from, kernel, options
from steelyard.alignment.ranking import Places, compared, rank_list

_EXACT = 2**53
"""Up to here a whole number and its float compare alike."""


def scan_mapping(
    run: Mapping[str, Mapping[str, float] | Sequence[str] | Sequence[tuple[str, float]]],
    judged: JudgedDocs,
    ordering: Ordering,
) -> Hits | None:
    """Where the judged documents stand in a run in memory, or None where the run is not a clean one.

    Lists keep their own order: nothing ties in them.
    """
    if type(run) is not dict:
        run = dict(run)
    index = dict(zip(judged.query_ids, range(len(judged.query_ids)), strict=True))
    if (native := kernel()) is not None:
        kinds = np.floating, np.integer
        answer = native.scan_mapping(run, index, judged.starts, judged.doc_ids, *kinds, *options(ordering))
        return None if answer is None else hits_from(answer, judged, ordering)
    try:
        return _scan(run, index, judged, ordering)
    except TypeError:
        return None


def _scan(run: dict[str, Any], index: dict[str, int], judged: JudgedDocs, ordering: Ordering) -> Hits | None:
    """A TypeError where an id or a score is of the wrong type."""
    places = Places()
    starts, doc_ids = judged.starts.tolist(), list(judged.doc_ids)
    "".join(run)
    forms = set(map(type, run.values()))
    if not (forms <= {list, tuple} or all(issubclass(form, dict) for form in forms)):
        return None
    place = _place_ranked if forms <= {list, tuple} else _place_scored
    for query_id, listed in run.items():
        query = index.get(query_id)
        if query is None:
            places.run_only[query_id] = None
            found = place(Places(), 0, listed, [], 0, ordering)
        else:
            begin, end = starts[query], starts[query + 1]
            found = place(places, query, listed, doc_ids[begin:end], begin, ordering)
        if not found:
            return None
    return places.to_hits(judged, ordering)


def _place_scored(
    places: Places, query: int, scores: dict[str, float], docs: list[str], first: int, ordering: Ordering
) -> bool:
    """One query's scores: only those of judged documents are looked up, the rest are counted."""
    "".join(scores)
    rising = _rising(scores.values())
    if rising is None:
        return False
    top = rising[-1] if rising else math.nan
    if ordering.single:
        scores = dict(zip(scores, compared(list(scores.values()), ordering), strict=True))
        rising = sorted(scores.values())
    for doc_id in docs:
        score = scores.get(doc_id)
        if score is not None:
            higher = len(rising) - bisect_right(rising, score)
            size = len(rising) - higher - bisect_left(rising, score)
            rank = higher + 1
            if size > 1:
                tied = [other for other, value in scores.items() if value == score]
                if ordering.ties == "stable":
                    rank += tied.index(doc_id)
                elif ordering.ties == "docid-asc":
                    rank += sum(other < doc_id for other in tied)
                else:
                    rank += sum(other > doc_id for other in tied)
            places.hits += query, first + docs.index(doc_id), rank, higher + 1, size
    places.lists += query, len(rising)
    places.top_scores.append(top)
    return True


def _rising(scores: Collection[float]) -> list[float] | None:
    """The scores in rising order; None where one is not a finite number."""
    total = sum(scores)
    if not isinstance(total, float) and type(total) is not int:
        return None
    # One that is not finite makes the sum so.
    if total - total != 0:
        return None
    rising = sorted(scores)
    return rising if not rising or (rising[0] >= -_EXACT and rising[-1] <= _EXACT) else None


def _place_ranked(
    places: Places, query: int, listed: Sequence[Any], docs: list[str], first: int, ordering: Ordering
) -> bool:
    """One query's list, in its own order."""
    ids, top = listed, math.nan
    if listed and not isinstance(listed[0], str):
        if not all(type(pair) in (tuple, list) and len(pair) == 2 for pair in listed):
            return False
        ids = [pair[0] for pair in listed]
        rising = _rising([pair[1] for pair in listed])
        if rising is None:
            return False
        top = rising[-1]
    "".join(ids)
    known = set(ids)
    if len(known) != len(ids):
        wanted = {doc_id: first + at for at, doc_id in enumerate(docs)}
        kept = Ordering("stable", ordering.duplicates)
        rank_list(places, query, ids, range(0, -len(ids), -1), wanted, kept)
        places.top_scores[-1] = top
        return True
    for doc_id in docs:
        if doc_id in known:
            rank = ids.index(doc_id) + 1
            places.hits += query, first + docs.index(doc_id), rank, rank, 1
    places.lists += query, len(ids)
    places.top_scores.append(top)
    return True
