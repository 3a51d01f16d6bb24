"""The same evaluation on a Spark cluster: frames in, the same numbers out.

The workers put each query's rows together, make alignments of them and measure those, by the same
code as `steelyard.evaluate`; only counts and values travel back. Names are loaded when first used:
a worker says how many threads it wants before it loads what would take them all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard.errors import PackageError

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise
    raise PackageError("steelyard.spark needs the package pyspark: pip install 'steelyard[spark]'") from None

if TYPE_CHECKING:
    from steelyard.spark.evaluation import evaluate as evaluate
    from steelyard.spark.scores import SparkScores as SparkScores

_HOMES = {"SparkScores": "steelyard.spark.scores", "evaluate": "steelyard.spark.evaluation"}

__all__ = ["SparkScores", "evaluate"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'steelyard.spark' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
