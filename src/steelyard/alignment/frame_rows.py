"""What both ways of reading a frame need: its rows by the numbers of the judgments, groups of rows, keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from steelyard.alignment.hits import Bools, Ints, JudgedDocs
from steelyard.alignment.ranking import SHOWN_RUN_ONLY
from steelyard.runs import Run

Words: TypeAlias = NDArray[np.uint64]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number that spreads small ones over 64 bits, so that equal keys are equal documents of a query."""


def query_numbers(table: pl.DataFrame, judged: JudgedDocs) -> Ints:
    """The number of each row's query; -1 where nobody judged it."""
    size = len(judged.query_ids)
    numbers = pl.DataFrame(
        {"query_id": _texts(judged.query_ids), "query": np.arange(size)},
        schema={"query_id": pl.String, "query": pl.Int64},
    )
    found = table.select("query_id").join(numbers, on="query_id", how="left", maintain_order="left")
    return ints(found.fill_null(-1), "query")


def keys_of(docs: pl.Series, queries: Ints) -> Words:
    """A hash of each document and its query."""
    keys: Words = docs.hash().to_numpy() ^ (queries.astype(np.uint64) * _SPREAD)
    return keys


def documents_of(judged: JudgedDocs) -> pl.DataFrame:
    """The judged documents: query, doc_id and doc, their number."""
    return pl.DataFrame(
        {
            "query": np.repeat(np.arange(len(judged.query_ids)), np.diff(judged.starts)),
            "doc_id": _texts(judged.doc_ids),
            "doc": np.arange(len(judged.doc_ids)),
        },
        schema={"query": pl.Int64, "doc_id": pl.String, "doc": pl.Int64},
    )


def _texts(ids: Sequence[str]) -> list[str | None]:
    """Ids as a frame can hold them: one that has no UTF-8 form is in no frame."""
    try:
        "".join(ids).encode()
    except UnicodeEncodeError:
        return [None if any("\ud800" <= letter <= "\udfff" for letter in text) else text for text in ids]
    return list(ids)


def answered_by(run: Run, judged: JudgedDocs) -> tuple[Bools, int, tuple[str, ...]]:
    """Which judged queries the run has; how many others it has, and the first of those."""
    came, known = run.queries, set(judged.query_ids)
    answered = set(came)
    only_run = [query for query in came if query not in known]
    found = np.fromiter((query in answered for query in judged.query_ids), np.bool_, len(judged.query_ids))
    return found, len(only_run), tuple(only_run[:SHOWN_RUN_ONLY])


def group_begins(differs: Bools, length: int) -> Ints:
    """The first of each group of rows, given where a row differs from the one before it."""
    return np.flatnonzero(np.concatenate([[True], differs])) if length else np.zeros(0, dtype=np.int64)


def ints(frame: pl.DataFrame, column: str) -> Ints:
    """A column of whole numbers."""
    return frame[column].to_numpy().astype(np.int64)
