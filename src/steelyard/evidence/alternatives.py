"""What a chunk must meet to satisfy a target, or to be a distractor: a set of conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.errors import InputError, did_you_mean
from steelyard.evidence.normalise import normalised
from steelyard.ids import kind_of, text_ids

_NAMES = {
    "chunk_id": "chunk_id",
    "doc_id": "doc_id",
    "document": "doc_id",
    "document_id": "doc_id",
    "parent": "parent",
    "parent_id": "parent",
    "page": "page",
    "start": "start",
    "start_index": "start",
    "end": "end",
    "end_index": "end",
    "content": "content",
    "fact": "fact",
    "share": "share",
    "hash": "hash",
    "text_hash": "hash",
    "sha256": "hash",
    "sha1": "hash",
    "md5": "hash",
    "grade": "grade",
    "distractor": "distractor",
}
_DIGESTS = {64: "sha256", 40: "sha1", 32: "md5"}
MISLEADING = -1.0
"""The grade of a distractor that has no grade of its own."""


@dataclass(frozen=True)
class Alternative:
    """One way to satisfy a target; with a grade below 0, a distractor. Conditions that are given must all hold.

    `start` and `end` are characters of the document `doc_id`, end exclusive, and `content` is what
    stands there, for checking. `fact` is looked for in the chunk's text; `share` is the share of its
    words that must be there, where it differs from the rest. `hash` is a digest of the chunk's text.
    """

    chunk_id: str | None = None
    doc_id: str | None = None
    parent: str | None = None
    page: str | None = None
    start: int | None = None
    end: int | None = None
    content: str | None = None
    fact: str | None = None
    share: float | None = None
    hash: str | None = None
    grade: float = 1.0

    @property
    def is_span(self) -> bool:
        """Whether it is a character span."""
        return self.start is not None

    @property
    def misleads(self) -> bool:
        """Whether it is a distractor: what meets it is known to mislead."""
        return self.grade < 0

    @property
    def kind(self) -> str:
        """The condition that it is told by: span, fact, hash, page, parent, document or chunk."""
        if self.is_span:
            return "span"
        given = (
            ("fact", self.fact),
            ("hash", self.hash),
            ("page", self.page),
            ("parent", self.parent),
            ("document", self.doc_id),
        )
        return next((name for name, value in given if value is not None), "chunk")

    @property
    def algorithm(self) -> str:
        """The algorithm of its hash, told by the length."""
        return _DIGESTS[len(self.hash or "")]

    def __str__(self) -> str:
        if self.is_span:
            return f"characters {self.start:,} to {self.end:,} of document {self.doc_id!r}"
        if self.fact is not None:
            return f"fact {shortened(self.fact)!r}"
        named = (("chunk", self.chunk_id), ("parent", self.parent), ("document", self.doc_id))
        parts = [
            f"{what} {value!r}" for what, value in (*named, ("page", self.page), ("hash", self.hash)) if value
        ]
        return " and ".join(parts)


@dataclass(frozen=True)
class Ways:
    """Every alternative of every target, one entry each: its query, and its target's number there.

    A distractor has the number 0: it is of no target.
    """

    query: Sequence[str]
    target: Sequence[int]
    way: Sequence[Alternative]


def shortened(text: str, width: int = 60) -> str:
    """The beginning of a text, for a message."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def alternative_of(given: Any, distractor: bool = False) -> Alternative:
    """One way to satisfy a target, or a distractor, from a dict.

    >>> print(alternative_of({"doc_id": "book", "start": 10, "end": 90}))
    characters 10 to 90 of document 'book'
    >>> alternative_of({"fact": "Gold floats.", "distractor": True}).grade
    -1.0
    """
    if isinstance(given, Alternative):
        if distractor and not given.misleads:
            raise InputError(f"{given}: a distractor has a grade below 0")
        return given
    if not isinstance(given, Mapping):
        raise InputError(f"{given!r:.60} is {kind_of(given)}, not a dict")
    fields: dict[str, Any] = {}
    for key, value in given.items():
        name = _NAMES.get(str(key))
        if name is None:
            raise InputError(f"there is no condition {key!r}.{did_you_mean(str(key), _NAMES)}")
        if value is not None:
            fields[name] = value
    for name in ("chunk_id", "doc_id", "parent", "page"):
        if name in fields:
            (fields[name],) = text_ids([fields[name]], name, "a target")
    for name in ("fact", "hash", "content"):
        if name in fields and not isinstance(fields[name], str):
            raise InputError(f"{name} is {kind_of(fields[name])}, not text")
    _check_span(fields)
    _check_rest(fields)
    fields["grade"] = _grade(fields, distractor)
    if not set(fields) - {"grade", "share"}:
        raise InputError("a dict without a condition")
    return Alternative(**fields)


def _check_span(fields: dict[str, Any]) -> None:
    if "start" not in fields and "end" not in fields:
        if "content" in fields:
            raise InputError("content is what stands in a span, and there is no start and end")
        return
    if "start" not in fields or "end" not in fields:
        raise InputError("a span has a start and an end; one of them is missing")
    for name in ("start", "end"):
        number = fields[name]
        whole = hasattr(number, "__index__") or (isinstance(number, float) and number.is_integer())
        if isinstance(number, bool) or not whole:
            raise InputError(f"{name} is {number!r}, not a whole number of characters")
        fields[name] = int(number)
    start, end = fields["start"], fields["end"]
    if "doc_id" not in fields:
        raise InputError(f"the span {start} to {end} names no document (doc_id)")
    if start < 0:
        raise InputError(
            f"the span {start} to {end} of document {fields['doc_id']!r} is out of range: it starts below 0"
        )
    if end <= start:
        kind = "empty" if end == start else "reversed"
        raise InputError(f"the span {start} to {end} of document {fields['doc_id']!r} is {kind}")


def _check_rest(fields: dict[str, Any]) -> None:
    if "fact" in fields and not normalised(fields["fact"]):
        raise InputError("a fact is empty")
    if "share" in fields:
        share = fields["share"]
        if (
            "fact" not in fields
            or isinstance(share, bool)
            or not isinstance(share, (int, float))
            or not 0 < share <= 1
        ):
            raise InputError(f"share is {share!r}; expected a share of a fact's words above 0 and up to 1")
    if "hash" in fields:
        fields["hash"] = fields["hash"].lower().rpartition(":")[2]
        if len(fields["hash"]) not in _DIGESTS or set(fields["hash"]) - set("0123456789abcdef"):
            raise InputError(f"hash {fields['hash']!r} is not a sha256, sha1 or md5 in hexadecimal digits")


def _grade(fields: dict[str, Any], distractor: bool) -> float:
    """The grade; of a distractor, told by its place or by its own word, one below 0."""
    said = fields.pop("distractor", distractor)
    if not isinstance(said, bool):
        raise InputError(f"distractor is {said!r}; expected true or false")
    misleads = said or distractor
    grade = fields.get("grade", MISLEADING if misleads else 1.0)
    number = isinstance(grade, (int, float)) and not isinstance(grade, bool)
    if not number or grade == 0 or not abs(grade) < float("inf"):
        raise InputError(
            f"grade is {grade!r}; what satisfies a target has a grade above 0, a distractor one below"
        )
    if misleads and grade > 0:
        raise InputError(f"grade is {grade!r}; a distractor has a grade below 0")
    return float(grade)
