"""TREC diversity judgments: `topic subtopic document judgment`, a line for each subtopic a document is judged for.

Subtopics are targets. Subtopic 0 with a judgment of 0 or less stands for no subtopic: that is how
a document judged for none is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.errors import InputError
from steelyard.io.columns import check_roles
from steelyard.io.files import Source
from steelyard.io.limits import fits_columns, holds_every_query, whole_grades
from steelyard.io.trec_qrels import check
from steelyard.io.white_space import comment_note, split_columns
from steelyard.qrels import Qrels, merged_note

EXPECTED = "Expected 4 columns, parted by white space: topic subtopic document judgment."


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments, each subtopic a target of its topic."""
    check_roles(columns, (), "a file of TREC judgments")
    found = split_columns(source.path, 4, check, EXPECTED)
    rows: list[tuple[str, str, float, str | None]] = []
    for query, subtopic, doc, grade in found.rows:
        value = float(grade)
        target = None if subtopic == b"0" and value <= 0 else subtopic.decode()
        rows.append((query.decode(), doc.decode(), value, target))
    qrels = Qrels.from_rows(rows)
    repeats = len(rows) - len({(query, doc, target) for query, doc, _, target in rows})
    qrels.notes += comment_note(found.comments)
    if repeats:
        qrels.notes += (merged_note(repeats),)
    return qrels


def qrels_bytes(qrels: Qrels) -> bytes:
    """The judgments, a line for each document and target."""
    import polars as pl

    whole_grades(qrels, "trec-diversity")
    frame = qrels.frame.drop_nulls("doc_id")
    fits_columns(frame, ("query_id", "doc_id", "target"), "trec-diversity")
    holds_every_query(qrels.queries, frame["query_id"].unique().to_list(), "trec-diversity")
    if not qrels.has_targets:
        raise InputError(
            "the judgments name no targets, and every line of a trec-diversity file names one. Write 'trec-qrels'."
        )
    if frame.filter((pl.col("target") == "0") & (pl.col("grade") <= 0)).height:
        raise InputError(
            "a target is named '0' and judged 0 or less, which a trec-diversity file reads as no target. "
            "Rename the target, or write 'csv', 'json' or 'parquet'."
        )
    rows = frame.select("query_id", pl.col("target").fill_null("0"), "doc_id", "grade").iter_rows()
    return "".join(f"{query} {target} {doc} {grade}\n" for query, target, doc, grade in rows).encode()


def has_subtopics(rows: list[list[bytes]]) -> bool:
    """Whether column 2 is a subtopic: some document is judged twice for one topic, under different ones.

    A column 2 that varies is not enough: some collections number the round of judging there, and
    judge each document once.

    >>> has_subtopics([[b"51", b"1", b"a", b"1"], [b"51", b"2", b"a", b"0"]])
    True
    >>> has_subtopics([[b"1", b"0.5", b"a", b"1"], [b"1", b"1", b"b", b"0"]])
    False
    """
    seen: dict[tuple[bytes, bytes], bytes] = {}
    return any(seen.setdefault((row[0], row[2]), row[1]) != row[1] for row in rows)
