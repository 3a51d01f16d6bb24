"""Whole numbers: what counts as one where a user gives a number of things."""

from __future__ import annotations

from typing import Any


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number of any library's, `least` or more; True and False are none.

    >>> is_whole(3, 1), is_whole(0, 1), is_whole(2.0, 1), is_whole(True, 1)
    (True, False, False, False)
    """
    return not isinstance(value, bool) and hasattr(value, "__index__") and bool(value >= least)
