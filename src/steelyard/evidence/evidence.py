"""What a chunk must meet to satisfy a target, or to be a distractor: a set of conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from steelyard.errors import InputError, did_you_mean, problem_report
from steelyard.evidence.facts import Matching, normalised
from steelyard.ids import kind_of, text_ids
from steelyard.wording import counted, worded

if TYPE_CHECKING:
    import polars as pl

    from steelyard.evidence.chunks import Parent
    from steelyard.evidence.projection import Overlap, Projection
    from steelyard.qrels import Qrels


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


Targets = tuple[tuple[Alternative, ...], ...]

PARTS = ("targets", "distractors")
_EXPECTED = (
    "Expected targets, each one thing or a list of things that satisfy it: "
    "{'doc_id': ..}, {'doc_id': .., 'start': .., 'end': ..}, {'fact': ..}, {'parent': ..}, "
    "{'page': ..}, {'hash': ..}; conditions in one dict must all hold. "
    "Beside targets there may be distractors: {'targets': [..], 'distractors': [..]}, or a grade below 0."
)


@dataclass(frozen=True)
class Answer:
    """One query's part of the key: its targets (none: nothing answers it), and what is known to mislead."""

    targets: Targets = ()
    distractors: tuple[Alternative, ...] = ()


def answers_of(source: Mapping[Any, Any], null: Iterable[str]) -> dict[str, Answer]:
    """Every query's targets and distractors, checked; a query marked null (or given None) has no targets."""
    queries = text_ids(source, "query id", "the evidence", unique=True)
    without = set(text_ids(null, "query id", "null"))
    problems = [
        f"query {query!r} is marked null and has no entry" for query in sorted(without - set(queries))
    ]
    found: dict[str, Answer] = {}
    for query, value in zip(queries, source.values(), strict=True):
        answer = _answer(query, value, query in without, problems)
        if answer.targets and query in without:
            problems.append(f"query {query!r} is marked null and has evidence")
        found[query] = answer
    if problems:
        heading = f"the evidence has {counted(len(problems), 'problem')}:"
        raise InputError(problem_report(heading, problems, _EXPECTED))
    return found


def _answer(query: str, value: Any, null: bool, problems: list[str]) -> Answer:
    """The answer of one query; what is wrong with it goes into `problems`."""
    in_parts = isinstance(value, Mapping) and value and set(value) <= set(PARTS)
    wanted = value.get("targets") if in_parts else value
    misleading = (value.get("distractors") or ()) if in_parts else ()
    null, wanted = null or wanted is None, () if wanted is None else wanted
    if not _is_list(wanted):
        problems.append(f"query {query!r}: {kind_of(wanted)}, not a list of targets")
        return Answer()
    if not _is_list(misleading):
        problems.append(f"query {query!r}: its distractors are {kind_of(misleading)}, not a list of dicts")
        return Answer()
    if not wanted and not misleading and not null:
        problems.append(
            f"query {query!r}: no evidence, and not marked null (null=[...], or None for its list)"
        )
    targets: list[tuple[Alternative, ...]] = []
    distractors: list[Alternative] = []
    for number, target in enumerate(wanted, start=1):
        where = f"query {query!r}, target {number}"
        ways = _ways(target, where, problems)
        mislead = [way for way in ways if way.misleads]
        if mislead and len(mislead) < len(ways):
            problems.append(f"{where}: a distractor among what satisfies it ({mislead[0]}); list it apart")
        elif mislead:
            distractors += mislead
        else:
            targets.append(ways)
    for number, way in enumerate(misleading, start=1):
        distractors += _ways(way, f"query {query!r}, distractor {number}", problems, distractor=True)
    return Answer(tuple(targets), tuple(distractors))


def _ways(given: Any, where: str, problems: list[str], distractor: bool = False) -> tuple[Alternative, ...]:
    """One dict or several, as alternatives."""
    listed = [given] if isinstance(given, (Mapping, Alternative)) else given
    if not _is_list(listed) or not listed:
        said = repr(listed)[:60] if isinstance(listed, (str, bytes, list, tuple)) else kind_of(listed)
        problems.append(f"{where}: {said} is not a dict or a list of dicts")
        return ()
    made = []
    for way in listed:
        try:
            made.append(alternative_of(way, distractor))
        except InputError as error:
            problems.append(f"{where}: {error}")
    return tuple(made)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


class Evidence:
    """An answer key that survives re-chunking: each query's targets, each satisfied by any of several things.

    A mapping of query id to targets; a target is a dict, or a list of dicts of which any one is
    enough. The conditions of one dict must all hold: `doc_id`, `parent`, `page`, `start` and `end`
    (characters of `doc_id`), `fact` (with a `share` of its words), `hash`, `chunk_id`; `grade` is what
    satisfying it is worth, 1 unless said. A query without evidence is named in `null`, or has None.
    With a grade below 0, or under `distractors` beside `targets`, a dict is a distractor: a chunk that
    meets it and satisfies no target of the query is known to mislead.

    >>> key = Evidence({"q1": [[{"doc_id": "book", "start": 4, "end": 11}], [{"fact": "weighs  gold"}, {"doc_id": "d7"}]]})
    >>> key
    Evidence: 1 query, 2 targets (1 span, 1 fact, 1 document)
    >>> text = "The balance weighs gold."
    >>> halves = [("c1", 0, 12), ("c2", 12, 24)]
    >>> key.judge([{"chunk_id": c, "doc_id": "book", "start": a, "end": b, "text": text[a:b]} for c, a, b in halves])
    Qrels: 1 query, 2 judgments, 2 relevant, 2 targets
    >>> Evidence({"q1": {"targets": [{"fact": "weighs gold"}], "distractors": [{"fact": "weighs lead"}]}})
    Evidence: 1 query, 1 target (1 fact), 1 distractor
    """

    def __init__(self, source: Mapping[Any, Any] | Evidence, null: Iterable[str] = ()) -> None:
        self.notes: tuple[str, ...] = ()
        if isinstance(source, Evidence):
            self.__dict__.update(source.__dict__)
            return
        if not isinstance(source, Mapping):
            raise InputError(
                f"the evidence is {kind_of(source)}; expected a mapping of query id to targets. "
                "Evidence.read(path) reads a file."
            )
        self._answers: dict[str, Answer] = answers_of(source, null)

    @classmethod
    def read(cls, path: str | Path, format: str | None = None, **options: Any) -> Evidence:
        """Read a file; what it is, is found from its content unless `format` insists.

        'multihop-rag' (questions with evidence_list[].fact), 'spans' (CSV or JSON lines with
        references of start_index and end_index), 'rows' (CSV or JSON lines, a row a span, a fact, a page
        ...), 'autorag' (qa parquet; the corpus, with start_end_idx, is `corpus=path`), 'ragas'
        (reference_contexts), 'json' (the mapping that `Evidence` takes, in JSON).
        """
        from steelyard.evidence.files import read_evidence

        return read_evidence(Path(path), format, options)

    @classmethod
    def of(cls, source: Any) -> Evidence:
        """Evidence as it is; a path read; a mapping made into it."""
        if isinstance(source, Evidence):
            return source
        return cls.read(source) if isinstance(source, (str, Path)) else cls(source)

    @classmethod
    def from_qrels(cls, qrels: Any, corpus: Mapping[str, str] | None = None) -> Evidence:
        """Old judgments as evidence: each relevant document a target, by its id, or (with `corpus`) its text as a fact.

        Targets of the judgments stay targets, any of whose documents is enough; documents graded below 0
        stay distractors; a query with nothing relevant is null. Documents of grade 0 (judged, not relevant)
        are no evidence: they are left out, and counted in `notes`.

        >>> Evidence.from_qrels({"q1": {"a": 2, "b": 1, "c": -1}, "q2": []})
        Evidence: 2 queries, 2 targets (2 documents), 1 distractor, 1 null query
        """
        from steelyard.qrels import Qrels

        judged = Qrels.of(qrels)
        names, pairs = judged.judged.doc_ids, judged.targets

        def way(doc: int, grade: float) -> dict[str, Any]:
            if corpus is not None and names[doc] not in corpus:
                raise InputError(
                    f"document {names[doc]!r} is judged and is not in the corpus; its text cannot be a fact."
                )
            told = {"doc_id": names[doc]} if corpus is None else {"fact": corpus[names[doc]]}
            return {**told, "grade": grade}

        wanted: dict[str, dict[int, list[dict[str, Any]]]] = {query: {} for query in judged.queries}
        misleading: dict[str, list[dict[str, Any]]] = {query: [] for query in judged.queries}
        listed = zip(pairs.doc.tolist(), pairs.target.tolist(), pairs.grade.tolist(), strict=True)
        for doc, target, grade in listed:
            if grade > 0:
                query = judged.queries[pairs.query[target]]
                wanted[query].setdefault(target, []).append(way(doc, grade))
        for doc in np.flatnonzero(judged.grades < 0).tolist():
            query = judged.queries[judged.doc_query[doc]]
            misleading[query].append(way(doc, float(judged.grades[doc])))
        made = cls(
            {
                query: {"targets": list(targets.values()) or None, "distractors": misleading[query]}
                for query, targets in wanted.items()
            }
        )
        blank = int(np.sum(judged.grades == 0))
        if blank:
            made.notes = (
                f"{counted(blank, 'judgment')} of grade 0 (judged, not relevant) "
                f"{worded(blank, 'is', 'are')} no evidence and left out",
            )
        return made

    def judge(
        self,
        chunks: Any,
        *,
        overlap: Overlap = "any",
        share: float = 1.0,
        case: bool = True,
        spaces: Literal["single", "removed"] = "single",
        parent: Parent | None = None,
        documents: Mapping[str, str] | None = None,
    ) -> Qrels:
        """The evidence as judgments of these chunks.

        `chunks` are dicts or a frame with chunk_id, doc_id, start, end, text (and page, parent), as far
        as the evidence needs them, or a mapping of id to text. `overlap` says when a span that a chunk
        border cuts counts: any character of it, a majority, or the whole. `share` is how much of a
        fact's words must be there, in order; 1 asks for the fact as it is. White space and Unicode forms
        do not matter; `case` says whether case does, and spaces='removed' takes white space out
        altogether. `parent` is a column, a function of the chunk id, or a pattern whose first group is
        the parent. With `documents` spans and chunks are held against the texts they come from.

        What was split, not found or overlapping is in the judgments' `notes`; `project` gives it as tables.
        """
        return self.project(
            chunks, overlap=overlap, share=share, case=case, spaces=spaces, parent=parent, documents=documents
        ).qrels

    def project(
        self,
        chunks: Any,
        *,
        overlap: Overlap = "any",
        share: float = 1.0,
        case: bool = True,
        spaces: Literal["single", "removed"] = "single",
        parent: Parent | None = None,
        documents: Mapping[str, str] | None = None,
    ) -> Projection:
        """As `judge`, with the report: judgments, split spans, facts and targets that are in no chunk."""
        from steelyard.evidence.chunks import chunk_table
        from steelyard.evidence.projection import project

        matching = Matching(share, case, spaces)
        table = chunk_table(chunks, parent, documents)
        return project(self.queries, self.ways, table, overlap, matching, documents, self.notes)

    def write(self, path: str | Path) -> None:
        """Write a file that `read` reads back: .json (a mapping), .jsonl (a line a query), .csv or .tsv (a row a thing)."""
        from steelyard.evidence.files import write_evidence

        write_evidence(self, Path(path))

    @cached_property
    def targets(self) -> Mapping[str, Targets]:
        """Every query's targets, each the alternatives that satisfy it."""
        return {query: answer.targets for query, answer in self._answers.items()}

    @cached_property
    def distractors(self) -> Mapping[str, tuple[Alternative, ...]]:
        """Every query's distractors: what is known to mislead."""
        return {query: answer.distractors for query, answer in self._answers.items()}

    @property
    def queries(self) -> list[str]:
        """The query ids, in the order they came, null queries too."""
        return list(self._answers)

    @property
    def null_queries(self) -> list[str]:
        """The queries that have no targets: nothing answers them."""
        return [query for query, targets in self.targets.items() if not targets]

    @cached_property
    def ways(self) -> Ways:
        """Every alternative, and every distractor as one of target 0, in one list."""
        rows = [
            (query, number, way)
            for query, answer in self._answers.items()
            for number, target in enumerate((answer.distractors, *answer.targets))
            for way in target
        ]
        return Ways([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])

    @cached_property
    def spans(self) -> pl.DataFrame:
        """The character spans of the targets: query_id, target, doc_id, start, end."""
        import polars as pl

        listed = zip(self.ways.query, self.ways.target, self.ways.way, strict=True)
        rows = [
            (query, target, way.doc_id, way.start, way.end)
            for query, target, way in listed
            if way.is_span and not way.misleads
        ]
        schema = {
            "query_id": pl.String,
            "target": pl.Int64,
            "doc_id": pl.String,
            "start": pl.Int64,
            "end": pl.Int64,
        }
        return pl.DataFrame(rows, schema=schema, orient="row")

    def __len__(self) -> int:
        """How many targets there are, over all queries."""
        return sum(map(len, self.targets.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evidence) and self._answers == other._answers

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kinds = {"span": 0, "fact": 0, "hash": 0, "page": 0, "parent": 0, "document": 0, "chunk": 0}
        for way in self.ways.way:
            kinds[way.kind] += not way.misleads
        plural = {"hash": "hashes"}
        held = [counted(n, kind, plural.get(kind, "")) for kind, n in kinds.items() if n]
        null, misleading = len(self.null_queries), sum(map(len, self.distractors.values()))
        parts = [
            counted(len(self._answers), "query", "queries"),
            counted(len(self), "target") + (f" ({', '.join(held)})" if held else ""),
        ]
        if misleading:
            parts.append(counted(misleading, "distractor"))
        if null:
            parts.append(counted(null, "null query", "null queries"))
        return f"Evidence: {', '.join(parts)}"
