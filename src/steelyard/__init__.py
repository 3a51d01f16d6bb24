"""Steelyard evaluates retrievers: how good they are, by whose definition, whether a difference is significant,
and where they fail.

Names are loaded when first used, so `import steelyard` costs little.
"""

from __future__ import annotations

from steelyard.lazy import lazy_names
from steelyard.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from steelyard.benchmark import Bench, BenchResult, ResultFolder, bench, load_result
    from steelyard.benchmark.across import BenchAcross, across
    from steelyard.benchmark.history import history
    from steelyard.comparison.across import Across
    from steelyard.comparison.compare import compare, compare_scores
    from steelyard.comparison.history import History
    from steelyard.comparison.lists import ListComparison
    from steelyard.comparison.result import Comparison
    from steelyard.comparison.stages import Stages, stages
    from steelyard.comparison.testing import Statistics
    from steelyard.coverage import Coverage
    from steelyard.datasets import Corpus, Dataset, Queries
    from steelyard.dialects import Dialect, list_dialects
    from steelyard.dialects.explain import Explanation, explain
    from steelyard.dialects.identify import Identification, identify
    from steelyard.dialects.reconcile import Reconciliation, reconcile
    from steelyard.errors import InputError, MeasureError, PackageError, PolicyError, SteelyardError, SteelyardWarning
    from steelyard.evaluation import evaluate
    from steelyard.evidence import Evidence, RollUp
    from steelyard.fusion.fuse import fuse
    from steelyard.fusion.tune import Tuned, tune
    from steelyard.gating import GateResult, gate, save_baseline
    from steelyard.io import convert, list_formats
    from steelyard.judging.agreement import Agreement, agreement
    from steelyard.judging.drafting import questions
    from steelyard.judging.drafts import Drafts
    from steelyard.judging.model import judge
    from steelyard.judging.pool import Pool, pool, sampled_scores
    from steelyard.judging.query_sets import QuerySets
    from steelyard.judgments import Judgments
    from steelyard.measures import Measure, list_measures, parse
    from steelyard.notes import Note
    from steelyard.options import Policies
    from steelyard.qrels import Qrels
    from steelyard.quality.check import Check, check
    from steelyard.quality.effects import CheckFinding
    from steelyard.retrievers import Retriever, RetrieverError, list_retrievers
    from steelyard.run import Run
    from steelyard.scores import Scores

__all__ = ["Across", "Agreement", "Bench", "BenchAcross", "BenchResult", "Check", "CheckFinding", "Comparison"]
__all__ += ["Corpus", "Coverage", "Dataset", "Dialect", "Drafts", "Evidence", "Explanation", "GateResult", "History"]
__all__ += ["Identification", "InputError", "Judgments", "ListComparison", "Measure", "MeasureError", "Note"]
__all__ += ["PackageError", "Policies", "PolicyError", "Pool", "Qrels", "Queries", "QuerySets", "Reconciliation"]
__all__ += ["ResultFolder", "Retriever", "RetrieverError", "RollUp", "Run", "Scores", "Stages", "Statistics"]
__all__ += ["SteelyardError", "SteelyardWarning", "Tuned", "__version__", "across", "agreement", "bench", "check"]
__all__ += ["compare", "compare_scores", "convert", "evaluate", "explain", "fuse", "gate", "history", "identify"]
__all__ += ["judge", "list_dialects", "list_formats", "list_measures", "list_retrievers", "load_result", "parse"]
__all__ += ["pool", "questions", "reconcile", "sampled_scores", "save_baseline", "stages", "tune"]

__getattr__, __dir__, _ = lazy_names(
    __name__,
    {
        "benchmark": ("Bench", "BenchResult", "ResultFolder", "bench", "load_result"),
        "benchmark.across": ("BenchAcross", "across"),
        "benchmark.history": ("history",),
        "comparison.across": ("Across",),
        "comparison.compare": ("compare", "compare_scores"),
        "comparison.history": ("History",),
        "comparison.lists": ("ListComparison",),
        "comparison.result": ("Comparison",),
        "comparison.stages": ("Stages", "stages"),
        "comparison.testing": ("Statistics",),
        "coverage": ("Coverage",),
        "datasets": ("Corpus", "Dataset", "Queries"),
        "dialects": ("Dialect", "list_dialects"),
        "dialects.explain": ("Explanation", "explain"),
        "dialects.identify": ("Identification", "identify"),
        "dialects.reconcile": ("Reconciliation", "reconcile"),
        "errors": ("InputError", "MeasureError", "PackageError", "PolicyError", "SteelyardError", "SteelyardWarning"),
        "evaluation": ("evaluate",),
        "evidence": ("Evidence", "RollUp"),
        "fusion.fuse": ("fuse",),
        "fusion.tune": ("Tuned", "tune"),
        "gating": ("GateResult", "gate", "save_baseline"),
        "io": ("convert", "list_formats"),
        "judging.agreement": ("Agreement", "agreement"),
        "judging.drafting": ("questions",),
        "judging.drafts": ("Drafts",),
        "judging.model": ("judge",),
        "judging.pool": ("Pool", "pool", "sampled_scores"),
        "judging.query_sets": ("QuerySets",),
        "judgments": ("Judgments",),
        "measures": ("Measure", "list_measures", "parse"),
        "notes": ("Note",),
        "options": ("Policies",),
        "qrels": ("Qrels",),
        "quality.check": ("Check", "check"),
        "quality.effects": ("CheckFinding",),
        "retrievers": ("Retriever", "RetrieverError", "list_retrievers"),
        "run": ("Run",),
        "scores": ("Scores",),
    },
    __all__,
)
