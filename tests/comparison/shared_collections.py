"""Qrels and runs of ../shared/data for the tests of unjudged documents, and qrels restricted to some documents."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from needs import shared_data

DEPTH = 100

Ranking = dict[str, list[str]]
Grades = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Collection:
    """Grades by query and document, and rankings by run and query."""

    qrels: Grades
    runs: Mapping[str, Ranking]

    def lists(self, run: str) -> list[list[str]]:
        """The ranked documents of each query of the qrels."""
        return [self.runs[run].get(query, []) for query in self.qrels]

    def first(self, run: str, depth: int) -> dict[str, set[str]]:
        """The first documents of each query."""
        return {query: set(self.runs[run].get(query, [])[:depth]) for query in self.qrels}


def restricted(qrels: Grades, *kept: Mapping[str, set[str]], lowest: float = float("-inf")) -> Grades:
    """The judgments of the documents in one of the sets, with at least the lowest grade."""
    return {
        query: {
            document: grade
            for document, grade in grades.items()
            if grade >= lowest and any(document in documents[query] for documents in kept)
        }
        for query, grades in qrels.items()
    }


@cache
def dl2019() -> Collection:
    """TREC 2019 Deep Learning, passages: 37 official runs."""
    folder = shared_data("dl2019")
    qrels: Grades = {}
    for line in (folder / "qrels.txt").read_text("utf-8").splitlines():
        query, _, document, grade = line.split()
        qrels.setdefault(query, {})[document] = float(grade)
    return Collection(qrels, {path.name: _trec_run(path) for path in sorted((folder / "runs").glob("*.gz"))})


def _trec_run(path: Path) -> Ranking:
    scored: dict[str, list[tuple[float, str]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            query, _, document, _, score, _ = line.split()
            scored.setdefault(query, []).append((float(score), document))
    return {query: [document for _, document in sorted(found, reverse=True)] for query, found in scored.items()}


@cache
def retrieved(name: str) -> Collection:
    """A dataset of ../shared/data with runs of our own retrievers."""
    if name == "expense-rules":
        corpus, queries, qrels = _expense_rules(shared_data(name))
    else:
        import steelyard as sy

        dataset = sy.Dataset.read(str(shared_data(name)))
        corpus, queries, qrels = dataset.corpus, dict(dataset.queries), _tsv_qrels(shared_data(name))
    asked = [query for query in queries if query in qrels]
    runs = {}
    for label, retriever in _retrievers().items():
        found = retriever().index(corpus).retrieve([queries[query] for query in asked], k=DEPTH)
        runs[label] = {
            query: [document for document, _ in documents] for query, documents in zip(asked, found, strict=True)
        }
    return Collection(qrels, runs)


def _retrievers() -> dict[str, Callable[[], Any]]:
    from steelyard.retrievers import BM25, Dense, Hybrid, Random

    variants = ("okapi", "plus", "l", "lucene", "robertson", "atire")
    return {
        **{variant: lambda variant=variant: BM25(variant=variant) for variant in variants},
        "whitespace": lambda: BM25(tokenizer="whitespace"),
        "trigrams": lambda: BM25(tokenizer="ngrams:3"),
        "bigrams": lambda: BM25(tokenizer="ngrams"),
        "k1=3": lambda: BM25(k1=3.0, b=0.2),
        "b=0": lambda: BM25(k1=0.4, b=0.0),
        "dense": Dense,
        "dense-32": lambda: Dense(dimensions=32),
        "hybrid": lambda: Hybrid([BM25(), Dense()]),
        "random": lambda: Random(seed=0),
    }


def _tsv_qrels(folder: Path) -> Grades:
    (path,) = folder.glob("qrels*.tsv")
    qrels: Grades = {}
    for line in path.read_text("utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        qrels.setdefault(query, {})[document] = float(grade)
    return qrels


def _expense_rules(folder: Path) -> tuple[dict[str, str], dict[str, str], Grades]:
    """Documents are all columns of a row: the runs find nearly every relevant document at rank 1."""
    with (folder / "eval_en.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    corpus = {row["Rule"]: " ".join(cell or "nan" for cell in row.values()) for row in rows}
    examples = [(row["Rule"], column, row[column]) for row in rows for column in ("Example 1", "Example 2")]
    queries = {f"{rule} {column}": text for rule, column, text in examples}
    qrels = {f"{rule} {column}": {rule: 1.0} for rule, column, _ in examples}
    return corpus, queries, qrels
