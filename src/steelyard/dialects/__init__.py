"""Dialects: what the metric names of other tools mean, as data; explain, reconcile and identify use them.

`list_dialects` lists them.
"""

from __future__ import annotations

from steelyard.dialects.dialect import Dialect, dialect, dialects, list_dialects, listed_measures

__all__ = ["Dialect", "dialect", "dialects", "list_dialects", "listed_measures"]
