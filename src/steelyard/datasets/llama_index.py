"""LlamaIndex's EmbeddingQAFinetuneDataset: one JSON object of queries, corpus and relevant_docs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.datasets.corpus import CorpusBuilder
from steelyard.datasets.dataset import assemble
from steelyard.datasets.fields import as_id
from steelyard.datasets.queries import QueriesBuilder
from steelyard.errors import InputError, problem_report
from steelyard.ids import kind_of
from steelyard.io.files import Source
from steelyard.qrels import Qrels
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset

_EXPECTED = (
    'Expected {"queries": {"q1": "text"}, "corpus": {"d1": "text"}, "relevant_docs": {"q1": ["d1"]}}, '
    "as EmbeddingQAFinetuneDataset.save_json writes it."
)


def read_llama_index(path: Path, *, unjudged: str = "keep") -> Dataset:
    """Read the JSON file."""
    content = Source(path).json
    parts = {name: _part(content, name, path) for name in ("queries", "corpus", "relevant_docs")}
    problems = [*_not_text(parts["queries"], "query"), *_not_text(parts["corpus"], "document")]
    for query, docs in parts["relevant_docs"].items():
        if not isinstance(docs, list) or not all(isinstance(doc, str) and doc for doc in docs):
            problems.append(f"relevant_docs of query {query!r}: not a list of document ids")
    if problems:
        raise InputError(
            problem_report(
                f"{path}: {counted(len(problems), 'entry is', 'entries are')} not as expected:",
                problems,
                _EXPECTED,
            )
        )
    documents, asked = CorpusBuilder(), QueriesBuilder()
    try:
        for doc_id, text in parts["corpus"].items():
            documents.add(as_id(doc_id, "the id of a document"), text)
        for query_id, text in parts["queries"].items():
            asked.add(as_id(query_id, "the id of a query"), text)
    except InputError as error:
        raise InputError(f"{path}: {error}. {_EXPECTED}") from None
    relevant = {query: list(dict.fromkeys(docs)) for query, docs in parts["relevant_docs"].items()}
    return assemble(path.stem, documents, asked, Qrels(relevant), unjudged)


def _part(content: Any, name: str, path: Path) -> Mapping[str, Any]:
    if not isinstance(content, dict) or not isinstance(content.get(name), dict):
        raise InputError(f"{path} holds no object {name!r}. {_EXPECTED}")
    part: Mapping[str, Any] = content[name]
    return part


def _not_text(entries: Mapping[str, Any], what: str) -> list[str]:
    return [
        f"{what} {key!r}: {kind_of(text)}, not its text"
        for key, text in entries.items()
        if not isinstance(text, str)
    ]
