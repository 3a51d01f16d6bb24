"""Spans that judges marked, as evidence: targets that survive re-chunking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError
from steelyard.judgments import Judgment, Judgments
from steelyard.notes import note

if TYPE_CHECKING:
    from steelyard.evidence import Evidence

Span = dict[str, Any]


def evidence_of(judgments: Any) -> Evidence:
    """Evidence from the field `spans` of judgments: objects with start, end and content.

    Every marked span of a document with a grade above 0 is a target of its query, worth that grade. Spans of one
    document that overlap, as those of several judges do, are alternatives of one target: any of them is enough.
    Spans of a grade below 0 are distractors. Spans of grade 0, or of a judgment without a grade, are left out and
    counted in `notes`. Queries without a marked span are not in the evidence.

    `judgments` is anything that `Judgments.of` takes.

    >>> spans = [{"start": 4, "end": 11, "content": "balance"}]
    >>> line = {"query_id": "q1", "doc_id": "d1", "grade": 2, "judge": "ann", "spans": spans}
    >>> evidence_of([line, {**line, "judge": "bob"}])
    Evidence: 1 query, 1 target (2 spans)
    """
    from steelyard.evidence import Evidence

    targets: dict[str, dict[str, list[Span]]] = {}
    distractors: dict[str, list[Span]] = {}
    left_out = 0
    for line in Judgments.of(judgments).current:
        for span in _spans(line):
            if not line.grade:
                left_out += 1
            elif line.grade > 0:
                targets.setdefault(line.query_id, {}).setdefault(line.doc_id, []).append(span)
            else:
                distractors.setdefault(line.query_id, []).append(span)
    made = Evidence(
        {
            query: {
                "targets": [target for spans in targets.get(query, {}).values() for target in _overlapping(spans)]
                or None,
                "distractors": distractors.get(query, []),
            }
            for query in dict.fromkeys([*targets, *distractors])
        }
    )
    if left_out:
        made.notes = (note("spans-left-out", count=left_out),)
    return made


def _spans(line: Judgment) -> list[Span]:
    """The spans of one judgment, as alternatives of a target."""
    given = line.more.get("spans") or []
    if not isinstance(given, list) or not all(map(_is_span, given)):
        raise InputError(
            f"query {line.query_id!r}, document {line.doc_id!r}, judge {line.judge!r}: spans are {given!r:.60}; "
            "expected a list of objects with start and end."
        )
    graded = {} if not line.grade else {"grade": line.grade}
    return [
        {"doc_id": line.doc_id, **{k: span.get(k) for k in ("start", "end", "content")}, **graded} for span in given
    ]


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
