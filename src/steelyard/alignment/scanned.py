"""A run that was read elsewhere, as on a cluster: the ranks of its judged documents are known, its lists are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steelyard.alignment.hits import Hits, Ordering
from steelyard.notes import Note
from steelyard.run import Run


@dataclass(frozen=True, eq=False)
class ScannedRun:
    """What `align` needs of a run, without its lists.

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
