"""Findings: problems of a dataset, found while reading it or by `validate_dataset`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from steelyard.errors import problem_report
from steelyard.notes import Severity
from steelyard.wording import counted

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
