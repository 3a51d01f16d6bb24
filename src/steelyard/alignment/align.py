"""align(): a run, wherever it is, joined with its judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.alignment.alignment import Alignment, join
from steelyard.alignment.hits import Floats, Hits, JudgedDocs, Ordering
from steelyard.alignment.scan_file import scan_file
from steelyard.alignment.scan_mapping import scan_mapping
from steelyard.errors import InputError
from steelyard.formats.names import run_name
from steelyard.judgments import Qrels
from steelyard.runs import Run


@dataclass(frozen=True, eq=False, repr=False)
class Aligned:
    """An alignment, and what is known of the run beside it."""

    alignment: Alignment
    name: str
    run_only_queries: int
    run_only_examples: tuple[str, ...]
    notes: tuple[str, ...]


def align(qrels: Qrels, run: Any, ordering: Ordering, name: str | None = None) -> Aligned:
    """Join a run (a Run, a mapping, a frame, a path) with judgments.

    A clean TREC file and a mapping are read in one pass without being held; whatever that pass does
    not understand goes to the careful readers, which say what is wrong where something is.
    """
    hits: Hits | None = None
    label, notes = name, qrels.notes
    if isinstance(run, (str, Path)):
        path = Path(run)
        hits = scan_file(path, qrels.judged, ordering) if path.is_file() else None
        label = label or (hits.tag or run_name(path) if hits else None)
    elif isinstance(run, Mapping):
        hits = scan_mapping(run, qrels.judged, ordering)
    if hits is None:
        held = Run.of(run, name=name)
        label, notes = held.name, notes + held.notes
        hits = _scan_held(held, qrels.judged, ordering)
    return Aligned(join(qrels, hits), label or "run", hits.run_only_queries, hits.run_only_examples, notes)


def _scan_held(run: Run, judged: JudgedDocs, ordering: Ordering) -> Hits:
    hits = None
    if run.mapping is not None and run.tokens is None and run.texts is None:
        hits = scan_mapping(run.mapping, judged, ordering)
    if hits is None:
        from steelyard.alignment.scan_frame import scan_frame

        hits = scan_frame(run, judged, ordering)
    return hits if run.seconds is None else replace(hits, seconds=_seconds(run, judged))


def _seconds(run: Run, judged: JudgedDocs) -> Floats:
    assert run.seconds is not None
    values = np.array([run.seconds.get(query, np.nan) for query in judged.query_ids], dtype=np.float64)
    if np.any(values < 0):
        raise InputError(f"run {run.name!r}: a query took less than 0 seconds; check `seconds`.")
    return values
