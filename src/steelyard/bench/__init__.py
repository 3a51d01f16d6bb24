"""The bench: runs retrievers over a dataset, times, measures and compares them. Called, it runs one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from steelyard.lazy import CallableModule, loader

if TYPE_CHECKING:
    from steelyard.bench.config import Bench as Bench
    from steelyard.bench.folder import ResultFolder as ResultFolder
    from steelyard.bench.folder import load_result as load_result
    from steelyard.bench.result import BenchResult as BenchResult

_HOMES = {"Bench": "config", "BenchResult": "result", "ResultFolder": "folder", "load_result": "folder"}

__all__ = list(_HOMES)
__getattr__ = loader(__name__, _HOMES)

called = "steelyard.bench.runner:bench"
sys.modules[__name__].__class__ = CallableModule
