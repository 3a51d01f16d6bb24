"""Datasets of the package ir_datasets, by their ids."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from steelyard.datasets.corpus import CorpusBuilder, QueriesBuilder
from steelyard.datasets.dataset import Dataset, assemble, qrels_of_rows
from steelyard.errors import InputError, did_you_mean
from steelyard.io.formats import Format, Layout
from steelyard.qrels import Row

_DOCUMENT_TEXTS = ("text", "body", "abstract", "contents")
_QUERY_TEXTS = ("text", "title", "query")


def read_ir_datasets(name: str, *, unjudged: str = "drop") -> Dataset:
    """Documents, queries and qrels of one id of ir_datasets, as `beir/scifact/test`."""
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
    documents, queries = CorpusBuilder(), QueriesBuilder()
    for doc in source.docs_iter():
        title = getattr(doc, "title", "") or ""
        documents.add(doc.doc_id, _text(doc, _DOCUMENT_TEXTS), title)
    for query in source.queries_iter():
        queries.add(query.query_id, _text(query, _QUERY_TEXTS))
    qrels, findings = qrels_of_rows([_row(judgment) for judgment in source.qrels_iter()])
    return assemble(name, documents, queries, qrels, unjudged, (), findings)


def _text(record: Any, names: tuple[str, ...]) -> str:
    """The first of these fields that is a text, or the default text of the package."""
    for name in names:
        value = getattr(record, name, None)
        if isinstance(value, str):
            return value
    return str(record.default_text())


def _row(judgment: Any) -> Row:
    subtopic = getattr(judgment, "subtopic_id", None)
    return (judgment.query_id, judgment.doc_id, float(judgment.relevance), None if subtopic is None else str(subtopic))


FORMATS = (
    Format(
        name="ir_datasets",
        description="a dataset of the package ir_datasets, by its id",
        dataset=Layout(read_ir_datasets, lambda path: False),
    ),
)
