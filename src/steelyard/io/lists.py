"""One row per query with its documents in a list: how RAG tools keep retrieved and relevant documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.errors import InputError, problem_report
from steelyard.ids import kind_of, text_ids
from steelyard.io.columns import find_name, is_record
from steelyard.io.text import shortened
from steelyard.notes import Note, note
from steelyard.qrels import Qrels, Row
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.run import Run


QUERY_IDS = ("query_id", "qid", "q_id", "query-id", "queryid", "question_id", "topic_id", "_id", "id")
RUN_LISTS = (
    *("results", "hits", "documents", "docs", "retrieved", "retrieved_ids", "retrieved_doc_ids"),
    *("retrieved_context_ids", "ranking", "candidates"),
)
SCORE_LISTS = ("scores", "retrieve_scores", "retrieved_scores", "similarities")
QRELS_LISTS = (
    *("judgments", "judgements", "relevant", "relevant_docs", "relevant_ids", "relevant_doc_ids", "qrels"),
    *("retrieval_gt", "reference_context_ids", "expected_ids", "positives", "gold"),
)
"""The names by which columns of lists are found."""

_EXAMPLE = """["d1", "d2"]"""


def listed_name(names: Sequence[str], known: Sequence[str]) -> str | None:
    """The first of the known names of lists that is among `names`, in any case."""
    by_lower = {name.lower(): name for name in names}
    return next((by_lower[name] for name in known if name in by_lower), None)


def score_name(names: Sequence[str], named: str | None) -> str | None:
    """The name of the lists of scores: the one named, or one of the usual names."""
    return listed_name(names, SCORE_LISTS) if named is None else find_name(names, "score", named)


def query_ids(
    columns: Mapping[str, Sequence[Any]], named: str | None, rows: int
) -> tuple[list[str], tuple[Note, ...]]:
    """The query id of each row, from the column named, a column with a usual name, or the row number; and notes."""
    by_lower = {name.lower(): name for name in columns}
    found = next((by_lower[name] for name in QUERY_IDS if name in by_lower), None)
    if named is not None:
        found = find_name(list(columns), "query_id", named)
    if found is None:
        return [str(row) for row in range(rows)], (note("queries-numbered"),)
    return unique_ids(columns[found], found)


def record_query_ids(
    records: Sequence[Mapping[str, Any]], named: str | None = None
) -> tuple[list[str], tuple[Note, ...]]:
    """The query id of each record, as for `query_ids`."""
    names = dict.fromkeys(name for record in records for name in record)
    return query_ids({name: [record.get(name) for record in records] for name in names}, named, len(records))


def unique_ids(values: Sequence[Any], column: str) -> tuple[list[str], tuple[Note, ...]]:
    """Query ids as text, all different; and a note if they were numbers."""
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
                "Keep one row per query.",
            )
        )
    numbers = any(not isinstance(value, str) for value in values)
    return ids, ((note("ids-are-numbers", role="query_id"),) if numbers else ())


def run_of_lists(
    queries: Sequence[Any], documents: Sequence[Any], scores: Sequence[Any] | None, name: str
) -> Run:
    """A run of one list per query, best first, with or without a list of scores for each.

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
                f"{counted(len(problems), 'row has', 'rows have')} more or fewer scores than documents:",
                problems,
                "Expected one score per document.",
            )
        )
    run = Run(listed, name=name)
    run.notes += notes
    return run


def qrels_of_lists(queries: Sequence[Any], judged: Sequence[Any]) -> Qrels:
    """Qrels of one list per query: ids, lists of ids (targets), grades, or records."""
    ids, notes = unique_ids(queries, "query_id")
    rows: list[Row] = []
    plain: dict[str, Any] = {}
    for query, value in zip(ids, judged, strict=True):
        found = [] if value is None else list_of(value)
        if isinstance(found, list) and found and isinstance(found[0], Mapping) and is_record(found[0]):
            rows += _rows(found, query)
        else:
            plain[query] = found
    if not rows:
        qrels = Qrels(plain)
    elif any(plain.values()):
        raise InputError(
            "some queries have records of judgments and some have lists; expected one form in one file."
        )
    else:
        qrels = Qrels.from_rows(rows, ids)
    qrels.notes += notes
    return qrels


def list_of(value: Any) -> Any:
    """A list (or object) unchanged, or the one that a text spells: JSON, or a Python list in a CSV cell.

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
    return _parsed_list(text)


def _parsed_list(text: str) -> list[Any]:
    import ast
    import json
    import re

    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        try:
            found = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found = None
        # Python joins adjacent strings: ['a' 'b'], as numpy prints an array, would become one id.
        if found is not None and re.search(r"""['"]\s+['"]""", text):
            raise InputError(
                f"a cell holds a printed array, without commas: {shortened(text)!r}. Expected a list, as in "
                f"{_EXAMPLE}; write the file as Parquet or JSON lines."
            ) from None
    if not isinstance(found, list):
        raise InputError(f"a cell does not hold a list: {shortened(text)!r}; expected one as in {_EXAMPLE}.")
    return found


def _pairs(records: Iterable[Any], query: str) -> list[Any]:
    """Ids, or (id, score) pairs where the records have scores."""
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


def _rows(records: Iterable[Any], query: str) -> list[Row]:
    """The judgments of one query's records."""
    rows: list[Row] = []
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
    """The field that names the document: one of the usual names, or id."""
    found = find_name(names, "doc_id", required="id" not in names)
    return found if found is not None else "id"


def _record_names(record: Any, query: str) -> list[str]:
    if not isinstance(record, Mapping):
        raise InputError(
            f"query {query!r}: {kind_of(record)} among its documents; expected records like the first."
        )
    return list(record)
