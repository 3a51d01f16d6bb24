"""LlamaIndex's EmbeddingQAFinetuneDataset: `queries`, `corpus` and `relevant_docs` in one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.datasets.corpus import CorpusBuilder, QueriesBuilder, as_id
from steelyard.datasets.dataset import Dataset, assemble
from steelyard.errors import InputError
from steelyard.ids import kind_of
from steelyard.io.columns import check_roles
from steelyard.io.files import bare_name
from steelyard.io.formats import Detected, Format, Layout, Shape
from steelyard.io.lists import qrels_of_mapping
from steelyard.io.text import Source
from steelyard.notes import note
from steelyard.qrels import Qrels

PARTS = ("queries", "corpus", "relevant_docs")
_EXPECTED = (
    'Expected {"queries": {"q1": "text"}, "corpus": {"d1": "text"}, "relevant_docs": {"q1": ["d1"]}}, '
    "as EmbeddingQAFinetuneDataset.save_json writes it."
)


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The relevant documents of every query; a query without any is kept."""
    check_roles(columns, (), "a LlamaIndex dataset")
    queries, corpus, relevant = _parts(source)
    wrong = [query for query, docs in relevant.items() if not isinstance(docs, list)]
    if wrong:
        raise InputError(f"relevant_docs of query {wrong[0]!r} is not a list of document ids.", source.path)
    qrels = qrels_of_mapping({query: relevant.get(query, []) for query in {**queries, **relevant}})
    unknown = {str(doc) for docs in relevant.values() for doc in docs} - set(corpus)
    if unknown:
        qrels.notes += (note("relevant-not-in-corpus", count=len(unknown), document=min(unknown)),)
    if set(relevant) - set(queries):
        qrels.notes += (note("judged-queries-without-text", count=len(set(relevant) - set(queries))),)
    return qrels


def _parts(source: Source) -> list[Mapping[str, Any]]:
    content = source.json
    parts: list[Any] = [content.get(name) if isinstance(content, dict) else None for name in PARTS]
    missing = [name for name, part in zip(PARTS, parts, strict=True) if not isinstance(part, dict)]
    if missing:
        names = ", ".join(map(repr, missing))
        raise InputError(f"not a LlamaIndex dataset: there is no object {names}. {_EXPECTED}", source.path)
    return parts


def read_dataset(path: Path, *, unjudged: str = "keep") -> Dataset:
    """Read the JSON file."""
    queries, corpus, relevant = _parts(Source(path))
    problems = [
        f"{what} {key!r}: {kind_of(text)}, not its text"
        for what, texts in (("query", queries), ("document", corpus))
        for key, text in texts.items()
        if not isinstance(text, str)
    ]
    for query, docs in relevant.items():
        if not isinstance(docs, list) or not all(isinstance(doc, str) and doc for doc in docs):
            problems.append(f"relevant_docs of query {query!r}: not a list of document ids")
    InputError.refuse(problems, "entry is not as expected", "entries are not as expected", _EXPECTED, path)
    documents, query_builder = CorpusBuilder(), QueriesBuilder()
    try:
        for doc_id, text in corpus.items():
            documents.add(as_id(doc_id, "the id of a document"), text)
        for query_id, text in queries.items():
            query_builder.add(as_id(query_id, "the id of a query"), text)
    except InputError as error:
        raise InputError(f"{error}. {_EXPECTED}", path) from None
    judged = {query: list(dict.fromkeys(docs)) for query, docs in relevant.items()}
    return assemble(path.stem, documents, query_builder, qrels_of_mapping(judged), unjudged)


def _detect(shape: Shape) -> Detected | None:
    is_dataset = shape.form == "object" and set(PARTS) <= set(shape.source.json)
    return Detected("qrels", "llama-index", "qrels") if is_dataset else None


def _is_dataset(path: Path) -> bool:
    return path.is_file() and bare_name(path).suffix.lower() == ".json" and not Source(path).start.startswith(b"[")


FORMATS = (
    Format(
        name="llama-index",
        description="LlamaIndex's EmbeddingQAFinetuneDataset, as JSON",
        detect=_detect,
        reads={"qrels": read_qrels},
        dataset=Layout(read_dataset, _is_dataset),
    ),
)
