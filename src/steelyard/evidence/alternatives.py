"""What satisfies a target: one way of several, each a set of conditions that a chunk must meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.errors import InputError, did_you_mean, problem_report
from steelyard.evidence.normalise import normalised
from steelyard.ids import kind_of, text_ids
from steelyard.wording import counted

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
}
_DIGESTS = {64: "sha256", 40: "sha1", 32: "md5"}
_EXPECTED = (
    "Expected targets, each one thing or a list of things that satisfy it: "
    "{'doc_id': ..}, {'doc_id': .., 'start': .., 'end': ..}, {'fact': ..}, {'parent': ..}, "
    "{'page': ..}, {'hash': ..}; conditions in one dict must all hold."
)


@dataclass(frozen=True)
class Alternative:
    """One way to satisfy a target. Conditions that are given must all hold.

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


def shortened(text: str, width: int = 60) -> str:
    """The beginning of a text, for a message."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


Targets = tuple[tuple[Alternative, ...], ...]


def targets_of(source: Mapping[Any, Any], null: Iterable[str]) -> dict[str, Targets]:
    """Every query's targets, checked; a query marked null (or given None) has none."""
    queries = text_ids(source, "query id", "the evidence", unique=True)
    without = set(text_ids(null, "query id", "null"))
    problems = [
        f"query {query!r} is marked null and has no entry" for query in sorted(without - set(queries))
    ]
    found: dict[str, Targets] = {}
    for query, value in zip(queries, source.values(), strict=True):
        if value is None or (query in without and not value):
            found[query] = ()
            continue
        if query in without:
            problems.append(f"query {query!r} is marked null and has evidence")
        elif not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
            problems.append(f"query {query!r}: {kind_of(value)}, not a list of targets")
        elif not value:
            problems.append(
                f"query {query!r}: no evidence, and not marked null (null=[...], or None for its list)"
            )
        else:
            found[query] = _targets(query, value, problems)
    if problems:
        heading = f"the evidence has {counted(len(problems), 'problem')}:"
        raise InputError(problem_report(heading, problems, _EXPECTED))
    return found


def _targets(query: str, value: Sequence[Any], problems: list[str]) -> Targets:
    targets: list[tuple[Alternative, ...]] = []
    for number, target in enumerate(value, start=1):
        where = f"query {query!r}, target {number}"
        ways = [target] if isinstance(target, (Mapping, Alternative)) else target
        if not isinstance(ways, Sequence) or isinstance(ways, (str, bytes)) or not ways:
            said = repr(ways)[:60] if isinstance(ways, (str, bytes, list, tuple)) else kind_of(ways)
            problems.append(f"{where}: {said} is not a dict or a list of dicts")
            continue
        made = []
        for way in ways:
            try:
                made.append(way if isinstance(way, Alternative) else alternative_of(way))
            except InputError as error:
                problems.append(f"{where}: {error}")
        targets.append(tuple(made))
    return tuple(targets)


def alternative_of(given: Any) -> Alternative:
    """One way to satisfy a target, from a dict.

    >>> print(alternative_of({"doc_id": "book", "start": 10, "end": 90}))
    characters 10 to 90 of document 'book'
    """
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
    grade = fields.get("grade", 1.0)
    if isinstance(grade, bool) or not isinstance(grade, (int, float)) or not 0 < grade < float("inf"):
        raise InputError(f"grade is {grade!r}; what satisfies a target has a grade above 0")
    fields["grade"] = float(grade)
    if not set(fields) - {"grade", "share"}:
        raise InputError("a dict without a condition")
