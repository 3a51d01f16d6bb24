"""The format of a file, detected from its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from steelyard.errors import InputError
from steelyard.io.columns import is_record, kind_of_table
from steelyard.io.files import Source, is_lz4
from steelyard.io.json_object import object_of_queries
from steelyard.io.llama_index import PARTS
from steelyard.io.mteb import META, depth
from steelyard.io.records import kind_of_records
from steelyard.io.registry import Kind
from steelyard.io.white_space import number

_ARCHIVES = {b"PK\x03\x04": "a zip archive", b"BZh": "bzip2 data", b"\xfd7zXZ": "xz data"}
_LOOKED_AT = 500
NAME_THEM = (
    'name them: Run.read(path, query_id="...", doc_id="..."), Qrels.read likewise; on the command line '
    "--columns query_id=...,doc_id=... for a run, --qrels-columns for judgments."
)
"""What to do with a table whose columns have names of its own."""


@dataclass(frozen=True)
class Detected:
    """What a file was taken for. `kind` is 'either' where the content fits both; `likely` then says which it is taken for.

    `note` is not empty where the choice is worth telling.
    """

    kind: Literal["run", "qrels", "either"]
    format: str
    likely: Kind
    note: str = ""


def sniff(path: Path) -> Detected:
    """What the file is; an error where it is nothing known."""
    return detect(Source(Path(path)))


def detect(source: Source) -> Detected:
    """What an opened file is."""
    if is_lz4(source.head):
        return _ranx(source)
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise InputError(f"{source.path} is empty; expected judgments or a run.")
    archive = next((name for magic, name in _ARCHIVES.items() if head.startswith(magic)), None)
    if archive is not None:
        raise InputError(
            f"{source.path} is {archive}; unpack it first (gzip, Zstandard and LZ4 are read as they are)."
        )
    if head.startswith(b"PAR1"):
        return of_table(source.parquet.columns, "parquet", source)
    if head.startswith((b"{", b"[")) and not _is_columns(source):
        return detect_json(source)
    return _text(source)


def _is_columns(source: Source) -> bool:
    """Whether every line is one of a TREC file, whatever its first id begins with."""
    rows = [fields for line in source.head_lines[:_LOOKED_AT] if (fields := line.split())]
    return {_shape(fields) for fields in rows} in ({"run"}, {"qrels"})


def _ranx(source: Source) -> Detected:
    """LZ4 in LZ4 is how ranx packs; whole numbers are taken for grades."""
    from steelyard.io.ranx_lz4 import content_of

    whole = all(isinstance(number, int) for value in content_of(source).values() for number in value.values())
    return Detected("either", "ranx-lz4", "qrels" if whole else "run")


def of_table(names: Sequence[str], format: str, source: Source) -> Detected:
    """What a table is, by the names of its columns."""
    from steelyard.io.columns import kind_of_table
    from steelyard.io.lists import QRELS_LISTS, RUN_LISTS, listed_name

    for tool, found, truth in (
        ("autorag", "retrieved_ids", "retrieval_gt"),
        ("ragas", "retrieved_context_ids", "reference_context_ids"),
    ):
        if found in names or truth in names:
            return both_or_one(tool, found in names, truth in names)
    kind = kind_of_table(names)
    if kind:
        graded = any(name.lower() in ("corpus-id", "corpus_id") for name in names)
        return Detected(
            _kind(kind), format, "qrels" if kind == "qrels" or (kind == "either" and graded) else "run"
        )
    run, qrels = listed_name(names, RUN_LISTS), listed_name(names, QRELS_LISTS)
    if run or qrels:
        return both_or_one(format, run is not None, qrels is not None)
    raise InputError(
        f"{source.path}: no columns hold query and document; the columns are {', '.join(names)}. "
        f"Call them query_id and doc_id, or {NAME_THEM}"
    )


def both_or_one(format: str, run: bool, qrels: bool) -> Detected:
    """A file that holds a run, judgments, or both side by side."""
    if run and qrels:
        return Detected("either", format, "run", "holds a run and judgments side by side")
    return Detected("run", format, "run") if run else Detected("qrels", format, "qrels")


def _kind(kind: str) -> Literal["run", "qrels", "either"]:
    return "run" if kind == "run" else "qrels" if kind == "qrels" else "either"


def _text(source: Source) -> Detected:
    table = _header(source)
    if table is not None:
        return table
    lines = [line for line in source.head_lines if line.strip()]
    rows = [fields for line in lines if not (fields := line.split())[0].startswith(b"#")]
    if not rows:
        raise InputError(f"{source.path} holds only comments; expected judgments or a run.")
    shapes = [_shape(fields) for fields in rows[:_LOOKED_AT]]
    shape = max(("run", "qrels", "three", ""), key=shapes.count)
    if shape == "run":
        return Detected("run", "trec-run", "run")
    if shape == "qrels":
        return _qrels(rows, source)
    if shape == "three":
        return _three(rows)
    _refuse_unknown_table(source.path, lines)
    raise InputError(
        f"{source.path} is in no format known here; it begins: {_shown(lines[0])}. Expected a TREC run or judgments, "
        "a CSV or TSV table with a header, JSON, JSON lines or Parquet; format= insists on one, and says what is wrong."
    )


def _refuse_unknown_table(path: Path, lines: Sequence[bytes]) -> None:
    """Say of a table that its columns have unknown names, or that it is parted by something else."""
    for separator, named in ((b",", "commas"), (b"\t", "tabs"), (b";", "semicolons")):
        widths = {line.count(separator) for line in lines[:_LOOKED_AT]}
        if len(lines) < 2 or len(widths) != 1 or widths == {0}:
            continue
        columns = ", ".join(
            name.strip().strip('"') for name in lines[0].decode(errors="replace").split(separator.decode())
        )
        if separator == b";":
            raise InputError(
                f"{path} is a table parted by semicolons; expected commas or tabs (columns {columns})."
            )
        raise InputError(
            f"{path} is a table parted by {named}, and none of its columns ({columns}) is known to hold the query or "
            f"the document. Call them query_id and doc_id (and score, rank or grade) in the first line, or {NAME_THEM}"
        )


def _shape(fields: list[bytes]) -> str:
    width = len(fields)
    if width >= 5 and number(fields[3]) is not None and number(fields[4]) is not None:
        return "run"
    if width == 4 and number(fields[3]) is not None:
        return "qrels"
    return "three" if width == 3 and number(fields[2]) is not None else ""


def _header(source: Source) -> Detected | None:
    """The table whose header the first line is, if it is one. What follows may hold anything between quotes."""
    from steelyard.io.columns import BEIR_HEADER, kind_of_table
    from steelyard.io.lists import QRELS_LISTS, RUN_LISTS, listed_name

    line = source.head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0].decode(errors="replace")
    for separator, format in (("\t", "tsv"), (",", "csv")):
        names = [name.strip().strip('"') for name in line.split(separator)]
        if len(names) < 2:
            continue
        if tuple(names[:3]) == BEIR_HEADER and separator == "\t" and names[3:] in ([], ["target"]):
            return _beir(source)
        if kind_of_table(names) or listed_name(names, (*RUN_LISTS, *QRELS_LISTS)):
            return of_table(names, format, source)
    return None


def _beir(source: Source) -> Detected:
    """BEIR's header says score, which a run may have too: judgments have whole numbers there."""
    rows = [line.split(b"\t") for line in source.head.split(b"\n")[1:-1]][:_LOOKED_AT]
    scores = [number(fields[2].strip()) for fields in rows if len(fields) > 2]
    if all(score is None or score != score or score % 1 == 0 for score in scores):
        return Detected("qrels", "beir", "qrels")
    return Detected(
        "either", "tsv", "run", "its header is BEIR's for judgments, and its scores are not whole numbers"
    )


def _qrels(rows: list[list[bytes]], source: Source) -> Detected:
    fours = [fields for fields in rows if len(fields) == 4]
    if _ranked(fours, 0, 2) and any((number(fields[3]) or 0.0) % 1 for fields in fours):
        raise InputError(
            f"{source.path} has four columns that read as query document rank score; expected a run of six "
            "(query Q0 document rank score tag) or a table with a header line that names its columns."
        )
    if len({fields[1] for fields in fours}) > 1:
        from steelyard.io.trec_diversity import has_subtopics

        every = fours
        if not source.whole_head:
            every = [fields for line in source.data.split(b"\n") if len(fields := line.split()) == 4]
        if has_subtopics(every):
            return Detected(
                "qrels",
                "trec-diversity",
                "qrels",
                "column 2 was taken as subtopics: documents are judged under several",
            )
    return Detected("qrels", "trec-qrels", "qrels")


def _three(rows: list[list[bytes]]) -> Detected:
    if _ranked([fields for fields in rows if len(fields) == 3], 0, 2):
        return Detected("run", "msmarco", "run")
    return Detected("either", "msmarco", "qrels", "three columns without a header: ranks or grades")


def _ranked(rows: Sequence[list[bytes]], query: int, rank: int) -> bool:
    """Whether a column counts 1, 2, 3, ... in each query, some query having two documents at least.

    The last query is left out where there are others: it may be cut by the end of what was looked at.
    """
    ranks: dict[bytes, list[float | None]] = {}
    for fields in rows:
        ranks.setdefault(fields[query], []).append(number(fields[rank]))
    listed = list(ranks.values())
    counts = all(set(found) == set(range(1, len(found) + 1)) for found in (listed[:-1] or listed))
    return counts and max(map(len, listed), default=0) > 1


def _shown(line: bytes) -> str:
    text: Any = line.decode(errors="replace").strip()
    return repr(text if len(text) <= 60 else text[:57] + "...")


_SNIFF_JSON_LOOKED_AT = 100


def detect_json(source: Source) -> Detected:
    """What a file that begins with { or [ is."""
    if _is_lines(source):
        return _of_records(source.jsonl, "jsonl", source)
    content = source.json
    if isinstance(content, list):
        return _of_records(content, "json", source)
    if set(PARTS) <= set(content):
        return Detected("qrels", "llama-index", "qrels")
    if META in content or depth(object_of_queries(content, source)) > 2:
        return Detected("run", "mteb", "run")
    return _of_object(content)


def _is_lines(source: Source) -> bool:
    """One object a line: the first line is a whole object, and another follows, or it alone is a record of a query."""
    import json

    head = source.head
    if not source.whole_head and b"\n" not in head.strip():
        # One line longer than what was looked at: another object after it tells.
        end = source.data.find(b"\n", len(head))
        return end >= 0 and source.data[end : end + 100].lstrip().startswith(b"{")
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 3) if line.strip()]
    try:
        first = json.loads(lines[0])
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return False
    if not isinstance(first, dict) or set(PARTS) <= set(first):
        return False
    if len(lines) > 1:
        return lines[1].lstrip().startswith(b"{")
    return bool(kind_of_records([first])) and any(
        not isinstance(value, (dict, list)) for value in first.values()
    )


def _of_records(records: Sequence[Any], format: str, source: Source) -> Detected:
    first = {
        name: value
        for record in records[:_SNIFF_JSON_LOOKED_AT]
        if isinstance(record, Mapping)
        for name, value in record.items()
    }
    for tool, found, truth in (
        ("multihop-rag", ("retrieval_list",), ("evidence_list", "gold_list")),
        ("ragas", ("retrieved_context_ids",), ("reference_context_ids",)),
        ("autorag", ("retrieved_ids",), ("retrieval_gt",)),
    ):
        if tool == "autorag" and "retrieval_gt" not in first and "retrieve_scores" not in first:
            continue
        run, qrels = any(name in first for name in found), any(name in first for name in truth)
        if run or qrels:
            return both_or_one(tool, run, qrels)
    kind = kind_of_records([first])
    if kind == "run":
        return Detected("run", format, "run")
    if kind == "qrels":
        return Detected("qrels", format, "qrels")
    if kind == "either":
        return Detected("either", format, "run")
    raise InputError(
        f"{source.path}: the records hold no query and documents; their names are {', '.join(first) or 'none'}. "
        f"Call them query_id and doc_id, or {NAME_THEM}"
    )


def _of_object(content: Mapping[str, Any]) -> Detected:
    """{query: ...}: objects of whole numbers, and lists of lists or of grades, are taken for judgments, the rest for a run."""
    values = [value for value in content.values() if value]
    if any(
        isinstance(value, dict) and any(isinstance(part, list) for part in value.values()) for value in values
    ):
        return Detected("qrels", "json", "qrels")
    items = [item for value in values if isinstance(value, list) for item in value]
    if any(isinstance(item, list) for item in items):
        pairs = all(
            isinstance(item, list) and len(item) == 2 and isinstance(item[1], (int, float)) for item in items
        )
        return Detected("run", "json", "run") if pairs else Detected("qrels", "json", "qrels")
    if any(isinstance(item, Mapping) for item in items):
        if not any(isinstance(item, Mapping) and is_record(item) for item in items):
            return Detected("qrels", "json", "qrels")
        kind = kind_of_records([{"query_id": "", **item} for item in items[:1]])
        return Detected("qrels", "json", "qrels") if kind == "qrels" else Detected("either", "json", "run")
    if items:
        return Detected("either", "json", "run", "lists of ids may be ranked lists or relevant documents")
    numbers = [number for value in values if isinstance(value, dict) for number in value.values()]
    whole = all(isinstance(number, int) for number in numbers)
    note = "" if whole else "its numbers are not whole, as those of a run"
    return Detected("either", "json", "qrels" if whole else "run", note)


_RUN_ONLY = {"score", "rank", "seconds"}
_QRELS_ONLY = {"grade", "target"}


def detect_named(source: Source, columns: Mapping[str, str], asked: Kind | None = None) -> Detected:
    """The format by content; whether a table is a run or judgments, by the roles that its columns are named for.

    A table of which one of the two is `asked` is taken for that, where it has roles of either kind.
    """
    if not columns:
        return detect(source)
    try:
        found = detect(source)
    except InputError:
        format = table_format(source)
        if format is None:
            raise
        return _of_columns(source, format, columns, asked)
    records = found.format == "json" and isinstance(source.json, list)
    tabular = records or found.format in ("csv", "tsv", "parquet", "jsonl")
    return _of_columns(source, found.format, columns, asked) if tabular else found


def table_format(source: Source) -> str | None:
    """The format of a table, whatever its columns are called: Parquet, JSON lines, JSON, TSV or CSV."""
    head = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"["):
        return "json"
    if head.startswith(b"{"):
        return "jsonl"
    first = head.split(b"\n", 1)[0]
    return "tsv" if b"\t" in first else "csv" if b"," in first else None


def _of_columns(source: Source, format: str, columns: Mapping[str, str], asked: Kind | None) -> Detected:
    kind: Literal["run", "qrels", "either"] = "either"
    if columns.keys() & (_RUN_ONLY | _QRELS_ONLY):
        kind = asked or ("run" if columns.keys() & _RUN_ONLY else "qrels")
    else:
        role_of = {name: role for role, name in columns.items()}
        known = kind_of_table([role_of.get(name, name) for name in _names(source, format)])
        kind = "run" if known == "run" else "qrels" if known == "qrels" else "either"
    return Detected(kind, format, "qrels" if kind == "qrels" else "run")


def _names(source: Source, format: str) -> Sequence[str]:
    """The names of a table's columns, or of the fields of its first record."""
    if format == "parquet":
        return source.parquet.columns
    if format in ("json", "jsonl"):
        first = (source.json if format == "json" else source.jsonl)[:1]
        return list(first[0]) if first and isinstance(first[0], Mapping) else []
    line = source.head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0].decode(errors="replace")
    return [name.strip().strip('"') for name in line.split("\t" if format == "tsv" else ",")]
