"""Hits of a TREC run file, read by the native kernel in one pass: only where the judged documents are is kept.

Clean files only. A file with anything unusual in it (a byte order mark, comments, a score that is not a finite
number, control bytes, too few columns, text that is not UTF-8) is left to the readers of steelyard.io, which read
it or report what is wrong. So is every file where the kernel is not available: steelyard.io reads it into a table,
and steelyard.alignment.frames gives the same hits.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from steelyard.alignment.ahead import read_result
from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.io.files import CHUNK, changed, open_chunks, unchanged
from steelyard.native import PIECE, hits_from, kernel, options

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
_JSON = (b"{", b"[")
_INTERLEAVED, _CHANGED = 2, 3  # Outcome in src/kernel/run_lines.hpp


def scan_file(
    path: Path,
    judged: JudgedDocs,
    ordering: Ordering,
    *,
    threads: int | None = None,
    piece: int | None = None,
) -> Hits | None:
    """Where the judged documents are in a run file; None if the file is not a clean TREC run, or without the kernel.

    Compressed files (gzip, Zstandard, LZ4, recognised by their first bytes) are read as they are decompressed; one
    that is cut short is an InputError. `threads` and `piece`, the bytes read at a time, change only the speed.
    """
    native = kernel()
    if native is None:
        return None
    judged_docs = judged.once("texts", lambda: native.Judged(judged.query_ids, judged.starts, judged.doc_ids))
    with path.open("rb") as file, unchanged(file, path):
        start = file.read(4)
        if start.startswith(_JSON):
            return None
        if start.startswith(_COMPRESSED):
            found = _scan_compressed(path, native, judged_docs, options(ordering), piece)
        else:
            found = _scan_open(file, path, native, judged_docs, options(ordering), threads, piece)
    return hits_from(found, judged, ordering) if isinstance(found, tuple) else None


def _scan_open(
    file: IO[bytes],
    path: Path,
    native: Any,
    judged_docs: Any,
    order: tuple[int, bool, bool],
    threads: int | None,
    piece: int | None,
) -> Any:
    state = os.fstat(file.fileno())
    found = read_result(state, judged_docs, order)
    if found is None:
        workers = threads or os.cpu_count() or 1
        found = native.scan(file.fileno(), state.st_size, judged_docs, *order, workers, piece or PIECE)
    if found == _CHANGED:
        raise changed(path)
    return _scan_any_order(path, native, judged_docs, order) if found == _INTERLEAVED else found


def _scan_compressed(
    path: Path, native: Any, judged_docs: Any, order: tuple[int, bool, bool], piece: int | None
) -> Any:
    stream = native.Stream(judged_docs, *order)
    rest = b""
    # Closed here: the thread that decompresses must not be waited for by the garbage collector.
    with closing(_decompressed_ahead(path, piece)) as chunks:
        for chunk in chunks:
            data = rest + chunk
            rest = data[stream.feed(data, False) :]
            if not stream.clean():
                break
    stream.feed(rest, True)
    found = stream.finish()
    return _scan_any_order(path, native, judged_docs, order) if found == _INTERLEAVED else found


def _decompressed_ahead(path: Path, piece: int | None) -> Generator[bytes, None, None]:
    """Decompressed chunks; the next one is decompressed while the current one is read."""
    from concurrent.futures import ThreadPoolExecutor

    chunks = open_chunks(path, piece or CHUNK)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, b"")
        while chunk := coming.result():
            coming = pool.submit(next, chunks, b"")
            yield chunk


def _scan_any_order(path: Path, native: Any, judged_docs: Any, order: tuple[int, bool, bool]) -> Any:
    """A run whose queries interleave is read as a whole: its lines are visited in the order of the queries."""
    data = bytearray()
    for chunk in open_chunks(path):
        data += chunk
    return native.scan_any_order(data, judged_docs, *order)
