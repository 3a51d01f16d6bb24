"""What a chunk must contain to satisfy a target, or to be a distractor: conditions, parsed and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from steelyard.checks import is_number, is_whole
from steelyard.errors import InputError, did_you_mean
from steelyard.evidence.facts import normalised
from steelyard.ids import kind_of, text_ids
from steelyard.safe_text import has_lone_surrogate
from steelyard.wording import counted

DIGESTS = {64: "sha256", 40: "sha1", 32: "md5"}
_DISTRACTOR_GRADE = -1.0
MOST = 2**40  # Characters of a document, so that millions of documents in a row have fewer than 2**63.
_PARTS = ("targets", "distractors")
_EXPECTED = (
    "Expected targets, each a condition or a list of alternatives: "
    "{'doc_id': ..}, {'doc_id': .., 'start': .., 'end': ..}, {'fact': ..}, {'parent': ..}, "
    "{'page': ..}, {'hash': ..}; the conditions of one dict must all hold. "
    "Distractors are given beside targets, {'targets': [..], 'distractors': [..]}, or with a grade below 0."
)


@dataclass(frozen=True)
class Alternative:
    """One way to satisfy a target; with a grade below 0, a distractor. All conditions that are set must hold.

    `start` and `end` are characters of the document `doc_id`, end exclusive, and `content` is the
    text there, for checking. `fact` is searched in the chunk's text; `share` is the share of its
    words that must be there, where it differs from the general one. `hash` is a digest of the chunk's text.
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
    def is_distractor(self) -> bool:
        """Whether it is a distractor."""
        return self.grade < 0

    @property
    def kind(self) -> str:
        """Its most specific condition: span, fact, hash, page, parent, document or chunk."""
        conditions = {"span": self.start, "fact": self.fact, "hash": self.hash, "page": self.page}
        conditions |= {"parent": self.parent, "document": self.doc_id}
        return next((name for name, value in conditions.items() if value is not None), "chunk")

    def __str__(self) -> str:
        if self.start is not None:
            return f"characters {self.start:,} to {self.end:,} of document {self.doc_id!r}"
        if self.fact is not None:
            return f"fact {one_line(self.fact)!r}"
        named = {"chunk": self.chunk_id, "parent": self.parent, "document": self.doc_id}
        named |= {"page": self.page, "hash": self.hash}
        return " and ".join(f"{what} {value!r}" for what, value in named.items() if value)


ALTERNATIVE = [field.name for field in fields(Alternative)]
_NAMES = {
    **{name: name for name in (*ALTERNATIVE, "distractor")},
    "document": "doc_id",
    "document_id": "doc_id",
    "parent_id": "parent",
    "start_index": "start",
    "end_index": "end",
    **dict.fromkeys(("text_hash", "sha256", "sha1", "md5"), "hash"),
}
"""The names of conditions in a dict, and the fields that they are."""


def one_line(text: str, width: int = 60) -> str:
    """The start of a text in one line, for a message."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def alternative_of(source: Any, distractor: bool = False) -> Alternative:
    """One way to satisfy a target, or a distractor, from a dict.

    >>> print(alternative_of({"doc_id": "book", "start": 10, "end": 90}))
    characters 10 to 90 of document 'book'
    >>> alternative_of({"fact": "Gold floats.", "distractor": True}).grade
    -1.0
    """
    if isinstance(source, Alternative):
        if distractor and not source.is_distractor:
            raise InputError(f"{source}: a distractor has a grade below 0")
        return source
    if not isinstance(source, Mapping):
        raise InputError(f"{source!r:.60} is {kind_of(source)}, not a dict")
    fields: dict[str, Any] = {}
    for key, value in source.items():
        name = _NAMES.get(str(key))
        if name is None:
            raise InputError(f"unknown condition {key!r}.{did_you_mean(str(key), _NAMES)}")
        if value is not None:
            fields[name] = value
    for name in ("chunk_id", "doc_id", "parent", "page"):
        if name in fields:
            (fields[name],) = text_ids([fields[name]], name, "a target")
    for name in ("fact", "hash", "content"):
        if name in fields and not isinstance(fields[name], str):
            raise InputError(f"{name} is {kind_of(fields[name])}, not text")
        if name in fields and has_lone_surrogate(fields[name]):
            raise InputError(f"{name} {one_line(fields[name])!r} has half of a character (a lone surrogate)")
    _check_span(fields)
    if "fact" in fields and not normalised(fields["fact"]):
        raise InputError("a fact is empty")
    if "share" in fields:
        share = fields["share"]
        if "fact" not in fields or isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
            raise InputError(f"share is {share!r}; expected a share of a fact's words above 0 and up to 1")
    if "hash" in fields:
        fields["hash"] = fields["hash"].lower().rpartition(":")[2]
        if len(fields["hash"]) not in DIGESTS or set(fields["hash"]) - set("0123456789abcdef"):
            raise InputError(f"hash {fields['hash']!r} is not a sha256, sha1 or md5 in hexadecimal digits")
    fields["grade"] = _grade(fields, distractor)
    if not set(fields) - {"grade", "share"}:
        raise InputError("a dict without a condition")
    return Alternative(**fields)


def _check_span(fields: dict[str, Any]) -> None:
    if "start" not in fields and "end" not in fields:
        if "content" in fields:
            raise InputError("content is the text of a span, and there is no start and end")
        return
    if "start" not in fields or "end" not in fields:
        raise InputError("a span has a start and an end; one of them is missing")
    for name in ("start", "end"):
        number = fields[name]
        if not is_whole(number) and not (isinstance(number, float) and number.is_integer()):
            raise InputError(f"{name} is {number!r}, not a whole number of characters")
        fields[name] = int(number)
    start, end = fields["start"], fields["end"]
    if "doc_id" not in fields:
        raise InputError(f"the span {start} to {end} names no document (doc_id)")
    where = f"the span {start} to {end} of document {fields['doc_id']!r}"
    if end > MOST:
        raise InputError(f"{where} is out of range: no document has so many characters")
    if start < 0:
        raise InputError(f"{where} is out of range: it starts below 0")
    if end <= start:
        raise InputError(f"{where} is {'empty' if end == start else 'reversed'}")


def _grade(fields: dict[str, Any], distractor: bool) -> float:
    """The grade; that of a distractor is below 0."""
    marked = fields.pop("distractor", distractor)
    if not isinstance(marked, bool):
        raise InputError(f"distractor is {marked!r}; expected true or false")
    is_distractor = marked or distractor
    grade = fields.get("grade", _DISTRACTOR_GRADE if is_distractor else 1.0)
    if not is_number(grade) or grade == 0:
        expected = "a grade above 0 to satisfy a target, or below 0 for a distractor"
        raise InputError(f"grade is {grade!r}; expected {expected}")
    if is_distractor and grade > 0:
        raise InputError(f"grade is {grade!r}; a distractor has a grade below 0")
    return float(grade)


Targets: TypeAlias = tuple[tuple[Alternative, ...], ...]
QueryEvidence: TypeAlias = tuple[Targets, tuple[Alternative, ...]]
"""The targets of one query (none: nothing answers it), and its distractors."""


def evidence_by_query(source: Mapping[Any, Any], null: Iterable[str]) -> dict[str, QueryEvidence]:
    """Every query's targets and distractors, checked; a query in `null` (or with None) has no targets."""
    queries = text_ids(source, "query id", "the evidence", unique=True)
    without = set(text_ids(null, "query id", "null"))
    problems = [f"query {query!r} is marked null and has no entry" for query in sorted(without - set(queries))]
    by_query: dict[str, QueryEvidence] = {}
    for query, value in zip(queries, source.values(), strict=True):
        by_query[query] = _query_evidence(query, value, query in without, problems)
        if by_query[query][0] and query in without:
            problems.append(f"query {query!r} is marked null and has evidence")
    if problems:
        raise InputError.of_problems(f"the evidence has {counted(len(problems), 'problem')}:", problems, _EXPECTED)
    return by_query


def _query_evidence(query: str, value: Any, null: bool, problems: list[str]) -> QueryEvidence:
    """The evidence of one query; what is wrong with it is added to `problems`."""
    in_parts = isinstance(value, Mapping) and value and set(value) <= set(_PARTS)
    given_targets = value.get("targets") if in_parts else value
    given_distractors = (value.get("distractors") or ()) if in_parts else ()
    null = null or given_targets is None
    given_targets = () if given_targets is None else given_targets
    if not _is_list(given_targets):
        problems.append(f"query {query!r}: {kind_of(given_targets)}, not a list of targets")
        return (), ()
    if not _is_list(given_distractors):
        problems.append(f"query {query!r}: its distractors are {kind_of(given_distractors)}, not a list of dicts")
        return (), ()
    if not given_targets and not given_distractors and not null:
        problems.append(f"query {query!r}: no evidence, and not marked null (null=[...], or None for its list)")
    targets: list[tuple[Alternative, ...]] = []
    distractors: list[Alternative] = []
    for number, target in enumerate(given_targets, start=1):
        where = f"query {query!r}, target {number}"
        alternatives = _alternatives(target, where, problems)
        negative = [one for one in alternatives if one.is_distractor]
        if negative and len(negative) < len(alternatives):
            problems.append(f"{where}: a distractor among its alternatives ({negative[0]}); list it separately")
        elif negative:
            distractors += negative
        else:
            targets.append(alternatives)
    for number, one in enumerate(given_distractors, start=1):
        distractors += _alternatives(one, f"query {query!r}, distractor {number}", problems, distractor=True)
    return tuple(targets), tuple(distractors)


def _alternatives(source: Any, where: str, problems: list[str], distractor: bool = False) -> tuple[Alternative, ...]:
    """One dict or several, as alternatives."""
    listed = [source] if isinstance(source, (Mapping, Alternative)) else source
    if not _is_list(listed) or not listed:
        shown = repr(listed)[:60] if isinstance(listed, (str, bytes, list, tuple)) else kind_of(listed)
        problems.append(f"{where}: {shown} is not a dict or a list of dicts")
        return ()
    alternatives = []
    for one in listed:
        try:
            alternatives.append(alternative_of(one, distractor))
        except InputError as error:
            problems.append(f"{where}: {error}")
    return tuple(alternatives)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
