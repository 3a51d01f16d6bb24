"""The forms in which judgments are given from Python: grades, relevant ids, targets, or lists by what they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, TypeAlias

import numpy as np

from steelyard.errors import InputError, did_you_mean
from steelyard.ids import kind_of, text_ids

Row: TypeAlias = tuple[str, str, float, "str | None"]
"""Query, document, grade, target (None: the document is its own)."""

PARTS = {"targets": 1.0, "relevant": 1.0, "not_relevant": 0.0, "distractors": -1.0}
"""The names under which one query's documents may be listed, and the grade that each stands for."""

_LISTS = (list, tuple, set, frozenset)


def flatten(values: Sequence[Any]) -> tuple[list[str], bytes, bytes | None] | None:
    """The documents of all queries end to end, where each query's begin, and their grades, if they have any.

    None where a query is judged by anything but a dict of finite numbers or a list of different ids,
    or lists stand beside dicts.
    """
    kinds = set(map(type, values))
    doc_ids: list[Any] = (
        list(chain.from_iterable(values)) if kinds <= {dict} or kinds <= {list, tuple} else [None]
    )
    if not set(map(type, doc_ids)) <= {str}:
        return None
    starts = np.cumsum([0, *map(len, values)], dtype=np.int64).tobytes()
    if kinds != {dict}:
        repeats = sum(map(len, map(set, values))) != len(doc_ids)
        return None if repeats else (doc_ids, starts, None)
    grades = list(chain.from_iterable(map(dict.values, values)))
    if not set(map(type, grades)) <= {int, float}:
        return None
    try:
        array = np.array(grades, dtype=np.float64)
    except OverflowError:
        return None
    return (doc_ids, starts, array.tobytes()) if np.isfinite(array).all() else None


def rows_of(query_ids: Sequence[str], values: Sequence[Any]) -> list[Row]:
    """Judgment rows of a mapping whose queries are judged in different forms."""
    rows: list[Row] = []
    for query, value in zip(query_ids, values, strict=True):
        where = f"the judgments of query {query!r}"
        if isinstance(value, Mapping) and any(isinstance(part, _LISTS) for part in value.values()):
            rows += _rows_of_parts(query, value, where)
        elif isinstance(value, Mapping):
            ids = text_ids(value, "document id", where)
            rows += zip(repeat(query), ids, _grades(ids, list(value.values())), repeat(None))
        elif isinstance(value, _LISTS):
            if any(not isinstance(item, (str, int)) for item in value):
                rows += _target_rows(query, value, where)
            else:
                rows += [(query, doc, 1.0, None) for doc in text_ids(value, "document id", where)]
        else:
            raise InputError(
                f"{where} are {kind_of(value)}; expected a mapping of document id to grade, "
                "a list of relevant ids, a list of lists or of mappings to grades (targets), or lists under "
                "targets, relevant, not_relevant and distractors."
            )
    return rows


def _rows_of_parts(query: str, parts: Mapping[Any, Any], where: str) -> list[Row]:
    """Judgment rows of a query whose documents are listed by what they are to it."""
    rows: list[Row] = []
    place: dict[str, str] = {}
    for part, listed in parts.items():
        if part not in PARTS:
            raise InputError(
                f"{where}: there is no part {part!r}; expected lists under {', '.join(PARTS)}."
                f"{did_you_mean(str(part), PARTS)}"
            )
        if not isinstance(listed, _LISTS):
            raise InputError(f"{where}: {part} is {kind_of(listed)}; expected a list of document ids.")
        if part == "targets":
            found = _target_rows(query, [[one] if isinstance(one, str) else one for one in listed], where)
        else:
            ids = text_ids(listed, "document id", f"{where}, {part}")
            found = [(query, doc, PARTS[part], None) for doc in ids]
        for _, doc, _, _ in found:
            if place.setdefault(doc, part) != part:
                raise InputError(
                    f"{where}: document {doc!r} is among {place[doc]} and among {part}; keep one of them."
                )
        rows += found
    return rows


def _target_rows(query: str, groups: Iterable[Any], where: str) -> list[Row]:
    """Judgment rows of targets: each a list of ids, or a mapping of ids to the grades at which they satisfy it."""
    rows: list[Row] = []
    for number, group in enumerate(groups, start=1):
        place = f"{where}, target {number}"
        if not isinstance(group, (Mapping, *_LISTS)) or not group:
            raise InputError(
                f"{where}: target {number} is {kind_of(group)}; expected a non-empty list of document ids, "
                "as in [['a', 'b'], ['c']]: (a or b) and c; or of grades, as in [{'a': 3, 'b': 1}, {'c': 2}]."
            )
        if isinstance(group, Mapping):
            _refuse_record(group, place)
            ids = text_ids(group, "document id", place, unique=True)
            grades = _grades(ids, list(group.values()))
            misleading = next((doc for doc, grade in zip(ids, grades, strict=True) if grade < 0), None)
            if misleading is not None:
                raise InputError(
                    f"{place}: document {misleading!r} has a grade below 0, and a distractor satisfies no target; "
                    "list it apart: {'targets': [..], 'distractors': [..]}."
                )
        else:
            ids = list(dict.fromkeys(text_ids(group, "document id", place)))
            grades = [1.0] * len(ids)
        rows += zip(repeat(query), ids, grades, repeat(str(number)))
    return rows


def _refuse_record(group: Mapping[Any, Any], place: str) -> None:
    """An error for a record where grades by document id are expected: its names would be taken for ids."""
    from steelyard.formats.roles import is_record

    if is_record(group):
        raise InputError(
            f"{place} has the names of a record ({', '.join(map(str, group))}); expected grades by document id, "
            "as in {'a': 3, 'b': 1}. Records are one list: Qrels([{'query_id': 'q1', 'doc_id': 'a', 'grade': 3}])."
        )


def _grades(doc_ids: Sequence[str], given: Sequence[Any]) -> list[float]:
    """The grades as floats; an error names the document whose grade is not a finite number."""
    try:
        grades = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        grades = np.full(len(given), np.nan)
    if grades.shape != (len(given),) or not np.all(np.isfinite(grades)):
        for doc, grade in zip(doc_ids, given, strict=True):
            if not isinstance(grade, (int, float, np.number)) or not np.isfinite(grade):
                raise InputError(f"judgment of document {doc!r}: grade {grade!r} is not a finite number.")
    return list(map(float, grades))
