"""The same evaluation on a Spark cluster: frames in, the same numbers out.

Workers find the judged documents in the lists with the same code as `steelyard.evaluate`; their ranks go to the
driver, which computes the measures. Names are loaded when first used, because a worker has to limit its threads
before polars is imported.
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
    from steelyard.spark.evaluation import SparkScores as SparkScores
    from steelyard.spark.evaluation import compare as compare
    from steelyard.spark.evaluation import evaluate as evaluate
    from steelyard.spark.evaluation import evaluate_runs as evaluate_runs
    from steelyard.spark.lists import fuse as fuse
    from steelyard.spark.lists import pool as pool

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"evaluation": ("SparkScores", "compare", "evaluate", "evaluate_runs"), "lists": ("fuse", "pool")}
)
