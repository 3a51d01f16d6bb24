"""Reading, writing and converting files of runs and qrels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.errors import InputError, WrongKindError
from steelyard.io.files import distinct_names, errors_name, listing, reading, streams_read_once, write_file
from steelyard.io.formats import Format, Kind, detect, format_named, format_of_name, list_formats, singular, sniff
from steelyard.io.text import Source
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted, in_words


@streams_read_once()
def read_qrels(path: Path, format: str | None = None, columns: Mapping[str, str] | None = None) -> Qrels:
    """The qrels of a file; the format is detected from the content unless one is named.

    `columns` names the columns of a table by role, as {"doc_id": "passage"}.
    """
    if format is None and not columns:
        # The kernel reads a regular TREC file in one pass. No other format is loaded for it: this is what most commands
        # start with.
        from steelyard.io.trec import read_regular_qrels

        regular = read_regular_qrels(Path(path))
        if regular is not None:
            return Qrels.from_columns(*regular)
    qrels: Qrels = _read(Path(path), format, columns, "qrels")
    return qrels


def read_run(path: Path, format: str | None = None, columns: Mapping[str, str] | None = None) -> Run:
    """The run of a file; the format is detected from the content unless one is named. `columns` as for qrels."""
    run: Run = _read(Path(path), format, columns, "run")
    return run


def write_qrels(qrels: Qrels, path: Path, format: str | None = None) -> None:
    """Write qrels atomically, in the format named or that of the file's suffix."""
    _write(qrels, Path(path), format, "qrels")


def runs_by_name(runs: Mapping[str, Any] | Iterable[Any] | str | Path | Run | None) -> dict[str, Run]:
    """The runs by distinct names."""
    if isinstance(runs, Mapping):
        return {str(name): Run.of(run, str(name)) for name, run in runs.items()}
    given = [runs] if isinstance(runs, (Run, str, Path)) else list(runs or ())
    read = [Run.of(run) for run in given]
    return dict(zip(distinct_names([run.name for run in read], given), read, strict=True))


def write_run(run: Run, path: Path, format: str | None = None) -> None:
    """Write a run atomically, in the format named or that of the file's suffix."""
    _write(run, Path(path), format, "run")


@streams_read_once()
def _read(path: Path, format: str | None, columns: Mapping[str, str] | None, kind: Kind) -> Any:
    if path.is_dir():
        raise folder_error(path, kind)
    source = Source(path)
    # A column whose name is a number has its digits as name in a file.
    named = {role: str(name) for role, name in (columns or {}).items() if name is not None}
    with errors_name(path), reading(path):
        entry, notes = _format(source, format, kind, named)
        read = entry.reads[kind](source, named)
    read.notes = (*notes, *read.notes)
    return read


def _write(content: Run | Qrels, path: Path, format: str | None, kind: Kind) -> None:
    entry = format_of_name(path, kind) if format is None else format_named(format, kind, "writes")
    with errors_name(path):
        write_file(path, entry.writes[kind](content), entry.packed)


def _format(source: Source, name: str | None, kind: Kind, named: Mapping[str, str]) -> tuple[Format, tuple[Note, ...]]:
    """The format to read, and the notes on how it was chosen."""
    if name is not None:
        return format_named(name, kind, "reads"), ()
    detected = detect(source, named, kind)
    if detected.kind not in (kind, "either"):
        hint = in_words(" Are the two files swapped? format=... selects a format.", " Are the two files swapped?")
        held = f"{singular('qrels' if kind == 'run' else 'run')} (format {detected.format})"
        raise WrongKindError(f"this file holds {held}; expected {singular(kind)}.{hint}")
    notes = (detected.note,) if detected.note else ()
    if detected.kind == "either" and detected.likely != kind and not detected.note:
        notes = (note("read-as", kind=kind, other=detected.likely),)
    return format_named(detected.format, kind, "reads"), notes


def folder_error(folder: Path, kind: Kind) -> InputError:
    """The error for a folder: the files of that kind in it and one level below, or else its content."""
    shown = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    below = [path for sub in shown if sub.is_dir() for path in sorted(sub.iterdir())]
    files = [path for path in (*shown, *below) if path.is_file() and not path.name.startswith(".")]
    candidates = []
    for path in files[:100]:
        with suppress(InputError):
            if sniff(path).kind in (kind, "either"):
                candidates.append(path)
    if candidates:
        more = f" and {len(candidates) - 5} more" if len(candidates) > 5 else ""
        hint = f"Did you mean one of these: {', '.join(map(str, candidates[:5]))}{more}?"
    else:
        hint = f"Nothing in it can be read as {singular(kind)}; it holds {listing(folder)}."
    return InputError(f"this is a folder; expected a file with {singular(kind)}. {hint}", folder)


@dataclass(frozen=True)
class Converted:
    """What was converted: a run or qrels, its formats before and after, its size, and notes."""

    kind: Kind
    before: str
    after: str
    queries: int
    rows: int
    notes: tuple[Note, ...]

    def __str__(self) -> str:
        size = f"{counted(self.queries, 'query', 'queries')}, {counted(self.rows, 'document')}"
        return "\n".join([f"{self.kind}, {self.before} to {self.after}: {size}", *(f"  {note}" for note in self.notes)])


@streams_read_once()
def convert(
    in_path: str | Path,
    out_path: str | Path,
    from_format: str | None = None,
    to_format: str | None = None,
    kind: Kind | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    drop_empty: bool = False,
    by_rank: bool = False,
) -> Converted:
    """Read a run or qrels and write it in another format.

    The format to read is detected from the content, and the one to write from the suffix, unless
    they are named. `kind` is needed where the content fits both; `columns` names the columns of a
    table by role, as {"doc_id": "passage"}. `drop_empty` drops the queries without documents. `by_rank`
    replaces the scores of a run by n, n - 1, ... 1, so that they follow its order where its own do not.
    """
    in_path, out_path = Path(in_path), Path(out_path)
    before, kind = _before(in_path, from_format, to_format, kind, columns or {})
    after = format_of_name(out_path, kind) if to_format is None else format_named(to_format, kind, "writes")
    read = _read(in_path, before, columns, kind)
    if by_rank and kind != "run":
        raise InputError("the scores of a run can follow its ranks, and these are qrels; leave by_rank out.", in_path)
    kept = read.without_empty() if drop_empty else read
    _write(scored_by_rank(kept) if by_rank else kept, out_path, after.name, kind)
    notes = (*read.notes, *_loss_notes(read, kept, after, by_rank))
    return Converted(kind, before, after.name, len(kept.queries), len(kept), notes)


def scored_by_rank(run: Run) -> Run:
    """The run with the scores n, n - 1, ... 1 in a list of n, in the order of the list."""
    from steelyard.io.json import rows_by_query
    from steelyard.io.trec import with_scores

    return Run(rows_by_query(run, with_scores(run.frame)), run.name, seconds=run.seconds)


def _before(
    in_path: Path, from_format: str | None, to_format: str | None, kind: Kind | None, columns: Mapping[str, str]
) -> tuple[str, Kind]:
    """The format to read, and whether it is a run or qrels."""
    if from_format is not None and kind is not None:
        return format_named(from_format, kind, "reads").name, kind
    by_name = list_formats()
    if from_format and from_format in by_name and len(by_name[from_format].reads) == 1:
        return from_format, next(iter(by_name[from_format].reads))
    detected = detect(Source(in_path), columns, kind)
    if kind is None:
        only = list(by_name[to_format].writes) if to_format and to_format in by_name else []
        kind = only[0] if detected.kind == "either" and len(only) == 1 else detected.likely
    return from_format or detected.format, kind


def _loss_notes(read: Run | Qrels, kept: Run | Qrels, after: Format, by_rank: bool) -> Iterator[Note]:
    """What the new file does not keep of a run or of qrels, or keeps in another form."""
    if isinstance(read, Qrels):
        if read.relevant_from is not None and not after.scale:
            yield note("scale-dropped", format=after.name, level=read.relevant_from)
        if read.ranges is not None and not after.scale:
            yield note("ranges-dropped", format=after.name)
    else:
        scored = bool(len(read)) and not read.table["score"].null_count()
        if scored and after.scores == "dropped":
            yield note("scores-dropped", format=after.name)
        elif scored and by_rank:
            yield note("scores-replaced-by-ranks")
        elif not scored and after.scores == "required":
            yield note("scores-made-from-ranks")
        if read.seconds is not None and not after.seconds:
            yield note("seconds-dropped", format=after.name)
    left = set(kept.queries)
    gone = [query for query in read.queries if query not in left]
    if gone:
        yield note("empty-queries-dropped", count=len(gone), queries=gone[:3])
