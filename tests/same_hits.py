"""Whether two readers found the same hits."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.alignment.hits import Hits, Repeats


def same_hits(one: Hits, other: Hits) -> bool:
    """Whether every field is equal, with its type; NaN equals NaN."""
    return all(_same(getattr(one, name), getattr(other, name)) for name in Hits.__dataclass_fields__)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    if isinstance(left, Repeats) and isinstance(right, Repeats):
        return all(_same(getattr(left, name), getattr(right, name)) for name in Repeats.__dataclass_fields__)
    return bool(left == right) and type(left) is type(right)
