"""Checks of a dataset: what is wrong, unusual or worth knowing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from steelyard.datasets.corpus import Corpus
from steelyard.datasets.dataset import Dataset
from steelyard.datasets.duplicates import near_duplicates as find_near_duplicates
from steelyard.datasets.findings import Finding, relevant_distractors
from steelyard.notes import SEVERITIES, Severity
from steelyard.wording import counted


def validate_dataset(dataset: Dataset, near_duplicates: float | None = 0.8) -> list[Finding]:
    """The findings on a dataset: errors first, then warnings, then information.

    `near_duplicates` is the similarity from which on two documents are near-duplicates; None skips that search.

    >>> dataset = Dataset.of({"d1": "A balance.", "d2": ""}, {"q1": "weighing"}, {"q1": ["d1", "d7"]})
    >>> for finding in validate_dataset(dataset):
    ...     print(finding.severity, finding.kind, finding.items)
    error unknown-document (('q1', 'd7'),)
    warning empty-document (('d2',),)
    info unjudged-document (('d2',),)
    """
    findings = [*dataset.findings, *_query_findings(dataset), *_judgment_findings(dataset)]
    findings += _document_findings(dataset)
    if near_duplicates is not None:
        findings += _duplicate_findings(dataset.corpus, near_duplicates)
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _query_findings(dataset: Dataset) -> Iterator[Finding]:
    queries, qrels = dataset.queries, dataset.qrels
    judged = set(qrels.queries)
    unjudged = [query for query in queries if query not in judged]
    if not judged:
        bench = "A bench runs without them and compares the lists of its retrievers"
        advice = f"{bench}; `steelyard pool` selects documents of its runs to judge, and `steelyard judge` makes qrels."
        yield Finding.of("info", "no-qrels", "no qrels.", (), 0, advice)
    else:
        advice = "They count in no measure. Judge them, or read the dataset with unjudged='drop' or 'unanswerable'."
        yield from _listed("warning", "unjudged-query", unjudged, "query|queries", "without judgments", advice)
    blank = [query for query, text in queries.items() if not text.strip()]
    yield from _listed("error", "empty-query", blank, "query|queries", "without text", "Fill them in, or remove them.")
    relevant = np.bincount(qrels.doc_query[qrels.grades > 0], minlength=len(qrels.queries))
    without = [query for query, count in zip(qrels.queries, relevant.tolist(), strict=True) if not count]
    advice = "Correct for unanswerable queries; the policy no_relevant decides how they count."
    yield from _listed("info", "no-relevant", without, "query|queries", "with no relevant document", advice)


def _judgment_findings(dataset: Dataset) -> Iterator[Finding]:
    qrels, judged = dataset.qrels, dataset.qrels.judged
    unknown = [query for query in judged.query_ids if query not in dataset.queries]
    advice = "Retrievers never get them, and they count as missing. Add the queries, or remove their judgments."
    nouns, rest = "judged query|judged queries", "not among the queries"
    yield from _listed("error", "unknown-query", unknown, nouns, rest, advice)
    in_corpus = {doc: doc in dataset.corpus for doc in dict.fromkeys(judged.doc_ids)}
    places = [place for place, doc in enumerate(judged.doc_ids) if not in_corpus[doc]]
    relevant = int(np.sum(qrels.grades[places] > 0)) if places else 0
    pairs = [(judged.query_ids[qrels.doc_query[place]], judged.doc_ids[place]) for place in places]
    severity: Severity = "error" if relevant else "warning"
    rest = f"of documents that are not in the corpus, {relevant:,} of them relevant"
    advice = "No retriever can find them. Add the documents, or remove the judgments."
    yield from _listed(severity, "unknown-document", pairs, "judgment", rest, advice)
    targets = qrels.targets
    distractors = set(targets.doc[targets.grade < 0].tolist())
    both = [place for place in np.unique(targets.doc[targets.grade > 0]).tolist() if place in distractors]
    if both:
        yield relevant_distractors([(judged.query_ids[qrels.doc_query[n]], judged.doc_ids[n]) for n in both])


def _document_findings(dataset: Dataset) -> Iterator[Finding]:
    corpus = dataset.corpus
    blank = [doc for doc, text in corpus.texts.items() if not text or text.isspace()]
    rest = "without text (a title is not counted)"
    yield from _listed("warning", "empty-document", blank, "document", rest, "Fill them in, or remove them.")
    judged = set(dataset.qrels.judged.doc_ids)
    never = [doc for doc in corpus if doc not in judged] if judged else []
    rest = f"never judged ({len(never) / max(1, len(corpus)):.0%} of the corpus)"
    yield from _listed("info", "unjudged-document", never, "document", rest)
    lost = [(doc, link) for doc, linked in (corpus.links or {}).items() for link in linked if link not in corpus]
    rest, advice = "to documents that are not in the corpus", "Graph retrievers ignore them. Fix or remove them."
    yield from _listed("warning", "unknown-link", lost, "link", rest, advice)


def _duplicate_findings(corpus: Corpus, threshold: float) -> Iterator[Finding]:
    """Groups of near-duplicates, with and without a `group` that declares them."""
    undeclared: list[tuple[str, ...]] = []
    declared: list[tuple[str, ...]] = []
    for group in find_near_duplicates(corpus, threshold):
        named = {corpus.groups.get(doc) for doc in group}
        (declared if len(named) == 1 and None not in named else undeclared).append(group)
    rest = f"of near-duplicate documents ({sum(map(len, undeclared)):,} documents)"
    same = "give them the same judgments, under one target, or keep one of each."
    advice = f"Finding one is as good as finding another: {same}"
    yield from _listed("warning", "near-duplicates", undeclared, "group", rest, advice)
    rest = "of near-duplicate documents with the same `group`"
    yield from _listed("info", "declared-duplicates", declared, "group", rest)


def _listed(
    severity: Severity, kind: str, items: Sequence[str | tuple[str, ...]], nouns: str, rest: str, advice: str = ""
) -> Iterator[Finding]:
    """The finding that lists ids, pairs or groups, if there are any: their number with a noun, and the rest.

    nouns: the singular and, separated by |, the plural, if it does not just end in s.
    """
    if items:
        rows = ((item,) if isinstance(item, str) else item for item in items)
        message = f"{counted(len(items), *nouns.split('|'))} {rest}:"
        yield Finding.of(severity, kind, message, rows, len(items), advice)
