"""What a format cannot hold is refused before anything is written: nothing is lost silently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steelyard.alignment.ranking import ranked_rows
from steelyard.errors import SHOWN_PROBLEMS, InputError
from steelyard.lazy import polars as pl
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.qrels import Qrels


# A field of a TREC line ends at ASCII white space, and a line at a line end; a zero byte makes a file binary.
_BREAKS_COLUMN = r"[ \t\r\n\x0b\x0c\x00]"


def check_ids(frame: pl.DataFrame, columns: Sequence[str], format: str) -> None:
    """Refuse ids that columns separated by white space cannot hold: empty, with white space, or like a comment."""
    for column in columns:
        unfit = pl.col(column).str.contains(_BREAKS_COLUMN) | (pl.col(column) == "")
        if column == "query_id":
            unfit |= pl.col(column).str.starts_with("#") | pl.col(column).str.starts_with("\ufeff")
        bad = frame.filter(unfit)[column].unique(maintain_order=True).to_list()
        if bad:
            raise InputError.of_problems(
                f"{counted(len(bad), 'value')} of {column} cannot be written to a {format} file:",
                [repr(value) for value in bad[:SHOWN_PROBLEMS]],
                "Its columns are separated by white space, and # starts a comment. Write 'csv', 'json' or 'parquet'.",
                total=len(bad),
            )


def check_every_query(queries: Iterable[str], written: Iterable[str], format: str) -> None:
    """Refuse a query without rows: it would be missing from the file."""
    kept = set(written)
    lost = [query for query in queries if query not in kept]
    if lost:
        raise InputError.of_problems(
            f"{counted(len(lost), 'query has', 'queries have')} no documents, which a {format} file cannot express:",
            [repr(query) for query in lost[:SHOWN_PROBLEMS]],
            "Write 'csv', 'json', 'jsonl' or 'parquet', which keep them, or drop the queries: "
            "convert --set drop_empty=yes, or without_empty() in Python.",
            total=len(lost),
        )


def check_order(frame: pl.DataFrame, format: str) -> None:
    """Refuse a run whose own order differs from that of its scores, where only scores are kept."""
    by_score = ranked_rows(frame, ordered=False)
    moved = frame.filter((frame["doc_id"] != by_score["doc_id"]) | (frame["score"] != by_score["score"]))
    if moved.height:
        query, rank = moved.row(0, named=True)["query_id"], moved.row(0, named=True)["rank"]
        raise InputError(
            f"the run's own order differs from that of its scores (first in query {query!r} at rank {rank}), "
            f"and a {format} file is ordered by score. Write 'jsonl' or 'parquet', which keep both, or scores that "
            "follow the ranks: convert --set by_rank=yes, or steelyard.convert(..., by_rank=True) in Python."
        )


def check_whole_grades(qrels: Qrels, format: str) -> None:
    """Refuse grades that are not whole numbers."""
    grades = np.concatenate([qrels.grades, qrels.targets.grade])
    broken = grades[grades != np.round(grades)]
    if len(broken):
        raise InputError(
            f"{counted(len(broken), 'grade is not a whole number', 'grades are not whole numbers')} (as "
            f"{broken[0]:g}), and a {format} file holds whole numbers only. "
            "Write 'csv', 'tsv', 'json' or 'parquet'."
        )


def check_no_targets(qrels: Qrels, format: str) -> None:
    """Refuse qrels with targets."""
    if qrels.has_targets:
        raise InputError(
            f"the qrels have {counted(len(qrels.targets.name), 'target')}, and a {format} file has no column for "
            "targets. Write 'trec-diversity', 'beir', 'csv', 'json' or 'parquet'."
        )
