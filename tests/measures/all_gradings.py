"""The reference for bounds: every grading of the unjudged documents, each measured as qrels of its own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

import steelyard as sy
from steelyard.alignment.alignment import Alignment, align
from steelyard.alignment.hits import Ordering
from steelyard.alignment.ranges import RetrievedRanges
from steelyard.measures.compute import values
from steelyard.measures.gradings import is_fixed
from steelyard.measures.grammar import Measure

Grades = dict[str, dict[str, float]]
Lists = dict[str, list[str]]
DOCS = "abcdefghij"
TOKENS = {doc: 1 + place % 3 for place, doc in enumerate("abcdefghijklmnopqrstuvwxyz")}


def aligned(judged: dict[str, Any], listed: Lists) -> Alignment:
    """A run with token counts, times and scores, joined with its qrels."""
    seconds = dict.fromkeys(judged, 0.25)
    a = align(sy.Qrels(judged), sy.Run(listed, tokens=TOKENS, seconds=seconds), Ordering()).alignment
    return replace(a, top_score=np.where(a.retrieved > 2, 1.0, 0.5), ranges=ranges_of_documents(judged, listed, TOKENS))


def ranges_of_documents(
    judged: dict[str, Any], listed: Any, tokens: dict[str, int] | None = None
) -> RetrievedRanges | None:
    """Every document as a chunk of one to three characters; the relevant ones are gold, or one that nobody finds."""
    evidence = {}
    for query, judgments in judged.items():
        frame = sy.Qrels({query: judgments}).frame.filter(pl.col("grade") >= 1)
        docs = frame["doc_id"].unique(maintain_order=True).to_list() or ["nowhere"]
        evidence[query] = [{"doc_id": doc, "start": 0, "end": TOKENS.get(doc, 1)} for doc in docs]
    chunks = [{"chunk_id": doc, "doc_id": doc, "start": 0, "end": length} for doc, length in TOKENS.items()]
    qrels = sy.Evidence(evidence).judge(chunks)
    return align(qrels, sy.Run(listed, tokens=tokens), Ordering()).alignment.ranges


def random_case(
    chance: random.Random, grades: Sequence[float], most: int, runs: int = 1, queries: int = 12
) -> tuple[Grades, list[Lists]]:
    """Qrels of a few queries and lists with up to `most` unjudged documents, repeats and missing queries."""
    judged: Grades = {"scale": {"a": max(grades)}}
    lists: list[Lists] = [{"scale": ["a"]} for _ in range(runs)]
    for number in range(queries):
        docs = chance.sample(DOCS, len(DOCS))
        known = docs[: chance.randint(0, 5)]
        judged[f"q{number}"] = {doc: chance.choice(grades) for doc in known}
        pool = known + docs[len(known) :][: chance.randint(0, most)]
        for listed in lists:
            if chance.random() > 0.1:
                got = chance.sample(pool, chance.randint(0, len(pool)))
                again = chance.choices(got, k=chance.choice([0, 0, 0, 1])) if got else []
                listed[f"q{number}"] = [*got[:2], *again, *got[2:]]
    return judged, lists


def open_documents(judged: Grades, lists: Sequence[Lists], query: str) -> list[str]:
    """The unjudged documents of a query in any of the lists."""
    everything = [doc for listed in lists for doc in listed.get(query, [])]
    return [doc for doc in dict.fromkeys(everything) if doc not in judged[query]]


def over_all_gradings(
    measures: Sequence[Measure], judged: Grades, lists: Sequence[Lists], levels: Sequence[float]
) -> list[np.ndarray]:
    """For every query a table of one row per measure and one column per grading: the value, or the difference."""
    graded: dict[str, Any] = {}
    owners: list[int] = []
    runs: list[Lists] = [{} for _ in lists]
    for place, query in enumerate(judged):
        docs = open_documents(judged, lists, query)
        for number, grades in enumerate(itertools.product(levels, repeat=len(docs))):
            name = f"{query}/{number}"
            graded[name] = judged[query] | dict(zip(docs, grades, strict=True))
            owners.append(place)
            for run, listed in zip(runs, lists, strict=True):
                if query in listed:
                    run[name] = listed[query]
    tables = [_table(measures, aligned(graded, run)) for run in runs]
    now = [_table(measures, aligned(judged, listed))[:, owners] for listed in lists]
    fixed = np.array([is_fixed(measure) for measure in measures])[:, None]
    known = [np.where(fixed, before, after) for before, after in zip(now, tables, strict=True)]
    table = known[0] if len(known) == 1 else known[0] - known[1]
    return [table[:, np.array(owners) == place] for place in range(len(judged))]


def _table(measures: Sequence[Measure], a: Alignment) -> np.ndarray:
    return np.array([values(measure, a) for measure in measures]).reshape(len(measures), a.size)


def shared_documents(judged: Grades, one: Lists, other: Lists) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The unjudged documents in both lists, as (query, rank in one, rank in the other)."""
    rows = [
        (place, one[query].index(doc) + 1, other[query].index(doc) + 1)
        for place, query in enumerate(judged)
        for doc in dict.fromkeys(one.get(query, []))
        if doc in other.get(query, []) and doc not in judged[query]
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]
