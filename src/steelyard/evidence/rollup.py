"""Roll-up: a run of chunks as a run of their documents, parents or pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from steelyard.errors import InputError
from steelyard.evidence.chunks import chunk_table
from steelyard.ids import text_ids
from steelyard.run import Run
from steelyard.wording import counted, worded


@dataclass(frozen=True)
class RollUp:
    """The roll-up of chunks to documents or pages that `evaluate(..., roll_up=...)` takes; see `roll_up`."""

    parents: Any
    how: Literal["best", "sum", "first"] = "best"
    level: str = "doc_id"

    def __call__(self, run: Any) -> Run:
        """The run of parents."""
        return roll_up(run, self.parents, self.how, self.level)


def roll_up(
    run: Any,
    parents: Mapping[str, str] | Callable[[str], str] | Any,
    how: Literal["best", "sum", "first"] = "best",
    level: str = "doc_id",
) -> Run:
    """Every query's documents, ranked by their chunks.

    `parents` is a mapping of chunk id to parent, a function, or the chunks as `Evidence.judge` takes
    them, of which `level` names the column: doc_id, parent, or page (as document#page). how='best'
    scores a document by its best chunk, 'sum' by the sum over its retrieved chunks, 'first' keeps the
    place of its first chunk. Documents with equal scores are in the order of their first chunks.
    Seconds are kept; token counts and texts, which belong to the chunks, are not.

    >>> run = Run({"q": [("a#1", 5.0), ("b#1", 4.0), ("b#2", 3.0)]})
    >>> roll_up(run, lambda chunk: chunk[0]).frame.rows()
    [('q', 'a', 1, 5.0), ('q', 'b', 2, 4.0)]
    >>> roll_up(run, lambda chunk: chunk[0], "sum").frame["doc_id"].to_list()
    ['b', 'a']
    """
    if how not in ("best", "sum", "first"):
        raise InputError(f"how is {how!r}; expected 'best', 'sum' or 'first'.")
    chunk_run = Run.of(run)
    frame = chunk_run.frame
    scored = frame.height > 0 and frame["score"].null_count() == 0
    if how == "sum" and frame.height and not scored:
        raise InputError(f"run {chunk_run.name!r} has no scores to sum up; use how='best' or 'first'.")
    chunks = frame["doc_id"].unique(maintain_order=True).to_list()
    parent_of = _parents(chunks, parents, level)
    placed = frame.with_columns(
        parent=pl.col("doc_id").replace_strict(list(parent_of), list(parent_of.values()), return_dtype=pl.String)
    )
    score = pl.col("score")
    value = {"sum": score.sum(), "best": score.max(), "first": score.first()}[how]
    rolled = placed.group_by("query_id", "parent", maintain_order=True).agg(score=value, first=pl.col("rank").min())
    if scored and how != "first":
        rolled = rolled.sort("score", "first", descending=[True, False], maintain_order=True)
    else:
        rolled = rolled.sort("first", maintain_order=True)
    lists: dict[str, list[Any]] = {query: [] for query in chunk_run.queries}
    for query, parent, score in rolled.select("query_id", "parent", "score").iter_rows():
        lists[query].append((parent, score) if scored else parent)
    return Run(lists, name=chunk_run.name, seconds=chunk_run.seconds)


def _parents(chunks: list[str], parents: Any, level: str) -> dict[str, str]:
    """The parent of every retrieved chunk; a chunk without one is an error."""
    if callable(parents) and not isinstance(parents, Mapping):
        found = {chunk: parents(chunk) for chunk in chunks}
    elif isinstance(parents, Mapping) and all(isinstance(value, str) for value in parents.values()):
        found = {chunk: parents.get(chunk) for chunk in chunks}
    else:
        found = _from_table(chunks, parents, level)
    lost = [repr(chunk) for chunk, parent in found.items() if parent is None or parent == ""]
    if lost:
        raise InputError.of_problems(
            f"{len(lost):,} of {counted(len(chunks), 'chunk')} of the run "
            f"{worded(len(lost), 'has', 'have')} no parent:",
            lost,
            "Name the parent of every chunk; the run may belong to another chunking.",
        )
    return dict(zip(found, text_ids(found.values(), "parent", "the roll-up"), strict=True))


def _from_table(chunks: list[str], parents: Any, level: str) -> dict[str, Any]:
    table = chunk_table(parents)
    if level not in ("doc_id", "parent", "page"):
        raise InputError(f"level is {level!r}; expected 'doc_id', 'parent' or 'page'.")
    rows = table.select("chunk_id", "doc_id", level if level != "doc_id" else "parent").iter_rows()
    known = {chunk: _parent(doc, other, level) for chunk, doc, other in rows}
    return {chunk: known.get(chunk) for chunk in chunks}


def _parent(doc: str, other: str | None, level: str) -> str | None:
    if level == "doc_id":
        return doc
    return other if level == "parent" or other is None else f"{doc}#{other}"
