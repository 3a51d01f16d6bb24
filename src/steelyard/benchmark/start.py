"""A bench.yaml from a list of questions and retrievers: each retriever is asked one question before it is written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from steelyard.benchmark.config import starter_path
from steelyard.benchmark.retrieval import answered
from steelyard.benchmark.specs import NAME, Spec, specs_of, without_corpus
from steelyard.datasets.corpus import Queries
from steelyard.errors import InputError, SteelyardError, did_you_mean, problem_report
from steelyard.io.datasets import read_queries
from steelyard.io.files import write_file
from steelyard.io.unpacking import load_yaml
from steelyard.notes import Note
from steelyard.retrievers.adapters.base import Wrapped
from steelyard.retrievers.adapters.documents import MADE, made_id
from steelyard.retrievers.adapters.http import UnreachableError
from steelyard.retrievers.base import Ranked, unused_name
from steelyard.retrievers.registry import adapter_of, retriever_names
from steelyard.retrievers.targets import load_target
from steelyard.user_code import run_user_code

DEPTH, LEAST_DEPTH = 20, 10
"""Documents that a retriever is asked for. A bench asks for fewer if none returns as many and no measure reads them."""

A_TEXT = 8  # A string of this many words is the text of a document, not its id.
_LABELLED = re.compile(r"([\w.-]+)=(.+)", re.DOTALL)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_HTTP_FIELDS, _HTTP_PARAMETERS = ("query", "question", "q", "text"), ("query", "q", "question")
"""Where a URL without {query} is tried to have the question: in this field of a body, and then in this parameter."""


@dataclass(frozen=True)
class FirstAnswer:
    """What a retriever returned for the first question: (id, score, text) of its documents."""

    entry: dict[str, Any]
    label: str
    documents: Sequence[tuple[str, float, str]]
    seconds: float
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Started:
    """A bench.yaml that was written: the questions, the notes on them, and what every retriever returned."""

    path: Path
    queries: Queries
    answers: tuple[FirstAnswer, ...]
    notes: tuple[Note, ...] = field(default=())


def write_bench(
    folder: Path, queries: Any, retrievers: Sequence[Any], *, corpus: str | None = None, column: str | None = None
) -> Started:
    """Write bench.yaml for questions and retrievers, after each retriever has answered the first question.

    queries: a file of questions, relative to the working directory. retrievers: texts as on the command line, each the
    name of a retriever, `module:attribute`, a URL, or an entry of bench.yaml in YAML; `NAME=` before it is its label.
    A URL without {query} is asked in the usual ways, and the first that gives documents is written.
    """
    path = starter_path(folder)
    if not retrievers:
        raise InputError("name at least one retriever: my_app:search, a URL, or a name of `steelyard list retrievers`.")
    read, notes = read_queries(queries if column is None else {"path": queries, "column": column})
    question = next(iter(read.values()))
    answers: list[FirstAnswer] = []
    problems: list[str] = []
    for text in retrievers:
        try:
            answers.append(_first_answer(str(text), question, corpus is not None, {answer.label for answer in answers}))
        except SteelyardError as error:
            problems.append(str(error))
    if problems:
        raise InputError(problem_report(f"{path} was not written:", problems))
    answers = _with_ids_by_text(answers)
    starter_path(folder)  # The answers may have taken minutes, in which somebody wrote the file.
    folder.mkdir(parents=True, exist_ok=True)
    write_file(path, _text(path, queries, column, corpus, answers).encode())
    return Started(path, read, tuple(answers), notes)


def _entries(text: str) -> tuple[str | None, list[dict[str, Any]]]:
    """The label of a retriever, if it has one, and the entries of bench.yaml to try for it."""
    label = None
    if not text.lstrip().startswith("{") and (match := _LABELLED.fullmatch(text)) and "://" not in match[1]:
        label, text = match[1], match[2]
    if text.lstrip().startswith("{"):
        entry = _value_of(text)
        if not isinstance(entry, Mapping) or len(entry) != 1:
            raise InputError(f"{text[:200]!r} is not a retriever; expected {{name: {{setting: value}}}}.")
        return label, [dict(entry)]
    if text in retriever_names():
        return label, [{text: {}}]
    if adapter_of(text) == "http":
        if "{query}" in text:
            return label, [{"http": {"target": text}}]
        joint = "&" if "?" in text else "?"
        posts = [{"target": text, "body": {name: "{query}", "k": "{k}"}} for name in _HTTP_FIELDS]
        gets = [{"target": f"{text}{joint}{name}={{query}}&k={{k}}"} for name in _HTTP_PARAMETERS]
        return label, [{"http": settings} for settings in [*posts, *gets]]
    if ":" not in text:
        names = f"{', '.join(retriever_names())}.{did_you_mean(text, retriever_names())}"
        raise InputError(f"{text!r} is not a retriever; expected module:attribute, a URL, or one of {names}")
    adapter = run_user_code(lambda: adapter_of(load_target(text, text)), text)
    return label or text.rpartition(":")[2], [{adapter: {"target": text}}]


def _value_of(text: str) -> Any:
    """The value of a YAML text on the command line."""
    try:
        return load_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{text[:200]!r} is not YAML ({str(error).partition(chr(10))[0]}).") from None


def _first_answer(text: str, question: str, has_corpus: bool, taken: set[str]) -> FirstAnswer:
    """The answer of a retriever to a question, by the first entry that gives documents."""
    label, entries = _entries(text)
    problems: list[str] = []
    empty: FirstAnswer | None = None
    for entry in entries:
        ((name, settings),) = entry.items()
        settings = {**(settings if isinstance(settings, Mapping) else {"target": settings} if settings else {})}
        if name == "http" and len(entries) > 1:
            settings["retries"] = 0
        if label is not None:
            settings[NAME] = label
        specs, spec_problems = specs_of([{name: settings}], Path())
        problems += [problem for _, problem in spec_problems]
        for spec in specs[:1]:
            wanted = unused_name(spec.label, taken, "-")
            entry = {name: {key: value for key, value in settings.items() if key != "retries" or len(entries) == 1}}
            entry[name] = {**entry[name], NAME: wanted} if wanted != spec.label or label else entry[name]
            if spec.needs_corpus:
                if not has_corpus:
                    raise InputError(without_corpus(spec))
                return FirstAnswer(entry, wanted, (), 0.0, ("it indexes the corpus when the bench is run",))
            try:
                answer = _asked(replace(spec, label=wanted), entry, question)
            except SteelyardError as error:
                if isinstance(error.__cause__, UnreachableError):
                    raise InputError(f"{error} Is the service running?") from None
                problems.append(str(error))
                continue
            if answer.documents:
                return answer
            empty = empty or answer
    if empty is not None:
        return empty
    if len(entries) > 1:
        raise InputError(
            f"{text}: none of the usual requests gives documents; the first: {problems[0]} Write the URL with {{query}}"
            f", or '{{http: {{target: {text}, body: {{YOUR_FIELD: \"{{query}}\"}}}}}}'."
        )
    raise InputError(problems[0] if problems else f"{text} gave no answer.")


def _asked(spec: Spec, entry: dict[str, Any], question: str) -> FirstAnswer:
    """The first documents of a retriever for a question, and remarks on their ids and texts."""
    retriever, texts = spec.retriever, dict[str, str]()
    assert retriever is not None

    def keep(doc: str, text: str, document: Any) -> None:
        texts.setdefault(doc, text)

    def ask() -> tuple[Ranked, float]:
        retriever.index({})
        if isinstance(retriever, Wrapped):
            retriever.keep_texts(keep)
        return answered(retriever, question, DEPTH, spec.label, keep)

    ranked, seconds = run_user_code(ask, spec.label)
    documents = [(doc, score, texts.get(doc, "")) for doc, score in ranked]
    remarks = []
    if not ranked:
        remarks.append("it returned no documents for this question")
    elif not texts and all(len(doc.split()) >= A_TEXT for doc, _ in ranked):
        ((name, settings),) = entry.items()
        entry = {name: {**settings, "id": "hash"}}
        texts = {made_id(doc): doc for doc, _ in ranked}
        documents = [(made_id(doc), score, doc) for doc, score in ranked]
    elif not texts:
        remarks.append("it returned no texts, which judging needs: return {id, text}, set `text`, or add a corpus")
    if texts and all(doc.startswith(MADE) for doc, *_ in documents):
        remarks.append("it returned no ids: documents are identified by their texts")
    return FirstAnswer(entry, spec.label, documents, seconds, tuple(remarks))


def _with_ids_by_text(answers: Sequence[FirstAnswer]) -> list[FirstAnswer]:
    """The answers with `id: hash` where ids are random, or where retrievers return texts under different ids."""
    ids: dict[str, set[str]] = {}
    for answer in answers:
        for doc, _, text in answer.documents:
            if text:
                ids.setdefault(text.strip(), set()).add(doc)
    made_ids = {doc.startswith(MADE) for docs in ids.values() for doc in docs}
    apart = any(len(docs) > 1 for docs in ids.values()) or len(made_ids) > 1
    new_answers: list[FirstAnswer] = []
    for answer in answers:
        ((name, settings),) = answer.entry.items()
        texts = [text for _, _, text in answer.documents if text]
        random = texts and all(_UUID.fullmatch(doc) for doc, _, _ in answer.documents)
        named = any(doc.startswith(MADE) for doc, _, _ in answer.documents) or "id" in settings
        if texts and not named and (random or apart):
            why = "its ids are random and may change with every index" if random else "other retrievers have other ids"
            remarks = (*answer.remarks, f"{why}: documents are identified by their texts (`id: hash`)")
            answer = replace(answer, entry={name: {**settings, "id": "hash"}}, remarks=remarks)
        new_answers.append(answer)
    return new_answers


def _text(path: Path, queries: Any, column: str | None, corpus: str | None, answers: Sequence[FirstAnswer]) -> str:
    """The text of bench.yaml; paths are relative to it."""

    def relative(name: Any) -> str:
        return Path(os.path.relpath(name, path.parent)).as_posix()

    source: Any = relative(queries) if column is None else {"path": relative(queries), "column": column}
    documents: Any = _value_of(corpus) if corpus is not None and corpus.startswith("{") else corpus
    documents = relative(documents) if isinstance(documents, str) else documents
    parts = {"queries": source, **({} if documents is None else {"corpus": documents})}
    longest = max(LEAST_DEPTH, *(len(answer.documents) for answer in answers))
    depth = longest if all(answer.seconds for answer in answers) else DEPTH
    retrievers = {"retrievers": [answer.entry for answer in answers]}
    shown = [yaml.safe_dump(section, sort_keys=False, allow_unicode=True, width=120) for section in (parts, retrievers)]
    result = f"{path.stem}-result"
    template = (files("steelyard.benchmark") / "questions_starter.yaml").read_text("utf-8")
    return template.format(depth=depth, file=path.name, result=result, parts=shown[0], retrievers=shown[1])
