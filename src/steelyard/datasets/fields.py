"""The fields of a record: each taken out of it and checked, so that what is left is metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from steelyard.errors import InputError, problem_report
from steelyard.ids import kind_of


def take_id(record: dict[str, Any], names: Sequence[str]) -> str:
    """The id under the first of these names; a whole number is taken as its digits."""
    for name in names:
        if name in record:
            return as_id(record.pop(name), name)
    raise InputError(f"no {names[0]} among {_names(record)}")


def as_id(value: Any, name: str) -> str:
    """An id as text.

    >>> as_id(7, "_id")
    '7'
    """
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InputError(
        f"{name} is {'empty' if value == '' else kind_of(value)}; expected text or a whole number"
    )


def take_text(record: dict[str, Any], names: Sequence[str], default: str | None = None) -> str:
    """The text under the first of these names; null is an empty text."""
    for name in names:
        if name in record:
            value = record.pop(name)
            if isinstance(value, str):
                return value
            if value is None:
                return ""
            raise InputError(f"{name} is {kind_of(value)}; expected text")
    if default is None:
        raise InputError(f"no {names[0]} among {_names(record)}")
    return default


def take_links(record: dict[str, Any]) -> list[str]:
    """The ids a document links to."""
    links = record.pop("links", None)
    if links is None:
        return []
    if not isinstance(links, list):
        raise InputError(f"links is {kind_of(links)}; expected a list of document ids")
    return [as_id(link, "a link") for link in links]


def take_rest(record: dict[str, Any]) -> dict[str, Any]:
    """What is left: fields of its own, and those of an object called metadata."""
    inner = record.pop("metadata", None)
    if inner is not None and not isinstance(inner, Mapping):
        return {**record, "metadata": inner}
    return {**(inner or {}), **record}


def _names(record: Mapping[str, Any]) -> str:
    names = list(record)[:8]
    return (
        f"the fields {', '.join(names)}{', ...' if len(record) > 8 else ''}" if names else "no fields at all"
    )


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
