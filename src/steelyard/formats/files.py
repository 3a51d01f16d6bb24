"""Reading and writing files: find the format, read it, and say of which file an error speaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import InputError
from steelyard.formats.named_columns import detect_named
from steelyard.formats.registry import Format, Kind, format_named, format_of_name
from steelyard.formats.sniffing import Detected
from steelyard.formats.source import Source

if TYPE_CHECKING:
    from steelyard.judgments import Qrels
    from steelyard.runs import Run


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
    from steelyard.formats.atomic import write_file

    path = Path(path)
    entry = format_of_name(path, "qrels") if format is None else format_named(format, "qrels", "writes")
    with _speaking_of(path):
        write_file(path, entry.load().qrels_bytes(qrels), entry.packed)


def write_run(run: Run, path: Path, format: str | None = None) -> None:
    """Write a run, in the format named or the one the file's name asks for; whole, or not at all."""
    from steelyard.formats.atomic import write_file

    path = Path(path)
    entry = format_of_name(path, "run") if format is None else format_named(format, "run", "writes")
    with _speaking_of(path):
        write_file(path, entry.load().run_bytes(run), entry.packed)


def _refuse_folder(path: Path, kind: Kind) -> None:
    if path.is_dir():
        from steelyard.formats.folders import folder_error

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
