"""The bench: retrievers run over a dataset, timed, evaluated and compared. `bench` runs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.benchmark.config import Bench
    from steelyard.benchmark.folder import ResultFolder, load_result
    from steelyard.benchmark.result import BenchResult
    from steelyard.benchmark.runner import bench

__all__ = ["Bench", "BenchResult", "ResultFolder", "bench", "load_result"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
