"""The bench: retrievers run over a dataset, timed, evaluated and compared. `bench` runs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.benchmark.config import Bench as Bench
    from steelyard.benchmark.folder import ResultFolder as ResultFolder
    from steelyard.benchmark.folder import load_result as load_result
    from steelyard.benchmark.result import BenchResult as BenchResult
    from steelyard.benchmark.runner import bench as bench

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {"config": ("Bench",), "folder": ("ResultFolder", "load_result"), "result": ("BenchResult",), "runner": ("bench",)},
)
