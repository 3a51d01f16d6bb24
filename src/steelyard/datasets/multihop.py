"""MultiHop-RAG's pair of JSON files: MultiHopRAG.json (questions with evidence) and corpus.json (articles).

Every piece of evidence names its article by url and title, and the article is what has to be
found. Where the articles are not at hand the facts themselves are the corpus. A question without
evidence (a null query) has no relevant document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.datasets.corpus import CorpusBuilder
from steelyard.datasets.dataset import Row, assemble, qrels_of_rows
from steelyard.datasets.queries import QueriesBuilder
from steelyard.datasets.reading import find_file, listing, required_file
from steelyard.errors import InputError, problem_report
from steelyard.ids import kind_of
from steelyard.io.files import Source, bare_name
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets.dataset import Dataset

_EXPECTED_QUESTIONS = (
    'Expected [{"query": "...", "question_type": "...", "evidence_list": [{"url", "title", "fact"}]}].'
)
_EXPECTED_ARTICLES = 'Expected [{"title": "...", "url": "...", "body": "..."}].'


def read_multihop(
    path: Path, *, questions: str | None = None, corpus: str | None = None, unjudged: str = "keep"
) -> Dataset:
    """Read a folder with both files, or the file of questions, with corpus.json beside it where it is there."""
    folder = path if path.is_dir() else path.parent
    source = path if path.is_file() else _questions_file(folder, questions)
    asked = _records(source, _EXPECTED_QUESTIONS)
    articles = required_file(folder, corpus) if corpus else find_file(folder, "corpus.json")
    documents = CorpusBuilder()
    if articles is None:
        rows = _facts(asked, source, documents)
        notes = ["no articles beside the questions: the evidence facts are the corpus"]
    else:
        rows, notes = _evidence(asked, _articles(_records(articles, _EXPECTED_ARTICLES), documents))
    builder = QueriesBuilder()
    for number, question in enumerate(asked):
        rest = {name: value for name, value in question.items() if name not in ("query", "evidence_list")}
        builder.add(str(number), question["query"], rest)
    qrels, found = qrels_of_rows(rows, [str(number) for number in range(len(asked))])
    name = folder.resolve().name if path.is_dir() else bare_name(path).stem
    notes.append("queries were numbered from 0, in the order of the file")
    return assemble(name, documents, builder, qrels, unjudged, notes, found)


def _questions_file(folder: Path, named: str | None) -> Path:
    if named is not None:
        return required_file(folder, named)
    found = sorted(path for path in folder.iterdir() if path.name.lower().startswith("multihoprag"))
    if not found:
        raise InputError(
            f"{folder} has no MultiHopRAG.json: name the file (questions=...). It holds {listing(folder)}."
        )
    return found[0]


def _records(path: Path, expected: str) -> list[dict[str, Any]]:
    content = Source(path).json
    if not isinstance(content, list) or not content:
        raise InputError(f"{path} holds {'an empty list' if content == [] else kind_of(content)}. {expected}")
    text = "query" if expected is _EXPECTED_QUESTIONS else "body"
    problems = [
        f"entry {number:,}: {problem}"
        for number, item in enumerate(content, 1)
        if (problem := _wrong(item, text))
    ]
    if problems:
        raise InputError(
            problem_report(
                f"{path}: {counted(len(problems), 'entry is', 'entries are')} not as expected:",
                problems,
                expected,
            )
        )
    return content


def _wrong(item: Any, text: str) -> str | None:
    """What is wrong with one question or article, if anything."""
    if not isinstance(item, dict):
        return f"{kind_of(item)}, not an object"
    if not isinstance(item.get(text), str):
        return f"{text} is {kind_of(item.get(text))}, not text"
    evidence = item.get("evidence_list", [])
    if not isinstance(evidence, list) or not all(isinstance(piece, dict) for piece in evidence):
        return "evidence_list is not a list of objects"
    return None


def _articles(records: Sequence[dict[str, Any]], documents: CorpusBuilder) -> dict[tuple[str, str], str]:
    """The articles into the corpus, under their url, or a number where urls are missing; ids by url and by title."""
    urls = [record.get("url") for record in records]
    named = all(urls) and len(set(urls)) == len(urls)
    places: dict[tuple[str, str], str] = {}
    for number, record in enumerate(records):
        doc_id = str(record["url"]) if named else str(number)
        rest = {
            name: value
            for name, value in record.items()
            if name not in ("title", "body") and value is not None
        }
        documents.add(doc_id, record["body"], str(record.get("title") or ""), metadata=rest)
        for key in ("url", "title"):
            if record.get(key):
                places.setdefault((key, _plain(record[key])), doc_id)
    return places


def _evidence(
    asked: Sequence[dict[str, Any]], places: Mapping[tuple[str, str], str]
) -> tuple[list[Row], list[str]]:
    """A judgment for every article that a question's evidence names."""
    rows: list[Row] = []
    lost = 0
    for number, question in enumerate(asked):
        for piece in question.get("evidence_list", []):
            keys = [(key, _plain(piece[key])) for key in ("url", "title") if piece.get(key)]
            doc_id = next((places[key] for key in keys if key in places), None)
            lost += doc_id is None
            # An article that is not there stays in the judgments under its own name, for validation to report.
            rows.append(
                (str(number), doc_id or str(piece.get("url") or piece.get("title") or "unknown"), 1.0, None)
            )
    notes = (
        [f"{counted(lost, 'piece of evidence', 'pieces of evidence')} name an article that is not there"]
        if lost
        else []
    )
    return rows, notes


def _facts(asked: Sequence[dict[str, Any]], path: Path, documents: CorpusBuilder) -> list[Row]:
    """Every fact a document of its own: f0, f1, ... in the order they first come."""
    ids: dict[str, str] = {}
    rows: list[Row] = []
    problems: list[str] = []
    for number, question in enumerate(asked):
        for piece in question.get("evidence_list", []):
            fact = piece.get("fact")
            if not isinstance(fact, str) or not fact.strip():
                problems.append(f"entry {number + 1:,}: a piece of evidence has no fact")
                continue
            if fact not in ids:
                ids[fact] = f"f{len(ids)}"
                rest = {
                    name: value
                    for name, value in piece.items()
                    if name not in ("fact", "title") and value is not None
                }
                documents.add(ids[fact], fact, str(piece.get("title") or ""), metadata=rest)
            rows.append((str(number), ids[fact], 1.0, None))
    if problems:
        raise InputError(
            problem_report(
                f"{path}: without articles the facts are the corpus, and {len(problems):,} are missing:",
                problems,
                "Put corpus.json beside the file, or name it (corpus=...).",
            )
        )
    return rows


def _plain(value: Any) -> str:
    return " ".join(str(value).split())
