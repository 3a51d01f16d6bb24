"""The native kernel: whether it is available, and how its results become Hits."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from steelyard.alignment.hits import Hits, JudgedDocs, Ordering


PIECE = 1 << 23  # The bytes of a file that a thread reads at a time.

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
    from steelyard.alignment.hits import Hits

    arrays, run_only, examples, tags, repeated = result
    columns = arrays_from(arrays)
    if repeated is not None and ordering.duplicates == "error":
        from steelyard.alignment.ranking import repeat_error

        query, doc = repeated
        raise repeat_error(len(columns["repeat_rank"]), judged.query_ids[query], doc)
    return Hits(**columns, run_only_queries=run_only, run_only_examples=examples, tags=tags)


def arrays_from(columns: tuple[bytes, ...]) -> dict[str, Any]:
    """The arrays of Hits by name, viewed in the kernel's bytes."""
    import numpy as np

    return {name: np.frombuffer(data, _TYPES.get(name, "i8")) for name, data in zip(_COLUMNS, columns, strict=True)}
