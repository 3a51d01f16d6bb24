"""Formats: what a module declares of a format, and every format by its name, its suffix or its content.

A format is one declaration, `Format(...)`, in the module of its tool: how it is recognised, read and written. Reading,
writing, `validate`, `convert`, the listings and the documentation take everything from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from steelyard.checks import unknown_name
from steelyard.errors import InputError
from steelyard.io.columns import TableKind, kind_of_table
from steelyard.io.files import bare_name, errors_name, reading, streams_read_once
from steelyard.io.shapes import LINES, POOL, Shape, is_pool, split_names, table_form
from steelyard.io.text import Source, shortened
from steelyard.listing import Listing
from steelyard.notes import Note, Severity, note
from steelyard.wording import in_words

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset
    from steelyard.evidence.evidence import Evidence

Kind: TypeAlias = Literal["run", "qrels"]


def name_them() -> str:
    """How a user names the columns of a table, for messages."""
    return in_words(
        'name them: Run.read(path, query_id="...", doc_id="..."), and also for Qrels.read.',
        "name them: --set columns=query_id=...,doc_id=... for a run, --set columns=qrels.query_id=...,qrels.doc_id=... "
        "for the qrels of runs; in bench.yaml, {path: FILE, query_id: ..., doc_id: ...}.",
    )


@dataclass(frozen=True)
class Detected:
    """The format of a file. `kind` is 'either' where the content fits both; `likely` is then the better guess.

    `both`: the file holds a run and qrels. `note` reports a choice that could have been another.
    """

    kind: TableKind
    format: str
    likely: Kind
    note: Note | None = None
    both: bool = False


def run_or_qrels(format: str, run: bool, qrels: bool) -> Detected | None:
    """What is detected in a file by what it holds; None if it holds neither."""
    if run and qrels:
        return Detected("either", format, "run", note("holds-run-and-qrels"), both=True)
    kind: Kind = "run" if run else "qrels"
    return Detected(kind, format, kind) if run or qrels else None


@dataclass(frozen=True)
class Layout:
    """A dataset of a format: how it is read, whether a folder or file is one, and the files that a folder holds."""

    read: Callable[..., Dataset]
    detect: Callable[[Path], bool]
    files: str = ""


@dataclass(frozen=True)
class EvidenceReader:
    """Evidence of a format: how the records of a file are read, and the fields by which they are recognised."""

    read: Callable[..., Evidence]
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """One format.

    `reads` and `writes` have a function for a run, for qrels, or for both. A reader takes a `Source` and the columns
    named by role, and returns a Run or Qrels; a writer takes a Run or Qrels and returns bytes. `detect` returns what it
    recognises in a file, or None; of several formats that recognise a file, the one declared last is chosen. `suffixes`
    are the names of files that are written in this format. `packed`: it compresses by itself. `scores`: a file drops
    the scores of a run, or requires some. `seconds`: it holds the seconds of a run. `scale`: it holds the lowest
    relevant grade of qrels. `checks` yields further findings on a run for `validate`, with a severity each.
    """

    name: str
    description: str
    detect: Callable[[Shape], Detected | None] | None = None
    reads: Mapping[Kind, Callable[..., Any]] = field(default_factory=dict)
    writes: Mapping[Kind, Callable[..., bytes]] = field(default_factory=dict)
    suffixes: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)
    alias: str | None = None
    packed: bool = False
    scores: Literal["kept", "dropped", "required"] = "kept"
    seconds: bool = False
    scale: bool = False
    checks: Callable[[Source], Iterator[tuple[Severity, str]]] | None = None
    dataset: Layout | None = None
    evidence: EvidenceReader | None = None


_MODULES = (
    *("evidence", "trec", "json", "tables", "beir", "autorag", "ragas", "multihop_rag", "msmarco", "mteb"),
    *("llama_index", "ranx", "judgments", "ir_datasets"),
)
"""The modules that declare formats; a later format is asked before an earlier one whether a file is its own."""

_registered: list[Format] = []


def every_format() -> tuple[Format, ...]:
    """Every format, those of datasets and of evidence included. A clean TREC file needs none of their modules."""
    modules = [import_module(f"steelyard.io.{name}") for name in _MODULES]
    return (*(declared for module in modules for declared in module.FORMATS), *_registered)


def register_format(new: Format) -> None:
    """Add a format; its name must be new."""
    if any(new.name == fmt.name for fmt in every_format()):
        raise InputError(f"there is already a format {new.name!r}; choose another name.")
    _registered.append(new)


def list_formats() -> Listing[Format]:
    """Every format of runs and qrels, by its name; it prints as a table."""
    return Listing(
        {fmt.name: fmt for fmt in every_format() if fmt.reads},
        ("format", "description", "reads", "writes"),
        lambda fmt: (fmt.name, fmt.description, ", ".join(fmt.reads), ", ".join(fmt.writes)),
    )


def format_named(name: str, kind: Kind, doing: Literal["reads", "writes"]) -> Format:
    """The format of that name; an error if it does not read (or write) a run or qrels, as `kind` asks."""
    able = [fmt for fmt in list_formats().values() if kind in getattr(fmt, doing)]
    chosen = next((fmt for fmt in able if name in (fmt.name, fmt.alias)), None)
    if chosen is not None:
        return chosen
    names = [fmt.name for fmt in able]
    if name not in list_formats():
        raise InputError(unknown_name("format", name, names))
    action = f"{doing.removesuffix('s')} {'runs' if kind == 'run' else kind}"
    raise InputError(f"format {name!r} cannot {action}; these can: {', '.join(names)}.")


def format_of_name(path: Path, kind: Kind) -> Format:
    """The format that a file's suffix asks for when it is written; a suffix of compression is skipped.

    >>> format_of_name(Path("bm25.run.gz"), "run").name, format_of_name(Path("qrels.tsv"), "qrels").name
    ('trec-run', 'beir')
    """
    by_suffix = {suffix: fmt for fmt in list_formats().values() for suffix in fmt.suffixes.get(kind, ())}
    suffix = bare_name(path).suffix.lower()
    # A format that compresses by itself has the suffix of its compression, as ranx's .lz4.
    packed = suffix + path.suffix.lower() if path != bare_name(path) else suffix
    chosen = by_suffix.get(packed, by_suffix.get(suffix))
    if chosen is None:
        suffixes = sorted(filter(None, by_suffix))
        raise InputError(f"unknown suffix {suffix!r}; expected one of {', '.join(suffixes)}, or name the format.", path)
    return chosen


def singular(kind: Kind) -> str:
    """'a run' or 'qrels'."""
    return "a run" if kind == "run" else "qrels"


@streams_read_once()
def sniff(path: Path) -> Detected:
    """The format of a file; an error if it is unknown."""
    return detect(Source(Path(path)))


def detect(source: Source, columns: Mapping[str, str] | None = None, kind: Kind | None = None) -> Detected:
    """The format of an opened file. `columns` named by role, and `kind`, decide what a table holds."""
    with errors_name(source.path), reading(source.path):
        if is_pool(source):
            raise InputError(POOL)
        shape = Shape(source)
        try:
            detected = _by_content(shape)
        except InputError:
            form = table_form(source)
            if not columns or form is None:
                raise
            return _by_roles(shape, form, columns, kind)
        name = detected.format
        is_table = name in ("csv", "tsv", "parquet", "jsonl") or name == shape.form == "json"
        return _by_roles(shape, name, columns, kind) if columns and is_table else detected


def _by_content(shape: Shape) -> Detected:
    for fmt in reversed(every_format()):
        if fmt.detect is not None and (detected := fmt.detect(shape)) is not None:
            return detected
    if not shape.rows:
        raise InputError("the file holds only comments; expected qrels or a run.")
    _refuse_unknown_table(shape.lines)
    first = shortened(shape.lines[0].decode(errors="replace").strip())
    raise InputError(
        f"unknown format; the file starts with {first!r}. Expected a TREC run or qrels, "
        "a CSV or TSV table with a header, JSON, JSON lines or Parquet; "
        + in_words("format=...", "`steelyard convert IN OUT --from FORMAT`")
        + " selects one and reports what is wrong."
    )


def _refuse_unknown_table(lines: list[bytes]) -> None:
    """An error for a table whose columns have unknown names, or another separator."""
    for separator, called in ((",", "commas"), ("\t", "tabs"), (";", "semicolons")):
        widths = {line.count(separator.encode()) for line in lines[:LINES]}
        if len(lines) < 2 or len(widths) != 1 or widths == {0}:
            continue
        columns = ", ".join(split_names(lines[0].decode(errors="replace"), separator))
        if separator == ";":
            raise InputError(f"a table separated by semicolons; expected commas or tabs (columns {columns}).")
        raise InputError(
            f"a table separated by {called}, and none of its columns ({columns}) is known to hold the query or "
            f"the document. Call them query_id and doc_id (and score, rank or grade) in the first line, or "
            f"{name_them()}"
        )


def _by_roles(shape: Shape, form: str, columns: Mapping[str, str], kind: Kind | None) -> Detected:
    """What a table holds, by the roles for which its columns are named."""
    for_run, for_qrels = columns.keys() & {"score", "rank", "seconds"}, columns.keys() & {"grade", "target"}
    if for_run or for_qrels:
        held: TableKind = kind or ("run" if for_run else "qrels")
    else:
        role_of = {name: role for role, name in columns.items()}
        held = kind_of_table([role_of.get(name, name) for name in shape.names_as(form)]) or "either"
    return Detected(held, form, "qrels" if held == "qrels" else "run")
