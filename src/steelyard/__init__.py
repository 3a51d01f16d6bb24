"""Steelyard weighs retrievers: how good, by whose definition, whether the difference is real, and where they fail.

Names are loaded when first used, so that `import steelyard` costs little more than numpy.
"""

from __future__ import annotations

from importlib import import_module

from steelyard.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from steelyard.bench.config import Bench as Bench
    from steelyard.bench.result import BenchResult as BenchResult
    from steelyard.bench.runner import bench as bench
    from steelyard.comparison.compare import compare as compare
    from steelyard.comparison.compare import compare_scores as compare_scores
    from steelyard.comparison.result import Comparison as Comparison
    from steelyard.datasets import Dataset as Dataset
    from steelyard.dialects.explain import explain as explain
    from steelyard.dialects.identify import identify as identify
    from steelyard.dialects.reconcile import reconcile as reconcile
    from steelyard.errors import SteelyardError as SteelyardError
    from steelyard.evaluation import evaluate as evaluate
    from steelyard.evidence.evidence import Evidence as Evidence
    from steelyard.fusion.fuse import fuse as fuse
    from steelyard.fusion.tune import Tuned as Tuned
    from steelyard.fusion.tune import tune as tune
    from steelyard.measures.grammar import Measure as Measure
    from steelyard.measures.grammar import parse as parse
    from steelyard.qrels import Qrels as Qrels
    from steelyard.run import Run as Run
    from steelyard.scores import Scores as Scores

_PACKAGES = ("bench", "dialects", "gate", "measures", "retrievers")

_HOMES = {
    "Bench": "steelyard.bench.config",
    "BenchResult": "steelyard.bench.result",
    "Dataset": "steelyard.datasets",
    "Comparison": "steelyard.comparison.result",
    "Evidence": "steelyard.evidence.evidence",
    "Measure": "steelyard.measures.grammar",
    "Qrels": "steelyard.qrels",
    "Run": "steelyard.run",
    "Scores": "steelyard.scores",
    "SteelyardError": "steelyard.errors",
    "Tuned": "steelyard.fusion.tune",
    "compare": "steelyard.comparison.compare",
    "compare_scores": "steelyard.comparison.compare",
    "evaluate": "steelyard.evaluation",
    "explain": "steelyard.dialects.explain",
    "fuse": "steelyard.fusion.fuse",
    "identify": "steelyard.dialects.identify",
    "parse": "steelyard.measures.grammar",
    "reconcile": "steelyard.dialects.reconcile",
    "tune": "steelyard.fusion.tune",
}

__all__ = ["__version__", *_HOMES, *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"steelyard.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
