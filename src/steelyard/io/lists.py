"""Documents listed by query: the forms in which Python objects, JSON and the cells of tables hold them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from steelyard.alignment.hits import JudgedDocs
from steelyard.checks import is_number
from steelyard.errors import InputError, did_you_mean
from steelyard.ids import kind_of, text_ids
from steelyard.io.columns import PARTS, find_name, is_record
from steelyard.io.text import shortened
from steelyard.native import kernel
from steelyard.notes import Note, note
from steelyard.qrels import Qrels, Row
from steelyard.run import Run
from steelyard.wording import counted

_LISTS = (list, tuple, set, frozenset)
_EXAMPLE = """["d1", "d2"]"""


def unique_ids(values: Sequence[Any], column: str) -> tuple[list[str], tuple[Note, ...]]:
    """Query ids as text, all different; and a note if they were numbers."""
    missing = [f"row {row}" for row, value in enumerate(values, start=1) if value is None]
    if missing:
        headline = f"column {column!r} (query_id) is empty in {counted(len(missing), 'row')}:"
        raise InputError.of_problems(headline, missing, "Fill them in.")
    ids = text_ids(values, "query id", f"column {column!r}")
    first: dict[str, int] = {}
    places = [(row, query, first.setdefault(query, row)) for row, query in enumerate(ids, start=1)]
    twice = [f"row {row}: {query!r}, as row {before}" for row, query, before in places if before != row]
    earlier = "the query id of an earlier row"
    InputError.refuse(twice, f"row repeats {earlier}", f"rows repeat {earlier}", "Keep one row per query.")
    numbers = any(not isinstance(value, str) for value in values)
    return ids, ((note("ids-are-numbers", role="query_id"),) if numbers else ())


def qrels_of_mapping(source: Mapping[Any, Any]) -> Qrels:
    """The qrels of a mapping from query to documents, in any of the forms that `Qrels` takes.

    The kernel reads a dict of finite numbers or a list of different ids for every query; all other forms, and what is
    wrong, are left to `_rows_of`.
    """
    query_ids = text_ids(source, "query id", "the qrels", unique=True)
    values, native = list(source.values()), kernel()
    flat = None if native is None else native.flatten(values)
    if flat is None:
        return Qrels.from_rows(_rows_of(query_ids, values), query_ids)
    doc_ids, starts, grades = flat
    judged = JudgedDocs(query_ids, np.frombuffer(starts, np.int64), doc_ids)
    return Qrels.from_columns(judged, np.ones(len(doc_ids)) if grades is None else np.frombuffer(grades, np.float64))


def qrels_of_lists(queries: Sequence[Any], judged: Sequence[Any], notes: Iterable[Note] = ()) -> Qrels:
    """Qrels of one list per query: ids, lists of ids (targets), grades, or records; `notes` come before its own."""
    ids, own_notes = unique_ids(queries, "query_id")
    rows: list[Row] = []
    plain: dict[str, Any] = {}
    for query, value in zip(ids, judged, strict=True):
        documents = [] if value is None else list_of(value)
        if isinstance(documents, list) and documents and isinstance(documents[0], Mapping) and is_record(documents[0]):
            rows += _rows(documents, query)
        else:
            plain[query] = documents
    if not rows:
        qrels = qrels_of_mapping(plain)
    elif any(plain.values()):
        raise InputError("some queries have records of judgments and some have lists; expected one form in one file.")
    else:
        qrels = Qrels.from_rows(rows, ids)
    qrels.notes = (*notes, *qrels.notes, *own_notes)
    return qrels


def _rows_of(query_ids: Sequence[str], values: Sequence[Any]) -> list[Row]:
    """The judgments of queries whose values have any of the forms that `Qrels` takes."""
    rows: list[Row] = []
    for query, value in zip(query_ids, values, strict=True):
        where = f"the judgments of query {query!r}"
        if isinstance(value, Mapping) and any(isinstance(part, _LISTS) for part in value.values()):
            rows += _rows_of_parts(query, value, where)
        elif isinstance(value, Mapping):
            ids = text_ids(value, "document id", where)
            rows += zip(repeat(query), ids, _grades(ids, list(value.values()), where), repeat(None))
        elif isinstance(value, _LISTS):
            if value and all(map(_is_graded, value)):
                ids = text_ids((doc for doc, _ in value), "document id", where)
                rows += zip(repeat(query), ids, _grades(ids, [grade for _, grade in value], where), repeat(None))
            elif any(not isinstance(item, (str, int)) for item in value):
                rows += _rows_of_targets(query, value, where)
            else:
                rows += [(query, doc, 1.0, None) for doc in text_ids(value, "document id", where)]
        else:
            problem = f"{where} are {kind_of(value)}; expected a mapping of document id to grade"
            lists = "a list of relevant ids or of (id, grade) pairs, a list of lists or of mappings to grades (targets)"
            raise InputError(f"{problem}, {lists}, or lists under {', '.join(PARTS)}.")
    return rows


def _is_graded(item: Any) -> bool:
    """Whether an item of a list is (id, grade), and not a target of two ids: the id is text, the other a number."""
    is_pair = isinstance(item, (list, tuple)) and len(item) == 2
    return is_pair and isinstance(item[0], str) and isinstance(item[1], (int, float, np.number))


def _rows_of_parts(query: str, parts: Mapping[Any, Any], where: str) -> list[Row]:
    """The judgments of a query whose documents are listed under the names of PARTS."""
    rows: list[Row] = []
    part_of: dict[str, str] = {}
    for part, listed in parts.items():
        if part not in PARTS:
            problem = f"{where}: unknown part {part!r}; expected lists under {', '.join(PARTS)}"
            raise InputError(f"{problem}.{did_you_mean(str(part), PARTS)}")
        if not isinstance(listed, _LISTS):
            raise InputError(f"{where}: {part} is {kind_of(listed)}; expected a list of document ids.")
        if part == "targets":
            judged = _rows_of_targets(query, [[one] if isinstance(one, str) else one for one in listed], where)
        else:
            judged = [(query, doc, PARTS[part], None) for doc in text_ids(listed, "document id", f"{where}, {part}")]
        for _, doc, _, _ in judged:
            if part_of.setdefault(doc, part) != part:
                both = f"{part_of[doc]} and under {part}"
                raise InputError(f"{where}: document {doc!r} is listed under {both}; keep one of them.")
        rows += judged
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
    grades = _grades(ids, list(group.values()), place)
    distractor = next((doc for doc, grade in zip(ids, grades, strict=True) if grade < 0), None)
    if distractor is not None:
        problem = f"{place}: document {distractor!r} has a grade below 0, and a distractor satisfies no target"
        raise InputError(f"{problem}; list it separately: {{'targets': [..], 'distractors': [..]}}.")
    return ids, grades


def _grades(doc_ids: Sequence[str], values: Sequence[Any], where: str) -> list[float]:
    """The grades as floats; an error names the document whose grade is not a finite number."""
    grades = _floats(values)
    if not np.all(np.isfinite(grades)):
        doc, grade = next(pair for pair in zip(doc_ids, values, strict=True) if not _is_finite_number(pair[1]))
        raise InputError(f"{where}: document {doc!r}: grade {grade!r} is not a finite number.")
    return list(map(float, grades))


def run_of_lists(
    queries: Sequence[Any],
    documents: Sequence[Any],
    scores: Sequence[Any] | None,
    name: str | None,
    notes: Iterable[Note] = (),
) -> Run:
    """A run of one list per query, best first, with or without a list of scores for each.

    A list holds ids, [id, score] pairs or records with a document and a score; an object of document to score has no
    order of its own. `notes` come before its own.
    """
    ids, own_notes = unique_ids(queries, "query_id")
    listed: dict[str, Any] = {}
    problems: list[str] = []
    ignored: list[str] = []
    for row, (query, docs) in enumerate(zip(ids, documents, strict=True)):
        ranked = [] if docs is None else list_of(docs)
        if isinstance(ranked, list) and ranked and isinstance(ranked[0], Mapping):
            # Scores in a list of their own are in the order of the records.
            ranked, ranks = (
                _pairs(ranked, query) if scores is None else ([_document(r, query)[0] for r in ranked], None)
            )
            ignored += [ranks] if ranks else []
        if scores is not None and (values := list_of(scores[row])) is not None:
            if len(values) == len(ranked):
                ranked = list(zip(ranked, values, strict=True))
            else:
                sizes = f"{counted(len(ranked), 'document')} and {counted(len(values), 'score')}"
                problems.append(f"row {row + 1}: query {query!r} has {sizes}")
        listed[query] = ranked
    more = "more or fewer scores than documents"
    InputError.refuse(problems, f"row has {more}", f"rows have {more}", "Expected one score per document.")
    run = run_of_mapping(listed, name)
    run.notes = (*notes, *own_notes)
    if ignored:
        run.notes += (note("ranks-ignored", column=ignored[0], queries=len(ignored)),)
    return run


def run_of_mapping(source: Mapping[Any, Any], name: str | None = None) -> Run:
    """The run of a mapping from query to documents, in any of the forms that `Run` takes, copied and checked."""
    queries = text_ids(source, "query id", "the run", unique=True)
    copied: dict[str, Any] = {}
    ordered: bool | None = None
    for query, listed in zip(queries, source.values(), strict=True):
        where = f"the run's list for query {query!r}"
        has_order = not isinstance(listed, Mapping)
        if isinstance(listed, Mapping):
            ids = text_ids(listed, "document id", where, unique=True)
            # A dict of text to finite floats is copied whole; other mappings are read item by item.
            plain = type(listed) is dict and set(map(type, listed)) <= {str} and _are_finite_floats(listed.values())
            copied[query] = dict(listed) if plain else dict(zip(ids, _scores(listed.values(), where), strict=True))
        elif isinstance(listed, Sequence) and not isinstance(listed, (str, bytes)):
            copied[query] = _ranked_list(listed, where)
        else:
            problem = f"{where} is {kind_of(listed)}; expected a mapping of document id to score,"
            raise InputError(f"{problem} a list of ids, best first, or a list of (id, score) pairs.")
        if len(listed) and ordered not in (None, has_order):
            raise InputError(f"{where} is in another form than the lists before it; use mappings or lists, not both.")
        ordered = has_order if len(listed) else ordered
    if ordered is None:
        ordered = any(isinstance(listed, list) for listed in copied.values())
    return Run.from_lists(copied, ordered, name)


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
    return isinstance(value, bool) or is_number(value)


def list_of(value: Any) -> Any:
    """A list (or object) unchanged, or the one that a text spells: JSON, or a Python list in a CSV cell.

    >>> list_of('["a", "b"]'), list_of("['a', 'b']"), list_of("a")
    (['a', 'b'], ['a', 'b'], ['a'])
    """
    if value is None or isinstance(value, (list, Mapping)):
        return value
    if isinstance(value, tuple):
        return list(value)
    text = value.strip() if isinstance(value, str) else ""
    if not (text.startswith("[") and text.endswith("]")):
        return [value]
    import ast
    import json
    import re

    try:
        parsed = json.loads(text)
    except json.JSONDecodeError:
        try:
            parsed = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            parsed = None
        # Python joins adjacent strings: ['a' 'b'], as numpy prints an array, would become one id.
        if parsed is not None and re.search(r"""['"]\s+['"]""", text):
            problem = f"a cell holds a printed array, without commas: {shortened(text)!r}. Expected a list,"
            raise InputError(f"{problem} as in {_EXAMPLE}; write the file as Parquet or JSON lines.") from None
    if not isinstance(parsed, list):
        raise InputError(f"a cell does not hold a list: {shortened(text)!r}; expected one as in {_EXAMPLE}.")
    return parsed


def _pairs(records: Sequence[Any], query: str) -> tuple[list[Any], str | None]:
    """Ids, or (id, score) pairs where the records have scores, by rank; and the name of ranks that are not used.

    As in a table, ranks called own_rank are used, and others where the records are not in the order of their scores.
    """
    ids = [_document(record, query)[0] for record in records]
    scores, own = (_values(records, role, query) for role in ("score", "own_rank"))
    listed = ids if scores is None else list(zip(ids, scores, strict=True))
    by_score = own is None and scores is not None and not np.any(np.diff(_floats(scores)) > 0)
    given = own or _values(records, "rank", None if by_score else query)
    ranks = _floats(given or range(len(ids)))
    if by_score:
        return listed, find_name(list(records[0]), "rank", required=False) if np.any(np.diff(ranks) < 0) else None
    if not np.all(np.isfinite(ranks)):
        raise InputError(f"query {query!r}: its ranks are {shortened(str(given))}; expected numbers.")
    return [listed[place] for place in np.argsort(ranks, kind="stable")], None


def _values(records: Sequence[Mapping[str, Any]], role: str, query: str | None) -> list[Any] | None:
    """The values of a role; None if no record has one. Only some of the records of a `query` is an error."""
    found = {names: find_name(names, role, required=False) for names in set(map(tuple, records))}
    values = [record[name] if (name := found[tuple(record)]) else None for record in records]
    missing = values.count(None)
    if missing and query is not None and missing < len(values):
        raise InputError(f"query {query!r}: some of its documents have a {role} and some have none.")
    return None if missing == len(values) else values


def _rows(records: Iterable[Any], query: str) -> list[Row]:
    rows: list[Row] = []
    for record in records:
        doc_id, names = _document(record, query)
        grade, target = (find_name(names, role, required=False) for role in ("grade", "target"))
        where = f"the judgments of query {query!r}"
        (doc,) = text_ids([doc_id], "document id", where)
        value = 1.0 if grade is None else record[grade]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"query {query!r}, document {doc!r}: grade {value!r} is not a number.")
        targets = [None] if target is None or record[target] is None else text_ids([record[target]], "target", where)
        rows.append((query, doc, float(value), targets[0]))
    return rows


def _document(record: Any, query: str) -> tuple[Any, list[str]]:
    """The document of a record, under one of the usual names or id, and all names of the record."""
    if not isinstance(record, Mapping):
        raise InputError(f"query {query!r}: {kind_of(record)} among its documents; expected records like the first.")
    names = list(record)
    return record[find_name(names, "doc_id", required="id" not in names) or "id"], names
