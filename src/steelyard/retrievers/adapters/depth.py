"""Asking a library's retriever for k documents, where how many it gives is part of how it was made."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any


def with_depth(found: Any, names: Sequence[str], k: int) -> Any:
    """A copy that gives k documents; the object itself where it has none of these settings, or has k there.

    >>> class Retriever:
    ...     similarity_top_k = 2
    >>> mine = Retriever()
    >>> with_depth(mine, ["similarity_top_k"], 100).similarity_top_k, mine.similarity_top_k
    (100, 2)
    """
    for name in names:
        held = getattr(found, name, None)
        if isinstance(held, int) and not isinstance(held, bool):
            if held == k:
                return found
            other = copy.copy(found)
            setattr(other, name, k)
            return other
    return found
