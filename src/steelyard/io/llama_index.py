"""LlamaIndex's EmbeddingQAFinetuneDataset: `queries`, `corpus` and `relevant_docs` in one JSON object."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.errors import InputError
from steelyard.io.columns import check_roles
from steelyard.io.files import Source
from steelyard.qrels import Qrels
from steelyard.wording import counted

PARTS = ("queries", "corpus", "relevant_docs")


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The relevant documents of every query; a query without any is kept."""
    check_roles(columns, (), "a LlamaIndex dataset")
    content = source.json
    missing = [
        part for part in PARTS if not isinstance(content, dict) or not isinstance(content.get(part), dict)
    ]
    if missing:
        raise InputError(
            f"{source.path} is no LlamaIndex dataset: it has no object {', '.join(map(repr, missing))}. "
            f"Expected a JSON object with {', '.join(PARTS)}."
        )
    queries, relevant = content["queries"], content["relevant_docs"]
    wrong = [query for query, docs in relevant.items() if not isinstance(docs, list)]
    if wrong:
        raise InputError(f"{source.path}: relevant_docs of query {wrong[0]!r} is no list of document ids.")
    qrels = Qrels({query: relevant.get(query, []) for query in {**queries, **relevant}})
    qrels.notes += _notes(set(queries), relevant, set(content["corpus"]))
    return qrels


def _notes(queries: set[str], relevant: Mapping[str, list[str]], corpus: set[str]) -> tuple[str, ...]:
    unknown = {str(doc) for docs in relevant.values() for doc in docs} - corpus
    notes = []
    if unknown:
        notes.append(
            f"{counted(len(unknown), 'relevant document is', 'relevant documents are')} not in the file's "
            f"corpus (as {min(unknown)!r})"
        )
    if set(relevant) - queries:
        notes.append(
            f"{counted(len(set(relevant) - queries), 'query is judged and has', 'queries are judged and have')} "
            "no text in the file"
        )
    return tuple(notes)
