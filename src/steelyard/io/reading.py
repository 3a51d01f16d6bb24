"""Reading, writing and converting files of runs and qrels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import InputError
from steelyard.io.detect import Detected, detect_named, sniff
from steelyard.io.files import Source
from steelyard.io.registry import FORMATS, Format, Kind, format_named, format_of_name
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.qrels import Qrels
    from steelyard.run import Run


def read_qrels(path: Path, format: str | None = None, columns: Mapping[str, str] | None = None) -> Qrels:
    """The judgments of a file; the format is found by content unless one is named.

    `columns` names the columns of a table by role, as {"doc_id": "passage"}.
    """
    source = Source(Path(path))
    _refuse_folder(source.path, "qrels")
    named = _as_text(columns)
    with _speaking_of(source.path):
        entry, notes = _format(source, format, "qrels", named)
        qrels: Qrels = entry.load().read_qrels(source, named)
    qrels.notes = (*notes, *qrels.notes)
    return qrels


def read_run(path: Path, format: str | None = None, columns: Mapping[str, str] | None = None) -> Run:
    """The run of a file; the format is found by content unless one is named. `columns` as for judgments."""
    source = Source(Path(path))
    _refuse_folder(source.path, "run")
    named = _as_text(columns)
    with _speaking_of(source.path):
        entry, notes = _format(source, format, "run", named)
        run: Run = entry.load().read_run(source, named)
    run.notes = (*notes, *run.notes)
    return run


def write_qrels(qrels: Qrels, path: Path, format: str | None = None) -> None:
    """Write judgments, in the format named or the one the file's name asks for; whole, or not at all."""
    from steelyard.io.files import write_file

    path = Path(path)
    entry = format_of_name(path, "qrels") if format is None else format_named(format, "qrels", "writes")
    with _speaking_of(path):
        write_file(path, entry.load().qrels_bytes(qrels), entry.packed)


def write_run(run: Run, path: Path, format: str | None = None) -> None:
    """Write a run, in the format named or the one the file's name asks for; whole, or not at all."""
    from steelyard.io.files import write_file

    path = Path(path)
    entry = format_of_name(path, "run") if format is None else format_named(format, "run", "writes")
    with _speaking_of(path):
        write_file(path, entry.load().run_bytes(run), entry.packed)


def _refuse_folder(path: Path, kind: Kind) -> None:
    if path.is_dir():
        raise folder_error(path, kind)


def _as_text(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Columns by role; a column that is called by a number is called by its digits in a file."""
    return {role: str(name) for role, name in (columns or {}).items() if name is not None}


def _format(
    source: Source, format: str | None, kind: Kind, columns: Mapping[str, str]
) -> tuple[Format, tuple[str, ...]]:
    if format is not None:
        return format_named(format, kind, "reads"), ()
    found = detect_named(source, columns, kind)
    if found.kind not in (kind, "either"):
        raise InputError(wrong_kind(source.path, found, kind))
    notes = (found.note,) if found.note else ()
    if found.kind == "either" and found.likely != kind and not found.note:
        notes = (f"read as {_noun(kind)}, as asked; it could be {_noun(found.likely)} as well",)
    return format_named(found.format, kind, "reads"), notes


def wrong_kind(path: Path, found: Detected, wanted: Kind) -> str:
    """A run given for judgments, or the other way round."""
    got: Kind = "run" if wanted == "qrels" else "qrels"
    return (
        f"{path} is {_noun(got)} (format {found.format}), and {_noun(wanted)} was expected. "
        "Are the two files swapped? format= insists on a format."
    )


def _noun(kind: Kind) -> str:
    return "a run" if kind == "run" else "a file of judgments"


@contextmanager
def _speaking_of(path: Path) -> Iterator[None]:
    """Errors of what is read or written name the file."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error).split("\n", 1)[0]:
            raise
        raise type(error)(f"{path}: {error}") from None


_LOOKED_AT = 100
_SHOWN = 5


def folder_error(folder: Path, kind: Kind) -> InputError:
    """An error that names the files of that kind in the folder and in those right below it; else what it holds."""
    wanted = "a run" if kind == "run" else "judgments"
    meant = [path for path in _files(folder) if _could_be(path, kind)]
    if meant:
        said = f"Which of these was meant: {_listed(meant)}?"
    else:
        held = [path.relative_to(folder) for path in sorted(folder.iterdir())]
        what = f"It holds {_listed(held)}" if held else "It is empty"
        said = f"{what}; nothing in it reads as {wanted}."
    return InputError(f"{folder} is a folder; expected a file with {wanted}. {said}")


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder, then those of the folders in it, hidden ones left out; a hundred at the most."""
    shown = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    below = [path for sub in shown if sub.is_dir() for path in sorted(sub.iterdir())]
    found = [path for path in (*shown, *below) if path.is_file() and not path.name.startswith(".")]
    yield from found[:_LOOKED_AT]


def _could_be(path: Path, kind: Kind) -> bool:
    try:
        return sniff(path).kind in (kind, "either")
    except InputError:
        return False


def _listed(paths: list[Path]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(map(str, paths[:_SHOWN])) + more


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
