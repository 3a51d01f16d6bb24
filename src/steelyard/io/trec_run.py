"""TREC runs: `query Q0 document rank score tag`, columns parted by white space.

The tag may be missing, and words may follow it. Documents are ordered by score, as trec_eval
does; the rank column is not used, but has to be a number, for a line whose columns are shifted
shows there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.io.columns import check_roles
from steelyard.io.files import Source, run_name
from steelyard.io.limits import fits_columns, holds_every_query, keeps_order
from steelyard.io.white_space import comment_note, finite, frame_columns, number, shown
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.run import Run


EXPECTED = (
    "Expected 6 columns, parted by white space: query Q0 document rank score tag (the tag may be missing). "
    "Ids with white space cannot stand in a TREC file: use CSV, JSON or Parquet."
)


def check(fields: list[bytes]) -> str | None:
    """What is wrong with one line of a TREC run, if anything.

    >>> check(b"q1 Q0 d1 1 12.5 bm25".split())
    >>> check(b"q1 0 d1 1".split())
    '4 columns, as a line of judgments has'
    """
    count = len(fields)
    if count < 5:
        return "4 columns, as a line of judgments has" if count == 4 else counted(count, "column")
    if fields[2].upper() == b"Q0" and fields[1].upper() != b"Q0":
        return f"Q0 is in column 3 of {count}; has the query id {shown(b' '.join(fields[:2]))} a space?"
    if number(fields[3]) is None:
        return f"{count} columns, and the rank (column 4) is {shown(fields[3])}; has an id a space?"
    return finite(fields[4], "score")


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run, its rows as they came; named after its tag, or the file where it has none."""
    import polars as pl

    from steelyard.run import Run

    check_roles(columns, (), "a TREC run")
    tags: dict[str, None] = {}

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        tags.update(dict.fromkeys(frame["c5"].drop_nulls().unique(maintain_order=True).to_list()))
        return frame.select(query_id="c0", doc_id="c2", score=pl.col("c4").cast(pl.Float64))

    table, comments = frame_columns(source.path, 6, passes, keep, check, EXPECTED)
    run = Run(table, name=next(iter(tags), run_name(source.path)))
    run.notes += comment_note(comments)
    if len(tags) > 1:
        run.notes += (
            f"{len(tags):,} tags in one file ({', '.join(list(tags)[:3])}, ...): named after the first",
        )
    return run


def passes(frame: pl.DataFrame) -> bool:
    """Whether every line of a block would pass `check`."""
    import polars as pl

    numbers = frame.select(
        score=pl.col("c4").cast(pl.Float64, strict=False), rank=pl.col("c3").cast(pl.Float64, strict=False)
    )
    shifted = pl.col("c2").is_in(["Q0", "q0"]) & ~pl.col("c1").is_in(["Q0", "q0"])
    return (
        not numbers["rank"].null_count()
        and not numbers["score"].null_count()
        and bool(numbers["score"].is_finite().all())
        and not frame.select(shifted.any()).item()
    )


def run_bytes(run: Run) -> bytes:
    """The run, best first. A run without scores gets scores that keep its order: n for the first of n, down to 1."""
    import polars as pl

    frame = run.frame
    fits_columns(frame, ("query_id", "doc_id"), "trec-run")
    holds_every_query(run.queries, frame["query_id"].unique().to_list(), "trec-run")
    if frame["score"].null_count():
        frame = frame.with_columns(score=(pl.len().over("query_id") - pl.col("rank") + 1).cast(pl.Float64))
    elif run.ordered:
        keeps_order(frame, "trec-run")
    tag = "_".join(run.name.split()) or "run"
    lines = frame.select(
        "query_id", pl.lit("Q0").alias("Q0"), "doc_id", "rank", "score", pl.lit(tag).alias("tag")
    )
    return lines.write_csv(separator=" ", include_header=False, quote_style="never").encode()
