"""TREC run lines of one make, read by numpy: bytes are taken eight at a time as words, for all lines at once.

A block is regular when one blank parts its columns, every line ends in the same words (the tag), and
no id is very long. Its fields are never cut out: an id is a few words with everything past its blank
masked away, and scores of one precision (`12.345678`) are compared by their digits, which order as
the numbers do. Anything else in a block is `Irregular`, and is read line by line elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard.alignment.hits import Bools, Floats, Ints, JudgedDocs

Words: TypeAlias = NDArray[np.uint64]
Bytes: TypeAlias = NDArray[np.uint8]
Raw: TypeAlias = Any
"""bytes, or a file mapped into memory: what is sliced into bytes."""

MARGIN = 128
"""Bytes that can be read before and after a block."""

_MOST_PREFIX = 64
_MOST_ID_WORDS = 8
_MOST_PLACES = 7
_MOST_TAIL = 64


def _word(byte: int) -> np.uint64:
    """A word of one byte, eight times."""
    word: np.uint64 = np.uint64(byte * 0x0101010101010101)
    return word


_ONES, _HIGH, _BLANKS, _ZEROS = map(_word, (0x01, 0x80, ord(" "), ord("0")))
_NO_DIGIT = _word(0x10)  # set in blanks and points, once the zeros are taken out, and in no digit
_BELOW_BLANK = _word(0x5F)
_IN_NUMBERS = b" +-.0123456789Ee"
_ABOVE_NINE = _word(0x76)  # added to a digit, leaves the highest bit of its byte clear
_ALL, _NONE = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0)
_1, _4, _7, _8, _16, _32, _52 = map(np.uint64, (1, 4, 7, 8, 16, 32, 52))
_SPREAD, _SALT = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)


def per_line(values: Any, starts: Ints) -> Any:
    """A value per query, given to each of its lines; a single one where they are all the same."""
    return values[0] if np.all(values == values[0]) else np.repeat(values, np.diff(starts))


class Irregular(Exception):  # noqa: N818  (no error: another way of reading takes over)
    """A block that has to be read line by line."""


class Interleaved(Exception):  # noqa: N818
    """A query whose lines do not stand together."""


class _LongerIds(Exception):  # noqa: N818
    """Ids that take more words than were looked at."""


class JudgedKeys:
    """Hash keys of all judged documents, and a small table that tells most other keys apart from them."""

    def __init__(self, queries: Mapping[bytes, int], judged: JudgedDocs) -> None:
        self.queries = queries
        self.id_words = 1  # how many words the ids of the last block took,
        self.one_prefix = True  # and whether its lines had as many bytes before them
        docs = [doc.encode("utf-8", "surrogatepass") for doc in judged.doc_ids]
        keys = np.zeros(len(docs), dtype=np.uint64)
        widths = (np.fromiter(map(len, docs), np.int64, len(docs)) + 7) // 8
        for width in np.unique(widths[widths > 0]).tolist():
            chosen = np.flatnonzero(widths == width)
            text = b"".join(docs[i].ljust(8 * width, b"\0") for i in chosen.tolist())
            keys[chosen] = _id_keys(list(np.frombuffer(text, "<u8").reshape(-1, width).T))
        query = np.repeat(np.arange(len(judged.query_ids)), np.diff(judged.starts))
        keys ^= _query_salt(query)
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]
        # Each query has a piece of the table to itself, so that the lines of a query look at little memory.
        per_query = len(docs) // max(1, len(judged.query_ids))
        self._bits = min(
            16, max(6, per_query.bit_length() + 6), max(6, 24 - len(judged.query_ids).bit_length())
        )
        self._shift = np.uint64(64 - self._bits)
        # The last piece is for queries that nobody judged, whose number is -1.
        self._maybe = np.zeros(len(judged.query_ids) + 1 << self._bits, dtype=np.bool_)
        self._maybe[(query << self._bits) + (keys >> self._shift).view(np.int64)] = True

    def rows_of(self, keys: Words, queries: Any) -> tuple[Ints, Ints]:
        """The rows whose key is that of a judged document, and the number of one that has it.

        `queries` are the numbers of the rows' queries, or one number for all.
        """
        places = (keys >> self._shift).view(np.int64)
        places += queries << self._bits
        rows = np.flatnonzero(self._maybe.take(places, mode="wrap"))
        if not rows.size:
            return rows, rows
        at = np.minimum(np.searchsorted(self._sorted, keys[rows]), self._sorted.size - 1)
        same = np.flatnonzero(self._sorted[at] == keys[rows])
        return rows[same], self._order[at[same]]


def _id_keys(words: Sequence[Words]) -> Words:
    """A hash of ids given as words, zeros after their end; words of nothing but zeros change nothing."""
    key: Words = words[0] * _SPREAD
    for word in words[1:]:
        key = np.where(word != 0, (key ^ (key >> _32) ^ word) * _SPREAD, key)
    return key


def _query_salt(queries: Ints) -> Words:
    """What makes the key of a document that of one query's."""
    salt: Words = (queries.astype(np.uint64) + _1) * _SALT
    return salt


@dataclass(frozen=True)
class Decimals:
    """Scores of one precision as their digits before and after the point: words that order as the scores do."""

    wholes: Words
    fractions: Words
    places: int

    def values(self, rows: slice | Ints) -> Floats:
        """Scores as numbers: they have fewer than 16 digits, so one division rounds once."""
        number = _number(self.wholes[rows]) * np.uint64(10**self.places) + _number(self.fractions[rows])
        values: Floats = number.astype(np.float64) / float(10**self.places)
        return values

    def rises(self) -> Ints:
        """The lines whose score is above that of the line before."""
        wholes, fractions = self.wholes, self.fractions
        level = wholes[1:] == wholes[:-1]
        level &= fractions[1:] > fractions[:-1]
        level |= wholes[1:] > wholes[:-1]
        return np.flatnonzero(level) + 1

    def level(self, rows: Ints, others: Ints) -> Bools:
        """Whether lines have the score of other lines."""
        level: Bools = (self.wholes[rows] == self.wholes[others]) & (
            self.fractions[rows] == self.fractions[others]
        )
        return level


@dataclass(frozen=True)
class Numbers:
    """Scores of any form as the numbers they are."""

    numbers: Floats

    def values(self, rows: slice | Ints) -> Floats:
        """Scores as numbers."""
        return self.numbers[rows]

    def rises(self) -> Ints:
        """The lines whose score is above that of the line before."""
        return np.flatnonzero(self.numbers[1:] > self.numbers[:-1]) + 1

    def level(self, rows: Ints, others: Ints) -> Bools:
        """Whether lines have the score of other lines."""
        level: Bools = self.numbers[rows] == self.numbers[others]
        return level


@dataclass(frozen=True)
class RegularLines:
    """A regular block: its queries with their numbers (-1 where nobody judged one) and the first line of each (and
    one more, the end); and per line where the id starts, the id's key, and the score."""

    raw: Raw
    query_ids: list[bytes]
    query_numbers: Ints
    query_starts: Ints
    id_starts: Ints
    keys: Words
    scores: Decimals | Numbers

    def id_at(self, row: int) -> bytes:
        """The id of a line."""
        start = int(self.id_starts[row])
        text: bytes = self.raw[start : start + 8 * _MOST_ID_WORDS]
        return text[: text.index(b" ")]

    def has_id(self, row: int, doc_id: bytes) -> bool:
        """Whether a line's id is this one."""
        start = int(self.id_starts[row])
        return bool(self.raw[start : start + len(doc_id) + 1] == doc_id + b" ")

    def tied(self, rows: Ints, queries: Ints) -> Bools:
        """Whether lines of queries, which stand in the order of their scores, have that of one beside them."""
        before = np.maximum(rows - 1, self.query_starts[queries])
        after = np.minimum(rows + 1, self.query_starts[queries + 1] - 1)
        alike: Bools = self.scores.level(rows, before) & (rows != before)
        alike |= self.scores.level(rows, after) & (rows != after)
        return alike

    def repeats(self) -> Ints:
        """Lines whose key is that of another line: those whose document is repeated are among them."""
        halves = (self.keys >> _32).astype(np.uint32)
        # Half a key is sorted in half the time; the few that are alike by chance are told apart after.
        again = _repeated(halves)
        if not again.size:
            return np.zeros(0, dtype=np.int64)
        some = np.flatnonzero(np.isin(halves, again))
        return some[np.isin(self.keys[some], _repeated(self.keys[some]))]

    @property
    def row_numbers(self) -> Any:
        """The number of each line's query; a single one where they are all the same."""
        return per_line(self.query_numbers, self.query_starts)


def _repeated(values: Any) -> Any:
    """The values that come more than once."""
    ordered = np.sort(values)
    return ordered[1:][ordered[1:] == ordered[:-1]]


def read_regular(raw: Raw, data: Bytes, begin: int, end: int, judged: JudgedKeys) -> RegularLines:
    """The lines data[begin:end], which end in a line break, with MARGIN bytes to spare on both sides.

    `raw` has the same bytes as `data`.
    """
    text = data[begin:end]
    ends = _line_ends(text)
    ends += begin
    starts = np.empty_like(ends)
    starts[0] = begin
    np.add(ends[:-1], 1, out=starts[1:])
    tail, places = _shape(raw[begin : int(ends[0])])
    score_ends = ends - (len(tail) - 1)
    # First of all that every line ends as one: until then an end may be any odd byte.
    scores, rank_bits = _read_scores(data, score_ends, tail, places)
    queries, id_starts, ids, id_bits = _read_front(raw, data, starts, ends, judged)
    # The blank that ends the id has to be the one that starts the rank, as seen from the end of the line.
    rank_bits += id_bits
    if np.any(rank_bits != (score_ends - id_starts) << 3):
        raise Irregular
    keys = _id_keys(ids)
    numbers = queries.numbers(judged)
    keys ^= queries.per_line(_query_salt(numbers))
    return RegularLines(raw, queries.ids, numbers, queries.starts, id_starts, keys, scores)


def _line_ends(text: Bytes) -> Ints:
    """The places of all bytes that are below the blank or outside ASCII: in a regular block, the line breaks.

    Eight bytes are looked at together. No line is so short that two breaks come among them.
    """
    # Signed, bytes outside ASCII are below the blank too.
    low = text.view(np.int8) < ord(" ")
    whole = len(low) // 8 * 8
    words = low[:whole].view("<u8")
    at = np.flatnonzero(words != 0)
    found = words[at]
    below = found - _1
    if np.any(found & below):
        raise Irregular
    rest = np.flatnonzero(low[whole:]) + whole
    ends: Ints = np.concatenate([(at << 3) + (_ones(below) >> 3), rest])
    return ends


def _shape(line: bytes) -> tuple[bytes, int | None]:
    """What all lines share with the first: the text after the score with the line break, and how many digits follow the point.

    None where the score is not a plain decimal, or too long for its digits to be compared as words.
    """
    words = line.split(b" ")
    tail = line[len(b" ".join(words[:5])) :] + b"\n"
    if len(words) < 5 or len(tail) > _MOST_TAIL:
        raise Irregular
    whole, point, part = words[4].partition(b".")
    plain = (whole + part).isdigit() and len(part) <= _MOST_PLACES and bool(part) == bool(point)
    return tail, len(part) if plain else None


@dataclass(frozen=True)
class _Queries:
    """The queries of a block: the first line of each (and one more, the end), and the bytes before its ids."""

    ids: list[bytes]
    starts: Ints
    prefixes: Ints
    any_middle: bool  # whether the second column is another than Q0

    @classmethod
    def of(
        cls, raw: Raw, starts: Ints, ends: Ints, rows: Sequence[int], prefix: int | None = None
    ) -> _Queries | None:
        """Queries by their first lines, which are `rows`; None where one has another prefix than that given."""
        ids: list[bytes] = []
        seen: set[bytes] = set()
        prefixes: list[int] = []
        any_middle = False
        for row in rows:
            query, middle, size = _opening(raw, int(starts[row]), int(ends[row]))
            if prefix is not None and size != prefix:
                return None
            if query in seen:
                raise Irregular if ids[-1] == query else Interleaved
            seen.add(query)
            any_middle = any_middle or middle not in (b"Q0", b"q0")
            ids.append(query)
            prefixes.append(size)
        return cls(ids, np.array([*rows, len(starts)]), np.array(prefixes), any_middle)

    def per_line(self, values: Any) -> Any:
        """A value per query, given to each of its lines."""
        return per_line(values, self.starts)

    def numbers(self, judged: JudgedKeys) -> Ints:
        return np.fromiter((judged.queries.get(query, -1) for query in self.ids), np.int64, len(self.ids))


def _opening(raw: Raw, start: int, end: int) -> tuple[bytes, bytes, int]:
    """The first two words of a line, and the bytes before its third."""
    words = raw[start:end].split(b" ", 2)
    size = len(words[0]) + len(words[1]) + 2 if len(words) == 3 else 0
    if not all(words) or words[0].startswith(b"#") or not 0 < size <= _MOST_PREFIX:
        raise Irregular
    return words[0], words[1], size


def _first_rows(raw: Raw, starts: Ints, ends: Ints) -> list[int]:
    """The first line of each query, where its lines stand together: the last one is found by halving."""
    row, size, rows = 0, 1, []
    while row < len(starts):
        rows.append(row)
        start = int(starts[row])
        prefix = raw[start : start + _opening(raw, start, int(ends[row]))[2]]
        size = _lines_like(raw, starts, row, prefix, size)
        row += size
    return rows


def _lines_like(raw: Raw, starts: Ints, row: int, prefix: bytes, guess: int) -> int:
    """How many lines from `row` on start with a prefix, where those that do stand together."""

    def like(line: int) -> bool:
        at = int(starts[line])
        return bool(raw[at : at + len(prefix)] == prefix)

    low, high = row + 1, len(starts)
    # Lists of one run are about as long as each other.
    if row + guess < high and like(row + guess - 1) and not like(row + guess):
        return guess
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if like(middle) else (low, middle)
    return low - row


def _windows(data: Bytes, at: Ints, size: int) -> list[Words]:
    """The bytes from each position on, as columns of little-endian words."""
    rows = (
        np.ndarray((len(data) - size + 1,), f"V{size}", data, 0, (1,))[at].view("<u8").reshape(-1, size // 8)
    )
    return [rows[:, i] for i in range(size // 8)]


def first_words(text: bytes, starts: Ints) -> tuple[list[Words], Words] | None:
    """The words that start some lines, with zeros after them, and their keys; None where one is empty or long."""
    padded = np.frombuffer(text + bytes(16), dtype=np.uint8)
    words: list[Words] = []
    ended = np.zeros(len(starts), dtype=np.bool_)
    for word in _windows(padded, starts, 16):
        # Of any byte, whether it is at most a blank.
        blanks = np.invert(((word & ~_HIGH) + _BELOW_BLANK) | word) & _HIGH
        part = word & (((blanks & np.negative(blanks)) >> _7) - _1)
        part[ended] = 0
        ended |= blanks != 0
        words.append(part)
    return (words, _id_keys(words)) if ended.all() and words[0].all() else None


def _read_front(
    raw: Raw, data: Bytes, starts: Ints, ends: Ints, judged: JudgedKeys
) -> tuple[_Queries, Ints, list[Words], Ints]:
    """The queries of a block; where its ids start, the ids, and the bits up to the blank after each."""
    queries = None
    if judged.one_prefix:
        # Where all prefixes are as long, a query starts where a line starts otherwise than the one before.
        prefix = _opening(raw, int(starts[0]), int(ends[0]))[2]
        id_starts = starts + prefix
        words, front = _words_around(data, id_starts, prefix, judged.id_words)
        changes = np.flatnonzero(_differences(words[:front], _prefix_masks(prefix, front))) + 1
        queries = _Queries.of(raw, starts, ends, [0, *changes.tolist()], prefix)
        judged.one_prefix = queries is not None
    if queries is None:
        queries = _Queries.of(raw, starts, ends, _first_rows(raw, starts, ends))
        assert queries is not None
        id_starts = starts + queries.per_line(queries.prefixes)
        words, front = _words_around(data, id_starts, int(queries.prefixes.max()), judged.id_words)
        masks = np.array([_prefix_masks(size, front) for size in queries.prefixes.tolist()])
        differ = _differences(words[:front], [queries.per_line(mask) for mask in masks.T])
        # Within a query every line starts as the line before it does.
        differ[queries.starts[1:-1] - 1] = 0
        if differ.any():
            raise Irregular
    try:
        ids, bits = _cut_ids(words[front:])
    except _LongerIds:
        if judged.id_words == _MOST_ID_WORDS:
            raise Irregular from None
        judged.id_words += 1
        return _read_front(raw, data, starts, ends, judged)
    # Q0 in the third column but not in the second: the columns are shifted.
    if queries.any_middle and any(np.any(ids[0] == int.from_bytes(q0, "little")) for q0 in (b"Q0", b"q0")):
        raise Irregular
    return queries, id_starts, ids, bits


def _words_around(data: Bytes, id_starts: Ints, prefix: int, id_words: int) -> tuple[list[Words], int]:
    """The words before each id that hold its prefix, those of the id, and how many are before it."""
    front = (prefix + 7) // 8
    words = _windows(data, id_starts - 8 * front, 8 * (front + id_words))
    return words[:front] + [*map(np.ascontiguousarray, words[front:])], front


def _prefix_masks(prefix: int, front: int) -> list[np.uint64]:
    """Which bits of the words before an id are those of its prefix: all, the end of one, or none."""
    covered = [min(8, max(0, prefix - 8 * number)) for number in reversed(range(front))]
    return [np.uint64((1 << 64) - (1 << 64 - 8 * size)) for size in covered]


def _differences(words: list[Words], masks: Sequence[Any]) -> Words:
    """Not zero where a line's prefix, as the masks (one each, or one a line) tell it, is not that of the line before."""
    differ = np.zeros(len(words[0]) - 1, dtype=np.uint64)
    for word, mask in zip(words, masks, strict=True):
        changed = word[1:] ^ word[:-1]
        changed &= mask if mask.ndim == 0 else mask[1:]
        differ |= changed
    return differ


def _cut_ids(words: list[Words]) -> tuple[list[Words], Ints]:
    """Ids with zeros after them, and the bits up to the blank that follows each, its own included."""
    ids: list[Words] = []
    bits: Any = 0
    going_on: Words | None = None
    for word in words:
        differ = word ^ _BLANKS
        blanks = differ - _ONES
        blanks &= np.invert(differ, out=differ)
        blanks &= _HIGH  # the lowest bit set is that of the first blank
        first = np.negative(blanks, out=differ)
        first &= blanks
        below = first >> _7
        below -= _1
        size = _ones(below)
        part = np.bitwise_and(below, word, out=below)
        ended = blanks != 0
        all_ended = ended.all()
        # The blank is counted too, where there is one.
        size += 8 if all_ended else 8 * ended
        if going_on is not None:
            part &= going_on
            size &= going_on.view(np.int64)
            ended |= going_on == 0
            all_ended = ended.all()
        ids.append(part)
        bits = bits + size
        if all_ended:
            break
        going_on = np.where(ended, _NONE, _ALL)
    else:
        raise _LongerIds
    if not ids[0].all():
        raise Irregular
    return ids, bits


def _ones(words: Words) -> Ints:
    """How many bits are set, in words with none set above one that is not."""
    if hasattr(np, "bitwise_count"):
        counts: Ints = np.bitwise_count(words).astype(np.int64)
        return counts
    lengths: Ints = ((words >> _1) + _1).astype(np.float64).view(np.int64) >> 52
    lengths -= 1022
    lengths[words == 0] = 0
    return lengths


def _read_scores(
    data: Bytes, score_ends: Ints, tail: bytes, places: int | None
) -> tuple[Decimals | Numbers, Ints]:
    """The scores, and for each the bits from the blank before the rank to the score's end."""
    words = _windows(data, score_ends - 24, 24 + (len(tail) + 7) // 8 * 8)
    _check_tails(words[3:], tail)
    found = None if places is None else _read_decimals(data, score_ends, words[1], words[2], places)
    return found or _read_numbers(data, score_ends, words[:3])


def _check_tails(words: list[Words], tail: bytes) -> None:
    """Every line ends as the first does."""
    for number, word in enumerate(words):
        expected = tail[8 * number : 8 * number + 8]
        differ = word ^ np.uint64(int.from_bytes(expected, "little"))
        if np.any(differ << np.uint64(64 - 8 * len(expected))):
            raise Irregular


def _read_decimals(
    data: Bytes, score_ends: Ints, before: Words, last: Words, places: int
) -> tuple[Decimals, Ints] | None:
    """Scores that all have as many places; None where one has not, or is no plain decimal."""
    point = places + 1 if places else 0
    # The other way round, the last byte is the lowest, and words order as the digits in them do.
    last = _turned(last)
    if places:
        # With its own point taken out, a fraction is below its point's place.
        fractions = last ^ _fraction_zeros(places)
        fractions &= np.uint64((1 << 8 * (places + 1)) - 1)
        if np.any(fractions >> np.uint64(8 * places)):
            return None
        text = _turned(before)
        if places < _MOST_PLACES:
            text <<= np.uint64(56 - 8 * places)
            text |= np.right_shift(last, np.uint64(8 * (places + 1)), out=last)
    else:
        fractions, text = np.zeros_like(last), last
    text ^= _ZEROS
    others = text & _NO_DIGIT
    blank = np.negative(others)
    blank &= others
    if not blank.all():
        return None
    wholes = blank << _4
    others &= np.negative(wholes)
    wholes -= _1
    wholes &= text
    wholes ^= blank  # a blank becomes a zero before the number, any other byte no digit
    rank_blank = np.negative(others)
    rank_blank &= others
    bits = _ones(rank_blank - _1)
    if np.any(rank_blank == blank << _8):
        return None
    if not rank_blank.all():
        cut = np.flatnonzero(rank_blank == 0)
        to_blank = _ones(blank[cut] - _1) + 4
        bits[cut] = _rank_bits(data, score_ends[cut] - point - to_blank // 8) + to_blank + 4
    # Both numbers stand in this text, and what is no digit shows in the highest bits.
    both = rank_blank << _4
    both -= _1
    both &= text
    both ^= blank
    both ^= rank_blank
    if _any_no_digit(both, fractions):
        return None
    # The bits below the mark of a blank are four above a whole number of bytes; the point and its fraction come on top.
    bits += 8 * point - 4
    return Decimals(wholes, fractions, places), bits


def _read_numbers(data: Bytes, score_ends: Ints, words: list[Words]) -> tuple[Numbers, Ints]:
    """Scores of any form, up to 23 bytes long: Python reads them."""
    text = np.empty((len(score_ends), 3), dtype=">u8")
    bits = np.zeros(len(score_ends), dtype=np.int64)
    going_on = np.full(len(score_ends), _ALL)
    for number, word in zip((2, 1, 0), reversed(words), strict=True):
        part = word.byteswap()
        # In ASCII without control bytes, only a blank has no highest bit after this.
        blanks = np.invert(part + _BELOW_BLANK) & _HIGH
        last = blanks & np.negative(blanks)
        ended = blanks != 0
        keep = ((last >> _7) - _1) & going_on
        text[:, number] = (part & keep) | (_BLANKS & ~keep)
        bits += (_ones((last >> _7) - _1) + 8 * ended) & going_on.view(np.int64)
        going_on &= np.where(ended, _NONE, _ALL)
    if going_on.any() or text.tobytes().translate(None, _IN_NUMBERS):
        raise Irregular
    try:
        numbers = text.view("S24").ravel().astype(np.float64)
    except ValueError:
        raise Irregular from None
    if not np.isfinite(numbers).all():
        raise Irregular
    return Numbers(numbers), _rank_bits(data, score_ends - bits // 8) + bits


def _turned(words: Words) -> Words:
    """Words with their bytes the other way round. (byteswap() would not let other threads work.)"""
    return words.view(">u8").astype("<u8")


def _fraction_zeros(places: int) -> np.uint64:
    zeros: np.uint64 = np.uint64(int.from_bytes(b"." + b"0" * places, "big"))
    return zeros


def _any_no_digit(*words: Words) -> bool:
    """Whether a byte of any word is no digit, its zero taken out."""
    for word in words:
        above = word + _ABOVE_NINE
        above |= word
        above &= _HIGH
        if above.any():
            return True
    return False


def _rank_bits(data: Bytes, blanks: Ints) -> Ints:
    """Eight times the bytes from a blank to the one before it, past a rank."""
    (word,) = _windows(data, blanks - 8, 8)
    text = word.byteswap() ^ _ZEROS
    others = text & _NO_DIGIT
    blank = others & np.negative(others)
    if np.any(blank <= _16) or _any_no_digit((text & ((blank << _4) - _1)) ^ blank):
        raise Irregular
    return _ones(blank - _1) - 4


def _number(digits: Words) -> Words:
    """Eight digits, a byte each, as a number: by twos, by fours, and all."""
    twos = (digits & np.uint64(0x00FF00FF00FF00FF)) + (
        digits >> _8 & np.uint64(0x00FF00FF00FF00FF)
    ) * np.uint64(10)
    fours = (twos & np.uint64(0x0000FFFF0000FFFF)) + (
        twos >> _16 & np.uint64(0x0000FFFF0000FFFF)
    ) * np.uint64(100)
    number: Words = (fours & np.uint64(0xFFFFFFFF)) + (fours >> _32) * np.uint64(10000)
    return number
