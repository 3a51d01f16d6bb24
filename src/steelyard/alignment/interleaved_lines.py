"""Run files whose queries interleave: their lines, put in the order of their queries.

Eight bytes and a number are held for each line; the lines themselves are copied a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard.alignment.hits import Ints
from steelyard.alignment.regular_lines import Bytes, Raw, first_words


def blocks_by_query(view: Raw, data: Bytes, size: int) -> Iterator[bytes]:
    """Blocks of about `size` bytes that hold whole queries, queries in the order they first come."""
    numbers: dict[bytes, int] = {}
    parts = [_numbered_lines(view[begin:end], begin, numbers) for begin, end in _pieces(view, size)]
    starts, sizes, queries = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(queries, kind="stable")
    starts, sizes, queries = starts[order], sizes[order], queries[order]
    ends = np.cumsum(sizes)
    borders = np.flatnonzero(np.diff(queries, append=-1)) + 1
    begin = 0
    while begin < len(starts):
        # The first border past `size` bytes.
        enough = np.searchsorted(ends, (ends[begin - 1] if begin else 0) + size)
        end = int(borders[min(np.searchsorted(borders, enough + 1), len(borders) - 1)])
        yield _lines(data, starts[begin:end], sizes[begin:end])
        begin = end


def _pieces(view: Raw, size: int) -> Iterator[tuple[int, int]]:
    """The file cut near every `size` bytes, where a line ends."""
    begin, length = 0, len(view)
    while begin < length:
        end = view.find(b"\n", min(begin + size, length)) + 1 or length
        yield begin, end
        begin = end


def _numbered_lines(text: bytes, offset: int, numbers: dict[bytes, int]) -> tuple[Ints, Ints, Ints]:
    """Where the lines of a piece start in the file, how long they are, and the numbers of their queries."""
    if not text.endswith(b"\n"):
        text += b"\n"
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")) + 1
    starts = np.concatenate([[0], ends[:-1]])
    of_line = _numbers_by_key(text, starts, numbers)
    if of_line is None:
        lines = map(bytes.split, text.split(b"\n")[:-1])
        of_line = np.array([numbers.setdefault(line[0] if line else b"", len(numbers)) for line in lines])
    return starts + offset, ends - starts, of_line


def _numbers_by_key(text: bytes, starts: Ints, numbers: dict[bytes, int]) -> Ints | None:
    """The numbers of the lines' queries, where the ids are short and stand at the start; or None."""
    found = first_words(text, starts)
    if found is None:
        return None
    words, keys = found
    _, firsts, which = np.unique(keys, return_index=True, return_inverse=True)
    if not all((word == word[firsts][which]).all() for word in words):
        return None
    of_key = np.empty(len(firsts), dtype=np.int64)
    for at in np.argsort(firsts).tolist():
        start = int(starts[firsts[at]])
        of_key[at] = numbers.setdefault(text[start : start + 16].split()[0], len(numbers))
    return of_key[which]


def _lines(data: Bytes, starts: Ints, sizes: Ints) -> bytes:
    """Lines from here and there, one after the other, each with its break."""
    offsets = np.cumsum(sizes) - sizes
    at = np.repeat(starts - offsets, sizes)
    at += np.arange(len(at))
    lines = data.take(at, mode="clip")
    # Only the last line of the file may lack its break.
    lines[offsets + sizes - 1] = ord("\n")
    return lines.tobytes()
