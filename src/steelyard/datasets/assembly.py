"""From what a reader found to a Dataset: the one place where judgments meet queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from steelyard.datasets.corpus import CorpusBuilder
from steelyard.datasets.dataset import Dataset
from steelyard.datasets.findings import Finding
from steelyard.datasets.queries import QueriesBuilder
from steelyard.errors import InputError, did_you_mean
from steelyard.judgments import Qrels
from steelyard.wording import counted

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
