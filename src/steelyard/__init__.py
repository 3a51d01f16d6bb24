"""Steelyard evaluates retrievers: how good they are, by whose definition, whether a difference is significant,
and where they fail.

Names are loaded when first used, so `import steelyard` costs little.
"""

from __future__ import annotations

from steelyard.lazy import lazy_names
from steelyard.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from steelyard.bench.across import BenchAcross, across
    from steelyard.bench.config import Bench
    from steelyard.bench.folder import ResultFolder, load_result
    from steelyard.bench.history import history
    from steelyard.bench.result import BenchResult
    from steelyard.bench.runner import bench
    from steelyard.comparison.across import Across
    from steelyard.comparison.compare import compare, compare_scores
    from steelyard.comparison.history import History
    from steelyard.comparison.lists import ListComparison
    from steelyard.comparison.result import Comparison
    from steelyard.coverage import Coverage
    from steelyard.datasets import Corpus, Dataset, Queries
    from steelyard.dialects import Dialect
    from steelyard.dialects import listing as dialects
    from steelyard.dialects.explain import Explanation, explain
    from steelyard.dialects.identify import Identification, identify
    from steelyard.dialects.reconcile import Reconciliation, reconcile
    from steelyard.errors import (
        InputError,
        MeasureError,
        PackageError,
        PolicyError,
        SteelyardError,
        SteelyardWarning,
    )
    from steelyard.evaluation import evaluate
    from steelyard.evidence import Evidence, RollUp
    from steelyard.fusion.fuse import fuse
    from steelyard.fusion.tune import Tuned, tune
    from steelyard.gate.baseline import save_baseline
    from steelyard.gate.checking import check as gate
    from steelyard.gate.result import GateResult
    from steelyard.io import convert, formats
    from steelyard.judging.agreement import Agreement, agreement
    from steelyard.judging.model import judge
    from steelyard.judging.pool import Pool, pool
    from steelyard.judging.sampling import sampled_scores
    from steelyard.judgments import Judgments
    from steelyard.measures import listing as measures
    from steelyard.measures.grammar import Measure, parse
    from steelyard.notes import Note
    from steelyard.qrels import Qrels
    from steelyard.retrievers.base import Retriever, RetrieverError
    from steelyard.retrievers.registry import listing as retrievers
    from steelyard.run import Run
    from steelyard.scores import Scores

__all__ = [
    "Across",
    "Agreement",
    "Bench",
    "BenchAcross",
    "BenchResult",
    "Comparison",
    "Corpus",
    "Coverage",
    "Dataset",
    "Dialect",
    "Evidence",
    "Explanation",
    "GateResult",
    "History",
    "Identification",
    "InputError",
    "Judgments",
    "ListComparison",
    "Measure",
    "MeasureError",
    "Note",
    "PackageError",
    "PolicyError",
    "Pool",
    "Qrels",
    "Queries",
    "Reconciliation",
    "ResultFolder",
    "Retriever",
    "RetrieverError",
    "RollUp",
    "Run",
    "Scores",
    "SteelyardError",
    "SteelyardWarning",
    "Tuned",
    "__version__",
    "across",
    "agreement",
    "bench",
    "compare",
    "compare_scores",
    "convert",
    "dialects",
    "evaluate",
    "explain",
    "formats",
    "fuse",
    "gate",
    "history",
    "identify",
    "judge",
    "load_result",
    "measures",
    "parse",
    "pool",
    "reconcile",
    "retrievers",
    "sampled_scores",
    "save_baseline",
    "tune",
]

# bench, dialects, gate, measures and retrievers are packages that can be called.
__getattr__, __dir__, _ = lazy_names(
    __name__,
    {
        "bench.across": ("BenchAcross", "across"),
        "bench.config": ("Bench",),
        "bench.folder": ("ResultFolder", "load_result"),
        "bench.history": ("history",),
        "bench.result": ("BenchResult",),
        "comparison.across": ("Across",),
        "comparison.compare": ("compare", "compare_scores"),
        "comparison.history": ("History",),
        "comparison.lists": ("ListComparison",),
        "comparison.result": ("Comparison",),
        "coverage": ("Coverage",),
        "datasets": ("Corpus", "Dataset", "Queries"),
        "dialects": ("Dialect",),
        "dialects.explain": ("Explanation", "explain"),
        "dialects.identify": ("Identification", "identify"),
        "dialects.reconcile": ("Reconciliation", "reconcile"),
        "errors": (
            "InputError",
            "MeasureError",
            "PackageError",
            "PolicyError",
            "SteelyardError",
            "SteelyardWarning",
        ),
        "evaluation": ("evaluate",),
        "evidence": ("Evidence", "RollUp"),
        "fusion.fuse": ("fuse",),
        "fusion.tune": ("Tuned", "tune"),
        "gate.baseline": ("save_baseline",),
        "gate.result": ("GateResult",),
        "io": ("convert", "formats"),
        "judging.agreement": ("Agreement", "agreement"),
        "judging.model": ("judge",),
        "judging.pool": ("Pool", "pool"),
        "judging.sampling": ("sampled_scores",),
        "judgments": ("Judgments",),
        "measures.grammar": ("Measure", "parse"),
        "notes": ("Note",),
        "qrels": ("Qrels",),
        "retrievers.base": ("Retriever", "RetrieverError"),
        "run": ("Run",),
        "scores": ("Scores",),
    },
    __all__,
)
