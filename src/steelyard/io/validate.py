"""What is right and wrong with a file, all of it at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from steelyard.errors import InputError
from steelyard.io.detect import Detected, detect_named
from steelyard.io.files import Source
from steelyard.io.registry import Kind, format_named
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

    from steelyard.qrels import Qrels
    from steelyard.run import Run


Severity: TypeAlias = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One thing found. An error keeps the file from being used; a warning may change numbers."""

    severity: Severity
    text: str


@dataclass(frozen=True)
class Validation:
    """A file and what was found in it; it prints as a short paragraph."""

    path: Path
    kind: str | None
    format: str | None
    findings: tuple[Finding, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether the file can be used: no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    def __str__(self) -> str:
        names = {"run": "a run", "qrels": "judgments", "both": "a run and judgments"}
        what = f"{names[self.kind]}, format {self.format}" if self.kind else "not readable"
        return "\n".join([f"{self.path}: {what}", *(_shown(finding) for finding in self.findings)])


def validate_file(
    path: Path,
    format: str | None = None,
    kind: Kind | None = None,
    columns: Mapping[str, str] | None = None,
) -> Validation:
    """What a file is and what is wrong with it. A file that is wrong is a finding, not an exception.

    `columns` names the columns of a table by role, as {"doc_id": "passage"}.
    """
    if kind not in (None, "run", "qrels"):
        raise InputError(f"kind is {kind!r}; expected 'run' or 'qrels'.")
    source = Source(Path(path))
    try:
        detected = (
            detect_named(source, columns or {}, kind)
            if format is None or kind is None
            else Detected(kind, format, kind)
        )
    except InputError as error:
        return Validation(source.path, None, None, (_error(error, source.path),))
    name = format or detected.format
    kinds: tuple[Kind, ...] = (kind or detected.likely,)
    if kind is None and detected.note.startswith("holds a run and judgments"):
        kinds = ("run", "qrels")
    findings = [Finding("info", detected.note)] if detected.note else []
    for each in kinds:
        try:
            findings += _findings(source, name, each, columns or {})
        except InputError as error:
            findings.append(_error(error, source.path))
    return Validation(source.path, kinds[0] if len(kinds) == 1 else "both", name, tuple(findings))


def _findings(source: Source, format: str, kind: Kind, columns: Mapping[str, str]) -> Iterator[Finding]:
    module = format_named(format, kind, "reads").load()
    if kind == "run":
        run: Run = module.read_run(source, columns)
        yield from (Finding("info", note) for note in run.notes)
        yield from run_findings(run)
        if format == "trec-run":
            yield from _rank_findings(source)
    else:
        qrels: Qrels = module.read_qrels(source, columns)
        yield from (Finding("info", note) for note in qrels.notes)
        yield from qrels_findings(qrels)


def run_findings(run: Run) -> Iterator[Finding]:
    """What there is to say of a run."""
    import polars as pl

    table = run.table
    yield Finding(
        "info",
        f"run {run.name!r}: {counted(len(run.queries), 'query', 'queries')}, "
        f"{counted(table.height, 'document')}",
    )
    if not table.height:
        yield Finding("warning", "no document at all")
        return
    depths = np.sort(table.group_by("query_id").len()["len"].to_numpy())
    yield Finding("info", f"documents a query: {depths[0]:,} to {depths[-1]:,}, median {np.median(depths):g}")
    empty = len(run.queries) - len(depths)
    if empty:
        yield Finding("warning", f"{counted(empty, 'query is', 'queries are')} answered with nothing")
    repeats = table.filter(pl.struct("query_id", "doc_id").is_duplicated())
    if repeats.height:
        extra = repeats.height - repeats.select("query_id", "doc_id").unique().height
        some = _example(repeats)
        yield Finding(
            "warning", f"{counted(extra, 'document comes', 'documents come')} again in the same list ({some})"
        )
    if not table["score"].null_count():
        yield from _score_findings(run)
    yield from _id_findings(table)


def _score_findings(run: Run) -> Iterator[Finding]:
    import polars as pl

    ties = run.table.filter(pl.struct("query_id", "score").is_duplicated())
    if ties.height:
        queries = ties["query_id"].n_unique()
        yield Finding(
            "info" if run.ordered else "warning",
            f"{ties.height:,} documents tie with another of their list, in "
            f"{counted(queries, 'query', 'queries')}: "
            f"their order depends on the tie rule ({_example(ties)})",
        )
    if run.ordered:
        rising = run.frame.filter((pl.col("score").diff() > 0).over("query_id"))
        if rising.height:
            queries = rising["query_id"].n_unique()
            yield Finding(
                "warning",
                f"scores rise within the order of {counted(queries, 'query', 'queries')} "
                f"({_example(rising)})",
            )


def _rank_findings(source: Source) -> Iterator[Finding]:
    """The rank column of a TREC run is not used: say where it tells another order than the scores."""
    import polars as pl

    from steelyard.io.trec_run import EXPECTED, check, passes
    from steelyard.io.white_space import frame_columns

    def keep(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.select(query_id="c0", doc_id="c2", rank=number("c3"), score=number("c4"))

    def number(column: str) -> pl.Expr:
        return pl.col(column).cast(pl.Float64)

    rows, _ = frame_columns(source.path, 6, passes, keep, check, EXPECTED)
    rising = rows.sort("query_id", "rank").filter((pl.col("score").diff() > 0).over("query_id"))
    if rising.height:
        queries = rising["query_id"].n_unique()
        yield Finding(
            "warning",
            f"the rank column tells another order than the scores in {counted(queries, 'query', 'queries')} "
            f"({_example(rising)}); scores are used, as trec_eval does",
        )


def qrels_findings(qrels: Qrels) -> Iterator[Finding]:
    """What there is to say of judgments."""
    yield Finding("info", repr(qrels).removeprefix("Qrels: "))
    values, counts = np.unique(qrels.grades, return_counts=True)
    shown = ", ".join(
        f"{value:g} ({count:,})" for value, count in list(zip(values, counts, strict=True))[-10:]
    )
    yield Finding("info", f"grades: {shown}" + (" and lower ones" if len(values) > 10 else ""))
    sizes = np.diff(qrels.judged.starts)
    above = np.bincount(qrels.doc_query[qrels.grades > 0], minlength=len(sizes))
    relevant = np.bincount(qrels.doc_query[qrels.grades >= 1], minlength=len(sizes))
    names = qrels.queries
    for places, text in (
        (np.flatnonzero(sizes == 0), "without a judgment"),
        (np.flatnonzero((sizes > 0) & (above == 0)), "without a relevant document"),
        (
            np.flatnonzero((above > 0) & (relevant == 0)),
            "with grades above 0, but all below 1: not relevant without rel",
        ),
    ):
        if len(places):
            some = ", ".join(names[place] for place in places[:3].tolist())
            yield Finding("warning", f"{counted(len(places), 'query', 'queries')} {text} (as {some})")
    if np.any(qrels.grades != np.round(qrels.grades)):
        yield Finding("warning", "some grades are not whole numbers: are these judgments, or a run's scores?")
    if qrels.judged.doc_ids:
        yield from _id_findings(qrels.frame.drop_nulls("doc_id"))


def _id_findings(table: pl.DataFrame) -> Iterator[Finding]:
    """Ids that will not meet their like: blanks around them are part of an id."""
    import polars as pl

    for column in ("query_id", "doc_id"):
        padded = table.filter(pl.col(column) != pl.col(column).str.strip_chars())
        if padded.height:
            yield Finding(
                "warning",
                f"{counted(padded[column].n_unique(), f'value of {column} begins or ends', f'values of {column} begin or end')} "
                "with white space, "
                f"as {padded[column][0]!r}: such an id meets only its exact like",
            )


def _example(rows: pl.DataFrame) -> str:
    first = rows.row(0, named=True)
    return f"as query {first['query_id']!r}, document {first['doc_id']!r}"


def _error(error: InputError, path: Path) -> Finding:
    return Finding("error", str(error).removeprefix(f"{path}: "))


def _shown(finding: Finding) -> str:
    mark = {"error": "error: ", "warning": "warning: ", "info": ""}[finding.severity]
    return "\n".join(f"  {line}" for line in f"{mark}{finding.text}".split("\n"))
