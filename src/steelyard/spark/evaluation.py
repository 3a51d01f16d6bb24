"""steelyard.spark.evaluate(): qrels and a run as Spark frames in, SparkScores out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.alignment.alignment import align
from steelyard.dialects import Dialect
from steelyard.errors import InputError
from steelyard.evaluation import prepare, query_values
from steelyard.measures.grammar import Measure
from steelyard.options import OptionKeywords
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.spark.plan import Plan
from steelyard.spark.rows import table_of
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
    **options: Unpack[OptionKeywords],
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
    qrels_columns = {"query_id": query_id, "doc_id": doc_id, "grade": grade, "target": target}
    run_columns = {
        "query_id": query_id,
        "doc_id": doc_id,
        "score": score,
        "rank": rank,
        "own_rank": None,
        "tokens": None,
    }
    judged, listed = qrels if _is_spark_frame(qrels) else Qrels.of(qrels), _run_frame(run)
    _check_columns({**qrels_columns, **run_columns}, judged, listed)
    plan = Plan(
        spark=spark,
        judgments=judged
        if isinstance(judged, Qrels)
        else table_of(judged, _own_columns(qrels_columns, judged), "the qrels"),
        run=table_of(listed, _own_columns(run_columns, listed), "the run"),
        measures=named,
        dialect=dialect,
        options=chosen,
        own_options=dialect.own_options(named, chosen),
        name=name or "run",
        rank_named=rank is not None,
    )
    _check_measures(plan)
    return SparkScores(plan)


def _run_frame(run: Any) -> Any:
    if _is_spark_frame(run):
        return run
    raise InputError(
        f"the run is a {type(run).__name__}; expected a Spark frame. "
        "To evaluate data on this machine, use steelyard.evaluate(qrels, run, measures)."
    )


def _is_spark_frame(frame: Any) -> bool:
    # The frames of Spark and of Spark Connect share no base class in some versions.
    return type(frame).__module__.startswith("pyspark.sql.") and hasattr(frame, "mapInArrow")


def _check_columns(columns: dict[str, str | None], qrels: Any, run: Any) -> None:
    """Raise for a column that neither frame has."""
    judged = ["query_id", "doc_id", "grade", "target"] if isinstance(qrels, Qrels) else qrels.columns
    for role, column in columns.items():
        if column is not None and column not in (*judged, *run.columns):
            known = f"the qrels have {', '.join(judged)}; the run has {', '.join(run.columns)}"
            raise InputError(f"no column {column!r} for {role}: {known}.")


def _own_columns(columns: dict[str, str | None], frame: Any) -> dict[str, str | None]:
    """The named columns that this frame has: the two frames may use different names."""
    return {role: column if column in frame.columns else None for role, column in columns.items()}


def _check_measures(plan: Plan) -> None:
    """Evaluate one document, so that a measure which this run or these options do not allow fails at once."""
    document: dict[str, list[Any]] = {"query_id": ["q"], "doc_id": ["d"]}
    if "score" in plan.run.names:
        document["score"] = [1.0]
    if "tokens" in plan.run.names:
        document["tokens"] = [1]
    import polars as pl

    run = Run(pl.DataFrame(document))
    a = align(Qrels({"q": {"d": 1.0}}), run, replace(plan.options.ordering, duplicates="hold")).alignment
    whole = replace(a, judged=replace(a.judged, highest=1.0))
    query_values(plan.options.lists(whole), plan.measures, plan.options)
