"""What a column is for, told by the names the field uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from steelyard.errors import FixedColumnsError, InputError, did_you_mean

NAMES: dict[str, tuple[str, ...]] = {
    "query_id": (
        "query_id",
        "qid",
        "q_id",
        "query-id",
        "queryid",
        "topic",
        "topic_id",
        "question_id",
        "query",
    ),
    "doc_id": (
        "doc_id",
        "docid",
        "docno",
        "corpus-id",
        "corpus_id",
        "document_id",
        "pid",
        "passage_id",
        "chunk_id",
        "doc-id",
        "did",
        "doc",
    ),
    "grade": ("grade", "relevance", "rel", "label", "judgment", "judgement", "rating", "score"),
    "target": ("target", "subtopic", "subtopic_id", "target_id"),
    "score": ("score", "sim", "similarity", "retrieval_score"),
    "rank": ("rank", "position"),
    "own_rank": ("own_rank",),
    "tokens": ("tokens", "n_tokens", "num_tokens"),
    "seconds": ("seconds",),
}
BEIR_HEADER = ("query-id", "corpus-id", "score")
GRADE_ONLY = frozenset(NAMES["grade"]) - frozenset(NAMES["score"])


def find_name(
    columns: Sequence[str], role: str, named: str | None = None, required: bool = True
) -> str | None:
    """The column for a role: the one named, or the first of the role's usual names that is there.

    >>> find_name(["topic", "docno", "rel"], "doc_id")
    'docno'
    """
    if named is not None:
        named = str(named)
        if named in columns:
            return named
        raise InputError(
            f"there is no column {named!r} for {role}; the columns are {', '.join(columns)}.{did_you_mean(named, columns)}"
        )
    by_lower = {column.lower().strip(): column for column in columns}
    for name in NAMES[role]:
        if name in by_lower:
            return by_lower[name]
    if required:
        raise InputError(
            f"no column holds the {role}; the columns are {', '.join(columns)}. "
            f"Name one of them ({role}=...), or call it {NAMES[role][0]}."
        )
    return None


def known_roles(columns: Sequence[str]) -> set[str]:
    """The roles a header's names could fill: how a table of judgments is told from a run.

    >>> sorted(known_roles(["qid", "docno", "rel"]))
    ['doc_id', 'grade', 'query_id']
    """
    lower = {column.lower().strip() for column in columns}
    return {role for role, names in NAMES.items() if lower & set(names)}


def is_record(names: Iterable[object]) -> bool:
    """Whether the names of an object are those of a record on one document, not ids of documents it grades.

    >>> is_record(["doc_id", "grade"]), is_record(["d1", "d2"])
    (True, False)
    """
    known = {"id", *NAMES["doc_id"]}
    return any(str(name).lower() in known for name in names)


def kind_of_table(columns: Sequence[str]) -> str:
    """'run', 'qrels' or 'either', by the names of the columns; '' where they name neither query nor document.

    >>> kind_of_table(["qid", "docid", "rank", "score"]), kind_of_table(["query-id", "corpus-id", "score"])
    ('run', 'either')
    """
    roles = known_roles(columns)
    if not {"query_id", "doc_id"} <= roles:
        return ""
    lower = {column.lower().strip() for column in columns}
    if lower & (GRADE_ONLY | set(NAMES["target"])):
        return "qrels"
    return "run" if roles & {"rank", "own_rank"} or (lower & set(NAMES["score"]) - {"score"}) else "either"


def check_roles(columns: Mapping[str, str], known: Sequence[str], what: str) -> None:
    """Refuse a column given for a role that `what` does not have."""
    for role in columns:
        if role in known:
            continue
        told = f"{what} has no {role!r} to name a column for"
        if not known:
            raise FixedColumnsError(f"{told}; its columns are fixed.")
        meant = next((other for other in known if role.lower() in NAMES.get(other, ())), None)
        near = did_you_mean(role, known) if meant is None else f" Did you mean {meant}?"
        raise InputError(f"{told}; expected {', '.join(known)}.{near}")
