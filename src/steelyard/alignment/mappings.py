"""Hits of a run in memory, read by the native kernel: dicts of scores, ranked lists of ids or of (id, score) pairs.

Nothing is copied or changed. A run with anything unusual in it (ids that are not text, scores that are not finite
numbers, dicts beside lists, other types) is left to the constructor of Run, which reads it or reports what is wrong. So
is every run where the kernel is not available: its table gives the same hits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.alignment.hits import Hits, JudgedDocs, Ordering
from steelyard.native import hits_from, kernel, options


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
