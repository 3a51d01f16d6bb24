"""steelyard.spark.evaluate(): qrels and a run as Spark frames in, SparkScores out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.alignment.alignment import align
from steelyard.dialects import Dialect
from steelyard.evaluation import prepare, query_values
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure
from steelyard.options import Policies
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.spark.columns import Columns, qrels_source, run_frame
from steelyard.spark.plan import Plan
from steelyard.spark.scores import SparkScores

if TYPE_CHECKING:
    from typing_extensions import Unpack


def evaluate(
    spark: Any,
    qrels: Any,
    run: Any,
    measures: str | Measure | Sequence[str | Measure] | None = None,
    *,
    dialect: str | Dialect = "steelyard",
    name: str | None = None,
    query_id: str | None = None,
    doc_id: str | None = None,
    grade: str | None = None,
    target: str | None = None,
    score: str | None = None,
    rank: str | None = None,
    **options: Unpack[Policies],
) -> SparkScores:
    """Evaluate a run on a cluster: the same numbers as `steelyard.evaluate`, bit for bit.

    run: a Spark frame with one row per document: query_id, doc_id, and score or rank.
    qrels: a Spark frame with query_id, doc_id, grade and, optionally, target; or whatever `steelyard.evaluate`
    takes (a path, a mapping, Qrels).
    query_id, doc_id, grade, target, score, rank: the names of columns that do not have a usual name.
    The other parameters are those of `steelyard.evaluate`. Mistakes in the call are reported at once; the
    cluster starts to work when a value of the result is needed.
    """
    dialect, chosen, named = prepare(measures, dialect, options)
    columns = Columns(query_id, doc_id, grade, target, score, rank)
    columns.check(qrels, run_frame(run))
    plan = Plan(
        spark=spark,
        judgments=qrels_source(qrels, columns),
        run=columns.run_table(run),
        measures=named,
        dialect=dialect,
        options=chosen,
        own_options=dialect.own_options(named, chosen),
        name=name or "run",
        rank_named=rank is not None,
    )
    _check_measures(plan)
    return SparkScores(plan)


def _check_measures(plan: Plan) -> None:
    """Evaluate one document, so that a measure which this run or these options do not allow fails at once."""
    document: dict[str, list[Any]] = {"query_id": ["q"], "doc_id": ["d"]}
    if "score" in plan.run.names:
        document["score"] = [1.0]
    if "tokens" in plan.run.names:
        document["tokens"] = [1]
    run = Run(pl.DataFrame(document))
    a = align(Qrels({"q": {"d": 1.0}}), run, replace(plan.options.ordering, duplicates="hold")).alignment
    whole = replace(a, judged=replace(a.judged, highest=1.0))
    query_values(plan.options.lists(whole), plan.measures, plan.options)
