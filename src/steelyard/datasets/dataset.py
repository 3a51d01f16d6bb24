"""Dataset: what a bench runs over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from steelyard.datasets.corpus import Corpus, CorpusBuilder
from steelyard.datasets.fields import Finding
from steelyard.datasets.queries import Queries, QueriesBuilder
from steelyard.errors import InputError, did_you_mean
from steelyard.qrels import Qrels
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


Row: TypeAlias = "tuple[str, str, float, str | None]"
UNJUDGED = ("keep", "drop", "unanswerable")


def assemble(
    name: str,
    corpus: CorpusBuilder,
    queries: QueriesBuilder,
    qrels: Qrels,
    unjudged: str,
    notes: Iterable[str] = (),
    findings: Iterable[Finding] = (),
) -> Dataset:
    """The dataset, with queries that no judgment names treated as `unjudged` says.

    A query marked `answerable: false` is one with no relevant document, whatever the policy.
    """
    if unjudged not in UNJUDGED:
        raise InputError(
            f"unjudged={unjudged!r}: expected one of {', '.join(UNJUDGED)}.{did_you_mean(str(unjudged), UNJUDGED)}"
        )
    documents, repeated_documents = corpus.build()
    asked, repeated_queries = queries.build()
    judged = set(qrels.queries)
    marked = {query for query, value in asked.columns.get("answerable", {}).items() if value is False}
    bare = [query for query in asked if query not in judged and query not in marked]
    without = [query for query in asked if query not in judged and query in marked]
    told = [*notes, *qrels.notes]
    if bare and unjudged == "drop":
        asked = asked.only(set(asked) - set(bare))
        told.append(
            f"{counted(len(bare), 'query', 'queries')} without judgments left out (unjudged='keep' keeps them)"
        )
    elif bare and unjudged == "unanswerable":
        without = [query for query in asked if query not in judged]
    if without:
        qrels = _with_unanswerable(qrels, without)
        told.append(f"{counted(len(without), 'query', 'queries')} taken as having no relevant document")
    found = (*findings, *repeated_documents, *repeated_queries)
    return Dataset(name, documents, asked, qrels, tuple(told), found)


def qrels_of_rows(rows: Sequence[Row], query_ids: Sequence[str] = ()) -> tuple[Qrels, tuple[Finding, ...]]:
    """Judgments of rows; a distractor that is also relevant to its query counts as relevant, and is reported."""
    misleading = {(query, doc) for query, doc, grade, _ in rows if grade < 0}
    both = [
        pair for pair in dict.fromkeys((q, d) for q, d, grade, _ in rows if grade > 0) if pair in misleading
    ]
    if not both:
        return Qrels.from_rows(rows, query_ids), ()
    dropped = set(both)
    kept = [row for row in rows if row[2] >= 0 or row[:2] not in dropped]
    return Qrels.from_rows(kept, query_ids), (relevant_distractors(both),)


def relevant_distractors(pairs: Sequence[tuple[str, str]]) -> Finding:
    """The finding on documents that are a distractor and relevant for one query."""
    return Finding.of(
        "error",
        "relevant-distractor",
        f"{counted(len(pairs), 'judgment')} name a document that is relevant to the same query as its distractor:",
        pairs,
        len(pairs),
        "Keep one of the two; until then such a document counts as relevant.",
    )


def _with_unanswerable(qrels: Qrels, queries: Sequence[str]) -> Qrels:
    frame = qrels.frame.drop_nulls("doc_id")
    targets = frame["target"].to_list() if qrels.has_targets else [None] * frame.height
    columns = (frame[name].to_list() for name in ("query_id", "doc_id", "grade"))
    return Qrels.from_rows(list(zip(*columns, targets, strict=True)), [*qrels.queries, *queries])
