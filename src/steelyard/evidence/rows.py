"""Evidence in rows, as a table has it: a row a span, a fact, a page, a parent, a document, a hash or a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.errors import InputError

QUERIES = ("query_id", "qid", "question", "query")
DOCUMENTS = ("doc_id", "document_id", "corpus_id", "document", "source")
STARTS, ENDS = ("start", "start_index"), ("end", "end_index")
CONTENTS = ("content", "contents", "text")
TOLD_BY = ("fact", "page", "parent", "hash", "chunk_id")
"""The conditions, beside a span, that a row is told to be evidence by."""

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def answers_of_rows(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dict[str, Any]:
    """Targets and distractors by query, as `Evidence` takes them; `columns` are those that may name the document."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    misleading: dict[str, list[dict[str, Any]]] = {}
    null: set[str] = set()
    for place, record in enumerate(records, start=1):
        where = f"row {place:,}"
        query = str(first(record, QUERIES) or "")
        if not query:
            raise InputError(
                f"{where} names no query; expected query_id, and what it needs in the other columns."
            )
        targets = found.setdefault(query, {})
        if flag(record, "null", where):
            null.add(query)
            continue
        way = way_of_row(record, columns, where)
        if way.get("distractor") or _below_zero(way.get("grade")):
            misleading.setdefault(query, []).append(way)
        else:
            targets.setdefault(str(first(record, ("target",)) or where), []).append(way)
    return {
        query: {
            "targets": list(targets.values()) or (None if query in null else []),
            "distractors": misleading.get(query, []),
        }
        for query, targets in found.items()
    }


def way_of_row(
    record: Mapping[str, Any], columns: Sequence[str], where: str, owner: Any = None
) -> dict[str, Any]:
    """The conditions of a row, with its grade; `owner` is the document of a row that names none.

    A row with a start and an end is that span, whatever else stands beside it.
    """
    document = first(record, columns)
    way: dict[str, Any] = {"doc_id": owner if document is None else document}
    start, end = (number(first(record, names)) for names in (STARTS, ENDS))
    if start is not None or end is not None:
        way |= {"start": start, "end": end, "content": first(record, CONTENTS)}
    else:
        way |= {name: first(record, (name,)) for name in TOLD_BY}
        way["share"] = decimal(first(record, ("share",)))
    way["grade"] = decimal(first(record, ("grade",)))
    way["distractor"] = flag(record, "distractor", where)
    return {name: value for name, value in way.items() if value is not None}


def first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of the fields that holds something."""
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


def number(value: Any) -> Any:
    """The whole number that a table holds as text; anything else as it is, for the checks to refuse."""
    return int(value) if isinstance(value, str) and value.strip().lstrip("-").isdigit() else value


def decimal(value: Any) -> Any:
    """The number that a table holds as text; anything else as it is, for the checks to refuse."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def flag(record: Mapping[str, Any], name: str, where: str) -> bool | None:
    """Whether a row is marked; None where nothing is said."""
    value = first(record, (name,))
    if value is None or isinstance(value, bool):
        return value
    known = _FLAGS.get(str(value).strip().lower())
    if known is None:
        raise InputError(f"{where}: {name} is {value!r}; expected true or false.")
    return known


def _below_zero(grade: Any) -> bool:
    return isinstance(grade, (int, float)) and grade < 0
