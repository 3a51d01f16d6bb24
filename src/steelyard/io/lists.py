"""One row a query, its documents in a list: how RAG tools keep what was retrieved and what was right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError, problem_report
from steelyard.ids import kind_of, text_ids
from steelyard.io.columns import find_name, is_record
from steelyard.qrels import Qrels
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.run import Run


QUERY_IDS = ("query_id", "qid", "q_id", "query-id", "queryid", "question_id", "topic_id", "_id", "id")
RUN_LISTS = (
    "results",
    "hits",
    "documents",
    "docs",
    "retrieved",
    "retrieved_ids",
    "retrieved_doc_ids",
    "retrieved_context_ids",
    "ranking",
    "candidates",
)
SCORE_LISTS = ("scores", "retrieve_scores", "retrieved_scores", "similarities")
QRELS_LISTS = (
    "judgments",
    "judgements",
    "relevant",
    "relevant_docs",
    "relevant_ids",
    "relevant_doc_ids",
    "qrels",
    "retrieval_gt",
    "reference_context_ids",
    "expected_ids",
    "positives",
    "gold",
)


def listed_name(names: Sequence[str], known: Sequence[str]) -> str | None:
    """The name among `names` that is known to hold a list, whatever its case."""
    by_lower = {name.lower(): name for name in names}
    return next((by_lower[name] for name in known if name in by_lower), None)


def score_name(names: Sequence[str], named: str | None) -> str | None:
    """The name that holds the lists of scores: the one named, or one of the usual names."""
    return listed_name(names, SCORE_LISTS) if named is None else find_name(names, "score", named)


def query_ids(
    columns: Mapping[str, Sequence[Any]], named: str | None, rows: int
) -> tuple[list[str], tuple[str, ...]]:
    """The id of each row: the column named, one of the usual names, or the number of the row, from 0; and a note."""
    by_lower = {name.lower(): name for name in columns}
    found = next((by_lower[name] for name in QUERY_IDS if name in by_lower), None)
    if named is not None:
        found = find_name(list(columns), "query_id", named)
    if found is None:
        note = "no column holds a query id: rows were numbered from 0, in the order of the file (query_id=... names one)"
        return [str(row) for row in range(rows)], (note,)
    return unique_ids(columns[found], found)


def unique_ids(values: Sequence[Any], column: str) -> tuple[list[str], tuple[str, ...]]:
    """Query ids as text, each once; and a note where they were numbers."""
    missing = [f"row {row}" for row, value in enumerate(values, start=1) if value is None]
    if missing:
        raise InputError(
            problem_report(
                f"column {column!r} (query_id) is empty in {counted(len(missing), 'row')}:",
                missing,
                "Fill them in.",
            )
        )
    ids = text_ids(values, "query id", f"column {column!r}")
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        twice = [
            f"row {row}: {query!r}, as row {first[query]}"
            for row, query in enumerate(ids, 1)
            if first.setdefault(query, row) != row
        ]
        raise InputError(
            problem_report(
                f"{counted(len(twice), 'row repeats', 'rows repeat')} the query id of an earlier row:",
                twice,
                "Keep one row a query.",
            )
        )
    numbers = any(not isinstance(value, str) for value in values)
    return ids, (("query_id is a number there and was read as text",) if numbers else ())


def run_of_lists(
    queries: Sequence[Any], documents: Sequence[Any], scores: Sequence[Any] | None, name: str
) -> Run:
    """A run of one list a query, best first, with or without a list of scores beside it.

    A list holds ids, [id, score] pairs or records with a document and a score; an object of
    document to score has no order of its own.
    """
    from steelyard.run import Run

    ids, notes = unique_ids(queries, "query_id")
    listed: dict[str, Any] = {}
    problems: list[str] = []
    for row, (query, docs) in enumerate(zip(ids, documents, strict=True)):
        found = [] if docs is None else list_of(docs)
        if isinstance(found, list) and found and isinstance(found[0], Mapping):
            found = _pairs(found, query)
        if scores is not None and (values := list_of(scores[row])) is not None:
            if len(values) == len(found):
                found = list(zip(found, values, strict=True))
            else:
                problems.append(
                    f"row {row + 1}: query {query!r} has {counted(len(found), 'document')} and "
                    f"{counted(len(values), 'score')}"
                )
        listed[query] = found
    if problems:
        raise InputError(
            problem_report(
                f"{counted(len(problems), 'row holds', 'rows hold')} more or fewer scores than documents:",
                problems,
                "Expected one score each.",
            )
        )
    run = Run(listed, name=name)
    run.notes += notes
    return run


def qrels_of_lists(queries: Sequence[Any], judged: Sequence[Any]) -> Qrels:
    """Judgments of one value a query: relevant ids, targets (lists of ids, or grades by id), grades, or records."""
    ids, notes = unique_ids(queries, "query_id")
    rows: list[tuple[str, str, float, str | None]] = []
    plain: dict[str, Any] = {}
    for query, value in zip(ids, judged, strict=True):
        found = [] if value is None else list_of(value)
        if isinstance(found, list) and found and isinstance(found[0], Mapping) and is_record(found[0]):
            rows += _judgment_rows(found, query)
        else:
            plain[query] = found
    if not rows:
        qrels = Qrels(plain)
    elif any(plain.values()):
        raise InputError(
            "some queries are judged by records and some by lists; expected one form in one file."
        )
    else:
        qrels = Qrels.from_rows(rows, ids)
    qrels.notes += notes
    return qrels


def list_of(value: Any) -> Any:
    """A list (or object) as it is, or the one its text spells: JSON, or a Python list of a CSV cell.

    >>> list_of('["a", "b"]'), list_of("['a', 'b']"), list_of("a")
    (['a', 'b'], ['a', 'b'], ['a'])
    """
    if value is None or isinstance(value, (list, Mapping)):
        return value
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, str):
        return [value]
    text = value.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return [value]
    return _spelled_list(text)


def _spelled_list(text: str) -> list[Any]:
    import ast
    import json
    import re

    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            raise InputError(
                f"a cell does not spell a list: {_short(text)}; expected one as in {_EXAMPLE}."
            ) from None
        # Python joins neighbouring texts: the print of an array, ['a' 'b'], would become one id.
        if re.search(r"""['"]\s+['"]""", text):
            raise InputError(
                f"a cell is the print of an array, without commas: {_short(text)}. Expected a list, as in {_EXAMPLE}; "
                "write the file as Parquet or JSON lines."
            ) from None
    if not isinstance(found, list):
        raise InputError(f"a cell does not spell a list: {_short(text)}; expected one as in {_EXAMPLE}.")
    return found


_EXAMPLE = """["d1", "d2"]"""


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _pairs(records: Iterable[Any], query: str) -> list[Any]:
    """Ids, or (id, score) pairs where the records hold scores."""
    ids: list[Any] = []
    scores: list[Any] = []
    for record in records:
        names = _record_names(record, query)
        ids.append(record[_doc_name(names)])
        score = find_name(names, "score", required=False)
        scores.append(record[score] if score else None)
    if all(score is None for score in scores):
        return ids
    if any(score is None for score in scores):
        raise InputError(f"query {query!r}: some of its documents have a score and some have none.")
    return list(zip(ids, scores, strict=True))


def _judgment_rows(records: Iterable[Any], query: str) -> list[tuple[str, str, float, str | None]]:
    rows: list[tuple[str, str, float, str | None]] = []
    for record in records:
        names = _record_names(record, query)
        grade = find_name(names, "grade", required=False)
        target = find_name(names, "target", required=False)
        (doc,) = text_ids([record[_doc_name(names)]], "document id", f"the judgments of query {query!r}")
        value = 1.0 if grade is None else record[grade]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"query {query!r}, document {doc!r}: grade {value!r} is not a number.")
        rows.append((query, doc, float(value), None if target is None else record[target]))
    return rows


def _doc_name(names: Sequence[str]) -> str:
    """The field that names the document: one of the usual names, or a bare id."""
    found = find_name(names, "doc_id", required="id" not in names)
    return found if found is not None else "id"


def _record_names(record: Any, query: str) -> list[str]:
    if not isinstance(record, Mapping):
        raise InputError(
            f"query {query!r}: {kind_of(record)} among its documents; expected records like the first."
        )
    return list(record)
