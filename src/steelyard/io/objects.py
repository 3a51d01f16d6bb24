"""Qrels and runs given as Python objects: mappings in every form, named tuples, and objects of ranx."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from steelyard.errors import InputError, did_you_mean
from steelyard.ids import kind_of, text_ids
from steelyard.io.columns import is_record
from steelyard.safe_text import has_lone_surrogate

if TYPE_CHECKING:
    from steelyard.qrels import Row


PARTS = {"targets": 1.0, "relevant": 1.0, "not_relevant": 0.0, "distractors": -1.0}
"""The names under which one query's documents may be listed, and the grade of each."""

_LISTS = (list, tuple, set, frozenset)


def plain_form(source: Any, kind: Literal["Qrels", "Run"]) -> Any:
    """Named tuples as records, ranx's Qrels or Run as a mapping; anything else unchanged.

    >>> from collections import namedtuple
    >>> plain_form([namedtuple("Qrel", "query_id doc_id relevance")("q1", "d1", 2)], "Qrels")
    [{'query_id': 'q1', 'doc_id': 'd1', 'relevance': 2}]
    """
    if type(source).__module__.partition(".")[0] == "ranx" and hasattr(source, "to_dict"):
        if type(source).__name__ != kind:
            raise InputError(
                f"a {type(source).__name__} of ranx; expected a {kind}. Are the qrels and the run swapped?"
            )
        return source.to_dict()
    listed = list(source) if isinstance(source, Iterator) else source
    if isinstance(listed, (list, tuple)) and listed and all(map(_is_named_tuple, listed)):
        return [one._asdict() for one in listed]
    return listed


def is_frame(source: Any) -> bool:
    """Whether an object is a frame of polars, pandas or pyarrow."""
    return type(source).__module__.partition(".")[0] in ("polars", "pandas", "pyarrow")


def _is_named_tuple(one: Any) -> bool:
    return isinstance(one, tuple) and hasattr(one, "_asdict")


# Qrels


def flatten(values: Sequence[Any]) -> tuple[list[str], bytes, bytes | None] | None:
    """The documents of all queries in one list, where each query's start, and their grades, if they have any.

    None where a query has anything but a dict of finite numbers or a list of different ids, or
    where there are lists beside dicts: `rows_of` reads these forms, and reports ids with lone surrogates.
    """
    kinds = set(map(type, values))
    doc_ids: list[Any] = (
        list(chain.from_iterable(values)) if kinds <= {dict} or kinds <= {list, tuple} else [None]
    )
    if not set(map(type, doc_ids)) <= {str}:
        return None
    if any(has_lone_surrogate(doc) for doc in doc_ids if not doc.isascii()):
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
    """The judgments of queries whose values have any of the forms that `Qrels` takes."""
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
                rows += _rows_of_targets(query, value, where)
            else:
                rows += [(query, doc, 1.0, None) for doc in text_ids(value, "document id", where)]
        else:
            raise InputError(
                f"{where} are {kind_of(value)}; expected a mapping of document id to grade, "
                "a list of relevant ids, a list of lists or of mappings to grades (targets), or lists under "
                f"{', '.join(PARTS)}."
            )
    return rows


def _rows_of_parts(query: str, parts: Mapping[Any, Any], where: str) -> list[Row]:
    """The judgments of a query whose documents are listed under the names of PARTS."""
    rows: list[Row] = []
    part_of: dict[str, str] = {}
    for part, listed in parts.items():
        if part not in PARTS:
            raise InputError(
                f"{where}: unknown part {part!r}; expected lists under {', '.join(PARTS)}."
                f"{did_you_mean(str(part), PARTS)}"
            )
        if not isinstance(listed, _LISTS):
            raise InputError(f"{where}: {part} is {kind_of(listed)}; expected a list of document ids.")
        if part == "targets":
            found = _rows_of_targets(query, [[one] if isinstance(one, str) else one for one in listed], where)
        else:
            ids = text_ids(listed, "document id", f"{where}, {part}")
            found = [(query, doc, PARTS[part], None) for doc in ids]
        for _, doc, _, _ in found:
            if part_of.setdefault(doc, part) != part:
                raise InputError(
                    f"{where}: document {doc!r} is listed under {part_of[doc]} and under {part}; "
                    "keep one of them."
                )
        rows += found
    return rows


def _rows_of_targets(query: str, groups: Iterable[Any], where: str) -> list[Row]:
    """The judgments of targets: each a list of ids, or a mapping of ids to the grades at which they satisfy it."""
    rows: list[Row] = []
    for number, group in enumerate(groups, start=1):
        place = f"{where}, target {number}"
        if not isinstance(group, (Mapping, *_LISTS)) or not group:
            raise InputError(
                f"{where}: target {number} is {kind_of(group)}; expected a non-empty list of document ids, "
                "as in [['a', 'b'], ['c']]: (a or b) and c; or of grades, as in [{'a': 3, 'b': 1}, {'c': 2}]."
            )
        if isinstance(group, Mapping):
            ids, grades = _graded_target(group, place)
        else:
            ids = list(dict.fromkeys(text_ids(group, "document id", place)))
            grades = [1.0] * len(ids)
        rows += zip(repeat(query), ids, grades, repeat(str(number)))
    return rows


def _graded_target(group: Mapping[Any, Any], place: str) -> tuple[list[str], list[float]]:
    """The ids and grades of one target. A record is refused: its names would be read as document ids."""
    if is_record(group):
        raise InputError(
            f"{place} has the names of a record ({', '.join(map(str, group))}); expected grades by document id, "
            "as in {'a': 3, 'b': 1}. Records are one list: Qrels([{'query_id': 'q1', 'doc_id': 'a', 'grade': 3}])."
        )
    ids = text_ids(group, "document id", place, unique=True)
    grades = _grades(ids, list(group.values()))
    distractor = next((doc for doc, grade in zip(ids, grades, strict=True) if grade < 0), None)
    if distractor is not None:
        raise InputError(
            f"{place}: document {distractor!r} has a grade below 0, and a distractor satisfies no target; "
            "list it separately: {'targets': [..], 'distractors': [..]}."
        )
    return ids, grades


def _grades(doc_ids: Sequence[str], values: Sequence[Any]) -> list[float]:
    """The grades as floats; an error names the document whose grade is not a finite number."""
    grades = _floats(values)
    if not np.all(np.isfinite(grades)):
        doc, grade = next(
            pair for pair in zip(doc_ids, values, strict=True) if not _is_finite_number(pair[1])
        )
        raise InputError(f"judgment of document {doc!r}: grade {grade!r} is not a finite number.")
    return list(map(float, grades))


# Runs


def lists_of(source: Mapping[Any, Any]) -> tuple[dict[str, Any], bool]:
    """A copy of a run's mapping with text ids and finite scores, and whether its lists have their own order."""
    queries = text_ids(source, "query id", "the run", unique=True)
    copied: dict[str, Any] = {}
    ordered: bool | None = None
    for query, listed in zip(queries, source.values(), strict=True):
        where = f"the run's list for query {query!r}"
        own = not isinstance(listed, Mapping)
        if isinstance(listed, Mapping):
            ids = text_ids(listed, "document id", where, unique=True)
            copied[query] = _copied(listed) or dict(zip(ids, _scores(listed.values(), where), strict=True))
        elif isinstance(listed, Sequence) and not isinstance(listed, (str, bytes)):
            copied[query] = _ranked_list(listed, where)
        else:
            raise InputError(
                f"{where} is {kind_of(listed)}; expected a mapping of document id to score, "
                "a list of ids, best first, or a list of (id, score) pairs."
            )
        if ordered is not None and own != ordered and len(listed):
            raise InputError(
                f"{where} is in another form than the lists before it; use mappings or lists, not both."
            )
        ordered = own if len(listed) or ordered is None else ordered
    return copied, bool(ordered)


def ids_and_scores(listed: Any) -> tuple[list[str], list[float | None]]:
    """The ids and scores of one list of `lists_of`, in its order."""
    if isinstance(listed, dict):
        return list(listed), list(listed.values())
    if listed and isinstance(listed[0], tuple):
        return [doc for doc, _ in listed], [score for _, score in listed]
    return list(listed), [None] * len(listed)


def _copied(listed: Mapping[Any, Any]) -> dict[str, float] | None:
    """A copy of a dict of text to finite floats; None for other mappings, which are read item by item."""
    if type(listed) is not dict or not set(map(type, listed)) <= {str}:
        return None
    return listed.copy() if _are_finite_floats(listed.values()) else None


def _are_finite_floats(values: Collection[Any]) -> bool:
    # The sum of finite floats is finite, unless it is too large; any other sum is not.
    return set(map(type, values)) <= {float} and math.isfinite(sum(values))


def _ranked_list(listed: Sequence[Any], where: str) -> list[Any]:
    pairs = all(issubclass(kind, (tuple, list)) for kind in set(map(type, listed)))
    if listed and pairs and set(map(len, listed)) == {2}:
        docs, scores = zip(*listed, strict=True)
        ids = text_ids(docs, "document id", where)
        if set(map(type, listed)) == {tuple} and set(map(type, docs)) == {str} and _are_finite_floats(scores):
            return list(listed)
        return list(zip(ids, _scores(scores, where), strict=True))
    return text_ids(listed, "document id", where)


def _scores(values: Iterable[Any], where: str) -> list[float]:
    listed = list(values)
    scores = _floats(listed)
    if not np.all(np.isfinite(scores)):
        bad = next((value for value in listed if not _is_finite_number(value)), listed)
        raise InputError(f"{where}: score {bad!r} is not a finite number; score the document, or remove it.")
    floats: list[float] = scores.tolist()
    return floats


def _floats(values: Sequence[Any]) -> Any:
    """The values as an array; all NaN where one is not a number."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.full(len(values), np.nan)
    return array if array.shape == (len(values),) else np.full(len(values), np.nan)


def _is_finite_number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)
    except OverflowError:
        return False
