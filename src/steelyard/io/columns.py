"""Names of columns: which role a column of a table has, by the names the field uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from steelyard.errors import FixedColumnsError, InputError, did_you_mean
from steelyard.frames import check_single
from steelyard.wording import in_words

TableKind: TypeAlias = Literal["run", "qrels", "either"]

NAMES: dict[str, tuple[str, ...]] = {
    "query_id": (*("query_id", "qid", "q_id", "query-id", "queryid"), *("question_id", "topic_id", "topic", "query")),
    "doc_id": (
        *("doc_id", "docid", "docno", "corpus-id", "corpus_id", "document_id", "pid", "passage_id"),
        *("chunk_id", "doc-id", "did", "doc"),
    ),
    "grade": ("grade", "relevance", "rel", "label", "judgment", "judgement", "rating", "score"),
    "target": ("target", "subtopic", "subtopic_id", "target_id"),
    "score": ("score", "sim", "similarity", "retrieval_score"),
    "rank": ("rank", "position"),
    "own_rank": ("own_rank",),
    "tokens": ("tokens", "n_tokens", "num_tokens"),
    "seconds": ("seconds",),
}
"""The names by which the column of each role is found."""
RUN_ROLES = ("query_id", "doc_id", "score", "rank", "seconds")
QRELS_ROLES = ("query_id", "doc_id", "grade", "target")  # The roles for which a user can name a column.
RUN_NAMES = (
    *("run", "run_id", "runid", "run_name", "run_tag", "tag", "system", "system_id", "retriever"),
    *("method", "model", "name"),
)
"""The names of a column that names the run of each row. The last three may also be something else."""
SURE_RUN_NAMES = RUN_NAMES[:-3]

ITERATION = "iteration"  # The column of ir_measures and ir_datasets that holds the second column of a TREC file.
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
PARTS = {"targets": 1.0, "relevant": 1.0, "not_relevant": 0.0, "distractors": -1.0}
"""The names under which one query's documents may be listed, and the grade of each."""
_GRADE_ONLY = frozenset(NAMES["grade"]) - frozenset(NAMES["score"])


def find_name(columns: Sequence[str], role: str, named: str | None = None, required: bool = True) -> str | None:
    """The column for a role: the one named, or the first of the role's usual names that exists.

    >>> find_name(["topic", "docno", "rel"], "doc_id")
    'docno'
    """
    column = first_named(columns, NAMES[role]) if named is None else str(named)
    check_single(columns, column)
    if column in columns or (column is None and not required):
        return column
    if named is not None:
        near = did_you_mean(str(named), columns)
        raise InputError(f"no column {str(named)!r} for {role}; the columns are {', '.join(columns)}.{near}")
    problem = f"no column holds the {role}; the columns are {', '.join(columns)}"
    how = in_words(f'{role}="..." in sy.Run, sy.Qrels or steelyard.spark', f"--set columns={role}=NAME")
    raise InputError(f"{problem}. Name one of them ({how}), or call it {NAMES[role][0]}.")


def known_roles(columns: Sequence[str]) -> set[str]:
    """The roles that the names of a header can fill.

    >>> sorted(known_roles(["qid", "docno", "rel"]))
    ['doc_id', 'grade', 'query_id']
    """
    lower = {column.lower().strip() for column in columns}
    return {role for role, names in NAMES.items() if lower & set(names)}


def is_record(names: Iterable[object]) -> bool:
    """Whether an object is a record of one document, by its names, rather than grades by document id.

    >>> is_record(["doc_id", "grade"]), is_record(["d1", "d2"])
    (True, False)
    """
    document_names = {"id", *NAMES["doc_id"]}
    return any(str(name).lower() in document_names for name in names)


def kind_of_table(columns: Sequence[str]) -> TableKind | None:
    """What a table holds, by the names of its columns; None where they name no query or no document.

    >>> kind_of_table(["qid", "docid", "rank", "score"]), kind_of_table(["query-id", "corpus-id", "score"])
    ('run', 'either')
    """
    roles = known_roles(columns)
    if not {"query_id", "doc_id"} <= roles:
        return None
    lower = {column.lower().strip() for column in columns}
    if lower & (_GRADE_ONLY | set(NAMES["target"])):
        return "qrels"
    return "run" if roles & {"rank", "own_rank"} or (lower & set(NAMES["score"]) - {"score"}) else "either"


def first_named(names: Iterable[str], usual: Sequence[str]) -> str | None:
    """The first of the usual names that is among `names`, in any case."""
    by_lower = {str(name).lower().strip(): name for name in names}
    return next((by_lower[name] for name in usual if name in by_lower), None)


def kind_of_records(names: Sequence[str]) -> TableKind | None:
    """What records hold, by their names; None where these name no query or no document."""
    run, qrels = first_named(names, RUN_LISTS), first_named(names, (*QRELS_LISTS, *PARTS))
    if run or qrels:
        return "either" if run and qrels else "run" if run else "qrels"
    return kind_of_table(names)


def check_roles(columns: Mapping[str, str], known: Sequence[str], what: str) -> None:
    """Refuse a column named for a role that `what` does not have."""
    for role in columns:
        if role in known:
            continue
        problem = f"{what} has no role {role!r} to name a column for"
        if not known:
            raise FixedColumnsError(f"{problem}; its columns are fixed.")
        other = next((other for other in known if role.lower() in NAMES.get(other, ())), None)
        near = did_you_mean(role, known) if other is None else f" Did you mean {other}?"
        raise InputError(f"{problem}; expected {', '.join(known)}.{near}")


def rank_column(names: Mapping[str, str | None], scored: bool, named: bool) -> str | None:
    """The column of ranks that orders a run: the one named, own_rank, or any where there are no scores."""
    if named:
        return names.get("rank")
    return names.get("own_rank") or (None if scored else names.get("rank"))
