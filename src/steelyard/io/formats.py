"""Formats: what a module declares of a format, and every format by its name, its suffix or its content.

A format is one declaration, `Format(...)`, in the module of its tool: how it is recognised, read and written. Reading,
writing, `validate`, `convert`, the listings and the documentation take everything from there. A file is recognised by
its shape: Parquet, JSON, a table with a header, or lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from steelyard.checks import unknown_name
from steelyard.errors import InputError
from steelyard.io.columns import QRELS_LISTS, RUN_LISTS, TableKind, first_named, kind_of_records, kind_of_table
from steelyard.io.files import LZ4, bare_name, errors_name, reading, streams_read_once
from steelyard.io.text import FIRST_LINES, Source, number, shortened
from steelyard.lazy import json
from steelyard.listing import Listing
from steelyard.notes import Note, Severity, note
from steelyard.wording import in_words

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset
    from steelyard.evidence.evidence import Evidence


Form: TypeAlias = Literal["lz4", "parquet", "jsonl", "json", "object", "tsv", "csv", "lines"]
"""json: a list of records; object: one JSON object; tsv, csv: a header with known names; lines: any other text."""
LINES = 500  # How many lines, and records, are looked at.
_SEPARATORS: dict[Form, str] = {"tsv": "\t", "csv": ","}
_ARCHIVES = {b"PK\x03\x04": "a zip archive", b"BZh": "bzip2 data", b"\xfd7zXZ": "xz data"}


class Shape:
    """What a file looks like before its format is known. Everything is read when it is first asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def form(self) -> Form:
        """The form of the whole file; an error if it is empty or an archive."""
        source = self.source
        if source.head.startswith(LZ4):
            return "lz4"
        if not source.start:
            raise InputError("the file is empty; expected qrels or a run.")
        archive = next((name for magic, name in _ARCHIVES.items() if source.start.startswith(magic)), None)
        if archive is not None:
            raise InputError(f"{archive}; unpack it first (gzip, Zstandard and LZ4 are read directly).")
        if source.start.startswith(b"PAR1"):
            return "parquet"
        if source.start.startswith((b"{", b"[")):
            rows = [fields for line in source.head_lines[:LINES] if (fields := line.split())]
            # An id in a TREC file may start with anything.
            if set(map(_line_shape, rows)) not in ({"run"}, {"qrels"}):
                if _is_json_lines(source):
                    return "jsonl"
                return "json" if isinstance(source.json, list) else "object"
        # A table has its header in the first line. The lines below may hold anything in quotes.
        if _line_shape(source.first_line.encode().split()):
            return "lines"
        for form in _SEPARATORS:
            names = split_names(source.first_line, _SEPARATORS[form])
            if len(names) > 1 and (kind_of_table(names) or first_named(names, (*RUN_LISTS, *QRELS_LISTS))):
                return form
        return "lines"

    @cached_property
    def names(self) -> list[str]:
        """The names of a table's columns, or of the fields of the first records; none for other forms."""
        return self.names_as(self.form)

    def names_as(self, form: str) -> list[str]:
        """The same if the file is read in that form."""
        if form == "parquet":
            return self.source.parquet.columns
        if form in ("json", "jsonl"):
            records = self.source.json if form == "json" else self.source.first_objects
            named = [record for record in records[:FIRST_LINES] if isinstance(record, Mapping)]
            return list(dict.fromkeys(name for record in named for name in record))
        return split_names(self.source.first_line, _SEPARATORS[form]) if form in _SEPARATORS else []

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines of the head that are not blank."""
        return [line for line in self.source.head_lines if line.strip()]

    @cached_property
    def rows(self) -> list[list[bytes]]:
        """The fields of the lines, separated by white space, without comments."""
        return [fields for line in self.lines if not (fields := line.split())[0].startswith(b"#")]

    @cached_property
    def line_shape(self) -> str:
        """What most lines look like, in a file of that form: 'run', 'qrels', 'three' columns, or '' (none)."""
        if self.form != "lines" or not self.rows:
            return ""
        shapes = [_line_shape(fields) for fields in self.rows[:LINES]]
        return max(("run", "qrels", "three", ""), key=shapes.count)


def table_form(source: Source) -> str | None:
    """The form of a table, whatever the names of its columns: Parquet, JSON lines, JSON, TSV or CSV."""
    if source.start.startswith(b"PAR1"):
        return "parquet"
    if source.start.startswith(b"["):
        return "json"
    if source.start.startswith(b"{"):
        return "jsonl"
    return "tsv" if "\t" in source.first_line else "csv" if "," in source.first_line else None


def split_names(line: str, separator: str) -> list[str]:
    """The names in a header line."""
    return [name.strip().strip('"') for name in line.split(separator)]


def is_ranked(rows: Sequence[list[bytes]]) -> bool:
    """Whether column 2 counts 1, 2, 3, ... in each query (column 0), and some query has two documents or more."""
    ranks: dict[bytes, list[float | None]] = {}
    for fields in rows:
        ranks.setdefault(fields[0], []).append(number(fields[2]))
    listed = list(ranks.values())
    # The last of several queries is not looked at: the end of the head may cut it.
    counts = all(set(column) == set(range(1, len(column) + 1)) for column in (listed[:-1] or listed))
    return counts and max(map(len, listed), default=0) > 1


def _line_shape(fields: list[bytes]) -> str:
    width = len(fields)
    if width >= 5 and number(fields[3]) is not None and number(fields[4]) is not None:
        return "run"
    if width == 4 and number(fields[3]) is not None:
        return "qrels"
    return "three" if width == 3 and number(fields[2]) is not None else ""


def _is_json_lines(source: Source) -> bool:
    """Whether the first line is a whole object, and another follows or it is itself the record of a query."""
    head = source.head
    is_long = not source.whole_head and b"\n" not in head.strip()
    if is_long:
        # One line longer than the head: another object may follow it.
        end = source.data.find(b"\n", len(head))
        if end >= 0 and (following := source.data[end : end + 100].lstrip()):
            return following.startswith(b"{")
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 3) if line.strip()]
    try:
        first: Any = source.json if is_long else json.loads(lines[0])
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return False
    # A whole dataset in one line, as LlamaIndex writes it, has an object of queries; a record is of one query.
    if not isinstance(first, dict) or isinstance(first.get("queries"), dict):
        return False
    if len(lines) > 1:
        return lines[1].lstrip().startswith(b"{")
    scalars = any(not isinstance(value, (dict, list)) for value in first.values())
    return kind_of_records(list(first)) is not None and scalars


# Pools of documents to judge are recognised where a run or qrels are expected: they have no scores and no grades.
POOL = "this is a pool: documents to judge, without grades; judge it first with `steelyard judge`."
_POOL_FIELDS = {"query_id", "doc_id", "priority", "runs", "ranks", "strategy"}


def is_pool(source: Source) -> bool:
    """Whether a file is a pool, also where its first line, which records how it was made, was removed."""
    if not source.start.startswith(b"{"):
        return False
    row = source.first_object
    return is_pool_header(source.first_line) or (row.keys() >= _POOL_FIELDS and "grade" not in row)


def is_pool_header(line: str) -> bool:
    """Whether a line, or the start of a long one, is the first line of a pool.

    >>> is_pool_header('{"pool": {"strategy": "depth"'), is_pool_header('{"pool": {"d1": 0.7}}')
    (True, False)
    """
    return re.match(r'\{\s*"pool"\s*:\s*\{', line) is not None and '"strategy"' in line


Kind: TypeAlias = Literal["run", "qrels"]


def name_them() -> str:
    """How a user names the columns of a table, for messages."""
    return in_words(
        'name them: Run.read(path, query_id="...", doc_id="..."), and also for Qrels.read.',
        "name them: --set columns=query_id=...,doc_id=... for a run, --set columns=qrels.query_id=...,qrels.doc_id=... "
        "for the qrels of runs; in bench.yaml, {path: FILE, query_id: ..., doc_id: ...}.",
    )


class Detected(NamedTuple):
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


class Layout(NamedTuple):
    """A dataset of a format: how it is read, whether a folder or file is one, and the files that a folder holds."""

    read: Callable[..., Dataset]
    detect: Callable[[Path], bool]
    files: str = ""


class EvidenceReader(NamedTuple):
    """Evidence of a format: how the records of a file are read, and the fields by which they are recognised."""

    read: Callable[..., Evidence]
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
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
