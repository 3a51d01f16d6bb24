"""Everything that is wrong or unusual in a file of a run or qrels, reported at once; pools are recognised."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from steelyard.errors import InputError
from steelyard.io.datasets import read_queries
from steelyard.io.files import bare_name, reading, streams_read_once
from steelyard.io.formats import POOL, Detected, Kind, detect, format_named, is_pool, is_pool_header
from steelyard.io.text import Source, shortened
from steelyard.io.trec import rising_scores
from steelyard.lazy import polars as pl
from steelyard.notes import Severity
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted


@dataclass(frozen=True)
class FileFinding:
    """One finding. An error means that the file cannot be used; a warning, that numbers may change."""

    severity: Severity
    text: str


@dataclass(frozen=True)
class Validation:
    """A file and the findings in it; it prints as a short paragraph."""

    path: Path
    kind: str | None
    format: str | None
    findings: tuple[FileFinding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the file can be used: no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    def __str__(self) -> str:
        names = {"run": "a run", "both": "a run and qrels", "pool": "a pool"}
        what = f"{names.get(self.kind, self.kind)}, format {self.format}" if self.kind else "not readable"
        lines = [f"{self.path}: {what}"]
        for finding in self.findings:
            mark = "" if finding.severity == "info" else f"{finding.severity}: "
            lines += [f"  {line}" for line in f"{mark}{finding.text}".split("\n")]
        return "\n".join(lines)


@streams_read_once()
def validate_file(
    path: str | Path, format: str | None = None, kind: Kind | None = None, columns: Mapping[str, str] | None = None
) -> Validation:
    """What a file holds and what is wrong with it. A file that cannot be read is a finding, not an exception.

    `columns` names the columns of a table by role, as {"doc_id": "passage"}.
    """
    if kind not in (None, "run", "qrels"):
        raise InputError(f"kind is {kind!r}; expected 'run' or 'qrels'.")
    source = Source(Path(path))
    try:
        with reading(source.path):
            if format is None and is_pool(source):  # it can be judged; it is neither a run nor qrels
                whole = is_pool_header(source.first_line)
                size = counted(len(source.jsonl) - whole, "document")
                missing = FileFinding("error", "the first line, which records how the pool was made, is missing")
                held = FileFinding("error" if kind else "info", f"{size}; {POOL}")
                return Validation(source.path, "pool", "jsonl", (held,) if whole else (held, missing))
            if format is not None and kind is not None:
                detected = Detected(kind, format, kind)
            else:
                detected = detect(source, columns, kind)
    except InputError as error:
        questions = _questions(source) if format is None and kind is None and not columns else None
        return questions or Validation(source.path, None, None, (FileFinding("error", error.message),))
    name = format or detected.format
    kinds: tuple[Kind, ...] = ("run", "qrels") if detected.both and kind is None else (kind or detected.likely,)
    findings = [FileFinding(detected.note.severity, str(detected.note))] if detected.note else []
    for read_as in kinds:
        try:
            with reading(source.path):
                declared = format_named(name, read_as, "reads")
                content = declared.reads[read_as](source, columns or {})
                findings += (FileFinding(note.severity, str(note)) for note in content.notes)
                findings += run_findings(content) if read_as == "run" else qrels_findings(content)
                if read_as == "run" and declared.checks is not None:
                    findings += itertools.starmap(FileFinding, declared.checks(source))
        except InputError as error:
            findings.append(FileFinding("error", error.message))
    return Validation(source.path, kinds[0] if len(kinds) == 1 else "both", name, tuple(findings))


def _questions(source: Source) -> Validation | None:
    """The validation of a list of questions; None if the file is not one."""
    try:
        queries, notes = read_queries(source.path)
    except InputError:
        return None
    form = bare_name(source.path).suffix.lower().lstrip(".")
    asked = sum(text.rstrip().endswith("?") for text in queries.values())
    if form not in ("csv", "tsv", "json", "jsonl", "ndjson", "parquet") and 2 * asked < len(queries):
        return None
    if "title" in queries.columns or median(map(len, queries.values())) > 500:
        return None  # half of the texts are longer: they are documents
    columns = f"; columns to slice by: {', '.join(queries.columns)}" if queries.columns else ""
    first = shortened(next(iter(queries.values())))
    size = f"{counted(len(queries), 'question')}, the first is {first!r}{columns}"
    findings = [FileFinding("info", size), *(FileFinding(note.severity, str(note)) for note in notes)]
    return Validation(source.path, "questions", form or "text", tuple(findings))


def run_findings(run: Run) -> Iterator[FileFinding]:
    """The findings on a run."""
    table = run.table
    size = f"{counted(len(run.queries), 'query', 'queries')}, {counted(table.height, 'document')}"
    yield FileFinding("info", f"run {run.name!r}: {size}")
    if not table.height:
        yield FileFinding("warning", "no documents")
        return
    depths = np.sort(table.group_by("query_id").len()["len"].to_numpy())
    median = f"median {np.median(depths):g}"
    yield FileFinding("info", f"documents per query: {depths[0]:,} to {depths[-1]:,}, {median}")
    if empty := len(run.queries) - len(depths):
        yield FileFinding("warning", f"{counted(empty, 'query has', 'queries have')} an empty list")
    repeats = table.filter(pl.struct("query_id", "doc_id").is_duplicated())
    if repeats.height:
        extra = repeats.height - repeats.select("query_id", "doc_id").unique().height
        times = counted(extra, "document is repeated", "documents are repeated")
        yield FileFinding("warning", f"{times} in the same list ({_example(repeats)})")
    scored = not table["score"].null_count()
    ties = table.filter(pl.struct("query_id", "score").is_duplicated() & scored)
    if ties.height:
        queries = counted(ties["query_id"].n_unique(), "query", "queries")
        tied = f"{ties.height:,} documents have the same score as another in their list, in {queries}"
        text = f"{tied}: their order depends on the tie policy ({_example(ties)})"
        yield FileFinding("info" if run.ordered else "warning", text)
    if scored and run.ordered:
        rising = rising_scores(run.frame, "scores increase within the order of the run in {where}")
        yield from itertools.starmap(FileFinding, rising)
    yield from _id_findings(table)


def qrels_findings(qrels: Qrels) -> Iterator[FileFinding]:
    """The findings on qrels."""
    yield FileFinding("info", qrels.summary)
    values, counts = np.unique(qrels.grades, return_counts=True)
    shown = ", ".join(f"{value:g} ({count:,})" for value, count in list(zip(values, counts, strict=True))[-10:])
    yield FileFinding("info", f"grades: {shown}" + (" and lower ones" if len(values) > 10 else ""))
    sizes = np.diff(qrels.judged.starts)
    above = np.bincount(qrels.doc_query[qrels.grades > 0], minlength=len(sizes))
    relevant = np.bincount(qrels.doc_query[qrels.grades >= 1], minlength=len(sizes))
    names = qrels.queries
    for chosen, text in (
        (sizes == 0, "without a judgment"),
        ((sizes > 0) & (above == 0), "without a relevant document"),
        ((above > 0) & (relevant == 0), "with grades above 0, but all below 1: not relevant without rel"),
    ):
        places = np.flatnonzero(chosen)
        if len(places):
            some = ", ".join(names[place] for place in places[:3].tolist())
            yield FileFinding("warning", f"{counted(len(places), 'query', 'queries')} {text} (as {some})")
    if np.any(qrels.grades != np.round(qrels.grades)):
        yield FileFinding("warning", "some grades are not whole numbers: are these grades, or the scores of a run?")
    if qrels.judged.doc_ids:
        yield from _id_findings(qrels.frame.drop_nulls("doc_id"))


def _id_findings(table: pl.DataFrame) -> Iterator[FileFinding]:
    """Ids with white space at their ends: it is part of the id."""
    for column in ("query_id", "doc_id"):
        padded = table.filter(pl.col(column) != pl.col(column).str.strip_chars())
        if padded.height:
            one, many = f"value of {column} starts or ends", f"values of {column} start or end"
            some = f"{counted(padded[column].n_unique(), one, many)} with white space, as {padded[column][0]!r}"
            yield FileFinding("warning", f"{some}: it matches only an id with the same white space")


def _example(rows: pl.DataFrame) -> str:
    first = rows.row(0, named=True)
    return f"as query {first['query_id']!r}, document {first['doc_id']!r}"
