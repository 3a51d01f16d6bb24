"""TREC judgments: `query iteration document grade`, columns parted by white space.

The iteration column is not used. The common small file is read without polars; a large one with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.errors import InputError, problem_report
from steelyard.io.columns import check_roles
from steelyard.io.files import Source
from steelyard.io.limits import fits_columns, holds_every_query, no_targets, whole_grades
from steelyard.io.white_space import Columns, comment_note, finite, frame_columns, split_columns
from steelyard.qrels import Qrels, merged_note
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl


EXPECTED = (
    "Expected 4 columns, parted by white space: query iteration document grade. "
    "Ids with white space cannot stand in a TREC file: use CSV, JSON or Parquet."
)
LARGE = 5_000_000


def check(fields: list[bytes]) -> str | None:
    """What is wrong with one line of TREC judgments, if anything.

    >>> check(b"q1 0 d1 2".split())
    >>> check(b"q1 Q0 d1 1 12.5 bm25".split())
    '6 columns, as a line of a run has'
    """
    count = len(fields)
    if count != 4:
        run = count >= 5 and fields[1].upper() == b"Q0"
        return f"{count} columns, as a line of a run has" if run else counted(count, "column")
    return finite(fields[3], "grade")


def passes(frame: pl.DataFrame) -> bool:
    """Whether every line of a block would pass `check`."""
    import polars as pl

    grade = frame["c3"].cast(pl.Float64, strict=False)
    return (
        not grade.null_count() and bool(grade.is_finite().all()) and frame["c4"].null_count() == frame.height
    )


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments; a grade given twice is merged, two that disagree are an error."""
    check_roles(columns, (), "a file of TREC judgments")
    if len(source.head) < LARGE and source.path.stat().st_size < LARGE:
        found = split_columns(source.path, 4, check, EXPECTED)
        qrels, repeats = _of_rows(found)
        comments, iterations = (
            found.comments,
            {column.decode() for column in {fields[1] for fields in found.rows}},
        )
    else:
        qrels, repeats, comments, iterations = _of_frame(source)
    qrels.notes += comment_note(comments)
    if repeats:
        qrels.notes += (merged_note(repeats),)
    if len(iterations) > 1:
        some = ", ".join(sorted(iterations)[:3])
        qrels.notes += (
            f"column 2 takes {len(iterations):,} values ({some}, ...) and was not used; "
            "format='trec-diversity' (--qrels-format trec-diversity) reads it as subtopics",
        )
    return qrels


def _of_rows(found: Columns) -> tuple[Qrels, int]:
    grades = {grade: float(grade) for grade in {fields[3] for fields in found.rows}}
    judged: dict[bytes, dict[str, float]] = {}
    repeated: list[int] = []
    for place, (query, _, doc, grade) in enumerate(found.rows):
        documents = judged.get(query)
        if documents is None:
            documents = judged[query] = {}
        name = doc.decode()
        if name in documents:
            repeated.append(place)
        else:
            documents[name] = grades[grade]
    disagree = [
        f"line {found.lines[place]:,}: query {query.decode()!r}, document {doc.decode()!r}: "
        f"graded {grades[grade]:g}, and before {judged[query][doc.decode()]:g}"
        for place in repeated
        for query, _, doc, grade in [found.rows[place]]
        if grades[grade] != judged[query][doc.decode()]
    ]
    if disagree:
        raise InputError(
            problem_report(
                f"{counted(len(disagree), 'judgment disagrees', 'judgments disagree')} with an earlier one "
                "of the same query and document:",
                disagree,
                "Keep one grade for each; where column 2 is a subtopic, read the file with format='trec-diversity'.",
            )
        )
    return Qrels({query.decode(): documents for query, documents in judged.items()}), len(repeated)


def _of_frame(source: Source) -> tuple[Qrels, int, int, set[str]]:
    import polars as pl

    iterations: set[str] = set()

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        iterations.update(frame["c1"].unique().to_list())
        return frame.select(query_id="c0", doc_id="c2", grade=pl.col("c3").cast(pl.Float64))

    table, comments = frame_columns(source.path, 5, passes, keep, check, EXPECTED)
    qrels = Qrels(table)
    return qrels, table.height - len(qrels), comments, iterations


def qrels_bytes(qrels: Qrels) -> bytes:
    """The judgments, with 0 for the iteration."""
    no_targets(qrels, "trec-qrels")
    whole_grades(qrels, "trec-qrels")
    frame = qrels.frame.drop_nulls("doc_id")
    fits_columns(frame, ("query_id", "doc_id"), "trec-qrels")
    holds_every_query(qrels.queries, frame["query_id"].unique().to_list(), "trec-qrels")
    rows = frame.select("query_id", "doc_id", "grade").iter_rows()
    return "".join(f"{query} 0 {doc} {grade}\n" for query, doc, grade in rows).encode()
