"""The bench: runs retrievers over a dataset, times, measures and compares them. Called, it runs one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from steelyard.callable_module import CallableModule

if TYPE_CHECKING:
    from steelyard.bench.config import Bench as Bench
    from steelyard.bench.folder import ResultFolder as ResultFolder
    from steelyard.bench.folder import load_result as load_result
    from steelyard.bench.result import BenchResult as BenchResult

__all__ = ["Bench", "BenchResult", "ResultFolder", "load_result"]


def called(*arguments: Any, **named: Any) -> BenchResult:
    """Run a bench from its YAML file or a Bench; see `steelyard.bench.runner.bench`."""
    from steelyard.bench.runner import bench

    return bench(*arguments, **named)


def __getattr__(name: str) -> Any:
    if name == "Bench":
        from steelyard.bench.config import Bench

        return Bench
    if name == "BenchResult":
        from steelyard.bench.result import BenchResult

        return BenchResult
    if name in ("ResultFolder", "load_result"):
        from steelyard.bench import folder

        return getattr(folder, name)
    raise AttributeError(f"module 'steelyard.bench' has no attribute {name!r}")


sys.modules[__name__].__class__ = CallableModule
