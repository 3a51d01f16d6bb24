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

    def doc_at(self, lines: RegularLines, row: int, query: int, guess: int) -> int | None:
        """The number of the judged document that stands in a line; most likely it is the one guessed."""
        mine = self._starts[query] <= guess < self._starts[query + 1]
        if mine and lines.has_id(row, _bytes(self._doc_ids[guess])):
            return guess
        return self.docs(query).get(lines.id_at(row))


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
    starts, numbers = lines.query_starts, lines.query_numbers
    rises = lines.scores.rises()
    uneven = set(_query_at(starts, rises[starts[_query_at(starts, rises)] != rises]).tolist())
    repeating = set(_query_at(starts, lines.repeats()).tolist())
    judged = np.flatnonzero(numbers >= 0).tolist()
    found = BlockPlaces(Places(), [lines.query_ids[query] for query in judged])
    places = found.places
    for query in np.flatnonzero(numbers < 0).tolist():
        places.run_only[lines.query_ids[query].decode()] = None
    number_of, bounds, firsts = numbers.tolist(), starts.tolist(), lines.scores.values(starts[:-1]).tolist()
    for query in judged:
        span = slice(bounds[query], bounds[query + 1])
        if query in repeating:
            ids = [lines.id_at(row) for row in range(span.start, span.stop)]
            scores, docs = lines.scores.values(span).tolist(), wanted.docs(number_of[query])
            rank_list(places, number_of[query], ids, scores, docs, ordering)
        else:
            places.lists += number_of[query], span.stop - span.start
            places.top_scores.append(
                float(lines.scores.values(span).max()) if query in uneven else firsts[query]
            )
    rows, docs_met = wanted.keys.rows_of(lines.keys, lines.row_numbers)
    queries = _query_at(starts, rows)
    by_score: dict[int, list[int]] = {}
    odd = uneven if not ordering.single else set(judged)
    for row, query, doc, level in zip(
        rows.tolist(), queries.tolist(), docs_met.tolist(), lines.tied(rows, queries).tolist(), strict=True
    ):
        if query in repeating or number_of[query] < 0:
            continue
        if level or query in odd:
            by_score.setdefault(query, []).append(row)
        elif (doc := wanted.doc_at(lines, row, number_of[query], doc)) is not None:
            rank = row - bounds[query] + 1
            places.hits += number_of[query], doc, rank, rank, 1
    for query, some in by_score.items():
        number, docs = number_of[query], wanted.docs(number_of[query])
        _place_by_score(places, lines, number, bounds[query], bounds[query + 1], some, docs, ordering)
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
