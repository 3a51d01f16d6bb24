"""A run read ahead: the kernel goes through it while numpy and the measures are still being loaded.

`read_ahead` is given what the command line says. `scan_file` asks for what was found, and takes it
only if the run, the judgments and the ordering are those that the reading was begun with.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

from steelyard.alignment.hits import Ordering
from steelyard.alignment.native import PIECE, kernel, options

_SMALLEST = 1 << 20  # a smaller run is read in no time
_begun: list[tuple[os.stat_result, Ordering, Any]] = []


def read_ahead(qrels: Path, run: Path, ordering: Ordering) -> None:
    """Begin to read a run, where the kernel can. Whatever is wrong is for the readers to find."""
    native = kernel()
    if native is None:
        return
    try:
        with qrels.open("rb") as judgments, run.open("rb") as lines:
            state = os.fstat(lines.fileno())
            if state.st_size < _SMALLEST:
                return
            views = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for file in (judgments, lines)]
    except (OSError, ValueError):
        return
    # The thread that asks for what was found helps to find it: one fewer is needed until then.
    threads = max(1, (os.cpu_count() or 1) - 1)
    _begun[:] = [(state, ordering, native.Ahead(*views, *options(ordering), threads, PIECE))]


def found_ahead(state: os.stat_result, judged: Any, ordering: Ordering) -> tuple[Any, ...] | None:
    """The kernel's answer for a run, if it was read ahead; `judged` is the kernel's own form."""
    if not _begun:
        return None
    known, known_ordering, ahead = _begun.pop()
    if not os.path.samestat(known, state) or known.st_mtime_ns != state.st_mtime_ns:
        return None
    answer: tuple[Any, ...] | None = ahead.answer(judged) if known_ordering == ordering else None
    return answer
