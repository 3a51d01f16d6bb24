"""Hits of runs that are not read into a table: TREC files and runs in memory, by the native kernel in one pass; and
runs that were read elsewhere.

The kernel keeps only where the judged documents are, and copies and changes nothing. It reads clean files: one with
anything unusual in it (a byte order mark, comments, a score that is not a finite number, control bytes, too few
columns, text that is not UTF-8, a query whose lines are in several places) is left to the readers of steelyard.io,
which read it or report what is wrong. A run in memory has dicts of scores, ranked lists of ids or of (id, score) pairs;
one with anything unusual (ids that are not text, scores that are not finite numbers, dicts beside lists, other types)
is left to the constructor of Run. So is every run where the kernel is not available: its table gives the same hits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.alignment.ahead import read_result
from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.io.files import CHUNK, changed, open_chunks, unchanged
from steelyard.native import PIECE, hits_from, kernel, options
from steelyard.notes import Note
from steelyard.run import Run

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
    """The result of a compressed file; its next chunk is decompressed while the current one is read."""
    from concurrent.futures import ThreadPoolExecutor

    rest, chunks = b"", open_chunks(path, piece or CHUNK)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, b"")
        while chunk := coming.result():
            coming = pool.submit(next, chunks, b"")
            data = rest + chunk
            rest = data[stream.feed(data, False) :]
            if not stream.clean():
                break
    stream.feed(rest, True)
    return stream.finish()


def scan_mapping(
    run: Mapping[str, Mapping[str, float] | Sequence[str] | Sequence[tuple[str, float]]],
    judged: JudgedDocs,
    ordering: Ordering,
) -> Hits | None:
    """Where the judged documents are in a run in memory; None if the run has anything unusual, or without the kernel.

    Ranked lists keep their order: nothing ties in them.
    """
    if (native := kernel()) is None:
        return None
    strings = judged.once("strings", lambda: native.JudgedStrings(judged.query_ids, judged.starts, judged.doc_ids))
    plain = run if type(run) is dict else dict(run)
    result = native.scan_mapping(plain, strings, np.floating, np.integer, *options(ordering))
    return None if result is None else hits_from(result, judged, ordering)


@dataclass(frozen=True, eq=False)
class ScannedRun:
    """What `align` needs of a run that was read elsewhere, as on a cluster, without its lists.

    hits: the ranks of the judged documents under an ordering; always of the same qrels. documents: the
    retrieved documents of some queries. lists: reads the lists of the judged queries, which may take long; None
    where they cannot be read. ordered: the run has an order of its own, whatever its scores.
    """

    name: str
    ordered: bool
    notes: tuple[Note, ...]
    hits: Callable[[Ordering], Hits]
    documents: Callable[[Sequence[str]], list[str]]
    lists: Callable[[], Run] | None = None
