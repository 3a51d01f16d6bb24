"""One format into another; what the new file cannot hold is refused or told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.formats.files import read_qrels, read_run, write_qrels, write_run
from steelyard.formats.named_columns import detect_named
from steelyard.formats.registry import FORMATS, Format, Kind, format_named, format_of_name
from steelyard.formats.source import Source
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.runs import Run


@dataclass(frozen=True)
class Converted:
    """What was done: a run or judgments, its format before and after, how much of it, and what to know."""

    kind: Kind
    before: str
    after: str
    queries: int
    rows: int
    notes: tuple[str, ...]

    def __str__(self) -> str:
        what = "run" if self.kind == "run" else "judgments"
        held = f"{counted(self.queries, 'query', 'queries')}, {counted(self.rows, 'document')}"
        text = f"{what}, {self.before} to {self.after}: {held}"
        return "\n".join([text, *(f"  {note}" for note in self.notes)])


def convert(
    in_path: Path,
    out_path: Path,
    from_format: str | None = None,
    to_format: str | None = None,
    kind: Kind | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    drop_empty: bool = False,
) -> Converted:
    """Read a run or judgments and write them as another format.

    Formats are found by the content of what is read and the name of what is written, unless named.
    `kind` says which it is, where the content fits both; `columns` names the columns of a table by
    role, as {"doc_id": "passage"}. `drop_empty` leaves out the queries that hold no documents.
    """
    in_path, out_path = Path(in_path), Path(out_path)
    before, kind = _before(in_path, from_format, to_format, kind, columns or {})
    after = format_of_name(out_path, kind) if to_format is None else format_named(to_format, kind, "writes")
    if kind == "run":
        run = read_run(in_path, before, columns)
        kept = run.without_empty() if drop_empty else run
        write_run(kept, out_path, after.name)
        notes = (*run.notes, *_told(run, after), *_dropped(run.queries, kept.queries))
        return Converted(kind, before, after.name, len(kept.queries), len(kept), notes)
    qrels = read_qrels(in_path, before, columns)
    judged = qrels.without_empty() if drop_empty else qrels
    write_qrels(judged, out_path, after.name)
    notes = (*qrels.notes, *_dropped(qrels.queries, judged.queries))
    return Converted(kind, before, after.name, len(judged.queries), len(judged), notes)


def _before(
    in_path: Path,
    from_format: str | None,
    to_format: str | None,
    kind: Kind | None,
    columns: Mapping[str, str],
) -> tuple[str, Kind]:
    """The format to read, and whether it is a run or judgments."""
    if from_format is not None and kind is not None:
        return format_named(from_format, kind, "reads").name, kind
    known = next((entry for entry in FORMATS if entry.name == from_format), None)
    if known is not None and len(known.reads) == 1:
        return known.name, known.reads[0]
    found = detect_named(Source(in_path), columns, kind)
    if kind is None:
        only = next((entry.writes for entry in FORMATS if entry.name == to_format), ())
        kind = only[0] if found.kind == "either" and len(only) == 1 else found.likely
    return from_format or found.format, kind


def _dropped(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """The note on queries that were left out."""
    kept = set(after)
    gone = [query for query in before if query not in kept]
    if not gone:
        return ()
    shown = ", ".join(map(repr, gone[:3])) + (", ..." if len(gone) > 3 else "")
    were = counted(len(gone), "query that holds no documents was", "queries that hold no documents were")
    return (f"{were} left out ({shown})",)


def _told(run: Run, after: Format) -> tuple[str, ...]:
    """What the new file says otherwise than the run does."""
    notes: list[str] = []
    scored = bool(len(run)) and not run.table["score"].null_count()
    if after.name == "msmarco" and scored:
        notes.append("msmarco has no column for scores: the order is kept, the scores are not")
    if after.name in ("trec-run", "ranx", "ranx-lz4") and not scored:
        notes.append("the run has no scores: each list was given n, n - 1, ... 1, which keep its order")
    if run.seconds is not None and after.name not in ("csv", "tsv", "parquet", "jsonl"):
        notes.append(f"{after.name} has no place for the seconds of each query")
    return tuple(notes)
