"""Dataset: documents, queries and qrels under one name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from steelyard.datasets.corpus import Corpus, CorpusBuilder, Queries, QueriesBuilder
from steelyard.datasets.findings import Finding, relevant_distractors
from steelyard.errors import InputError, did_you_mean
from steelyard.lazy import looked_up
from steelyard.notes import Note, note
from steelyard.qrels import Qrels, Row
from steelyard.wording import counted


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """Documents, queries and qrels under one name.

    `notes` reports what was decided while reading; `findings` what was ignored (repeated ids,
    distractors that are also relevant), which `validate_dataset` reports with everything else.

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
    notes: tuple[Note, ...] = ()
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, corpus: Any = None, queries: Any = None, qrels: Any = None, name: str = "dataset") -> Dataset:
        """A dataset from its parts; only the queries are needed.

        corpus, queries: mappings of id to text or to a record with text, lists of texts or records, frames, or paths
        as in bench.yaml. Queries of a list without ids are q1, q2, ... qrels: as for `Qrels`.

        >>> Dataset.of(queries=["Why?", "Where?"])
        Dataset 'dataset': 0 documents, 2 queries, 0 judgments
        """
        if queries is None:
            raise InputError("a dataset needs queries: Dataset.of(queries=[...]).")
        if isinstance(corpus or {}, Mapping) and isinstance(queries, Mapping) and "path" not in queries:
            return cls(name, Corpus.of(corpus or {}), Queries.of(queries), Qrels.of({} if qrels is None else qrels))
        parts = {"corpus": corpus, "queries": queries, "qrels": qrels, "name": name}
        dataset: Dataset = looked_up("steelyard.io.datasets:dataset_of_parts")(parts, Path())
        return dataset

    @classmethod
    def read(cls, source: str | Path, format: str | None = None, *, judged: bool = True, **options: Any) -> Dataset:
        """Read a folder, a file, or a name: `demo`, or `ir_datasets:` and an id.

        The layout is detected unless `format` names one: 'beir' (corpus.jsonl, queries.jsonl and qrels), 'autorag',
        'multihop-rag', 'llama-index', 'msmarco', 'csv' or 'ir_datasets'. Each has options of its own. All have
        `unjudged`, what to do with queries without judgments: 'keep' them, 'drop' them (the default where one split of
        several is read), or treat them as 'unanswerable', with no relevant document. `judged=False` is for a folder
        whose qrels are elsewhere, or replaced by evidence: qrels in it are not read.

        >>> Dataset.read("demo")
        Dataset 'demo': 267 documents, 115 queries, 572 judgments, 152 targets
        """
        dataset: Dataset = looked_up("steelyard.io.datasets:read_dataset")(source, format, options, judged)
        return dataset

    def write(self, folder: str | Path) -> None:
        """Write corpus.jsonl, queries.jsonl and qrels.tsv to a folder, which is created if it does not exist."""
        looked_up("steelyard.io.beir:write_dataset")(self, Path(folder))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the documents and their order, the queries and the qrels."""
        parts = (self.corpus.fingerprint, self.queries.fingerprint, self.qrels.fingerprint, *sorted(self.qrels.queries))
        return sha256("\n".join(parts).encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dataset) and self.fingerprint == other.fingerprint

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        texts = f"{counted(len(self.corpus), 'document')}, {counted(len(self.queries), 'query', 'queries')}"
        targets = f", {counted(len(self.qrels.targets.name), 'target')}" if self.qrels.has_targets else ""
        return f"Dataset {self.name!r}: {texts}, {counted(len(self.qrels), 'judgment')}{targets}"


UNJUDGED = ("keep", "drop", "unanswerable")


def assemble(
    name: str,
    corpus: CorpusBuilder,
    queries: QueriesBuilder,
    qrels: Qrels,
    unjudged: str,
    notes: Iterable[Note] = (),
    findings: Iterable[Finding] = (),
) -> Dataset:
    """The dataset; `unjudged` is the policy for queries without judgments."""
    documents, repeated_documents = corpus.build()
    kept, repeated_queries = queries.build()
    all_findings = (*findings, *repeated_documents, *repeated_queries)
    return with_unjudged(Dataset(name, documents, kept, qrels, (*notes, *qrels.notes), all_findings), unjudged)


def with_unjudged(dataset: Dataset, unjudged: str) -> Dataset:
    """The dataset with a policy for queries without judgments.

    A query marked `answerable: false` has no relevant document, whatever the policy.
    """
    if unjudged not in UNJUDGED:
        near = did_you_mean(str(unjudged), UNJUDGED)
        raise InputError(f"unjudged={unjudged!r}: expected one of {', '.join(UNJUDGED)}.{near}")
    queries, qrels, notes = dataset.queries, dataset.qrels, list(dataset.notes)
    judged = set(qrels.queries)
    marked = {query for query, value in queries.columns.get("answerable", {}).items() if value is False}
    without_judgments = [query for query in queries if query not in judged]
    unanswerable = [query for query in without_judgments if query in marked or unjudged == "unanswerable"]
    dropped = set(without_judgments) - set(unanswerable) if unjudged == "drop" else ()
    if dropped:
        queries = queries.only(set(queries) - set(dropped))
        notes.append(note("unjudged-queries-dropped", count=len(dropped)))
    if unanswerable:
        frame = qrels.frame.drop_nulls("doc_id")
        rows = [(q, d, grade, target if qrels.has_targets else None) for q, d, grade, target in frame.iter_rows()]
        qrels = Qrels.from_rows(rows, [*qrels.queries, *unanswerable]).on_scale_of(qrels)
        notes.append(note("unanswerable-queries", count=len(unanswerable)))
    return replace(dataset, queries=queries, qrels=qrels, notes=tuple(notes))


def qrels_of_rows(rows: Sequence[Row], query_ids: Sequence[str] = ()) -> tuple[Qrels, tuple[Finding, ...]]:
    """Qrels from rows; a distractor that is also relevant to its query counts as relevant, and is a finding."""
    distractors = {(query, doc) for query, doc, grade, _ in rows if grade < 0}
    both = dict.fromkeys((q, d) for q, d, grade, _ in rows if grade > 0 and (q, d) in distractors)
    kept = [row for row in rows if row[2] >= 0 or row[:2] not in both]
    return Qrels.from_rows(kept, query_ids), (relevant_distractors([*both]),) if both else ()
