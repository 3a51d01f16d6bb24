"""What a JSON file is, by its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.errors import InputError
from steelyard.formats.json_object import object_of_queries
from steelyard.formats.llama_index import PARTS
from steelyard.formats.mteb import META, depth
from steelyard.formats.records import kind_of_records
from steelyard.formats.roles import is_record
from steelyard.formats.sniffing import NAME_THEM, Detected, both_or_one
from steelyard.formats.source import Source

_LOOKED_AT = 100


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
        for record in records[:_LOOKED_AT]
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
