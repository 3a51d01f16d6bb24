"""MultiHop-RAG: questions with `evidence_list`, results with `retrieval_list` and `gold_list`, and corpus.json.

Its files have texts and no ids. As a run and qrels, a text is its own id (white space collapsed): in a question file
each fact is a document, or another field of the evidence (`doc_id='url'`); in a result file a fact is satisfied by
every retrieved text that contains it, ignoring white space, as in the project's own script, and a fact that none
contains by itself. As a dataset, every piece of evidence names its article by url and title, and the article is
relevant; where there is no corpus.json, the facts are the corpus. As evidence, every fact is a target. A question
without evidence (a null query) has no relevant document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.datasets.corpus import CorpusBuilder, QueriesBuilder
from steelyard.datasets.dataset import Dataset, assemble, qrels_of_rows
from steelyard.errors import InputError
from steelyard.evidence.evidence import Evidence
from steelyard.ids import kind_of
from steelyard.io.columns import check_roles
from steelyard.io.files import bare_name, find_file, listing, required_file, run_name
from steelyard.io.formats import Detected, EvidenceReader, Format, Layout, Shape, run_or_qrels
from steelyard.io.frames import NamedColumns
from steelyard.io.lists import run_of_mapping
from steelyard.io.text import Source
from steelyard.notes import Note, note
from steelyard.qrels import Qrels, Row
from steelyard.run import Run

_IDS = ("doc_id", "chunk_id", "id")
_EXPECTED_QUESTIONS = (
    'Expected [{"query": "...", "question_type": "...", "evidence_list": [{"url", "title", "fact"}]}].'
)
_EXPECTED_ARTICLES = 'Expected [{"title": "...", "url": "...", "body": "..."}].'


def read_qrels(source: Source, columns: Mapping[str, str]) -> Qrels:
    """The evidence of every question; a question without any (a null_query) is kept."""
    check_roles(columns, ("query_id", "doc_id"), "a MultiHop-RAG file")
    queries, notes = NamedColumns(source.records).query_ids(columns.get("query_id"))
    rows: list[Row] = []
    for query, record in zip(queries, source.records, strict=True):
        evidence = record.get("gold_list", record.get("evidence_list")) or []
        if "retrieval_list" not in record:
            field = columns.get("doc_id", "fact")
            rows += [(query, _collapsed(_text(item, field, query)), 1.0, None) for item in evidence]
            continue
        # A fact is satisfied by the retrieved texts that contain it; by itself where none does.
        packed = [(_id(item, query), "".join(str(item.get("text", "")).split())) for item in record["retrieval_list"]]
        for number, item in enumerate(evidence, start=1):
            fact = _collapsed(_text(item, "fact", query))
            inside = [doc for doc, text in packed if fact.replace(" ", "") in text]
            rows += [(query, doc, 1.0, str(number)) for doc in inside or [fact]]
    qrels = Qrels.from_rows(rows, queries)
    qrels.notes += notes
    return qrels


def read_run(source: Source, columns: Mapping[str, str]) -> Run:
    """The retrieved texts, in the order of the lists, with their scores where all have one."""
    check_roles(columns, ("query_id",), "a MultiHop-RAG result file")
    queries, notes = NamedColumns(source.records).query_ids(columns.get("query_id"))
    lists: dict[str, Any] = {}
    for query, record in zip(queries, source.records, strict=True):
        if "retrieval_list" not in record:
            raise InputError(f"query {query!r} has no retrieval_list: this is the file of questions, not of results.")
        lists[query] = [_id(item, query) for item in record["retrieval_list"]]
        scores = [item.get("score") for item in record["retrieval_list"]]
        if scores and all(isinstance(score, (int, float)) for score in scores):
            lists[query] = list(zip(lists[query], scores, strict=True))
    run = run_of_mapping(lists, run_name(source.path))
    run.notes = notes
    return run


def _id(item: Any, query: str) -> str:
    name = next((name for name in _IDS if isinstance(item, Mapping) and name in item), None)
    return _collapsed(_text(item, "text", query)) if name is None else str(item[name])


def _text(item: Any, field: str, query: str) -> str:
    value = item.get(field) if isinstance(item, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"query {query!r} lists an item without a text in {field!r}: {str(item)[:60]!r}.")
    return value


def _collapsed(text: Any) -> str:
    return " ".join(str(text).split())


def read_evidence(records: Sequence[Mapping[str, Any]]) -> Evidence:
    """The facts of every question, each a target; a question of type null_query is null."""
    queries, notes = NamedColumns(records).query_ids()
    evidence: dict[str, Any] = {}
    for query, record in zip(queries, records, strict=True):
        facts = [{"fact": _text(piece, "fact", query)} for piece in record.get("evidence_list") or []]
        evidence[query] = facts or (None if str(record.get("question_type", "")).startswith("null") else [])
    return Evidence(evidence, notes=notes)


def read_dataset(
    path: Path, *, questions: str | None = None, corpus: str | None = None, unjudged: str = "keep"
) -> Dataset:
    """Read a folder with both files, or the file of questions, with corpus.json beside it where there is one."""
    folder = path if path.is_dir() else path.parent
    if path.is_file():
        source = path
    elif questions is not None:
        source = required_file(folder, questions)
    else:
        files = sorted(entry for entry in folder.iterdir() if entry.name.lower().startswith("multihoprag"))
        if not files:
            advice = f"name the file (questions=...). The folder holds {listing(folder)}."
            raise InputError(f"there is no MultiHopRAG.json; {advice}", folder)
        source = files[0]
    entries = _records(source, "query", _EXPECTED_QUESTIONS)
    articles = required_file(folder, corpus) if corpus else find_file(folder, "corpus.json")
    documents = CorpusBuilder()
    if articles is None:
        rows, notes = _facts(entries, source, documents), [note("facts-are-corpus")]
    else:
        rows, notes = _evidence_rows(entries, _records(articles, "body", _EXPECTED_ARTICLES), documents)
    builder = QueriesBuilder()
    for number, question in enumerate(entries):
        rest = {name: value for name, value in question.items() if name not in ("query", "evidence_list")}
        builder.add(str(number), question["query"], rest)
    qrels, findings = qrels_of_rows(rows, [str(number) for number in range(len(entries))])
    name = folder.resolve().name if path.is_dir() else bare_name(path).stem
    notes.append(note("questions-numbered"))
    return assemble(name, documents, builder, qrels, unjudged, notes, findings)


def _records(path: Path, text: str, expected: str) -> list[dict[str, Any]]:
    """The questions or articles of a file; `text` is the field that each must have."""
    content = Source(path).json
    if not isinstance(content, list) or not content:
        raise InputError(f"{'an empty list' if content == [] else kind_of(content)}. {expected}", path)
    problems = [f"entry {n:,}: {problem}" for n, item in enumerate(content, 1) if (problem := _wrong(item, text))]
    InputError.refuse(problems, "entry is not as expected", "entries are not as expected", expected, path)
    return content


def _wrong(item: Any, text: str) -> str | None:
    """What is wrong with one question or article; None if nothing is."""
    if not isinstance(item, dict):
        return f"{kind_of(item)}, not an object"
    if not isinstance(item.get(text), str):
        return f"{text} is {kind_of(item.get(text))}, not text"
    evidence = item.get("evidence_list", [])
    if not isinstance(evidence, list) or not all(isinstance(piece, dict) for piece in evidence):
        return "evidence_list is not a list of objects"
    return None


def _evidence_rows(
    questions: Sequence[dict[str, Any]], articles: Sequence[dict[str, Any]], documents: CorpusBuilder
) -> tuple[list[Row], list[Note]]:
    """The articles added under their url, or a number if urls are missing; a judgment for each that evidence names."""
    urls = [record.get("url") for record in articles]
    named = all(urls) and len(set(urls)) == len(urls)
    ids: dict[tuple[str, str], str] = {}
    for number, record in enumerate(articles):
        doc_id = str(record["url"]) if named else str(number)
        documents.add(doc_id, record["body"], str(record.get("title") or ""), metadata=_rest(record, "body"))
        for key in ("url", "title"):
            if record.get(key):
                ids.setdefault((key, _collapsed(record[key])), doc_id)
    rows: list[Row] = []
    lost = 0
    for number, question in enumerate(questions):
        for piece in question.get("evidence_list", []):
            keys = [(key, _collapsed(piece[key])) for key in ("url", "title") if piece.get(key)]
            article = next((ids[key] for key in keys if key in ids), None)
            lost += article is None
            # A missing article stays in the qrels under its own name, for validation to report.
            rows.append((str(number), article or str(piece.get("url") or piece.get("title") or "unknown"), 1.0, None))
    return rows, [note("articles-missing", count=lost)] if lost else []


def _facts(questions: Sequence[dict[str, Any]], path: Path, documents: CorpusBuilder) -> list[Row]:
    """Every fact added as a document: f0, f1, ... in order of appearance; and the judgments."""
    ids: dict[str, str] = {}
    rows: list[Row] = []
    problems: list[str] = []
    for number, question in enumerate(questions):
        for piece in question.get("evidence_list", []):
            fact = piece.get("fact")
            if not isinstance(fact, str) or not fact.strip():
                problems.append(f"entry {number + 1:,}: a piece of evidence has no fact")
                continue
            if fact not in ids:
                ids[fact] = f"f{len(ids)}"
                documents.add(ids[fact], fact, str(piece.get("title") or ""), metadata=_rest(piece, "fact"))
            rows.append((str(number), ids[fact], 1.0, None))
    if problems:
        headline = f"without articles the facts are the corpus, and {len(problems):,} are missing:"
        advice = "Put corpus.json beside the file, or name it (corpus=...)."
        raise InputError.of_problems(headline, problems, advice, path)
    return rows


def _rest(record: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in (text, "title") and value is not None}


def _detect(shape: Shape) -> Detected | None:
    if shape.form not in ("json", "jsonl"):
        return None
    names = set(shape.names)
    return run_or_qrels("multihop-rag", "retrieval_list" in names, bool(names & {"evidence_list", "gold_list"}))


def _is_dataset(path: Path) -> bool:
    if path.is_dir():
        names = [entry.name.lower() for entry in path.iterdir()]
        return any(name.startswith("multihoprag") and ".json" in name for name in names)
    return bare_name(path).suffix.lower() == ".json" and Source(path).start.startswith(b"[")


FORMATS = (
    Format(
        name="multihop-rag",
        description="MultiHop-RAG questions (evidence_list) and results",
        detect=_detect,
        reads={"run": read_run, "qrels": read_qrels},
        dataset=Layout(read_dataset, _is_dataset, "MultiHopRAG.json"),
        evidence=EvidenceReader(read_evidence, ("evidence_list",)),
    ),
)
