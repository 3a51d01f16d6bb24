"""MS MARCO files: runs of three columns, `query document rank`, and judgments, `query 0 document grade`.

A run keeps the order of its ranks and has no scores. Judgments of three columns, without the
constant one, are read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.io import trec_qrels
from steelyard.io.columns import check_roles
from steelyard.io.files import Source, run_name
from steelyard.io.limits import fits_columns, holds_every_query
from steelyard.io.white_space import comment_note, finite, frame_columns, number, shown, split_columns
from steelyard.qrels import Qrels
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.run import Run


EXPECTED_RUN = "Expected 3 columns, parted by a tab: query document rank, the best rank 1."
EXPECTED_QRELS = "Expected 4 columns, parted by a tab: query 0 document grade (or 3: query document grade)."


def check_run(fields: list[bytes]) -> str | None:
    """What is wrong with one line of an MS MARCO run, if anything."""
    if len(fields) != 3:
        return counted(len(fields), "column")
    rank = number(fields[2])
    if rank is None or rank != rank or rank < 1 or rank % 1:
        return f"rank {shown(fields[2])} is not 1, 2, 3, ..."
    return None


def _passes(frame: pl.DataFrame) -> bool:
    import polars as pl

    rank = frame["c2"].cast(pl.Float64, strict=False)
    if rank.null_count() or frame["c3"].null_count() < frame.height:
        return False
    return bool(((rank >= 1) & (rank % 1 == 0)).all())


def check_short_qrels(fields: list[bytes]) -> str | None:
    """What is wrong with one line of `query document grade`, if anything."""
    return counted(len(fields), "column") if len(fields) != 3 else finite(fields[2], "grade")


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run, in the order of its ranks."""
    import polars as pl

    from steelyard.run import Run

    check_roles(columns, (), "an MS MARCO run")

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.select(query_id="c0", doc_id="c1", rank=pl.col("c2").cast(pl.Float64))

    table, comments = frame_columns(source.path, 4, _passes, keep, check_run, EXPECTED_RUN)
    run = Run(table, name=run_name(source.path))
    run.notes += comment_note(comments)
    return run


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The judgments, of four columns or three."""
    check_roles(columns, (), "a file of MS MARCO judgments")
    first = next(
        (line.split() for line in source.head_lines if line.strip() and not line.lstrip().startswith(b"#")),
        [],
    )
    if len(first) != 3:
        return trec_qrels.read_qrels(source, columns)
    found = split_columns(source.path, 3, check_short_qrels, EXPECTED_QRELS)
    rows = [(query.decode(), doc.decode(), float(grade), None) for query, doc, grade in found.rows]
    qrels = Qrels.from_rows(rows)
    qrels.notes += (
        *comment_note(found.comments),
        "three columns and no header: read as query, document, grade",
    )
    return qrels


def run_bytes(run: Run) -> bytes:
    """The run's order, best first; scores have no column here."""
    frame = run.frame
    fits_columns(frame, ("query_id", "doc_id"), "msmarco")
    holds_every_query(run.queries, frame["query_id"].unique().to_list(), "msmarco")
    rows = frame.select("query_id", "doc_id", "rank").iter_rows()
    return "".join(f"{query}\t{doc}\t{rank}\n" for query, doc, rank in rows).encode()


def qrels_bytes(qrels: Qrels) -> bytes:
    """The judgments, with tabs between the columns."""
    return trec_qrels.qrels_bytes(qrels).replace(b" ", b"\t")
