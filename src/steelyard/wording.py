"""Numbers in sentences: one query, two queries."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun, and with its verb where that is said too.

    >>> counted(1, "query", "queries"), counted(2000, "document"), counted(1, "row has", "rows have")
    ('1 query', '2,000 documents', '1 row has')
    """
    return f"{count:,} {worded(count, one, many)}"


def worded(count: int, one: str, many: str = "") -> str:
    """The word that goes with a number, without the number; `many` is `one` with an s unless it is said.

    >>> worded(1, "was", "were"), worded(3, "target")
    ('was', 'targets')
    """
    return one if count == 1 else many or f"{one}s"
