"""The portable reader of TREC run lines: blocks of whole queries, each read by itself, on several threads.

A block that is all of one make (one blank between columns, plain decimals) is read by numpy in
`regular_block`; any other line by line. A query whose lines do not stand together takes a second
way: the lines are put in the order of their queries first.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.alignment.ranking import Places, rank_list

Buffer: TypeAlias = Any
"""bytes, or a file mapped into memory: what can be sliced into bytes and searched."""

BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"
# Control bytes part columns in some readers and not in others: no clean file has one.
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f]")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")


class OddError(Exception):
    """The text is not that of a clean run."""


class InterleavedError(Exception):
    """The lines of a query do not stand together."""


@dataclass(frozen=True)
class Wanted:
    """The judged documents as bytes: the number of each query, and of each document of a query."""

    queries: dict[bytes, int]
    judged: JudgedDocs

    @classmethod
    def of(cls, judged: JudgedDocs) -> Wanted:
        """Ids that have no UTF-8 form get bytes that no clean file can hold."""
        return cls({_bytes(query): number for number, query in enumerate(judged.query_ids)}, judged)

    def docs(self, query: int) -> dict[bytes, int]:
        begin, end = self.judged.starts[query : query + 2].tolist()
        return {_bytes(doc): begin + i for i, doc in enumerate(self.judged.doc_ids[begin:end])}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def scan_buffer(
    view: Buffer, judged: JudgedDocs, ordering: Ordering, threads: int = 1, size: int | None = None
) -> Hits | None:
    """Hits of a whole file in memory; None where it is not a clean run."""
    wanted = Wanted.of(judged)
    try:
        _check_start(view)
        try:
            places = _read_blocks(query_blocks(view, size or BLOCK), wanted, ordering, threads)
        except InterleavedError:
            places = _read_blocks(_blocks_by_query(view, size or BLOCK), wanted, ordering, 1)
    except OddError:
        return None
    return places.to_hits(judged, ordering, _tag(view))


def scan_chunks(
    chunks: Iterable[bytes], judged: JudgedDocs, ordering: Ordering
) -> Hits | Literal["interleaved"] | None:
    """The same for a file that comes in chunks: a query's lines are held until the next query starts."""
    wanted, places, head, seen = Wanted.of(judged), Places(), b"", set[bytes]()
    try:
        for block in _whole_queries(chunks):
            if not head:
                _check_start(block)
                head = block[: block.find(b"\n") + 1] or block
            _absorb(places, read_block(block, wanted, ordering), seen)
    except OddError:
        return None
    except InterleavedError:
        return "interleaved"
    return places.to_hits(judged, ordering, _tag(head)) if head else None


@dataclass
class BlockPlaces:
    """What a block gave, and the judged queries it held."""

    places: Places
    queries: list[bytes]


def _absorb(places: Places, block: BlockPlaces, seen: set[bytes]) -> None:
    places.absorb(block.places)
    before = len(seen)
    seen.update(block.queries)
    if len(seen) != before + len(block.queries):
        raise InterleavedError


def _check_start(view: Buffer) -> None:
    if view[:3] == _BOM:
        raise OddError


def _tag(view: Buffer) -> str | None:
    end = view.find(b"\n")
    words = view[: end if end >= 0 else len(view)].split()
    return words[5].decode() if len(words) > 5 else None


def _read_blocks(blocks: Iterator[bytes], wanted: Wanted, ordering: Ordering, threads: int) -> Places:
    """Every block read, by whichever thread is free; the results in the order of the file."""
    results: dict[int, BlockPlaces] = {}
    failures: list[BaseException] = []
    numbered, lock = enumerate(blocks), threading.Lock()

    def work() -> None:
        try:
            while not failures:
                with lock:
                    number, block = next(numbered, (-1, b""))
                if number < 0:
                    return
                results[number] = read_block(block, wanted, ordering)
        except BaseException as error:  # handed to the caller's thread, which raises it
            failures.append(error)

    others = [threading.Thread(target=work) for _ in range(threads - 1)]
    for other in others:
        other.start()
    work()
    for other in others:
        other.join()
    # A file both odd and interleaved is odd.
    for failure in sorted(failures, key=lambda error: isinstance(error, InterleavedError)):
        raise failure
    places, seen = Places(), set[bytes]()
    for number in sorted(results):
        _absorb(places, results[number], seen)
    return places


def query_blocks(view: Buffer, size: int) -> Iterator[bytes]:
    """The file cut near every `size` bytes, where a query ends."""
    begin, length = 0, len(view)
    while begin < length:
        end = _query_end(view, begin + size, length) if length - begin > size else length
        yield view[begin:end]
        begin = end


def _query_end(view: Buffer, at: int, length: int) -> int:
    """The start of a line, past `at`, whose query is another than that of the line before it."""
    line = view.find(b"\n", at) + 1
    if line == 0:
        return length
    query = re.escape(_first_word(view, line, length))
    border = re.compile(rb"\n(?![ \t]*" + query + rb"[ \t])").search(view, line)
    return border.end() if border else length


def _first_word(view: Buffer, line: int, length: int) -> bytes:
    end = view.find(b"\n", line)
    words: list[bytes] = view[line : end if end >= 0 else length].split(None, 1)
    return words[0] if words else b""


def _whole_queries(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks put together and cut again, where the last query of each starts."""
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        cut = _last_query(data, len(rest))
        if cut:
            yield data[:cut]
        rest = data[cut:]
    if rest:
        yield rest


def _last_query(data: bytes, known: int) -> int:
    """Where the last query whose line is whole starts; 0 if it has all the lines. Up to `known` there is one query."""
    end = data.rfind(b"\n") + 1
    if end == 0:
        return 0
    line = data.rfind(b"\n", 0, end - 1) + 1
    query = _first_word(data, line, end)
    while line > 0:
        previous = data.rfind(b"\n", 0, line - 1) + 1
        if _first_word(data, previous, line) != query:
            return line
        if previous < known:
            return 0
        line = previous
    return 0


def _blocks_by_query(view: Buffer, size: int) -> Iterator[bytes]:
    """The lines in the order of their queries, queries as they first come: eight bytes are held for each line."""
    offsets: dict[bytes, array[int]] = {}
    begin, length = 0, len(view)
    while begin < length:
        end = view.find(b"\n", begin) + 1 or length
        words = view[begin:end].split(None, 1)
        offsets.setdefault(words[0] if words else b"", array("q")).append(begin)
        begin = end
    held: list[bytes] = []
    total = 0
    for starts in offsets.values():
        for start in starts:
            end = view.find(b"\n", start) + 1
            held.append(view[start:end] if end else view[start:] + b"\n")
            total += len(held[-1])
        if total >= size:
            yield b"".join(held)
            held, total = [], 0
    if held:
        yield b"".join(held)


def read_block(block: bytes, wanted: Wanted, ordering: Ordering) -> BlockPlaces:
    """Whole queries, lines and all."""
    return read_any_block(block, wanted, ordering)


def read_any_block(block: bytes, wanted: Wanted, ordering: Ordering) -> BlockPlaces:
    """Line by line: blanks and tabs in any number, any decimal, any words after the sixth."""
    lines = block.replace(b"\r\n", b"\n").split(b"\n")
    if not lines[-1]:
        lines.pop()
    _check_bytes(block)
    found = BlockPlaces(Places(), [])
    query, number = b"", -1
    ids: list[bytes] = []
    scores: list[float] = []
    for line in lines:
        words = line.split(None, 5)
        if len(words) < 5 or words[0].startswith(b"#") or not _NUMBER.match(words[3]):
            raise OddError
        if words[2] in (b"Q0", b"q0") and words[1] not in (b"Q0", b"q0"):
            raise OddError
        if words[0] != query:
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
