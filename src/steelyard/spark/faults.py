"""Rows that cannot be read: marked on the cluster, counted there, and told once, in the words of frames in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from steelyard.errors import SHOWN_PROBLEMS, InputError
from steelyard.formats import columns
from steelyard.judgment_words import disagreement_error, grade_error


class Kind(IntEnum):
    """What a row is: a judgment, a document of the run, or something wrong, in the order it is told."""

    JUDGMENT = 0
    LISTED = 1
    JUDGED_NO_QUERY = 2
    GRADE_IS_TEXT = 3
    NO_GRADE = 4
    GRADE_NOT_FINITE = 5
    DISAGREES = 6
    LISTED_NO_QUERY = 7
    SCORE_IS_TEXT = 8
    RANK_IS_TEXT = 9
    NO_DOCUMENT = 10
    SCORE_NOT_FINITE = 11
    RANK_NOT_FINITE = 12


@dataclass(frozen=True)
class Fault:
    """How many rows have a fault, and the first of them in words."""

    count: int
    examples: Sequence[str]

    @classmethod
    def of(cls, count: int, examples: Iterable[str]) -> Fault:
        """The first examples are the first by their words, however the rows were parted."""
        return cls(count, sorted(examples)[:SHOWN_PROBLEMS])

    def __add__(self, other: Fault) -> Fault:
        return Fault.of(self.count + other.count, [*self.examples, *other.examples])


def in_words(kind: Kind, query: str | None, doc: str | None, value: float | None, said: str | None) -> str:
    """A faulty row, for a message. `said` is the text that stands where a number should.

    >>> in_words(Kind.SCORE_IS_TEXT, "q1", "d1", None, "high")
    "query 'q1', document 'd1': 'high'"
    """
    if kind in (Kind.JUDGED_NO_QUERY, Kind.LISTED_NO_QUERY):
        return f"document {doc!r}"
    if kind is Kind.GRADE_NOT_FINITE:
        return str(grade_error(str(query), str(doc), float("nan") if value is None else value))
    row = f"query {query!r}, document {doc!r}"
    if kind in (Kind.GRADE_IS_TEXT, Kind.SCORE_IS_TEXT, Kind.RANK_IS_TEXT):
        return f"{row}: {said!r}"
    return row if kind is Kind.NO_GRADE else f"{row}, score {value}"


def error_of(
    faults: Mapping[Kind, Fault], judged: Mapping[str, str], listed: Mapping[str, str]
) -> InputError | None:
    """The error for the first fault there is; `judged` and `listed` name the frames' columns by role."""
    if not faults:
        return None
    kind = min(faults)
    count, rows = faults[kind].count, faults[kind].examples
    names = judged if kind < Kind.LISTED_NO_QUERY else listed
    tell: dict[Kind, Callable[[], InputError]] = {
        Kind.GRADE_IS_TEXT: lambda: columns.not_numbers_error(names["grade"], "grade", count, rows),
        Kind.NO_GRADE: lambda: columns.ungraded_error(count, rows),
        Kind.GRADE_NOT_FINITE: lambda: InputError(rows[0]),
        Kind.DISAGREES: lambda: disagreement_error(count, rows),
        Kind.SCORE_IS_TEXT: lambda: columns.not_numbers_error(names["score"], "score", count, rows),
        Kind.RANK_IS_TEXT: lambda: columns.not_numbers_error(names["rank"], "rank", count, rows),
        Kind.NO_DOCUMENT: lambda: columns.bad_rows_error(columns.NO_DOCUMENT, count, rows),
        Kind.SCORE_NOT_FINITE: lambda: columns.bad_rows_error(columns.NO_SCORE, count, rows),
        Kind.RANK_NOT_FINITE: lambda: columns.bad_rows_error(columns.NO_RANK, count, rows),
    }
    if kind in tell:
        return tell[kind]()
    return columns.empty_ids_error(names["query_id"], "query_id", count, rows)
