"""Reading a TREC run from a file in one pass: only where the judged documents stand is kept.

Clean files only. A file with anything unusual in it (a byte order mark, comments, a score that is no
finite number, control bytes, too few columns, text that is not UTF-8) is left to the careful readers
of steelyard.io, which understand it or say what is wrong. Columns are parted by blanks and tabs.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from steelyard.alignment.ahead import found_ahead
from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.native import PIECE, hits_from, kernel, options

_MOST_PORTABLE_THREADS = 4  # more would only wait for the interpreter
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
_INTERLEAVED = 2


def scan_file(
    path: Path,
    judged: JudgedDocs,
    ordering: Ordering,
    *,
    threads: int | None = None,
    piece: int | None = None,
) -> Hits | None:
    """Where the judged documents stand in a run file, or None where the file is not a clean TREC run.

    Compressed files (gzip, Zstandard, LZ4, known by their first bytes) are read as they are
    decompressed; one that is cut short is an InputError. `threads` and `piece`, the bytes read at a
    time, change nothing but the time it takes.
    """
    threads = threads or os.cpu_count() or 1
    native = kernel()
    with path.open("rb") as file:
        if file.read(4).startswith(_PACKED):
            return _scan_packed(path, judged, ordering, native, piece)
        if os.fstat(file.fileno()).st_size == 0:
            return None
        return _scan_open(file, judged, ordering, native, threads, piece)


def _scan_open(
    file: IO[bytes], judged: JudgedDocs, ordering: Ordering, native: Any, threads: int, piece: int | None
) -> Hits | None:
    view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if native is None:
        from steelyard.alignment.scan_lines import scan_buffer

        return scan_buffer(view, judged, ordering, min(threads, _MOST_PORTABLE_THREADS), piece)
    wanted = native.Judged(judged.query_ids, judged.starts, judged.doc_ids)
    answer = found_ahead(os.fstat(file.fileno()), wanted, options(ordering))
    if answer is None:
        answer = native.scan(view, wanted, *options(ordering), threads, piece or PIECE)
    if answer == _INTERLEAVED:
        answer = native.scan_any_order(view, wanted, *options(ordering))
    return hits_from(answer, judged, ordering) if isinstance(answer, tuple) else None


def _scan_packed(
    path: Path, judged: JudgedDocs, ordering: Ordering, native: Any, piece: int | None
) -> Hits | None:
    # Closed here and now: the thread that decompresses must not be waited for by whoever collects garbage.
    with closing(_ahead(path, piece)) as chunks:
        if native is None:
            from steelyard.alignment.scan_lines import scan_chunks

            found = scan_chunks(chunks, judged, ordering)
            if found != "interleaved":
                return found
        else:
            answer = _feed(chunks, judged, ordering, native)
            if answer != _INTERLEAVED:
                return hits_from(answer, judged, ordering) if isinstance(answer, tuple) else None
    return _scan_unpacked(path, judged, ordering, native)


def _feed(chunks: Iterable[bytes], judged: JudgedDocs, ordering: Ordering, native: Any) -> Any:
    stream = native.Stream(native.Judged(judged.query_ids, judged.starts, judged.doc_ids), *options(ordering))
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        rest = data[stream.feed(data, False) :]
        if not stream.clean():
            break
    stream.feed(rest, True)
    return stream.finish()


def _ahead(path: Path, piece: int | None) -> Generator[bytes, None, None]:
    """Decompressed chunks, the next one being made while the last one is read."""
    from concurrent.futures import ThreadPoolExecutor

    from steelyard.io.files import CHUNK, open_chunks

    chunks = open_chunks(path, piece or CHUNK)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, b"")
        while chunk := coming.result():
            coming = pool.submit(next, chunks, b"")
            yield chunk


def _scan_unpacked(path: Path, judged: JudgedDocs, ordering: Ordering, native: Any) -> Hits | None:
    """A compressed run whose queries interleave is written out, for it has to be read twice."""
    import tempfile

    from steelyard.io.files import open_chunks

    with tempfile.TemporaryFile() as file:
        for chunk in open_chunks(path):
            file.write(chunk)
        file.flush()
        return _scan_open(file, judged, ordering, native, 1, None)
