"""The native kernel: whether it is available, how its results become Hits, and the reading of a run ahead.

The kernel reads ahead while numpy and the measures are still being imported, so this module imports nothing slow.
`read_ahead` starts with what the command line seems to ask for. `scan_file` takes the result only if the run, the qrels
and the ordering are those that the reading was started with.
"""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from steelyard.alignment.hits import Hits, JudgedDocs, Ordering

PIECE = 1 << 23  # The bytes of a file that a thread reads at a time.

_SMALLEST = 1 << 20  # bytes: a smaller run is not worth a thread
_started: list[tuple[os.stat_result, tuple[int, bool, bool], Any]] = []

_TIES = {"docid-desc": 0, "expected": 0, "docid-asc": 1, "stable": 2}
_TYPES = {"answered": "?", "top_score": "f8"}
_COLUMNS = (
    *("retrieved", "answered", "top_score", "query", "doc", "rank", "tie_first", "tie_size"),
    *("repeat_query", "repeat_rank"),
)


def kernel() -> Any | None:
    """The compiled module; None if it was not built, or STEELYARD_NATIVE is 0."""
    if os.environ.get("STEELYARD_NATIVE") == "0":
        return None
    try:
        from steelyard import _kernel
    except ImportError:
        return None
    return _kernel


def native_available() -> bool:
    """Whether the native kernel is used."""
    return kernel() is not None


def options(ordering: Ordering) -> tuple[int, bool, bool]:
    """An ordering as the kernel takes it."""
    return kernel_options(ordering.ties, ordering.duplicates, ordering.single)


def kernel_options(ties: str = "docid-desc", duplicates: str = "hold", single: bool = False) -> tuple[int, bool, bool]:
    """The same from its parts: the number of the tie rule, whether repeats are removed, whether scores are rounded."""
    return _TIES[ties], duplicates == "collapse", single


def hits_from(result: tuple[Any, ...], judged: JudgedDocs, ordering: Ordering) -> Hits:
    """The kernel's result as Hits, its bytes viewed as arrays; a repeat is an error if the ordering makes it one."""
    from steelyard.alignment.hits import Hits, Repeats

    arrays, run_only, examples, tags, repeated = result
    columns = arrays_from(arrays)
    repeats = Repeats(columns.pop("repeat_query"), columns.pop("repeat_rank"))
    if repeated is not None and ordering.duplicates == "error":
        from steelyard.alignment.ranking import repeat_error

        query, doc = repeated
        raise repeat_error(len(repeats.rank), judged.query_ids[query], doc)
    return Hits(**columns, repeats=repeats, run_only_queries=run_only, run_only_examples=examples, tags=tags)


def arrays_from(columns: tuple[bytes, ...]) -> dict[str, Any]:
    """The arrays of Hits by name, viewed in the kernel's bytes."""
    import numpy as np

    return {name: np.frombuffer(data, _TYPES.get(name, "i8")) for name, data in zip(_COLUMNS, columns, strict=True)}


def read_ahead(qrels: str, run: str, options: tuple[int, bool, bool]) -> None:
    """Start to read a run if the kernel is available, by an ordering as it takes one; the readers report problems."""
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
