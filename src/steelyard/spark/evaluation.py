"""steelyard.spark.evaluate(), evaluate_runs() and compare(): qrels and runs as Spark frames in, results out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.alignment.alignment import align
from steelyard.comparison.compare import compare as compare_runs
from steelyard.comparison.result import Comparison
from steelyard.dialects import Dialect
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import InputError
from steelyard.evaluation import judged_qrels, on_scale, prepare, query_values
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure
from steelyard.notes import warn_of
from steelyard.options import Policies, resolve
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.scores import Scores
from steelyard.spark.rows import ColumnNames, Columns, is_spark_frame, qrels_source, run_column, run_frame
from steelyard.spark.scan import RunScan
from steelyard.spark.scores import MOST_JUDGMENTS, SparkScores, driver_qrels

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Keywords(Policies, ColumnNames, total=False):
    """The policies, and the names of columns."""


def evaluate(
    spark: Any,
    qrels: Any,
    run: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    dialect: str | Dialect = "steelyard",
    name: str | None = None,
    **options: Unpack[Keywords],
) -> SparkScores:
    """Evaluate a run on a cluster: the same numbers as `steelyard.evaluate`, bit for bit.

    run: a Spark frame with one row per document: query_id, doc_id, and score or rank.
    qrels: a Spark frame with query_id, doc_id, grade and, optionally, target; or whatever `steelyard.evaluate`
    takes (a path, a mapping, Qrels).
    query_id, doc_id, grade, target, score, rank: the names of columns that do not have a usual name.
    The other parameters are those of `steelyard.evaluate`. Mistakes in the call are reported at once; the
    cluster starts to work when a value of the result is needed.
    """
    columns, policies = Columns.taken(options)
    dialect, chosen, named = prepare(measures, dialect, policies)
    columns.check(qrels, run_frame(run))
    judgments, table = qrels_source(qrels, columns), columns.run_table(run)
    named = on_scale(named, judgments, dialect) if isinstance(judgments, Qrels) else named
    # One document is evaluated, so that a measure which this run or these options do not allow fails at once.
    document = {"query_id": "q", "doc_id": "d", "score": 1.0, "tokens": 1}
    one = Run(pl.DataFrame({role: [value] for role, value in document.items() if role in table.names}))
    a = align(Qrels({"q": {"d": 1.0}}), one, replace(chosen.ordering, duplicates="hold")).alignment
    query_values(chosen.lists(replace(a, judged=replace(a.judged, highest=1.0))), named, chosen)
    return SparkScores(name or "run", named, spark, judgments, table, dialect, chosen)


def evaluate_runs(
    spark: Any,
    qrels: Any,
    runs: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    dialect: str | Dialect = "steelyard",
    run: str | None = None,
    **options: Unpack[Keywords],
) -> dict[str, Scores]:
    """Evaluate several runs on a cluster: the scores of each, as `steelyard.evaluate` gives them, by its name.

    runs: one Spark frame with a column that names the run of each row (`run`, or found by its usual name), which is
    read once for all runs; or a mapping of name to frame. The other parameters are those of `evaluate`.
    """
    columns, policies = Columns.taken(options)
    chosen_dialect, chosen, named = prepare(measures, dialect, policies)
    by_run: dict[str, Scores] = {}
    for scan in _scans(spark, qrels, runs, run, columns):
        by_run |= scan.scores(on_scale(named, scan.qrels, chosen_dialect), chosen_dialect, chosen)
    warn_of({name: scores.notes for name, scores in by_run.items()})
    return by_run


def compare(
    spark: Any,
    qrels: Any,
    runs: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    run: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare runs on a cluster: the leaderboard and the pairs of `steelyard.compare`.

    runs: as in `evaluate_runs`. options: those of `steelyard.compare`, without `predicted`, `pool` and `these_queries`.
    The lists stay on the cluster: the result has no documents to show. Those of the judged queries are read only if a
    significant difference may depend on unjudged documents.
    """
    columns, others = Columns.taken(options)
    refused = [name for name in ("predicted", "pool", "these_queries") if others.get(name)]
    if refused:
        raise InputError(f"{refused[0]} is not available on Spark; use steelyard.compare on this machine.")
    policies = {name: others[name] for name in Policies.__annotations__ if name in others}
    ordering = resolve(dialect_of(others.get("dialect", "steelyard")).policies, policies).ordering
    scans = _scans(spark, qrels, runs, run, columns)
    scanned = {name: scanned_run for scan in scans for name, scanned_run in scan.runs(ordering).items()}
    result = compare_runs(scans[0].qrels, scanned, measures, **others)
    assert isinstance(result, Comparison)
    return result


def _scans(spark: Any, qrels: Any, runs: Any, run: str | None, columns: Columns) -> list[RunScan]:
    source = qrels_source(qrels, columns)
    if is_spark_frame(runs):
        tables = {"": columns.run_table(runs, run=run_column(runs, run))}
    elif isinstance(runs, Mapping) and runs:
        tables = {str(name): columns.run_table(frame) for name, frame in runs.items()}
    else:
        problem = f"the runs are a {type(runs).__name__}; expected a Spark frame with a column that"
        raise InputError(f"{problem} names the run of each row, or a mapping of name to Spark frame.")
    judged = driver_qrels(source)
    if judged is None:
        problem = f"the qrels have more than {MOST_JUDGMENTS:,} judgments;"
        raise InputError(f"{problem} evaluate the runs one by one, with steelyard.spark.evaluate.")
    judged = judged_qrels(judged)
    return [RunScan(spark, judged, table, name) for name, table in tables.items()]
