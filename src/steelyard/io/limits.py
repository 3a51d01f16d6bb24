"""What a format cannot hold, said before anything is written: nothing is dropped on the way out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from steelyard.errors import SHOWN_PROBLEMS, InputError, problem_report
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.qrels import Qrels


# A field of a TREC line ends at ASCII white space, and a line at a line end; a zero byte makes a file binary.
_BREAKS_COLUMN = r"[ \t\r\n\x0b\x0c\x00]"


def fits_columns(frame: pl.DataFrame, columns: Sequence[str], format: str) -> None:
    """Refuse ids that cannot stand between white space: empty, with white space in them, or begun as a comment."""
    import polars as pl

    for column in columns:
        unfit = pl.col(column).str.contains(_BREAKS_COLUMN) | (pl.col(column) == "")
        if column == "query_id":
            unfit |= pl.col(column).str.starts_with("#") | pl.col(column).str.starts_with("\ufeff")
        bad = frame.filter(unfit)[column].unique(maintain_order=True).to_list()
        if bad:
            raise InputError(
                problem_report(
                    f"{counted(len(bad), 'value')} of {column} cannot stand in a {format} file:",
                    [repr(value) for value in bad[:SHOWN_PROBLEMS]],
                    "Its columns are parted by white space, and # begins a comment. Write 'csv', 'json' or 'parquet'.",
                    total=len(bad),
                )
            )


def holds_every_query(queries: Iterable[str], written: Iterable[str], format: str) -> None:
    """Refuse a query with no rows, for it would be gone from the file."""
    kept = set(written)
    lost = [query for query in queries if query not in kept]
    if lost:
        raise InputError(
            problem_report(
                f"{counted(len(lost), 'query holds', 'queries hold')} no documents, which a {format} file "
                "cannot say:",
                [repr(query) for query in lost[:SHOWN_PROBLEMS]],
                "Write 'csv', 'json', 'jsonl' or 'parquet', which keep them, or leave the queries out: "
                "convert --drop-empty, or without_empty() in Python.",
                total=len(lost),
            )
        )


def keeps_order(frame: pl.DataFrame, format: str) -> None:
    """Refuse a run whose own order is not the one its scores give, where only scores are kept."""
    by_score = frame.sort("query_id", "score", "doc_id", descending=[False, True, True], maintain_order=True)
    by_rank = frame.sort("query_id", "rank")
    moved = by_rank.filter(
        (by_rank["doc_id"] != by_score["doc_id"]) | (by_rank["score"] != by_score["score"])
    )
    if moved.height:
        query, rank = moved.row(0, named=True)["query_id"], moved.row(0, named=True)["rank"]
        raise InputError(
            f"the run has an order of its own that its scores do not give (first in query {query!r} at rank {rank}), "
            f"and a {format} file is ordered by score. Write 'jsonl' or 'parquet', which keep both, "
            "or a run of ranked ids without scores."
        )


def whole_grades(qrels: Qrels, format: str) -> None:
    """Refuse grades that are not whole numbers."""
    grades = np.concatenate([qrels.grades, qrels.targets.grade])
    broken = grades[grades != np.round(grades)]
    if len(broken):
        raise InputError(
            f"{counted(len(broken), 'grade is no whole number', 'grades are not whole numbers')} (as "
            f"{broken[0]:g}), and a {format} file holds only whole ones. "
            "Write 'csv', 'tsv', 'json' or 'parquet'."
        )


def no_targets(qrels: Qrels, format: str) -> None:
    """Refuse judgments that name targets."""
    if qrels.has_targets:
        raise InputError(
            f"the judgments name {counted(len(qrels.targets.name), 'target')}, which a {format} file has no "
            "column for. "
            "Write 'trec-diversity', 'beir', 'csv', 'json' or 'parquet'."
        )
