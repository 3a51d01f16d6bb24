"""MultiHop-RAG: questions with `evidence_list`, and results with `retrieval_list` and `gold_list`.

Its files have texts and no ids, so a text is its own id (white space made single). In a question
file each evidence fact is a document of its own; `doc_id='url'` takes another field of the
evidence instead. In a result file a fact is satisfied by every retrieved text that contains it,
white space aside, which is the project's own rule; a fact that none contains stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError
from steelyard.io.columns import check_roles
from steelyard.io.files import Source, run_name
from steelyard.io.lists import query_ids
from steelyard.io.records import names_of
from steelyard.qrels import Qrels

if TYPE_CHECKING:
    from steelyard.run import Run


_IDS = ("doc_id", "chunk_id", "id")


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The evidence of every question; a question without any (a null_query) is kept."""
    check_roles(columns, ("query_id", "doc_id"), "a MultiHop-RAG file")
    records, queries, notes = _records(source, columns)
    rows: list[tuple[str, str, float, str | None]] = []
    for query, record in zip(queries, records, strict=True):
        evidence = record.get("gold_list", record.get("evidence_list")) or []
        if "retrieval_list" in record:
            rows += _contained(query, evidence, record["retrieval_list"], source)
        else:
            field = columns.get("doc_id", "fact")
            rows += [(query, _field(item, field, query, source), 1.0, None) for item in evidence]
    qrels = Qrels.from_rows(rows, queries)
    qrels.notes += notes
    return qrels


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """What was retrieved, in the order of the lists; scores are taken where they are in that order."""
    from steelyard.run import Run

    check_roles(columns, ("query_id",), "a MultiHop-RAG result file")
    records, queries, notes = _records(source, columns)
    lists: dict[str, Any] = {}
    for query, record in zip(queries, records, strict=True):
        if "retrieval_list" not in record:
            raise InputError(
                f"{source.path}: query {query!r} has no retrieval_list: this is the file of questions, not of results."
            )
        lists[query] = [_id(item, query, source) for item in record["retrieval_list"]]
        scores = [item.get("score") for item in record["retrieval_list"]]
        if scores and all(isinstance(score, (int, float)) for score in scores):
            lists[query] = list(zip(lists[query], scores, strict=True))
    run = Run(lists, name=run_name(source.path))
    run.notes += notes
    return run


def _records(
    source: Source, columns: Mapping[str, str]
) -> tuple[Sequence[Mapping[str, Any]], list[str], tuple[str, ...]]:
    records = (
        source.json if source.head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[") else source.jsonl
    )
    names = names_of(records, str(source.path))
    table = {name: [record.get(name) for record in records] for name in names}
    queries, notes = query_ids(table, columns.get("query_id"), len(records))
    return records, queries, notes


def _contained(
    query: str, evidence: Sequence[Any], retrieved: Sequence[Any], source: Source
) -> list[tuple[str, str, float, str | None]]:
    rows: list[tuple[str, str, float, str | None]] = []
    packed = [(_id(item, query, source), _packed(str(item.get("text", "")))) for item in retrieved]
    for number, item in enumerate(evidence, start=1):
        fact = _field(item, "fact", query, source)
        inside = [doc for doc, text in packed if _packed(fact) in text]
        rows += [(query, doc, 1.0, str(number)) for doc in inside or [fact]]
    return rows


def _id(item: Any, query: str, source: Source) -> str:
    if isinstance(item, Mapping):
        for name in _IDS:
            if name in item:
                return str(item[name])
    return _field(item, "text", query, source)


def _field(item: Any, field: str, query: str, source: Source) -> str:
    value = item.get(field) if isinstance(item, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        raise InputError(
            f"{source.path}: query {query!r} lists an item without a text in {field!r}: {str(item)[:60]!r}."
        )
    return " ".join(value.split())


def _packed(text: str) -> str:
    return "".join(text.split())
