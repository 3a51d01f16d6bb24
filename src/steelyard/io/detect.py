"""The format of a file, detected from its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.errors import InputError
from steelyard.io.columns import TableKind, is_record, kind_of_table
from steelyard.io.files import errors_name, is_lz4, reading, streams_read_once
from steelyard.io.pools import POOL, is_pool
from steelyard.io.registry import Kind
from steelyard.io.text import FIRST_LINES, Source, shortened
from steelyard.io.white_space import number
from steelyard.notes import Note, note

_ARCHIVES = {b"PK\x03\x04": "a zip archive", b"BZh": "bzip2 data", b"\xfd7zXZ": "xz data"}
_LINES = 500
"""How many lines, and records, are looked at."""

_TOOLS = {
    "multihop-rag": (("retrieval_list",), ("evidence_list", "gold_list")),
    "ragas": (("retrieved_context_ids",), ("reference_context_ids",)),
    "autorag": (("retrieved_ids",), ("retrieval_gt",)),
}
"""The fields of a tool's rows that hold a run, and those that hold qrels."""

_BEIR_HEADER = ["query-id", "corpus-id", "score"]
_RUN_ONLY = {"score", "rank", "seconds"}
_QRELS_ONLY = {"grade", "target"}
_NAME_THEM = (
    'name them: Run.read(path, query_id="...", doc_id="..."), and also for Qrels.read; on the command line '
    "--columns query_id=...,doc_id=... for a run, --qrels-columns for qrels."
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


@streams_read_once()
def sniff(path: Path) -> Detected:
    """The format of a file; an error if it is none of those known."""
    return detect(Source(Path(path)))


def detect(source: Source, columns: Mapping[str, str] | None = None, kind: Kind | None = None) -> Detected:
    """The format of an opened file. `columns` named by role, and `kind`, decide what a table holds."""
    with errors_name(source.path), reading(source.path):
        if is_pool(source):
            raise InputError(POOL)
        if not columns:
            return _by_content(source)
        try:
            found = _by_content(source)
        except InputError:
            format = table_format(source)
            if format is None:
                raise
            return _by_roles(source, format, columns, kind)
        records = found.format == "json" and isinstance(source.json, list)
        if records or found.format in ("csv", "tsv", "parquet", "jsonl"):
            return _by_roles(source, found.format, columns, kind)
        return found


def table_format(source: Source) -> str | None:
    """The format of a table, whatever the names of its columns: Parquet, JSON lines, JSON, TSV or CSV."""
    if source.start.startswith(b"PAR1"):
        return "parquet"
    if source.start.startswith(b"["):
        return "json"
    if source.start.startswith(b"{"):
        return "jsonl"
    return "tsv" if "\t" in source.first_line else "csv" if "," in source.first_line else None


def _by_roles(source: Source, format: str, columns: Mapping[str, str], kind: Kind | None) -> Detected:
    """What a table holds, by the roles for which its columns are named."""
    if columns.keys() & (_RUN_ONLY | _QRELS_ONLY):
        found: TableKind = kind or ("run" if columns.keys() & _RUN_ONLY else "qrels")
    else:
        role_of = {name: role for role, name in columns.items()}
        names = [role_of.get(name, name) for name in _column_names(source, format)]
        found = kind_of_table(names) or "either"
    return Detected(found, format, "qrels" if found == "qrels" else "run")


def _column_names(source: Source, format: str) -> Sequence[str]:
    """The names of a table's columns, or of the fields of its first record."""
    if format == "parquet":
        return source.parquet.columns
    if format in ("json", "jsonl"):
        first = (source.json if format == "json" else source.first_objects)[:1]
        return list(first[0]) if first and isinstance(first[0], Mapping) else []
    return _header_names(source.first_line, "\t" if format == "tsv" else ",")


def _by_content(source: Source) -> Detected:
    if is_lz4(source.head):
        return _ranx(source)
    if not source.start:
        raise InputError("the file is empty; expected qrels or a run.")
    archive = next((name for magic, name in _ARCHIVES.items() if source.start.startswith(magic)), None)
    if archive is not None:
        raise InputError(f"{archive}; unpack it first (gzip, Zstandard and LZ4 are read directly).")
    if source.start.startswith(b"PAR1"):
        return _table(source.parquet.columns, "parquet")
    if source.start.startswith((b"{", b"[")) and not _is_trec(source):
        return _json(source)
    return _text(source)


def _ranx(source: Source) -> Detected:
    """LZ4 in LZ4 is how ranx compresses; whole numbers are read as grades."""
    from steelyard.io.ranx import lz4_content

    values = [value for values in lz4_content(source).values() for value in values.values()]
    whole = all(isinstance(value, int) for value in values)
    return Detected("either", "ranx-lz4", "qrels" if whole else "run")


def _table(names: Sequence[str], format: str) -> Detected:
    """What a table holds, by the names of its columns."""
    from steelyard.io.lists import QRELS_LISTS, RUN_LISTS, listed_name

    for tool in ("autorag", "ragas"):
        if found := _of_tool(tool, names):
            return found
    kind = kind_of_table(names)
    if kind:
        graded = any(name.lower() in ("corpus-id", "corpus_id") for name in names)
        likely: Kind = "qrels" if kind == "qrels" or (kind == "either" and graded) else "run"
        return Detected(kind, format, likely)
    run, qrels = listed_name(names, RUN_LISTS), listed_name(names, QRELS_LISTS)
    if run or qrels:
        return _run_or_qrels(format, run is not None, qrels is not None)
    raise InputError(
        f"no columns hold query and document; the columns are {', '.join(names)}. "
        f"Call them query_id and doc_id, or {_NAME_THEM}"
    )


def _of_tool(tool: str, names: Sequence[str]) -> Detected | None:
    runs, qrels = (any(name in names for name in fields) for fields in _TOOLS[tool])
    return _run_or_qrels(tool, runs, qrels) if runs or qrels else None


def _run_or_qrels(format: str, run: bool, qrels: bool) -> Detected:
    if run and qrels:
        return Detected("either", format, "run", note("holds-run-and-qrels"), both=True)
    return Detected("run", format, "run") if run else Detected("qrels", format, "qrels")


# Text


def _text(source: Source) -> Detected:
    table = _text_table(source)
    if table is not None:
        return table
    lines = [line for line in source.head_lines if line.strip()]
    rows = [fields for line in lines if not (fields := line.split())[0].startswith(b"#")]
    if not rows:
        raise InputError("the file holds only comments; expected qrels or a run.")
    shapes = [_shape(fields) for fields in rows[:_LINES]]
    shape = max(("run", "qrels", "three", ""), key=shapes.count)
    if shape == "run":
        return Detected("run", "trec-run", "run")
    if shape == "qrels":
        return _qrels(rows, source)
    if shape == "three":
        return _three_columns(rows)
    _refuse_unknown_table(lines)
    first = shortened(lines[0].decode(errors="replace").strip())
    raise InputError(
        f"unknown format; the file starts with {first!r}. Expected a TREC run or qrels, "
        "a CSV or TSV table with a header, JSON, JSON lines or Parquet; format=... selects one and "
        "reports what is wrong."
    )


def _is_trec(source: Source) -> bool:
    """Whether every line is one of a TREC file, whatever its first id starts with."""
    rows = [fields for line in source.head_lines[:_LINES] if (fields := line.split())]
    return {_shape(fields) for fields in rows} in ({"run"}, {"qrels"})


def _shape(fields: list[bytes]) -> str:
    width = len(fields)
    if width >= 5 and number(fields[3]) is not None and number(fields[4]) is not None:
        return "run"
    if width == 4 and number(fields[3]) is not None:
        return "qrels"
    return "three" if width == 3 and number(fields[2]) is not None else ""


def _header_names(line: str, separator: str) -> list[str]:
    return [name.strip().strip('"') for name in line.split(separator)]


def _text_table(source: Source) -> Detected | None:
    """The table whose header is the first line, if it is one. The lines below may hold anything in quotes."""
    if _shape(source.first_line.encode().split()):
        return None
    for separator, format in (("\t", "tsv"), (",", "csv")):
        names = _header_names(source.first_line, separator)
        if len(names) < 2:
            continue
        if names[:3] == _BEIR_HEADER and separator == "\t" and names[3:] in ([], ["target"]):
            return _beir(source)
        if kind_of_table(names) or _has_lists(names):
            return _table(names, format)
    return None


def _has_lists(names: Sequence[str]) -> bool:
    from steelyard.io.lists import QRELS_LISTS, RUN_LISTS, listed_name

    return listed_name(names, (*RUN_LISTS, *QRELS_LISTS)) is not None


def _beir(source: Source) -> Detected:
    """BEIR's header has a score, as that of a run may: in qrels these are whole numbers."""
    rows = [line.split(b"\t") for line in source.head.split(b"\n")[1:-1]][:_LINES]
    scores = [number(fields[2].strip()) for fields in rows if len(fields) > 2]
    if all(score is None or score != score or score % 1 == 0 for score in scores):
        return Detected("qrels", "beir", "qrels")
    return Detected("either", "tsv", "run", note("beir-header-with-fractions"))


def _qrels(rows: list[list[bytes]], source: Source) -> Detected:
    fours = [fields for fields in rows if len(fields) == 4]
    if _ranked(fours, 0, 2) and any((number(fields[3]) or 0.0) % 1 for fields in fours):
        raise InputError(
            "four columns that look like query document rank score; expected a run of six "
            "(query Q0 document rank score tag) or a table with a header line that names its columns."
        )
    if len({fields[1] for fields in fours}) > 1:
        from steelyard.io.trec import has_subtopics

        every = fours
        if not source.whole_head:
            every = [fields for line in source.data.split(b"\n") if len(fields := line.split()) == 4]
        if has_subtopics(every):
            return Detected("qrels", "trec-diversity", "qrels", note("read-as-subtopics"))
    return Detected("qrels", "trec-qrels", "qrels")


def _three_columns(rows: list[list[bytes]]) -> Detected:
    if _ranked([fields for fields in rows if len(fields) == 3], 0, 2):
        return Detected("run", "msmarco", "run")
    return Detected("either", "msmarco", "qrels", note("three-columns"))


def _ranked(rows: Sequence[list[bytes]], query: int, rank: int) -> bool:
    """Whether a column counts 1, 2, 3, ... in each query, and some query has two documents or more.

    The last of several queries is not looked at: the end of the head may cut it.
    """
    ranks: dict[bytes, list[float | None]] = {}
    for fields in rows:
        ranks.setdefault(fields[query], []).append(number(fields[rank]))
    listed = list(ranks.values())
    counts = all(set(found) == set(range(1, len(found) + 1)) for found in (listed[:-1] or listed))
    return counts and max(map(len, listed), default=0) > 1


def _refuse_unknown_table(lines: Sequence[bytes]) -> None:
    """An error for a table whose columns have unknown names, or another separator."""
    for separator, called in ((b",", "commas"), (b"\t", "tabs"), (b";", "semicolons")):
        widths = {line.count(separator) for line in lines[:_LINES]}
        if len(lines) < 2 or len(widths) != 1 or widths == {0}:
            continue
        columns = ", ".join(_header_names(lines[0].decode(errors="replace"), separator.decode()))
        if separator == b";":
            raise InputError(f"a table separated by semicolons; expected commas or tabs (columns {columns}).")
        raise InputError(
            f"a table separated by {called}, and none of its columns ({columns}) is known to hold the query or "
            f"the document. Call them query_id and doc_id (and score, rank or grade) in the first line, or {_NAME_THEM}"
        )


# JSON


def _json(source: Source) -> Detected:
    """The format of a file that starts with { or [."""
    from steelyard.io.json import object_of_queries
    from steelyard.io.llama_index import PARTS
    from steelyard.io.mteb import META, depth
    from steelyard.judgments import is_judgments_line

    if _is_json_lines(source, PARTS):
        if is_judgments_line(source.first_line):
            return Detected("qrels", "judgments", "qrels")
        return _records(source.first_objects, "jsonl")
    content = source.json
    if isinstance(content, list):
        return _records(content, "json")
    if set(PARTS) <= set(content):
        return Detected("qrels", "llama-index", "qrels")
    if META in content or depth(object_of_queries(content)) > 2:
        return Detected("run", "mteb", "run")
    return _object(content)


def _is_json_lines(source: Source, parts: Sequence[str]) -> bool:
    """Whether the first line is a whole object, and another follows or it is itself the record of a query."""
    import json

    from steelyard.io.records import kind_of_records

    head = source.head
    if not source.whole_head and b"\n" not in head.strip():
        # One line longer than the head: another object may follow it.
        end = source.data.find(b"\n", len(head))
        return end >= 0 and source.data[end : end + 100].lstrip().startswith(b"{")
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 3) if line.strip()]
    try:
        first = json.loads(lines[0])
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return False
    if not isinstance(first, dict) or set(parts) <= set(first):
        return False
    if len(lines) > 1:
        return lines[1].lstrip().startswith(b"{")
    scalars = any(not isinstance(value, (dict, list)) for value in first.values())
    return kind_of_records(list(first)) is not None and scalars


def _records(records: Sequence[Any], format: str) -> Detected:
    from steelyard.io.records import kind_of_records

    looked_at = [record for record in records[:FIRST_LINES] if isinstance(record, Mapping)]
    names = list(dict.fromkeys(name for record in looked_at for name in record))
    for tool in _TOOLS:
        # retrieved_ids alone is a name that any tool may use.
        if tool == "autorag" and not {"retrieval_gt", "retrieve_scores"} & set(names):
            continue
        if found := _of_tool(tool, names):
            return found
    kind = kind_of_records(names)
    if kind is None:
        raise InputError(
            f"the records hold no query and documents; their names are {', '.join(names) or 'none'}. "
            f"Call them query_id and doc_id, or {_NAME_THEM}"
        )
    return Detected(kind, format, "qrels" if kind == "qrels" else "run")


def _object(content: Mapping[str, Any]) -> Detected:
    """{query: ...}: objects of whole numbers, and lists of lists or of grades, are likely qrels, others a run."""
    from steelyard.io.records import kind_of_records

    run, qrels = Detected("run", "json", "run"), Detected("qrels", "json", "qrels")
    values = [value for value in content.values() if value]
    if any(isinstance(value, dict) and list in set(map(type, value.values())) for value in values):
        return qrels
    items = [item for value in values if isinstance(value, list) for item in value]
    if any(isinstance(item, list) for item in items):
        pairs = all(
            isinstance(item, list) and len(item) == 2 and isinstance(item[1], (int, float)) for item in items
        )
        return run if pairs else qrels
    if any(isinstance(item, Mapping) for item in items):
        if not any(isinstance(item, Mapping) and is_record(item) for item in items):
            return qrels
        first = list(items[0]) if isinstance(items[0], Mapping) else []
        return (
            qrels if kind_of_records(["query_id", *first]) == "qrels" else Detected("either", "json", "run")
        )
    if items:
        return Detected("either", "json", "run", note("lists-of-ids"))
    kinds = {kind for value in values if isinstance(value, dict) for kind in map(type, value.values())}
    if kinds <= {int, bool}:
        return Detected("either", "json", "qrels")
    return Detected("either", "json", "run", note("fractions-as-in-a-run"))
