"""Blocks of TREC run lines that hold whole queries: where the judged documents stand in each.

A block of lines of one make is read by numpy (`regular_lines`), any other line by line.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from steelyard.alignment.hits import Ints, JudgedDocs, Ordering
from steelyard.alignment.ranking import Places, rank_list
from steelyard.alignment.regular_lines import (
    MARGIN,
    Bytes,
    Interleaved,
    Irregular,
    JudgedKeys,
    Raw,
    RegularLines,
    read_regular,
)

# Control bytes part columns in some readers and not in others: no clean file has one.
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f]")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_TAB_TO_BLANK = bytes.maketrans(b"\t", b" ")


class OddError(Exception):
    """The text is not that of a clean run."""


class Wanted:
    """The judged documents as bytes. Ids that have no UTF-8 form get bytes that no clean file can hold."""

    def __init__(self, judged: JudgedDocs) -> None:
        self.queries = {_bytes(query): number for number, query in enumerate(judged.query_ids)}
        self.keys = JudgedKeys(self.queries, judged)
        self._starts, self._doc_ids = judged.starts.tolist(), judged.doc_ids

    def docs(self, query: int) -> dict[bytes, int]:
        """The numbers of a query's judged documents."""
        begin, end = self._starts[query], self._starts[query + 1]
        return {_bytes(self._doc_ids[number]): number for number in range(begin, end)}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@dataclass
class BlockPlaces:
    """What a block gave, and the judged queries it held."""

    places: Places
    queries: list[bytes]


def read_span(
    view: Raw, data: Bytes, begin: int, end: int, wanted: Wanted, ordering: Ordering
) -> BlockPlaces:
    """Whole queries of a file, read where they stand if there is room around them."""
    if begin < MARGIN or end > len(data) - MARGIN:
        return read_text(view[begin:end], wanted, ordering)
    try:
        return _place_regular(read_regular(view, data, begin, end, wanted.keys), wanted, ordering)
    except Irregular:
        return read_text(view[begin:end], wanted, ordering)


def read_text(text: bytes, wanted: Wanted, ordering: Ordering) -> BlockPlaces:
    """Whole queries, read all at once if their lines are of one make: tabs count as blanks."""
    plain = text.replace(b"\r\n", b"\n").translate(_TAB_TO_BLANK)
    raw = bytes(MARGIN) + plain + (b"" if plain.endswith(b"\n") else b"\n") + bytes(MARGIN)
    data = np.frombuffer(raw, dtype=np.uint8)
    try:
        return _place_regular(
            read_regular(raw, data, MARGIN, len(raw) - MARGIN, wanted.keys), wanted, ordering
        )
    except Irregular:
        return read_any_block(text, wanted, ordering)


def _place_regular(lines: RegularLines, wanted: Wanted, ordering: Ordering) -> BlockPlaces:
    """Ranks of the judged documents in a regular block."""
    found = BlockPlaces(Places(), [])
    places, starts = found.places, lines.query_starts
    rises = lines.scores.rises()
    uneven = set(_query_at(starts, rises[~np.isin(rises, starts)]).tolist())
    repeating = set(_query_at(starts, lines.repeats()).tolist())
    rows = wanted.keys.rows_of(lines.keys)
    queries = _query_at(starts, rows)
    hits: dict[int, list[int]] = {}
    tied: set[int] = set()
    for row, query, level in zip(
        rows.tolist(), queries.tolist(), lines.tied(rows, queries).tolist(), strict=True
    ):
        hits.setdefault(query, []).append(row)
        if level:
            tied.add(query)
    firsts, bounds = lines.scores.values(starts[:-1]).tolist(), starts.tolist()
    for query, query_id in enumerate(lines.query_ids):
        begin, end = bounds[query], bounds[query + 1]
        number = wanted.queries.get(query_id)
        if number is None:
            places.run_only[query_id.decode()] = None
            continue
        found.queries.append(query_id)
        if query in repeating:
            ids = [lines.id_at(row) for row in range(begin, end)]
            rank_list(
                places,
                number,
                ids,
                lines.scores.values(slice(begin, end)).tolist(),
                wanted.docs(number),
                ordering,
            )
            continue
        places.lists += number, end - begin
        even = query not in uneven
        places.top_scores.append(
            firsts[query] if even else float(lines.scores.values(slice(begin, end)).max())
        )
        if query not in hits:
            continue
        docs = wanted.docs(number)
        if even and query not in tied and not ordering.single:
            for row in hits[query]:
                if (doc := docs.get(lines.id_at(row))) is not None:
                    rank = row - begin + 1
                    places.hits += number, doc, rank, rank, 1
        else:
            _place_by_score(places, lines, number, begin, end, hits[query], docs, ordering)
    return found


def _query_at(starts: Ints, rows: Ints) -> Ints:
    return np.searchsorted(starts, rows, side="right") - 1


def _place_by_score(
    places: Places,
    lines: RegularLines,
    query: int,
    begin: int,
    end: int,
    hits: list[int],
    docs: dict[bytes, int],
    ordering: Ordering,
) -> None:
    """Ranks of some rows of one query, which has no repeats, by counting the scores above and beside theirs."""
    scores = lines.scores.values(slice(begin, end))
    if ordering.single:
        with np.errstate(over="ignore"):
            scores = scores.astype(np.float32)
    rising = np.sort(scores)
    mine = scores[np.array(hits) - begin]
    above = end - begin - np.searchsorted(rising, mine, side="right")
    sizes = end - begin - above - np.searchsorted(rising, mine, side="left")
    groups: dict[float, list[bytes]] = {}
    for row, score, higher, size in zip(hits, mine.tolist(), above.tolist(), sizes.tolist(), strict=True):
        doc_id = lines.id_at(row)
        if (doc := docs.get(doc_id)) is None:
            continue
        rank = higher + 1
        if size > 1 and ordering.ties == "stable":
            rank += int(np.count_nonzero(scores[: row - begin] == score))
        elif size > 1:
            if score not in groups:
                tied = np.flatnonzero(scores == score) + begin
                groups[score] = sorted(map(lines.id_at, tied.tolist()))
            at = bisect_left(groups[score], doc_id)
            rank += at if ordering.ties == "docid-asc" else size - 1 - at
        places.hits += query, doc, rank, higher + 1, size


def read_any_block(block: bytes, wanted: Wanted, ordering: Ordering) -> BlockPlaces:
    """Line by line: blanks and tabs in any number, any decimal, any words after the sixth."""
    lines = block.replace(b"\r\n", b"\n").split(b"\n")
    if not lines[-1]:
        lines.pop()
    _check_bytes(block)
    found = BlockPlaces(Places(), [])
    query, number, seen = b"", -1, set[bytes]()
    ids: list[bytes] = []
    scores: list[float] = []
    for line in lines:
        words = line.split(None, 5)
        if len(words) < 5 or words[0].startswith(b"#") or not _NUMBER.match(words[3]):
            raise OddError
        if words[2] in (b"Q0", b"q0") and words[1] not in (b"Q0", b"q0"):
            raise OddError
        if words[0] != query:
            if words[0] in seen:
                raise Interleaved
            seen.add(words[0])
            _close(found, query, number, ids, scores, wanted, ordering)
            query, ids, scores = words[0], [], []
            number = wanted.queries.get(query, -1)
        ids.append(words[2])
        scores.append(_score(words[4]))
    _close(found, query, number, ids, scores, wanted, ordering)
    return found


def _check_bytes(block: bytes) -> None:
    if _CONTROL.search(block.replace(b"\r\n", b"\n")):
        raise OddError
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            raise OddError from None


def _score(text: bytes) -> float:
    if not _NUMBER.match(text):
        raise OddError
    score = float(text)
    if score - score != 0:
        raise OddError
    return score


def _close(
    found: BlockPlaces,
    query: bytes,
    number: int,
    ids: list[bytes],
    scores: list[float],
    wanted: Wanted,
    ordering: Ordering,
) -> None:
    if not ids:
        return
    if number < 0:
        found.places.run_only[query.decode()] = None
        return
    found.queries.append(query)
    rank_list(found.places, number, ids, scores, wanted.docs(number), ordering)
