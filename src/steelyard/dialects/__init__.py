"""Dialects: what the metric names of other tools mean, as data; explain, reconcile and identify use them.

`steelyard.dialects()` lists them.
"""

from __future__ import annotations

import sys

from steelyard.dialects.dialect import Dialect, dialect, dialects, listed_measures, listing
from steelyard.lazy import CallableModule

__all__ = ["Dialect", "dialect", "dialects", "listed_measures", "listing"]

called = "steelyard.dialects:listing"
sys.modules[__name__].__class__ = CallableModule
