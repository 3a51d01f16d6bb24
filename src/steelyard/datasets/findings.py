"""What is wrong, odd or worth knowing about a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from steelyard.errors import problem_report

LISTED = 1000
Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One kind of problem, with how many there are and where.

    `items` names the first thousand: an id each, or a query and a document, or a group of documents.
    """

    severity: Severity
    kind: str
    count: int
    message: str
    items: tuple[tuple[str, ...], ...]
    advice: str = ""

    @classmethod
    def of(
        cls,
        severity: Severity,
        kind: str,
        message: str,
        items: Iterable[tuple[str, ...]],
        count: int,
        advice: str = "",
    ) -> Finding:
        """A finding that keeps the first thousand of its items."""
        return cls(severity, kind, count, message, tuple(islice(items, LISTED)), advice)

    def __str__(self) -> str:
        shown = [", ".join(map(repr, item)) for item in self.items]
        return problem_report(f"{self.severity}: {self.message}", shown, self.advice, total=self.count)
