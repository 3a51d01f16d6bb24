"""Several calls per question: what each call of a stage found that the calls before it did not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.lazy import polars as pl
from steelyard.qrels import Qrels
from steelyard.run import Run

CALLS, LIST = "calls", "list"


def calls_of(stage: Any) -> list[Any] | None:
    """The runs of the calls of a stage, given as {"calls": [run, run]}; None if it has none.

    >>> calls_of({"calls": [{"q1": ["a"]}, {"q1": ["b"]}]})
    [{'q1': ['a']}, {'q1': ['b']}]
    >>> calls_of({"q1": ["a"]}) is None
    True
    """
    calls = stage.get(CALLS) if isinstance(stage, Mapping) and set(stage) <= {CALLS, LIST} else None
    if not isinstance(calls, Sequence) or not calls or any(isinstance(each, str) for each in calls):
        return None
    return list(calls)


def joined(runs: Sequence[Run]) -> Run:
    """The lists of several runs one after the other, every document once."""
    tables = [run.table.select("query_id", "doc_id") for run in runs]
    table = pl.concat(tables).unique(maintain_order=True).with_columns(score=pl.lit(None, pl.Float64))
    return Run.from_table(table, ordered=True)


def calls_table(calls: Mapping[str, Sequence[Run]], judged: Qrels, level: float | None) -> pl.DataFrame:
    """One row per stage and call.

    queries: those that made this call. recall: the share of the relevant documents that this call and those before it
    returned, the mean over the queries with a relevant document. added: what this call adds to it. nothing_new: queries
    whose call returned no document that an earlier one did not; no_relevant: no such relevant document.
    """
    grade = pl.col("grade")
    relevant = judged.frame.drop_nulls("doc_id").filter(grade > 0 if level is None else grade >= level)
    relevant = relevant.select("query_id", "doc_id").unique()
    sizes = relevant.group_by("query_id").len("relevant")
    rows: list[dict[str, Any]] = []
    for stage, runs in calls.items():
        tables = [run.table.select("query_id", "doc_id").unique() for run in runs]
        numbered = pl.concat([table.with_columns(call=pl.lit(n)) for n, table in enumerate(tables, start=1)])
        first = numbered.group_by("query_id", "doc_id").agg(pl.col("call").min())
        found = first.join(relevant, on=["query_id", "doc_id"]).group_by("query_id", "call").len("found")
        shares = found.join(sizes, on="query_id").with_columns(share=pl.col("found") / pl.col("relevant"))
        recall = 0.0
        for number, run in enumerate(runs, start=1):
            made = set(run.queries)
            added = math.fsum(shares.filter(pl.col("call") == number)["share"]) / max(1, sizes.height)
            recall += added
            new = set(first.filter(pl.col("call") == number)["query_id"])
            useful = set(found.filter(pl.col("call") == number)["query_id"])
            counts = {"nothing_new": len(made - new), "no_relevant": len(made - useful)}
            row = {"stage": stage, "call": number, "queries": len(made), "recall": recall, "added": added}
            rows.append({**row, **counts})
    schema: dict[str, Any] = {"stage": pl.String, "call": pl.Int64, "queries": pl.Int64}
    schema |= {"recall": pl.Float64, "added": pl.Float64, "nothing_new": pl.Int64, "no_relevant": pl.Int64}
    return pl.DataFrame(rows, schema=schema)
