"""Chunks as one table, from dicts, frames or a corpus, with every value checked; and runs of chunks rolled up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from steelyard.errors import InputError, did_you_mean
from steelyard.evidence.conditions import MOST, one_line
from steelyard.frames import as_polars, check_single
from steelyard.ids import kind_of, text_ids
from steelyard.lazy import looked_up
from steelyard.run import Run
from steelyard.wording import counted, worded

_NAMES = {
    "chunk_id": ("chunk_id", "chunk", "_id", "id"),
    "doc_id": ("doc_id", "document_id", "docno", "source_id"),
    "start": ("start", "start_index", "start_char"),
    "end": ("end", "end_index", "end_char"),
    "text": ("text", "contents", "content", "body"),
    "page": ("page", "page_number"),
    "parent": ("parent", "parent_id"),
}

Parent = str | Callable[[str], str | None] | re.Pattern[str]
"""The parents of chunks: a column, a function of the chunk id, or a pattern whose first group is the parent."""


def chunk_table(chunks: Any, parent: Parent | None = None, documents: Mapping[str, str] | None = None) -> pl.DataFrame:
    """The chunks as a frame: chunk_id, doc_id, start, end, text, page, parent; null where unknown.

    `chunks` is a list of dicts (or of chunking's Chunk), a frame, or a mapping of chunk id to text or to a
    dict. Without a chunk_id, the doc_id identifies the chunk; without a doc_id, a chunk is its own
    document. A chunk without start and end that is alone in its document is the whole document.
    With `documents` every chunk's text is compared with theirs.

    >>> chunk_table({"d1": "One text."}).row(0, named=True)["end"]
    9
    """
    try:
        frame = _frame_of(chunks)
    except UnicodeEncodeError as error:
        text = one_line(str(error.object))
        raise InputError(f"{text!r} of the chunks has half of a character (a lone surrogate).") from None
    if not frame.height:
        raise InputError("there are no chunks; expected at least one.")
    columns = {role: next((name for name in names if name in frame.columns), None) for role, names in _NAMES.items()}
    check_single(frame.columns, *columns.values())
    if columns["chunk_id"] is None and columns["doc_id"] is None:
        problem = f"the chunks have the columns {', '.join(frame.columns)}; expected chunk_id (or doc_id),"
        raise InputError(f"{problem} and doc_id, start, end, text, page or parent as the evidence needs them.")
    ids = columns["chunk_id"] or columns["doc_id"]
    table = pl.DataFrame(
        {
            "chunk_id": _ids(frame, ids, "chunk_id"),
            "doc_id": _ids(frame, columns["doc_id"] or ids, "doc_id"),
            **{role: _values(frame, columns[role], role) for role in ("start", "end", "text", "page")},
        }
    )
    twice = table["chunk_id"].filter(table["chunk_id"].is_duplicated()).unique(maintain_order=True).to_list()
    advice = "Give every chunk its own id; the document of a chunk is its doc_id."
    shown = list(map(repr, twice))
    InputError.refuse(shown, "chunk id occurs more than once", "chunk ids occur more than once", advice)
    table = table.with_columns(parent=_parents(table, frame, parent or columns["parent"]))
    _check_offsets(table, documents)
    # A chunk without offsets that is alone in its document is the whole document.
    alone = pl.col("start").is_null() & pl.col("doc_id").is_unique()
    length = pl.coalesce(pl.col("text").str.len_chars().cast(pl.Int64), pl.lit(np.iinfo(np.int32).max, pl.Int64))
    return table.with_columns(
        start=pl.when(alone).then(pl.lit(0, pl.Int64)).otherwise(pl.col("start")),
        end=pl.when(alone).then(length).otherwise(pl.col("end")),
    )


def overlapping_chunks(table: pl.DataFrame) -> int:
    """How many chunks start before the end of an earlier chunk of their document."""
    placed = table.select("doc_id", "start", "end").drop_nulls().sort("doc_id", "start", "end")
    before = placed.select(pl.col("end").cum_max().shift(1).over("doc_id"))["end"]
    return int((placed["start"] < before).sum())


def _frame_of(chunks: Any) -> pl.DataFrame:
    if isinstance(chunks, (str, Path)):
        chunks = looked_up("steelyard.io.evidence:read_chunks")(chunks)
    if isinstance(chunks, Mapping):
        ids = text_ids(chunks, "chunk id", "the chunks", unique=True)
        values = list(chunks.values())
        if all(isinstance(value, str) for value in values):
            return pl.DataFrame({"chunk_id": ids, "text": values}, schema={"chunk_id": pl.String, "text": pl.String})
        chunks = [
            {"chunk_id": chunk, **value} if isinstance(value, Mapping) else value
            for chunk, value in zip(ids, values, strict=True)
        ]
    is_frame = hasattr(chunks, "columns") or hasattr(chunks, "collect")
    if isinstance(chunks, Iterable) and not isinstance(chunks, (str, bytes)) and not is_frame:
        rows = [vars(row) if is_dataclass(row) else row for row in chunks]
        bad = next((row for row in rows if not isinstance(row, Mapping)), None)
        if bad is not None:
            raise InputError(f"a chunk is {kind_of(bad)}; expected a dict with chunk_id, doc_id, start, end and text.")
        names = dict.fromkeys(str(name) for row in rows for name in row)
        used = [name for name in names if any(name in aliases for aliases in _NAMES.values())]
        return pl.DataFrame({name: pl.Series([row.get(name) for row in rows], strict=False) for name in used or names})
    return as_polars(chunks)


def _ids(frame: pl.DataFrame, column: str | None, role: str) -> pl.Series:
    series = frame[str(column)]
    rows = [f"row {row + 1}" for row in series.is_null().arg_true().to_list()]
    InputError.refuse(rows, f"chunk has no {role}", f"chunks have no {role}", "Name them.")
    if not (series.dtype.is_integer() or series.dtype in (pl.String, pl.Categorical, pl.Enum)):
        raise InputError(f"column {column!r} ({role}) holds {series.dtype}; expected text or whole numbers.")
    ids: pl.Series = series.cast(pl.String)
    return ids


def _values(frame: pl.DataFrame, column: str | None, role: str) -> pl.Series:
    """The values of a role: whole numbers, of a text or a page text; null if there is no column."""
    if column is None:
        return pl.Series([None] * frame.height, dtype=pl.String if role in ("text", "page") else pl.Int64)
    series = frame[column]
    if role == "text" and series.dtype not in (pl.String, pl.Null):
        raise InputError(f"column {column!r} of the chunks holds {series.dtype}; expected text.")
    if role in ("text", "page"):
        # Whole numbers in a float column (as in pandas, where values are missing) have no point.
        series = series.fill_nan(None).cast(pl.Int64) if series.dtype.is_float() else series
        texts: pl.Series = series.cast(pl.String)
        return texts
    wrong = InputError(f"column {column!r} ({role}) of the chunks holds {series.dtype} that is not whole numbers.")
    if series.dtype.is_nested():
        raise wrong
    try:
        numbers: pl.Series = series.cast(pl.Int64, strict=True)
    except pl.exceptions.PolarsError:
        raise wrong from None
    if series.dtype.is_float() and not (numbers == series).fill_null(True).all():
        raise InputError(f"column {column!r} ({role}) of the chunks holds fractions; expected whole numbers.")
    return numbers


def _parents(table: pl.DataFrame, frame: pl.DataFrame, rule: Parent | None) -> pl.Series:
    """The parent of every chunk: by the rule, or its document."""
    if rule is None:
        return table["doc_id"].alias("parent")
    ids = table["chunk_id"].to_list()
    if isinstance(rule, str):
        if rule not in frame.columns:
            problem = f"parent names the column {rule!r}, and the chunks have {', '.join(frame.columns)}"
            raise InputError(f"{problem}.{did_you_mean(rule, frame.columns)}")
        parents = frame[rule].cast(pl.String).to_list()
    elif isinstance(rule, re.Pattern):
        parents = [match[1 if rule.groups else 0] if (match := rule.search(chunk)) else None for chunk in ids]
    else:
        parents = [rule(chunk) for chunk in ids]
    lost = [chunk for chunk, parent in zip(ids, parents, strict=True) if parent is None or parent == ""]
    if lost:
        some = "every chunk" if len(lost) == len(ids) else f"{len(lost):,} of {len(ids):,} chunks"
        expected = "a column of the chunks, a function of the chunk id, or a pattern whose first group is the parent"
        problems = [f"chunk {chunk!r}" for chunk in lost]
        raise InputError.of_problems(f"the parent rule maps {some} to nothing:", problems, f"A rule is {expected}.")
    return pl.Series("parent", text_ids(parents, "parent", "the parent rule"), dtype=pl.String)


def _check_offsets(table: pl.DataFrame, documents: Mapping[str, str] | None) -> None:
    """Raise for chunks whose offsets cannot be right, or differ from the documents."""
    rows = table.with_columns(length=pl.col("text").str.len_chars().cast(pl.Int64))
    half = pl.col("start").is_null() != pl.col("end").is_null()
    outside = (pl.col("end") < pl.col("start")) | (pl.col("start") < 0) | (pl.col("end") > MOST)
    longer = (pl.col("end") - pl.col("start")) != pl.col("length")
    problems = list(map(_offset_problem, rows.filter(half | outside | longer).iter_rows(named=True)))
    if documents is not None and not problems:
        problems = [problem for row in rows.iter_rows(named=True) if (problem := _text_problem(row, documents))]
    if problems:
        headline = f"the offsets of {counted(len(problems), 'chunk')} do not match the text:"
        offsets = "start and end count characters (not bytes or tokens) of the document, end exclusive"
        raise InputError.of_problems(headline, problems, f"{offsets}; the text is that slice, not stripped.")


def _offset_problem(row: Mapping[str, Any]) -> str:
    where, start, end = f"chunk {row['chunk_id']!r} of document {row['doc_id']!r}", row["start"], row["end"]
    if start is None or end is None:
        return f"{where} has a start or an end, not both"
    if end < start or start < 0 or end > MOST:
        return f"{where}: characters {start} to {end} are not a span"
    return f"{where}: characters {start} to {end} are {end - start}, and its text has {row['length']}"


def _text_problem(row: Mapping[str, Any], documents: Mapping[str, str]) -> str:
    """How the text of a chunk differs from that part of its document; empty if it does not."""
    chunk, doc, start, end, text = (row[name] for name in ("chunk_id", "doc_id", "start", "end", "text"))
    whole = documents.get(doc)
    if whole is None:
        return f"chunk {chunk!r}: its document {doc!r} is not among the documents"
    if end is not None and end > len(whole):
        return f"chunk {chunk!r}: it ends at {end}, and document {doc!r} at {len(whole)}"
    if start is None or text is None or whole[start:end] == text:
        return ""
    there, given = one_line(whole[start:end], 30), one_line(text, 30)
    return f"chunk {chunk!r}: document {doc!r} has {there!r} there, not {given!r}"


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
    scores a document by its best chunk (the first one, if the run has an order of its own), 'sum' by the sum
    over its retrieved chunks, 'first' keeps the place of its first chunk. Documents with equal scores are
    tied, as in any run; if the run has an order of its own, or with 'first', they are in the order of their first
    chunks.
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
    if how == "sum" and chunk_run.ordered:
        change = frame.select(pl.col("score").diff().over("query_id"))["score"]
        if (change > 0).any() and not (change < 0).any():
            problem = f"run {chunk_run.name!r} has distances, which are not summed up"
            raise InputError(f"{problem}; use how='best' or 'first'.")
    parent_of = _parents_of(frame["doc_id"].unique(maintain_order=True).to_list(), parents, level)
    decided = scored and how != "first" and not chunk_run.ordered  # By the scores, and by the rule for ties.
    if decided:
        frame = chunk_run.table.with_row_index("rank").sort("score", descending=True, maintain_order=True)
    placed = frame.with_columns(parent=pl.col("doc_id").replace_strict(parent_of, return_dtype=pl.String))
    score = pl.col("score")
    how = "first" if how == "best" and chunk_run.ordered else how  # Its scores may be distances.
    value = {"sum": score.sum(), "best": score.max(), "first": score.first()}[how]
    rolled = placed.group_by("query_id", "parent", maintain_order=True).agg(score=value, first=pl.col("rank").min())
    if scored and how != "first" and not decided:
        rolled = rolled.sort("score", "first", descending=[True, False], maintain_order=True)
    else:
        rolled = rolled.sort("first", maintain_order=True)
    lists: dict[str, list[Any]] = {query: [] for query in chunk_run.queries}
    for query, parent, score in rolled.select("query_id", "parent", "score").iter_rows():
        lists[query].append((parent, score) if scored else parent)
    ranked = {query: dict(listed) for query, listed in lists.items()} if decided else lists
    return Run(ranked, name=chunk_run.name, seconds=chunk_run.seconds)


def _parents_of(chunks: list[str], parents: Any, level: str) -> dict[str, str]:
    """The parent of every retrieved chunk; a chunk without one is an error."""
    rule = parents.get if isinstance(parents, Mapping) else parents
    if not callable(rule) or (isinstance(parents, Mapping) and not all(isinstance(v, str) for v in parents.values())):
        if level not in ("doc_id", "parent", "page"):
            raise InputError(f"level is {level!r}; expected 'doc_id', 'parent' or 'page'.")
        page = pl.concat_str("doc_id", pl.lit("#"), "page") if level == "page" else pl.col(level)
        rule = dict(chunk_table(parents).select("chunk_id", page.alias("level")).iter_rows()).get
    parent_of = {chunk: rule(chunk) for chunk in chunks}
    lost = [repr(chunk) for chunk, parent in parent_of.items() if parent is None or parent == ""]
    if lost:
        some = f"{len(lost):,} of {counted(len(chunks), 'chunk')} of the run {worded(len(lost), 'has', 'have')}"
        advice = "Name the parent of every chunk; the run may belong to another chunking."
        raise InputError.of_problems(f"{some} no parent:", lost, advice)
    return dict(zip(parent_of, text_ids(parent_of.values(), "parent", "the roll-up"), strict=True))
