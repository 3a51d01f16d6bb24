"""The bench: retrievers run over a dataset, timed, evaluated and compared. `steelyard.bench()` runs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names, make_callable

if TYPE_CHECKING:
    from steelyard.bench.config import Bench as Bench
    from steelyard.bench.folder import ResultFolder as ResultFolder
    from steelyard.bench.folder import load_result as load_result
    from steelyard.bench.result import BenchResult as BenchResult

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {"config": ("Bench",), "folder": ("ResultFolder", "load_result"), "result": ("BenchResult",)},
)
make_callable(__name__, "steelyard.bench.runner:bench")
