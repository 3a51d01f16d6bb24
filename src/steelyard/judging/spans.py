"""Spans that judges marked, as evidence: targets that survive re-chunking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.errors import InputError
from steelyard.evidence import Evidence
from steelyard.judgments import Judgment, Judgments
from steelyard.notes import note

Span = dict[str, Any]


def evidence_of(judgments: Any) -> Evidence:
    """Evidence from the field `spans` of judgments: objects with start, end and content.

    Every marked span of a document with a grade above 0 is a target of its query, worth that grade. Spans of one
    document that overlap, as those of several judges do, are alternatives of one target: any of them is enough.
    Spans of a grade below 0 are distractors. Spans of grade 0, or of a judgment without a grade, are left out and
    counted in `notes`. A document with a grade above 0 in which no judge marked anything is a target as a whole, and
    is counted in `notes`. Queries without any of these are not in the evidence.

    If a judged document is a chunk whose place is known (`source` of the judgment), its spans are those of the
    document that it was cut from, and overlapping marks in two chunks are one target.

    `judgments` is anything that `Judgments.of` takes.

    >>> spans = [{"start": 4, "end": 11, "content": "balance"}]
    >>> line = {"query_id": "q1", "doc_id": "d1", "grade": 2, "judge": "ann", "spans": spans}
    >>> evidence_of([line, {**line, "judge": "bob"}])
    Evidence: 1 query, 1 target (2 spans)
    """
    targets: dict[str, dict[str, list[Span]]] = {}
    distractors: dict[str, list[Span]] = {}
    left_out = 0
    unmarked: dict[tuple[str, str], Span] = {}
    lines = Judgments.of(judgments).current
    marked = {(line.query_id, line.doc_id) for line in lines if line.more.get("spans")}
    for line in lines:
        if line.grade is not None and line.grade > 0 and (line.query_id, line.doc_id) not in marked:
            unmarked.setdefault((line.query_id, line.doc_id), {**_place(line), "grade": line.grade})
        for span in _spans(line):
            if not line.grade:
                left_out += 1
            elif line.grade > 0:
                targets.setdefault(line.query_id, {}).setdefault(span["doc_id"], []).append(span)
            else:
                distractors.setdefault(line.query_id, []).append(span)
    by_query: dict[str, Any] = {}
    for query in dict.fromkeys([*targets, *distractors, *(query for query, _ in unmarked)]):
        groups = [group for spans in targets.get(query, {}).values() for group in _overlapping(spans)]
        groups += [[whole] for (of, _), whole in unmarked.items() if of == query]
        by_query[query] = {"targets": groups or None, "distractors": distractors.get(query, [])}
    evidence = Evidence(by_query)
    counts = {"spans-left-out": left_out, "graded-not-marked": len(unmarked)}
    evidence.notes = tuple(note(code, count=count) for code, count in counts.items() if count)
    return evidence


def source_of(metadata: Mapping[str, Any]) -> Span | None:
    """Where a chunk is in the document that it was cut from, if its metadata has doc_id, start and end."""
    source = {name: metadata.get(name) for name in ("doc_id", "start", "end")}
    return source if isinstance(source["doc_id"], str) and _is_span(source) else None


def _place(line: Judgment) -> Span:
    """Where a judged text is: its place in the document that it was cut from, or the whole document."""
    source = line.more.get("source")
    return (source_of(source) if isinstance(source, Mapping) else None) or {"doc_id": line.doc_id}


def marked(line: Judgment) -> list[Span]:
    """The spans of one judgment as they are in its file."""
    given = line.more.get("spans") or []
    if not isinstance(given, list) or not all(map(_is_span, given)):
        problem = f"query {line.query_id!r}, document {line.doc_id!r}, judge {line.judge!r}: spans are {given!r:.60};"
        raise InputError(f"{problem} expected a list of objects with start and end.")
    return given


def _spans(line: Judgment) -> list[Span]:
    """The spans of one judgment, as alternatives of a target."""
    place, graded = _place(line), {"grade": line.grade} if line.grade else {}
    doc_id, first = place["doc_id"], place.get("start", 0)
    spans = [(span["start"] + first, span["end"] + first, span.get("content")) for span in marked(line)]
    return [{"doc_id": doc_id, "start": a, "end": b, "content": text, **graded} for a, b, text in spans]


def _is_span(span: Any) -> bool:
    return isinstance(span, dict) and all(type(span.get(name)) is int for name in ("start", "end"))


def _overlapping(spans: list[Span]) -> list[list[Span]]:
    """Spans of one document in groups that overlap."""
    groups: list[list[Span]] = []
    reach = -1
    for span in sorted(spans, key=lambda span: (span["start"], span["end"])):
        if groups and span["start"] < reach:
            groups[-1].append(span)
        else:
            groups.append([span])
        reach = max(reach, span["end"])
    return groups
