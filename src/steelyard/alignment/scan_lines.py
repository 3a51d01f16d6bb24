"""The portable reader of TREC runs: the text is cut into blocks of whole queries, read on several threads.

A query whose lines do not stand together takes a second way: the lines are put in the order of
their queries first.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np

from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.alignment.interleaved_lines import blocks_by_query
from steelyard.alignment.line_blocks import BlockPlaces, OddError, Wanted, read_span, read_text
from steelyard.alignment.ranking import Places
from steelyard.alignment.regular_lines import Bytes, Interleaved, Raw

BLOCK = 1 << 21
_BOM = b"\xef\xbb\xbf"


def scan_buffer(
    view: Raw, judged: JudgedDocs, ordering: Ordering, threads: int = 1, size: int | None = None
) -> Hits | None:
    """Hits of a whole file in memory; None where it is not a clean run."""
    wanted, data = Wanted(judged), np.frombuffer(view, dtype=np.uint8)
    try:
        _check_start(view)
        try:
            places = _read_blocks(view, data, size or BLOCK, wanted, ordering, threads)
        except Interleaved:
            places, seen = Places(), set[bytes]()
            for block in blocks_by_query(view, data, size or BLOCK):
                _absorb(places, read_text(block, wanted, ordering), seen)
    except OddError:
        return None
    return places.to_hits(judged, ordering, _tag(view))


def scan_chunks(
    chunks: Iterable[bytes], judged: JudgedDocs, ordering: Ordering
) -> Hits | Literal["interleaved"] | None:
    """The same for a file that comes in chunks: a query's lines are held until the next query starts."""
    wanted, places, head, seen = Wanted(judged), Places(), b"", set[bytes]()
    try:
        for block in _whole_queries(chunks):
            if not head:
                _check_start(block)
                head = block[: block.find(b"\n") + 1] or block
            _absorb(places, read_text(block, wanted, ordering), seen)
    except OddError:
        return None
    except Interleaved:
        return "interleaved"
    return places.to_hits(judged, ordering, _tag(head)) if head else None


def _absorb(places: Places, block: BlockPlaces, seen: set[bytes]) -> None:
    places.absorb(block.places)
    before = len(seen)
    seen.update(block.queries)
    if len(seen) != before + len(block.queries):
        raise Interleaved


def _check_start(view: Raw) -> None:
    if view[:3] == _BOM:
        raise OddError


def _tag(view: Raw) -> str | None:
    end = view.find(b"\n")
    words = view[: end if end >= 0 else len(view)].split()
    return words[5].decode() if len(words) > 5 else None


def _read_blocks(
    view: Raw, data: Bytes, size: int, wanted: Wanted, ordering: Ordering, threads: int
) -> Places:
    """Every block read, by whichever thread is free; the results in the order of the file."""
    # Once it has freed a block of this size, the C library keeps smaller ones for the next array of their kind.
    np.empty(1 << 24, dtype=np.uint8)
    results: dict[int, BlockPlaces] = {}
    failures: list[BaseException] = []
    spans, lock = enumerate(query_spans(view, size)), threading.Lock()

    def work() -> None:
        try:
            while not failures:
                with lock:
                    number, (begin, end) = next(spans, (-1, (0, 0)))
                if number < 0:
                    return
                results[number] = read_span(view, data, begin, end, wanted, ordering)
        except BaseException as error:  # raised again by the caller's thread
            failures.append(error)

    others = [threading.Thread(target=work) for _ in range(threads - 1)]
    for other in others:
        other.start()
    work()
    for other in others:
        other.join()
    # A file both odd and interleaved is odd.
    for failure in sorted(failures, key=lambda error: isinstance(error, Interleaved)):
        raise failure
    places, seen = Places(), set[bytes]()
    for number in sorted(results):
        _absorb(places, results[number], seen)
    return places


def query_spans(view: Raw, size: int) -> Iterator[tuple[int, int]]:
    """The file cut near every `size` bytes, where a query ends."""
    begin, length = 0, len(view)
    while begin < length:
        end = _query_end(view, begin + size, length) if length - begin > size else length
        yield begin, end
        begin = end


def _query_end(view: Raw, at: int, length: int) -> int:
    """The start of a line, past `at`, whose query is another than that of the line before it."""
    line = view.find(b"\n", at) + 1
    if line == 0:
        return length
    query = re.escape(_first_word(view, line, length))
    border = re.compile(rb"\n(?![ \t]*" + query + rb"[ \t])").search(view, line)
    return border.end() if border else length


def _first_word(view: Raw, line: int, length: int) -> bytes:
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
