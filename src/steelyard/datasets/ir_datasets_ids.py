"""Datasets of the package ir_datasets, by their id; fetching them is that package's business."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard.datasets.assembly import Row, assemble, qrels_of_rows
from steelyard.datasets.corpus import CorpusBuilder
from steelyard.datasets.queries import QueriesBuilder
from steelyard.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset

_DOCUMENT_TEXTS = ("text", "body", "abstract", "contents")
_QUERY_TEXTS = ("text", "title", "query")


def read_ir_datasets(name: str, *, unjudged: str = "drop") -> Dataset:
    """Documents, queries and judgments of one id, as `beir/scifact/test`."""
    try:
        ir_datasets = import_module("ir_datasets")
    except ImportError:
        raise InputError(
            f"ir_datasets:{name} needs the package ir_datasets: pip install ir_datasets, or read a folder."
        ) from None
    try:
        source = ir_datasets.load(name)
    except KeyError:
        known = list(getattr(ir_datasets, "registry", []))
        raise InputError(f"ir_datasets has no dataset {name!r}.{did_you_mean(name, known)}") from None
    lacking = [part for part in ("docs", "queries", "qrels") if not getattr(source, f"has_{part}")()]
    if lacking:
        raise InputError(
            f"ir_datasets:{name} has no {' and no '.join(lacking)}; name a subset that has them, as {name}/test."
        )
    documents, asked = CorpusBuilder(), QueriesBuilder()
    for doc in source.docs_iter():
        title = getattr(doc, "title", "") or ""
        documents.add(doc.doc_id, _text(doc, _DOCUMENT_TEXTS), title)
    for query in source.queries_iter():
        asked.add(query.query_id, _text(query, _QUERY_TEXTS))
    qrels, found = qrels_of_rows([_row(judgment) for judgment in source.qrels_iter()])
    return assemble(name, documents, asked, qrels, unjudged, (), found)


def _text(record: Any, names: tuple[str, ...]) -> str:
    """The text under the first of these names that is there, or what the package takes for it."""
    for name in names:
        value = getattr(record, name, None)
        if isinstance(value, str):
            return value
    return str(record.default_text())


def _row(judgment: Any) -> Row:
    subtopic = getattr(judgment, "subtopic_id", None)
    return (
        judgment.query_id,
        judgment.doc_id,
        float(judgment.relevance),
        None if subtopic is None else str(subtopic),
    )
