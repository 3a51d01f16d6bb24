"""A run read ahead: the kernel goes through it while numpy and the measures are still being loaded.

`read_ahead` is given what the command line seems to say. `scan_file` asks for what was found, and takes it
only if the run, the judgments and the ordering are those that the reading was begun with. Nothing that
takes long to load is needed here.
"""

from __future__ import annotations

import mmap
import os

from steelyard.native import PIECE, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SMALLEST = 1 << 20  # a smaller run is read in no time
_begun: list[tuple[os.stat_result, tuple[int, bool, bool], Any]] = []


def read_ahead(qrels: str, run: str, options: tuple[int, bool, bool]) -> None:
    """Begin to read a run, where the kernel can, in an ordering as the kernel takes it.

    Whatever is wrong is for the readers to find.
    """
    native = kernel()
    if native is None:
        return
    try:
        with open(qrels, "rb") as judgments, open(run, "rb") as lines:
            state = os.fstat(lines.fileno())
            if state.st_size < _SMALLEST:
                return
            views = [mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for file in (judgments, lines)]
    except (OSError, ValueError):
        return
    # The thread that asks for what was found helps to find it: one fewer is needed until then.
    threads = max(1, (os.cpu_count() or 1) - 1)
    _begun[:] = [(state, options, native.Ahead(*views, *options, threads, PIECE))]


def found_ahead(
    state: os.stat_result, judged: Any, options: tuple[int, bool, bool]
) -> tuple[Any, ...] | None:
    """The kernel's answer for a run, if it was read ahead; `judged` is the kernel's own form."""
    if not _begun:
        return None
    known, known_options, ahead = _begun.pop()
    if not os.path.samestat(known, state) or known.st_mtime_ns != state.st_mtime_ns:
        return None
    answer: tuple[Any, ...] | None = ahead.answer(judged) if known_options == options else None
    return answer
