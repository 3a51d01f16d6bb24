"""The cost of one retriever of a bench: its times, its index, its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steelyard.benchmark.cache import Answers
from steelyard.benchmark.folder import failed_share
from steelyard.masking import masked_settings

SHOWN_IDS = 2
"""Example ids of the run and of the corpus in a note."""


@dataclass(frozen=True)
class Row:
    """The cost of one retriever, and its errors.

    errors: the error by query. unknown_documents, unknown_examples: retrieved documents that are not in the corpus.
    cached: whether all answers are from the cache, whose file is `answers`. id_hint: the field with the ids of the
    corpus, if the retriever returned others. longest: the documents of its longest list. stages: the stages of its
    pipeline in their order, and what each of them reads; empty if they are unknown.
    session: when the times were measured; equal if those of every query were
    measured together, None if that is unknown.
    """

    run: str
    retriever: str
    settings: dict[str, Any]
    queries: int
    mean_seconds: float | None
    p50_seconds: float | None
    p95_seconds: float | None
    p99_seconds: float | None
    queries_per_second: float | None
    index_seconds: float | None
    index_bytes: int | None
    peak_bytes: int | None
    errors: dict[str, str]
    unknown_documents: int
    cached: bool
    chunker: str | None = None
    chunks: int | None = None
    chunk_tokens: float | None = None
    answers: str | None = None
    unknown_examples: tuple[str, ...] = ()
    id_hint: str | None = None
    longest: int | None = None
    session: str | None = None
    stages: dict[str, list[str]] = field(default_factory=dict)

    @property
    def failed(self) -> str:
        """The number of failed queries out of all, as in `2 of 6`."""
        return failed_share(len(self.errors), self.queries)

    @property
    def broken(self) -> bool:
        """Whether it failed on every query."""
        return bool(self.errors) and not self.queries

    @classmethod
    def of(
        cls, run: str, retriever: str, settings: dict[str, Any], answers: Answers, unknown: Sequence[str], cached: bool
    ) -> Row:
        """The row of a retriever's answers; `unknown` are retrieved documents that are not in the corpus."""
        seconds = np.array(list(answers.seconds.values()))
        percentiles = np.percentile(seconds, [50, 95, 99]).tolist() if len(seconds) else [None] * 3
        return cls(
            run=run,
            retriever=retriever,
            settings=masked_settings(settings),
            queries=len(answers.lists),
            mean_seconds=float(seconds.mean()) if len(seconds) else None,
            p50_seconds=percentiles[0],
            p95_seconds=percentiles[1],
            p99_seconds=percentiles[2],
            queries_per_second=answers.cost.get("queries_per_second"),
            index_seconds=answers.cost.get("index_seconds"),
            index_bytes=answers.cost.get("index_bytes"),
            peak_bytes=answers.cost.get("peak_bytes"),
            errors=dict(answers.errors),
            unknown_documents=len(unknown),
            cached=cached,
            unknown_examples=tuple(dict.fromkeys(unknown))[:SHOWN_IDS],
            id_hint=answers.id_hint,
            longest=max(map(len, answers.lists.values()), default=None),
            session=answers.session,
            stages=answers.reads,
        )
