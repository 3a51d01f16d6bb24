"""Reading a run ahead: the kernel reads it while numpy and the measures are still being imported.

`read_ahead` starts with what the command line seems to ask for. `scan_file` takes the result only if the run, the qrels
and the ordering are those that the reading was started with. This module imports nothing that is slow to import.
"""

from __future__ import annotations

import os
from contextlib import suppress

from steelyard.native import PIECE, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SMALLEST = 1 << 20  # bytes: a smaller run is not worth a thread
_started: list[tuple[os.stat_result, tuple[int, bool, bool], Any]] = []


def read_ahead(qrels: str, run: str, options: tuple[int, bool, bool]) -> None:
    """Start to read a run if the kernel is available. `options` is an ordering as the kernel takes it.

    Problems with the files are left to the readers, which report them.
    """
    native = kernel()
    if native is None:
        return
    # RuntimeError: no thread can be started.
    with suppress(OSError, RuntimeError), open(qrels, "rb") as judged_lines, open(run, "rb") as run_lines:
        state = os.fstat(run_lines.fileno())
        if state.st_size < _SMALLEST:
            return
        judged_size = os.fstat(judged_lines.fileno()).st_size
        # The thread that asks for the result joins in: until then, one thread fewer than there are cores.
        threads = max(1, (os.cpu_count() or 1) - 1)
        files = judged_lines.fileno(), judged_size, run_lines.fileno(), state.st_size
        _started[:] = [(state, options, native.Ahead(*files, *options, threads, PIECE))]


def read_result(state: os.stat_result, judged_docs: Any, options: tuple[int, bool, bool]) -> tuple[Any, ...] | None:
    """The kernel's result for a run that was read ahead, or None. `judged_docs` is the kernel's own form."""
    if not _started:
        return None
    known_state, known_options, ahead = _started.pop()
    if not os.path.samestat(known_state, state) or known_state.st_mtime_ns != state.st_mtime_ns:
        return None
    result: tuple[Any, ...] | None = ahead.answer(judged_docs) if known_options == options else None
    return result
