"""Reading a run from memory: dicts of scores, or ranked lists of ids or (id, score) pairs.

Nothing is copied or changed. A run with anything unusual in it (ids that are not text, scores that
are not finite numbers, dicts beside lists, other types) is left to the careful constructor of Run.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from steelyard.alignment.hits import Floats, Hits, Ints, JudgedDocs, Ordering
from steelyard.alignment.ranking import Places, compared, rank_list, rounded
from steelyard.native import hits_from, kernel, options

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
    if (native := kernel()) is not None:
        kinds, ids = (np.floating, np.integer), (judged.query_ids, judged.starts, judged.doc_ids)
        answer = native.scan_mapping(run, *ids, *kinds, *options(ordering))
        return None if answer is None else hits_from(answer, judged, ordering)
    index = dict(zip(judged.query_ids, range(len(judged.query_ids)), strict=True))
    try:
        return _scan(run, index, judged, ordering)
    except (TypeError, OverflowError):
        return None


def _scan(run: dict[str, Any], index: dict[str, int], judged: JudgedDocs, ordering: Ordering) -> Hits | None:
    """A TypeError where an id or a score is of the wrong type, an OverflowError where one is too large."""
    "".join(run)
    forms = set(map(type, run.values()))
    if forms <= {list, tuple}:
        return _scan_ranked(run, index, judged, ordering)
    if all(issubclass(form, dict) for form in forms):
        return _scan_scored(run, index, judged, ordering)
    return None


def _scan_scored(
    run: dict[str, dict[str, float]], index: dict[str, int], judged: JudgedDocs, ordering: Ordering
) -> Hits | None:
    """Dicts of scores: the judged documents are looked up, and all scores are compared with theirs at once."""
    lists = list(run.values())
    for listed in lists:
        "".join(listed)
    if not _adds_up(sum(map(sum, map(dict.values, lists)))):
        return None
    sizes = np.fromiter(map(len, lists), np.int64, len(lists))
    scores = np.fromiter(chain.from_iterable(map(dict.values, lists)), np.float64, int(sizes.sum()))
    if scores.size and max(scores.max(), -scores.min()) > _EXACT:
        return None
    filled = sizes > 0
    top = np.full(len(lists), np.nan)
    if scores.size:
        top[filled] = np.maximum.reduceat(scores, _begins(sizes[filled]))
    places = Places()
    starts, doc_ids = judged.starts.tolist(), judged.doc_ids
    answered: list[int] = []
    found: list[tuple[int, int, int]] = []  # the list, its query, the judged document,
    mine: list[float] = []  # and its score
    for row, (query_id, listed) in enumerate(run.items()):
        query = index.get(query_id)
        if query is None:
            places.run_only[query_id] = None
            continue
        answered.append(row)
        places.lists += query, len(listed)
        for doc in range(starts[query], starts[query + 1]):
            if (score := listed.get(doc_ids[doc])) is not None:
                found.append((row, query, doc))
                mine.append(score)
    places.top_scores = top[answered].tolist()
    rows = (np.cumsum(filled) - 1)[[row for row, _, _ in found]]
    scores = rounded(scores) if ordering.single else scores
    above, equal = _around(scores, sizes[filled], rows, np.array(compared(mine, ordering)))
    for (row, query, doc), score, higher, size in zip(
        found, mine, above.tolist(), equal.tolist(), strict=True
    ):
        rank = higher + 1
        if size > 1:
            rank += _tied_before(lists[row], doc_ids[doc], score, ordering)
        places.hits += query, doc, rank, higher + 1, size
    return places.to_hits(judged, ordering)


def _begins(sizes: Ints) -> Ints:
    begins: Ints = np.cumsum(sizes) - sizes
    return begins


def _around(scores: Floats, sizes: Ints, rows: Ints, mine: Floats) -> tuple[Ints, Ints]:
    """For some scores of lists, how many of their list's are higher and how many are equal.

    `scores` holds lists of `sizes` above 0 end to end; `rows`, which rises, tells of which list each of `mine` is.
    """
    above, equal = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    number = np.arange(len(rows)) - np.searchsorted(rows, rows)
    begins = _begins(sizes)
    # The first of every list together, then the second of every list that has one, and so on.
    for turn in range(int(number.max(initial=-1)) + 1):
        chosen = np.flatnonzero(number == turn)
        listed, lengths, firsts, beside = scores, sizes, begins, np.full(len(sizes), np.nan)
        beside[rows[chosen]] = mine[chosen]
        of = rows[chosen]
        if 2 * len(chosen) < len(sizes):
            lengths, beside, of = sizes[of], beside[of], np.arange(len(chosen))
            firsts = _begins(lengths)
            listed = scores[np.repeat(begins[rows[chosen]] - firsts, lengths) + np.arange(lengths.sum())]
        beside = np.repeat(beside, lengths)
        above[chosen] = np.add.reduceat(listed > beside, firsts, dtype=np.int64)[of]
        equal[chosen] = np.add.reduceat(listed == beside, firsts, dtype=np.int64)[of]
    return above, equal


def _tied_before(listed: dict[str, float], doc_id: str, score: float, ordering: Ordering) -> int:
    """How many documents of the same score come before one."""
    keys = compared(list(listed.values()), ordering)
    (key,) = compared([score], ordering)
    tied = [other for other, value in zip(listed, keys, strict=True) if value == key]
    if ordering.ties == "stable":
        return tied.index(doc_id)
    return sum(other < doc_id if ordering.ties == "docid-asc" else other > doc_id for other in tied)


def _scan_ranked(
    run: dict[str, Sequence[Any]], index: dict[str, int], judged: JudgedDocs, ordering: Ordering
) -> Hits | None:
    """Lists in their own order: only the judged documents are looked for."""
    places = Places()
    starts, doc_ids = judged.starts.tolist(), list(judged.doc_ids)
    for query_id, listed in run.items():
        query = index.get(query_id)
        if query is None:
            places.run_only[query_id] = None
            found = _place_ranked(Places(), 0, listed, [], 0, ordering)
        else:
            begin, end = starts[query], starts[query + 1]
            found = _place_ranked(places, query, listed, doc_ids[begin:end], begin, ordering)
        if not found:
            return None
    return places.to_hits(judged, ordering)


def _adds_up(total: Any) -> bool:
    """Whether a sum is that of finite numbers, of the kinds that are compared as they are."""
    # One that is not finite makes the sum so.
    return bool((isinstance(total, float) or type(total) is int) and total - total == 0)


def _rising(scores: Collection[float]) -> list[float] | None:
    """The scores in rising order; None where one is not a finite number."""
    if not _adds_up(sum(scores)):
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
