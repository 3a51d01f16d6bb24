"""Runs and judgments as tables, for the formats that hold tables: one row a document, or one row a query with lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.formats.lists import (
    QRELS_LISTS,
    RUN_LISTS,
    listed_name,
    qrels_of_lists,
    query_ids,
    run_of_lists,
    score_name,
)
from steelyard.formats.names import run_name
from steelyard.formats.roles import check_roles, find_name
from steelyard.formats.source import Source
from steelyard.judgment_words import merged_note
from steelyard.judgments import Qrels

if TYPE_CHECKING:
    import polars as pl

    from steelyard.runs import Run

RUN_ROLES = ("query_id", "doc_id", "score", "rank", "seconds")
QRELS_ROLES = ("query_id", "doc_id", "grade", "target")


def run_of(frame: pl.DataFrame, source: Source, columns: Mapping[str, str]) -> Run:
    """The run a table holds; its columns are found by name, or named."""
    import polars as pl

    from steelyard.runs import Run

    check_roles(columns, RUN_ROLES, "a run")
    listed = _list_column(frame, columns, RUN_LISTS)
    if listed is not None:
        check_roles(columns, ("query_id", "doc_id", "score"), "a run of lists")
        queries, notes = query_ids(frame.to_dict(as_series=False), columns.get("query_id"), frame.height)
        score = score_name(frame.columns, columns.get("score"))
        scores = frame[score].to_list() if score else None
        run = run_of_lists(queries, frame[listed].to_list(), scores, run_name(source.path))
        run.notes = (*notes, *run.notes)
        return run
    named: dict[str, Any] = {role: name for role, name in columns.items() if role != "seconds"}
    timed = find_name(frame.columns, "seconds", columns.get("seconds"), required=False)
    run = Run(frame, name=run_name(source.path), **named)
    if timed is None:
        return run
    query = find_name(frame.columns, "query_id", columns.get("query_id"))
    times = frame.select(pl.col(query or "").cast(pl.String), pl.col(timed).cast(pl.Float64)).drop_nulls()
    return Run(run, seconds=dict(times.iter_rows()))


def qrels_of(frame: pl.DataFrame, columns: Mapping[str, str]) -> Qrels:
    """The judgments a table holds; its columns are found by name, or named."""
    check_roles(columns, QRELS_ROLES, "a table of judgments")
    listed = _list_column(frame, columns, QRELS_LISTS)
    if listed is not None:
        check_roles(columns, ("query_id", "doc_id"), "a table of lists of judgments")
        queries, notes = query_ids(frame.to_dict(as_series=False), columns.get("query_id"), frame.height)
        qrels = qrels_of_lists(queries, frame[listed].to_list())
        qrels.notes = (*notes, *qrels.notes)
        return qrels
    doc = find_name(frame.columns, "doc_id", columns.get("doc_id"))
    qrels = Qrels(frame, **columns)
    if find_name(frame.columns, "grade", columns.get("grade"), required=False) is None:
        qrels.notes += ("no column holds grades: every document listed was taken as relevant, grade 1",)
    rows = frame[doc or ""].drop_nulls().len()
    pairs = len(qrels.targets.doc) if qrels.has_targets else len(qrels)
    if not qrels.has_targets and rows > pairs:
        qrels.notes += (merged_note(rows - pairs),)
    return qrels


def _list_column(frame: pl.DataFrame, columns: Mapping[str, str], known: Sequence[str]) -> str | None:
    """The column that holds each query's documents as a list, where the table is one of lists."""
    import polars as pl

    named = columns.get("doc_id")
    if named is None and find_name(frame.columns, "doc_id", required=False) is None:
        return listed_name(frame.columns, known)
    lists = named in frame.columns and isinstance(frame[named].dtype, (pl.List, pl.Array))
    return named if lists else None


def run_table(run: Run) -> pl.DataFrame:
    """The run's rows: a score column where it has scores, a rank column where the order is its own.

    With scores the ranks are called own_rank, for scores go before ranks. A query answered with nothing is a row that names no document. Token counts and seconds go
    along, where the run has them for all it holds.
    """
    import polars as pl

    frame = run.frame if run.ordered else run.table
    if (
        run.tokens is not None
        and "tokens" not in frame.columns
        and set(frame["doc_id"].to_list()) <= set(run.tokens)
    ):
        frame = frame.with_columns(
            tokens=pl.Series([run.tokens[doc] for doc in frame["doc_id"].to_list()], dtype=pl.Int64)
        )
    wanted = ["query_id", "doc_id"]
    scored = not frame.height or frame["score"].null_count() < frame.height
    if run.ordered:
        wanted.append("own_rank" if scored else "rank")
        frame = frame.rename({"rank": wanted[-1]})
    if scored:
        wanted.append("score")
    frame = frame.select(*wanted, *(["tokens"] if "tokens" in frame.columns else []))
    answered = set(frame["query_id"].to_list())
    empty = [query for query in run.queries if query not in answered]
    if empty:
        rows = pl.DataFrame({"query_id": empty}, schema={"query_id": pl.String})
        frame = pl.concat([frame, rows], how="diagonal")
    if run.seconds is not None:
        seconds = [run.seconds.get(query) for query in frame["query_id"].to_list()]
        frame = frame.with_columns(seconds=pl.Series(seconds, dtype=pl.Float64))
    return frame


def qrels_table(qrels: Qrels) -> pl.DataFrame:
    """The rows of the judgments; a target column where they name targets."""
    return qrels.frame if qrels.has_targets else qrels.frame.drop("target")
