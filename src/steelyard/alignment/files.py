"""Hits of a TREC run file, read by the native kernel in one pass: only where the judged documents are is kept.

Clean files only. A file with anything unusual in it (a byte order mark, comments, a score that is not a finite
number, control bytes, too few columns, text that is not UTF-8) is left to the readers of steelyard.io, which read
it or report what is wrong. So is every file where the kernel is not available: steelyard.io reads it into a table,
and steelyard.alignment.frames gives the same hits.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from steelyard.alignment.ahead import read_result
from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.native import PIECE, hits_from, kernel, options

_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
_INTERLEAVED = 2


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
    judged_docs = native.Judged(judged.query_ids, judged.starts, judged.doc_ids)
    with path.open("rb") as file:
        if file.read(4).startswith(_COMPRESSED):
            found = _scan_compressed(path, native, judged_docs, options(ordering), piece)
        elif os.fstat(file.fileno()).st_size == 0:
            return None
        else:
            found = _scan_open(file, native, judged_docs, options(ordering), threads, piece)
    return hits_from(found, judged, ordering) if isinstance(found, tuple) else None


def _scan_open(
    file: IO[bytes],
    native: Any,
    judged_docs: Any,
    order: tuple[int, bool, bool],
    threads: int | None = None,
    piece: int | None = None,
) -> Any:
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    found = read_result(os.fstat(file.fileno()), judged_docs, order)
    if found is None:
        found = native.scan(view, judged_docs, *order, threads or os.cpu_count() or 1, piece or PIECE)
    return native.scan_any_order(view, judged_docs, *order) if found == _INTERLEAVED else found


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
    return _scan_decompressed(path, native, judged_docs, order) if found == _INTERLEAVED else found


def _decompressed_ahead(path: Path, piece: int | None) -> Generator[bytes, None, None]:
    """Decompressed chunks; the next one is decompressed while the current one is read."""
    from concurrent.futures import ThreadPoolExecutor

    from steelyard.io.files import CHUNK, open_chunks

    chunks = open_chunks(path, piece or CHUNK)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, b"")
        while chunk := coming.result():
            coming = pool.submit(next, chunks, b"")
            yield chunk


def _scan_decompressed(path: Path, native: Any, judged_docs: Any, order: tuple[int, bool, bool]) -> Any:
    """A compressed run whose queries interleave is written to a temporary file: it has to be read twice."""
    import tempfile

    from steelyard.io.files import open_chunks

    with tempfile.TemporaryFile() as file:
        for chunk in open_chunks(path):
            file.write(chunk)
        file.flush()
        return _scan_open(file, native, judged_docs, order, threads=1)
