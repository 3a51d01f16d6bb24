"""Datasets of the package ir_datasets, by their ids."""

from __future__ import annotations

from typing import Any

from steelyard.datasets.corpus import CorpusBuilder, QueriesBuilder
from steelyard.datasets.dataset import Dataset, assemble, qrels_of_rows
from steelyard.errors import InputError, did_you_mean
from steelyard.io.files import optional
from steelyard.io.formats import Format, Layout
from steelyard.qrels import Row


def read_ir_datasets(name: str, *, unjudged: str = "drop") -> Dataset:
    """Documents, queries and qrels of one id of ir_datasets, as `beir/scifact/test`."""
    advice = "pip install ir_datasets, or read a folder."
    ir_datasets = optional("ir_datasets", f"ir_datasets:{name} needs", advice)
    try:
        source = ir_datasets.load(name)
    except KeyError:
        names = list(getattr(ir_datasets, "registry", []))
        raise InputError(f"ir_datasets has no dataset {name!r}.{did_you_mean(name, names)}") from None
    lacking = [part for part in ("docs", "queries", "qrels") if not getattr(source, f"has_{part}")()]
    if lacking:
        absent = " and no ".join(lacking)
        raise InputError(f"ir_datasets:{name} has no {absent}; name a subset that has them, as {name}/test.")
    documents, queries = CorpusBuilder(), QueriesBuilder()
    for doc in source.docs_iter():
        documents.add(doc.doc_id, _text(doc, ("text", "body", "abstract", "contents")), getattr(doc, "title", "") or "")
    for query in source.queries_iter():
        queries.add(query.query_id, _text(query, ("text", "title", "query")))
    rows: list[Row] = []
    for judged in source.qrels_iter():
        target = getattr(judged, "subtopic_id", None)
        rows.append((judged.query_id, judged.doc_id, float(judged.relevance), None if target is None else str(target)))
    qrels, findings = qrels_of_rows(rows)
    return assemble(name, documents, queries, qrels, unjudged, (), findings)


def _text(record: Any, names: tuple[str, ...]) -> str:
    """The first of these fields that is a text, or the default text of the package."""
    values = (getattr(record, name, None) for name in names)
    text = next((value for value in values if isinstance(value, str)), None)
    return str(record.default_text()) if text is None else text


FORMATS = (
    Format(
        name="ir_datasets",
        description="a dataset of the package ir_datasets, by its id",
        dataset=Layout(read_ir_datasets, lambda path: False),
    ),
)
