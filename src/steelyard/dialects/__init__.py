"""Dialects: what the metric names of other tools mean, as data; explain, reconcile and identify use them.

`steelyard.dialects()` lists them.
"""

from __future__ import annotations

from steelyard.dialects.dialect import Dialect, dialect, dialects, listed_measures, listing
from steelyard.lazy import make_callable

__all__ = ["Dialect", "dialect", "dialects", "listed_measures", "listing"]

make_callable(__name__, "steelyard.dialects:listing")
