"""The same evaluation on a Spark cluster: frames in, the same numbers out.

The workers put each query's rows together, make alignments of them and measure those, by the same
code as `steelyard.evaluate`; only counts and values travel back. Names are loaded when first used:
a worker says how many threads it wants before it loads what would take them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.errors import PackageError
from steelyard.lazy import lazy_names

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "pyspark":
        raise
    raise PackageError("steelyard.spark needs the package pyspark: pip install 'steelyard[spark]'") from None

if TYPE_CHECKING:
    from steelyard.spark.evaluation import evaluate as evaluate
    from steelyard.spark.scores import SparkScores as SparkScores

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"evaluation": ("evaluate",), "scores": ("SparkScores",)}
)
