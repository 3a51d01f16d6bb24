"""TREC files: runs (`query Q0 document rank score tag`), qrels (`query iteration document grade`), and qrels
with subtopics (`topic subtopic document judgment`), columns separated by white space.

A run is ordered by score, as in trec_eval; the rank is not used, but must be a number: a shift of the columns shows
there. The tag may be missing, and words may follow it. The iteration of qrels is not used. Subtopics are targets;
subtopic 0 with a judgment of 0 or less is no subtopic: this is how a document judged for none is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from steelyard.alignment.hits import Floats, JudgedDocs
from steelyard.alignment.ranking import ranked_rows
from steelyard.errors import InputError
from steelyard.io.columns import check_roles
from steelyard.io.files import read_bytes, run_name, unchanged
from steelyard.io.formats import Detected, Format, Shape, is_ranked
from steelyard.io.text import Source, finite, frame_columns, judgment_columns, number, shown
from steelyard.lazy import polars as pl
from steelyard.native import PIECE, kernel
from steelyard.notes import Note, Severity, note
from steelyard.qrels import Qrels, Row
from steelyard.run import Run
from steelyard.safe_text import utf8
from steelyard.wording import counted

_NO_SPACES = "Ids with white space are not possible in a TREC file: use CSV, JSON or Parquet."
_COLUMNS = "columns, separated by white space:"
EXPECTED_RUN = f"Expected 6 {_COLUMNS} query Q0 document rank score tag (the tag may be missing). {_NO_SPACES}"
EXPECTED_QRELS = f"Expected 4 {_COLUMNS} query iteration document grade. {_NO_SPACES}"
_EXPECTED_DIVERSITY = f"Expected 4 {_COLUMNS} topic subtopic document judgment."
_QRELS_COLUMNS = ("query_id", "iteration", "doc_id", "grade")
_LARGEST_REGULAR = 1 << 28


def check_run(fields: list[bytes]) -> str | None:
    """What is wrong with one line of a TREC run; None if nothing is.

    >>> check_run(b"q1 Q0 d1 1 12.5 bm25".split())
    >>> check_run(b"q1 0 d1 1".split())
    '4 columns, as in a line of qrels'
    """
    count = len(fields)
    if count < 5:
        return "4 columns, as in a line of qrels" if count == 4 else counted(count, "column")
    if fields[2].upper() == b"Q0" and fields[1].upper() != b"Q0":
        return f"Q0 is in column 3 of {count}; has the query id {shown(b' '.join(fields[:2]))} a space?"
    if number(fields[3]) is None:
        return f"{count} columns, and the rank (column 4) is {shown(fields[3])}; has an id a space?"
    return finite(fields[4], "score")


def run_passes(frame: pl.DataFrame) -> bool:
    """Whether every line of a block passes `check_run`."""
    numbers = frame.select(pl.col("c3", "c4").cast(pl.Float64, strict=False))  # rank and score
    shifted = pl.col("c2").is_in(["Q0", "q0"]) & ~pl.col("c1").is_in(["Q0", "q0"])
    numeric = not any(numbers.null_count().row(0)) and bool(numbers["c4"].is_finite().all())
    return numeric and not frame.select(shifted.any()).item()


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The run, its rows in the order of the file; named after its tag, or the file where it has none."""
    check_roles(columns, (), "a TREC run")
    table, tags, notes = _read_native(source.path) or _read_any(source.path)
    if len(tags) > 1:
        notes += (note("several-tags", count=len(tags), tags=tags[:3]),)
    return Run.from_table(table, ordered=False, name=tags[0] if tags else run_name(source.path), notes=notes)


def _read_native(path: Path) -> tuple[pl.DataFrame, list[str], tuple[Note, ...]] | None:
    """The rows, the tags and a note on comments, read by the kernel; None without it, and for an unusual file."""
    native = kernel()
    if native is None or not path.is_file():
        return None
    with path.open("rb") as file, unchanged(file, path):
        columns = native.read_columns(file.fileno(), os.fstat(file.fileno()).st_size, os.cpu_count() or 1, PIECE)
    return None if isinstance(columns, int) else (pl.DataFrame(columns), columns.tags(), ())


def _read_any(path: Path) -> tuple[pl.DataFrame, list[str], tuple[Note, ...]]:
    """The same for every file, with a report of the lines that are wrong."""
    tags: dict[str, None] = {}

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        tags.update(dict.fromkeys(frame["c5"].drop_nulls().unique(maintain_order=True).to_list()))
        return frame.select(query_id="c0", doc_id="c2", score=pl.col("c4").cast(pl.Float64))

    table, notes = frame_columns(path, 6, run_passes, keep, check_run, EXPECTED_RUN)
    return table, list(tags), notes


def trec_scores(head: bytes) -> Iterator[tuple[str, float]]:
    """The query and the score of the complete lines in the head of a clean TREC run.

    >>> list(trec_scores(b"q1 Q0 d1 1 12.5 bm25\\nq1 Q0 d2 2 9.5 bm25\\nq1 Q0"))
    [('q1', 12.5), ('q1', 9.5)]
    """
    for line in head.split(b"\n")[:-1]:
        fields = line.split()
        if len(fields) > 4:
            yield fields[0].decode(), float(fields[4])


def check_ranks(source: Source) -> Iterator[tuple[Severity, str]]:
    """A warning if the ranks of a run, which are not used, give another order than its scores."""

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        numbers = {"rank": pl.col("c3").cast(pl.Float64), "score": pl.col("c4").cast(pl.Float64)}
        return frame.select(query_id="c0", doc_id="c2", **numbers)

    rows = frame_columns(source.path, 6, run_passes, keep, check_run, EXPECTED_RUN)[0].sort("query_id", "rank")
    text = "the rank column gives another order than the scores in {where}; scores are used, as in trec_eval"
    yield from rising_scores(rows, text)


def rising_scores(rows: pl.DataFrame, text: str) -> Iterator[tuple[Severity, str]]:
    """A warning if scores increase from one row to the next of its query; `text` has a place for {where}."""
    rising = rows.filter((pl.col("score").diff() > 0).over("query_id"))
    if rising.height:
        queries = counted(rising["query_id"].n_unique(), "query", "queries")
        query, doc = rising.select("query_id", "doc_id").row(0)
        yield "warning", text.format(where=f"{queries} (as query {query!r}, document {doc!r})")


def run_bytes(run: Run) -> bytes:
    """The run, best first. A run without scores gets scores that keep its order: n for the first of n, down to 1."""
    frame = scored_frame(run, "trec-run")
    check_every_query(run.empty, (), "trec-run")
    # The name of a file may have bytes that are not text.
    tag = utf8("_".join(run.name.split()) or "run").decode()
    return _lines_native(frame, tag) or _lines(frame, tag)


def _lines_native(frame: pl.DataFrame, tag: str) -> bytes | None:
    """The lines by the kernel; None without it, for scores with an exponent, and for ids that cannot be written."""
    native = kernel()
    if native is None or not frame.height:
        return None
    ranks, scores = (np.ascontiguousarray(frame[name].to_numpy()) for name in ("rank", "score"))
    ranks = ranks.astype(np.int64, copy=False)
    lines: bytes | None = native.trec_lines(frame["query_id"], frame["doc_id"], ranks, scores, tag.encode())
    return lines


def _lines(frame: pl.DataFrame, tag: str) -> bytes:
    check_ids(frame, ("query_id", "doc_id"), "trec-run")
    lines = frame.select("query_id", pl.lit("Q0").alias("Q0"), "doc_id", "rank", "score", pl.lit(tag).alias("tag"))
    return lines.write_csv(separator=" ", include_header=False, quote_style="never").encode()


def scored_frame(run: Run, format: str) -> pl.DataFrame:
    """The run's rows, best first, in the order of scores: its own, or those that keep its order if it has none."""
    frame = run.frame
    if frame["score"].null_count():
        return with_scores(frame)
    if run.ordered:
        check_order(frame, format)
    return frame


def with_scores(frame: pl.DataFrame) -> pl.DataFrame:
    """Scores that keep the order of a run without any: n, n - 1, ... 1 in a list of n."""
    return frame.with_columns(score=(pl.len().over("query_id") - pl.col("rank") + 1).cast(pl.Float64))


def read_regular_qrels(path: Path) -> tuple[JudgedDocs, Floats] | None:
    """The judged documents and their grades, read by the native kernel; None where it cannot.

    Regular files only: four fields per line, the second always 0 or always Q0, the last a whole
    number, the lines of a query together, each document once. Any other file, and every file where
    there is no kernel, is left to `read_qrels`, which gives the same for a regular file.
    """
    native = kernel()
    if native is None or not path.is_file() or path.stat().st_size > _LARGEST_REGULAR:
        return None
    columns = native.read_qrels(read_bytes(path))
    if columns is None:
        return None
    query_ids, starts, doc_ids, grades = columns
    return JudgedDocs(query_ids, np.frombuffer(starts, np.int64), doc_ids), np.frombuffer(grades)


def check_qrels(fields: list[bytes]) -> str | None:
    """What is wrong with one line of TREC qrels; None if nothing is.

    >>> check_qrels(b"q1 0 d1 2".split())
    >>> check_qrels(b"q1 Q0 d1 1 12.5 bm25".split())
    '6 columns, as in a line of a run'
    """
    count = len(fields)
    if count != 4:
        run = count >= 5 and fields[1].upper() == b"Q0"
        return f"{count} columns, as in a line of a run" if run else counted(count, "column")
    return finite(fields[3], "grade")


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The qrels; judgments repeated with the same grade are merged, those that disagree are an error."""
    check_roles(columns, (), "a TREC qrels file")
    table, notes = judgment_columns(source.path, _QRELS_COLUMNS, check_qrels, EXPECTED_QRELS)
    pair = ["query_id", "doc_id"]
    first = table.unique(pair, keep="first", maintain_order=True)
    if first.height < table.height:
        graded = table.with_columns(before=pl.col("grade").first().over(pair)).with_row_index("row")
        different = graded.filter(pl.col("grade") != pl.col("before")).select("row", *pair, "grade", "before")
        if different.height:
            raise _disagreements(different, source)
        notes += (note("judgments-merged", count=table.height - first.height),)
    iterations = table["iteration"].unique().sort().to_list()
    if len(iterations) > 1:
        notes += (note("iterations-ignored", count=len(iterations), values=iterations[:3]),)
    from steelyard.io.frames import flat_qrels

    qrels = flat_qrels(first, first["query_id"].unique(maintain_order=True).to_list())
    qrels.notes = notes
    return qrels


def _disagreements(different: pl.DataFrame, source: Source) -> InputError:
    """The error for judgments that repeat an earlier one with another grade."""
    numbered = enumerate(source.data.split(b"\n"), start=1)
    lines = [place for place, line in numbered if (fields := line.split()) and not fields[0].startswith(b"#")]
    count = counted(different.height, "judgment disagrees", "judgments disagree")
    problems = [
        f"line {lines[row]:,}: query {query!r}, document {doc!r}: graded {grade:g}, and before {before:g}"
        for row, query, doc, grade, before in different.iter_rows()
    ]
    advice = "Keep one grade for each; where column 2 is a subtopic, read the file with format='trec-diversity'."
    return InputError.of_problems(f"{count} with an earlier one of the same query and document:", problems, advice)


def qrels_bytes(qrels: Qrels) -> bytes:
    """The qrels, with 0 for the iteration."""
    check_no_targets(qrels, "trec-qrels")
    rows = rows_to_write(qrels, "trec-qrels", ("query_id", "doc_id")).select("query_id", "doc_id", "grade").iter_rows()
    return "".join(f"{query} 0 {doc} {grade}\n" for query, doc, grade in rows).encode()


def has_subtopics(rows: list[list[bytes]]) -> bool:
    """Whether column 2 is a subtopic: some document is judged twice for one topic, under different ones.

    A column 2 that varies is not enough: some collections give the round of judging there, and
    judge each document once.

    >>> has_subtopics([[b"51", b"1", b"a", b"1"], [b"51", b"2", b"a", b"0"]])
    True
    >>> has_subtopics([[b"1", b"0.5", b"a", b"1"], [b"1", b"1", b"b", b"0"]])
    False
    """
    seen: dict[tuple[bytes, bytes], bytes] = {}
    return any(seen.setdefault((row[0], row[2]), row[1]) != row[1] for row in rows)


def read_diversity_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The qrels, each subtopic a target of its topic."""
    check_roles(columns, (), "a TREC qrels file")
    table, notes = judgment_columns(source.path, _QRELS_COLUMNS, check_qrels, _EXPECTED_DIVERSITY)
    rows: list[Row] = [
        (query, doc, grade, None if subtopic == "0" and grade <= 0 else subtopic)
        for query, subtopic, doc, grade in table.iter_rows()
    ]
    qrels = Qrels.from_rows(rows)
    repeats = len(rows) - len({(query, doc, target) for query, doc, _, target in rows})
    qrels.notes = (*notes, note("judgments-merged", count=repeats)) if repeats else notes
    return qrels


def diversity_qrels_bytes(qrels: Qrels) -> bytes:
    """The qrels, one line per document and target."""
    frame = rows_to_write(qrels, "trec-diversity", ("query_id", "doc_id", "target"))
    if not qrels.has_targets:
        problem = "the qrels have no targets, and every line of a trec-diversity file names one"
        raise InputError(f"{problem}. Write 'trec-qrels'.")
    if frame.filter((pl.col("target") == "0") & (pl.col("grade") <= 0)).height:
        problem = "a target is named '0' and judged 0 or less, which a trec-diversity file reads as no target"
        raise InputError(f"{problem}. Rename the target, or write 'csv', 'json' or 'parquet'.")
    rows = frame.select("query_id", pl.col("target").fill_null("0"), "doc_id", "grade").iter_rows()
    return "".join(f"{query} {target} {doc} {grade}\n" for query, target, doc, grade in rows).encode()


# What a format cannot hold is refused before anything is written: nothing is lost silently.
# A field of a TREC line ends at ASCII white space, and a line at a line end; a zero byte makes a file binary.
_BREAKS_COLUMN = r"[ \t\r\n\x0b\x0c\x00]"


def rows_to_write(qrels: Qrels, format: str, ids: Sequence[str] = ()) -> pl.DataFrame:
    """The judgments, of queries that all have some and with whole grades; `ids` are columns that end at white space."""
    check_whole_grades(qrels, format)
    frame = qrels.frame.drop_nulls("doc_id")
    check_ids(frame, ids, format)
    check_every_query(qrels.queries, frame["query_id"].unique().to_list(), format)
    return frame


def check_ids(frame: pl.DataFrame, columns: Sequence[str], format: str) -> None:
    """Refuse ids that columns separated by white space cannot hold: empty, with white space, or like a comment."""
    for column in columns:
        unfit = pl.col(column).str.contains(_BREAKS_COLUMN) | (pl.col(column) == "")
        if column == "query_id":
            unfit |= pl.col(column).str.starts_with("#") | pl.col(column).str.starts_with("\ufeff")
        bad = list(map(repr, frame.filter(unfit)[column].unique(maintain_order=True).to_list()))
        unfit_for = f"of {column} cannot be written to a {format} file"
        why = "Its columns are separated by white space, and # starts a comment. Write 'csv', 'json' or 'parquet'."
        InputError.refuse(bad, f"value {unfit_for}", f"values {unfit_for}", why)


def check_every_query(queries: Iterable[str], written: Iterable[str], format: str) -> None:
    """Refuse a query without rows: it would be missing from the file."""
    kept = set(written)
    lost = [repr(query) for query in queries if query not in kept]
    none = f"no documents, which a {format} file cannot express"
    advice = "Write 'csv', 'json', 'jsonl' or 'parquet', which keep them, or drop the queries: "
    advice += "convert --set drop_empty=yes, or without_empty() in Python."
    InputError.refuse(lost, f"query has {none}", f"queries have {none}", advice)


def check_order(frame: pl.DataFrame, format: str) -> None:
    """Refuse a run whose own order differs from that of its scores, where only scores are kept."""
    by_score = ranked_rows(frame, ordered=False)
    moved = frame.filter((frame["doc_id"] != by_score["doc_id"]) | (frame["score"] != by_score["score"]))
    if moved.height:
        query, rank = moved.select("query_id", "rank").row(0)
        raise InputError(
            f"the run's own order differs from that of its scores (first in query {query!r} at rank {rank}), "
            f"and a {format} file is ordered by score. Write 'jsonl' or 'parquet', which keep both, or scores that "
            "follow the ranks: convert --set by_rank=yes, or steelyard.convert(..., by_rank=True) in Python."
        )


def check_whole_grades(qrels: Qrels, format: str) -> None:
    """Refuse grades that are not whole numbers."""
    grades = qrels.targets.grade if qrels.has_targets else qrels.grades
    broken = grades[grades != np.round(grades)]
    if len(broken):
        count = counted(len(broken), "grade is not a whole number", "grades are not whole numbers")
        problem = f"{count} (as {broken[0]:g}), and a {format} file holds whole numbers only"
        raise InputError(f"{problem}. Write 'csv', 'tsv', 'json' or 'parquet' (--to tsv).")


def check_no_targets(qrels: Qrels, format: str) -> None:
    """Refuse qrels with targets."""
    if qrels.has_targets:
        count = counted(len(qrels.targets.name), "target")
        problem = f"the qrels have {count}, and a {format} file has no column for targets"
        raise InputError(f"{problem}. Write 'trec-diversity', 'beir', 'csv', 'json' or 'parquet'.")


def _detect_qrels(shape: Shape) -> Detected | None:
    if shape.line_shape != "qrels":
        return None
    fours = [fields for fields in shape.rows if len(fields) == 4]
    if is_ranked(fours) and any((number(fields[3]) or 0.0) % 1 for fields in fours):
        raise InputError(
            "four columns that look like query document rank score; expected a run of six "
            "(query Q0 document rank score tag) or a table with a header line that names its columns."
        )
    return Detected("qrels", "trec-qrels", "qrels")


def _detect_diversity(shape: Shape) -> Detected | None:
    fours = [fields for fields in shape.rows if len(fields) == 4] if shape.line_shape == "qrels" else []
    if len({fields[1] for fields in fours}) < 2:
        return None
    if not shape.source.whole_head:
        fours = [fields for line in shape.source.data.split(b"\n") if len(fields := line.split()) == 4]
    return Detected("qrels", "trec-diversity", "qrels", note("read-as-subtopics")) if has_subtopics(fours) else None


FORMATS = (
    Format(
        name="trec-run",
        description="query Q0 document rank score tag",
        alias="trec",
        detect=lambda shape: Detected("run", "trec-run", "run") if shape.line_shape == "run" else None,
        reads={"run": read_run},
        writes={"run": run_bytes},
        suffixes={"run": (".trec", ".run", ".txt", ".res", "")},
        scores="required",
        checks=check_ranks,
    ),
    Format(
        name="trec-qrels",
        description="query iteration document grade",
        alias="trec",
        detect=_detect_qrels,
        reads={"qrels": read_qrels},
        writes={"qrels": qrels_bytes},
        suffixes={"qrels": (".trec", ".qrels", ".qrel", ".txt", "")},
    ),
    Format(
        name="trec-diversity",
        description="topic subtopic document judgment",
        detect=_detect_diversity,
        reads={"qrels": read_diversity_qrels},
        writes={"qrels": diversity_qrels_bytes},
    ),
)
