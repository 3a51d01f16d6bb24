"""Findings: problems of a dataset, found while reading it or by `validate_dataset`; and the notes of datasets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from steelyard.errors import problem_report
from steelyard.notes import Severity, Texts, declare
from steelyard.wording import counted

WARNINGS: Texts = {
    "empty-questions": "{count:,} {count:question is|questions are} empty and {count:was|were} left out "
    "({count:row|rows} {rows:examples})",
    "long-questions": "{count:,} {count:question has|questions have} more than 10,000 characters "
    "({queries!r:examples}; the first has {longest:,})",
    "read-as-windows-1252": "{file} is not UTF-8 and was read as Windows-1252 (Latin-1); save it as UTF-8 if letters "
    "look wrong",
}
INFO: Texts = {
    "questions-have-made-ids": "no column holds ids: the questions are q1 to q{count}, in their order. Add questions "
    "at the end, so that earlier ones keep their ids",
    "unjudged-queries-dropped": "{count:,} {count:query|queries} without judgments dropped "
    "(unjudged='keep' keeps them)",
    "unanswerable-queries": "{count:,} {count:query|queries} read as having no relevant document",
    "documents-numbered": "no column holds ids: documents have the numbers of their rows, from 0",
    "rows-merged": "{count:,} {count:row repeats|rows repeat} the text of an earlier one and {count:is|are} the "
    "same document",
}
declare(warning=WARNINGS, info=INFO)

LISTED = 1000  # Items that a finding keeps.


@dataclass(frozen=True)
class Finding:
    """One kind of problem: how many there are, and where.

    `items` has the first thousand: ids, pairs of a query and a document, or groups of documents.
    """

    severity: Severity
    kind: str
    count: int
    message: str
    items: tuple[tuple[str, ...], ...]
    advice: str = ""

    @classmethod
    def of(
        cls, severity: Severity, kind: str, message: str, items: Iterable[tuple[str, ...]], count: int, advice: str = ""
    ) -> Finding:
        """A finding that keeps the first thousand of its items."""
        return cls(severity, kind, count, message, tuple(islice(items, LISTED)), advice)

    def __str__(self) -> str:
        shown = [", ".join(map(repr, item)) for item in self.items]
        return problem_report(f"{self.severity}: {self.message}", shown, self.advice, total=self.count)


def repeated_ids(what: str, repeated: Sequence[str], differ: Sequence[str]) -> Finding:
    """Ids that occur more than once, possibly with different texts."""
    text = f"{len(differ):,} with another text" if differ else "always with the same text"
    many = "queries" if what == "query" else f"{what}s"
    message = f"{counted(len(repeated), what, many)} had the id of an earlier one, {text}; the first was kept:"
    items = ((item,) for item in dict.fromkeys([*differ, *repeated]))
    severity: Severity = "error" if differ else "warning"
    advice = f"Give every {what} an id of its own."
    return Finding.of(severity, f"duplicate-{what}", message, items, len(set(repeated)), advice)


def relevant_distractors(pairs: Sequence[tuple[str, str]]) -> Finding:
    """Documents that are both a distractor and relevant for one query."""
    message = f"{counted(len(pairs), 'distractor is', 'distractors are')} also relevant to the same query:"
    advice = "Keep one of the two judgments; until then such a document counts as relevant."
    return Finding.of("error", "relevant-distractor", message, pairs, len(pairs), advice)
