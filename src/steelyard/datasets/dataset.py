"""Dataset: what a bench runs over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from steelyard.datasets.corpus import Corpus
from steelyard.datasets.findings import Finding
from steelyard.datasets.queries import Queries
from steelyard.judgments import Qrels
from steelyard.wording import counted


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """Documents, queries and judgments under one name.

    `notes` says what reading had to decide; `findings` what it passed over (ids that came twice,
    distractors that are also relevant), which `validate_dataset` reports with the rest.

    >>> dataset = Dataset.of({"d1": "A balance.", "d2": "A boat."}, {"q1": "weighing"}, {"q1": ["d1"]}, name="tiny")
    >>> dataset
    Dataset 'tiny': 2 documents, 1 query, 1 judgment
    >>> dataset.corpus["d1"], dataset.queries["q1"]
    ('A balance.', 'weighing')
    """

    name: str
    corpus: Corpus
    queries: Queries
    qrels: Qrels
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(
        cls, corpus: Mapping[str, Any], queries: Mapping[str, Any], qrels: Any, name: str = "dataset"
    ) -> Dataset:
        """A dataset of mappings: id to text, or to a record with text; judgments as `Qrels` takes them."""
        return cls(name, Corpus.of(corpus), Queries.of(queries), Qrels.of(qrels))

    @classmethod
    def read(
        cls, source: str | Path, format: str | None = None, *, judged: bool = True, **options: Any
    ) -> Dataset:
        """Read a folder, a file, or a name: `demo`, or `ir_datasets:` and an id.

        The layout is found from what is there unless `format` insists on one: 'beir' (the JSONL
        trio), 'autorag', 'multihop-rag', 'llama-index', 'msmarco', 'csv' or 'ir_datasets'. Each
        has options of its own; one they share is `unjudged`, what to do with queries that no
        judgment names: 'keep' them, 'drop' them (what is done where one split of several is
        read), or take them as 'unanswerable', with no relevant document. `judged=False` is for a
        folder whose judgments are elsewhere, as evidence is: its own, if it has any, are not looked for.

        >>> Dataset.read("demo")
        Dataset 'demo': 267 documents, 115 queries, 572 judgments, 152 targets
        """
        from steelyard.datasets.reading import read_dataset

        return read_dataset(source, format, options, judged)

    def write(self, folder: str | Path) -> None:
        """Write the JSONL trio: corpus.jsonl, queries.jsonl and qrels.tsv in a folder, made where it is not there."""
        from steelyard.datasets.trio import write_trio

        write_trio(self, Path(folder))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content: the same documents in the same order, queries and judgments, have the same one."""
        parts = (
            self.corpus.fingerprint,
            self.queries.fingerprint,
            self.qrels.fingerprint,
            *sorted(self.qrels.queries),
        )
        return sha256("\n".join(parts).encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and self.fingerprint == other.fingerprint

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [
            counted(len(self.corpus), "document"),
            counted(len(self.queries), "query", "queries"),
            counted(len(self.qrels), "judgment"),
        ]
        if self.qrels.has_targets:
            parts.append(counted(len(self.qrels.targets.name), "target"))
        return f"Dataset {self.name!r}: {', '.join(parts)}"
