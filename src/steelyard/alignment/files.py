"""Hits of a TREC run file, read by the native kernel in one pass: only where the judged documents are is kept.

Clean files only. A file with anything unusual in it (a byte order mark, comments, a score that is not a finite
number, control bytes, too few columns, text that is not UTF-8, a query whose lines are in several places) is left to
the readers of steelyard.io, which read it or report what is wrong. So is every file where the kernel is not available:
steelyard.io reads it into a table, and steelyard.alignment.frames gives the same hits.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

from steelyard.alignment.ahead import read_result
from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.io.files import CHUNK, changed, open_chunks, unchanged
from steelyard.native import PIECE, hits_from, kernel, options

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
_JSON = (b"{", b"[")
_CHANGED = 3  # Outcome in src/kernel/run_lines.hpp


def scan_file(
    path: Path, judged: JudgedDocs, ordering: Ordering, *, threads: int | None = None, piece: int | None = None
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
        order = options(ordering)
        if start.startswith(_COMPRESSED):
            result = _scan_compressed(path, native.Stream(judged_docs, *order), piece)
        else:
            state, workers = os.fstat(file.fileno()), threads or os.cpu_count() or 1
            result = read_result(state, judged_docs, order) or native.scan(
                file.fileno(), state.st_size, judged_docs, *order, workers, piece or PIECE
            )
        if result == _CHANGED:
            raise changed(path)
    return hits_from(result, judged, ordering) if isinstance(result, tuple) else None


def _scan_compressed(path: Path, stream: Any, piece: int | None) -> Any:
    rest = b""
    # Closed here: the thread that decompresses must not be waited for by the garbage collector.
    with closing(_decompressed_ahead(path, piece)) as chunks:
        for chunk in chunks:
            data = rest + chunk
            rest = data[stream.feed(data, False) :]
            if not stream.clean():
                break
    stream.feed(rest, True)
    return stream.finish()


def _decompressed_ahead(path: Path, piece: int | None) -> Generator[bytes, None, None]:
    """Decompressed chunks; the next one is decompressed while the current one is read."""
    from concurrent.futures import ThreadPoolExecutor

    chunks = open_chunks(path, piece or CHUNK)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, b"")
        while chunk := coming.result():
            coming = pool.submit(next, chunks, b"")
            yield chunk
