"""Frames of any library and their columns, found by the names the field uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from steelyard.errors import SHOWN_PROBLEMS, FixedColumnsError, InputError, did_you_mean, problem_report
from steelyard.wording import counted

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


NO_DOCUMENT = "a score or rank and no document"
NO_SCORE = "a score that is not a finite number"
NO_RANK = "a rank that is not a number"


def as_polars(source: Any) -> pl.DataFrame:
    """A polars frame of a polars, pandas or pyarrow one, or of records."""
    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, list) and source and all(isinstance(record, Mapping) for record in source):
        return pl.DataFrame(list(map(dict, source)), infer_schema_length=None, strict=False)
    kind = type(source).__module__.split(".")[0]
    if kind == "pandas":
        return pl.DataFrame(
            {str(name): _pandas_column(source[name]) for name in source.columns}, strict=False
        )
    if kind == "pyarrow":
        table = pl.from_arrow(source)
        assert isinstance(table, pl.DataFrame)
        return table
    raise InputError(
        f"a {type(source).__name__} cannot be read; expected a mapping, a path, records, or a polars, pandas or pyarrow frame."
    )


def _pandas_column(series: Any) -> Any:
    """A pandas column: numbers and Arrow's text as they are, anything else as a list with None for what is missing."""
    if series.dtype.kind in "iufb":
        return series.to_numpy()
    if getattr(series.dtype, "storage", None) == "pyarrow":
        return pl.Series(series)
    values, missing = series.tolist(), series.isna()
    if not missing.any():
        return values
    return [None if gone else value for value, gone in zip(values, missing.tolist(), strict=True)]


def judgment_frame(source: Any, columns: Mapping[str, str | None]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """query_id, doc_id, grade, target from any frame, and notes on what had to be converted."""
    frame = as_polars(source)
    found = {
        role: find_name(frame.columns, role, columns.get(role), role in ("query_id", "doc_id"))
        for role in columns
    }
    notes: list[str] = []
    table = pl.DataFrame(
        {
            "query_id": _ids(frame, found["query_id"], "query_id", notes, required=True),
            "doc_id": _ids(frame, found["doc_id"], "doc_id", notes, required=False),
            "grade": _numbers(frame, found["grade"], "grade")
            if found["grade"]
            else pl.Series([1.0]).new_from_index(0, frame.height),
            "target": _ids(frame, found["target"], "target", [], required=False)
            if found["target"]
            else _nothing(frame, pl.String),
        }
    )
    ungraded = table.filter(pl.col("doc_id").is_not_null() & pl.col("grade").is_null())
    if ungraded.height:
        rows = [
            f"query {q!r}, document {d!r}"
            for q, d in ungraded.select("query_id", "doc_id").head(10).iter_rows()
        ]
        raise ungraded_error(ungraded.height, rows)
    return table, tuple(notes)


@dataclass(frozen=True)
class RunTable:
    """A run as a frame gives it: query_id, doc_id, score (and tokens, where given), the rows as they came.

    `ordered` where the order is its own; `empty` names the queries answered with an empty list,
    which a frame holds as a row that names no document.
    """

    table: pl.DataFrame
    ordered: bool
    empty: tuple[str, ...]
    notes: tuple[str, ...]


def run_frame(source: Any, columns: Mapping[str, str | None]) -> RunTable:
    """The run a frame holds, ordered by its scores.

    An order of its own has a run without scores, by its ranks or as it stands; and any run whose
    column of ranks was named, or is called own_rank.
    """
    frame = as_polars(source)
    found = {
        role: find_name(frame.columns, role, columns.get(role), role in ("query_id", "doc_id"))
        for role in (*columns, "own_rank")
    }
    notes: list[str] = []
    data = {
        "query_id": _ids(frame, found["query_id"], "query_id", notes, required=True),
        "doc_id": _ids(frame, found["doc_id"], "doc_id", notes, required=False),
        "score": _numbers(frame, found["score"], "score") if found["score"] else _nothing(frame, pl.Float64),
    }
    scored = data["score"].null_count() < frame.height
    ranks = rank_column(found, scored, named=columns.get("rank") is not None)
    data["given"] = _numbers(frame, ranks, "rank") if ranks else _nothing(frame, pl.Float64)
    tokens = find_name(frame.columns, "tokens", required=False)
    if tokens:
        data["tokens"] = _numbers(frame, tokens, "tokens").cast(pl.Int64)
    table = pl.DataFrame(data)
    named = pl.col("doc_id").is_not_null()
    _every_row(
        table,
        named | (pl.col("score").is_null() & pl.col("given").is_null()),
        NO_DOCUMENT,
    )
    if scored:
        finite = pl.col("score").is_not_null() & pl.col("score").is_finite()
        _every_row(table, ~named | finite, NO_SCORE)
    if ranks:
        whole = pl.col("given").is_not_null() & pl.col("given").is_finite()
        _every_row(table, ~named | whole, NO_RANK)
        if not _in_given_order(table):
            table = _with_first_row(table).sort("_query", "given", maintain_order=True).drop("_query")
    elif found["rank"]:
        notes += _other_order(table, frame[found["rank"]])
    listed, empty = table.drop("given"), list[str]()
    if table["doc_id"].null_count():
        listed = listed.filter(named)
        answered = set(listed["query_id"].unique().to_list())
        nothing = table.filter(~named)["query_id"].unique(maintain_order=True).to_list()
        empty = [query for query in nothing if query not in answered]
    return RunTable(listed, ordered=bool(ranks) or not scored, empty=tuple(empty), notes=tuple(notes))


def rank_column(found: Mapping[str, str | None], scored: bool, named: bool) -> str | None:
    """The column of ranks that orders a run: that named, or own_rank, or any where there are no scores."""
    if named:
        return found.get("rank")
    return found.get("own_rank") or (None if scored else found.get("rank"))


def _other_order(table: pl.DataFrame, ranks: pl.Series) -> list[str]:
    """The note on ranks that tell another order than the scores, which are what counts."""
    table = table.with_columns(given=ranks.cast(pl.Float64, strict=False)).drop_nulls(["doc_id", "given"])
    if not _in_given_order(table):
        table = table.sort("query_id", "given", maintain_order=True)
    query, score = table["query_id"], table["score"]
    rising = (score > score.shift(1)) & query.eq_missing(query.shift(1))
    if not rising.any():
        return []
    queries = query.filter(rising).n_unique()
    return [
        f"the column {ranks.name!r} tells another order than the scores in "
        f"{counted(queries, 'query', 'queries')}: the scores were used (rank={ranks.name} uses the ranks)"
    ]


def _with_first_row(table: pl.DataFrame) -> pl.DataFrame:
    """With the first row of each row's query as `_query`."""
    first = pl.col("_row").min().over("query_id").alias("_query")
    return table.with_row_index("_row").with_columns(first).drop("_row")


def _in_given_order(table: pl.DataFrame) -> bool:
    """Whether each query's rows stand together, and by rank."""
    query, rank = table["query_id"], table["given"]
    begins = query.ne_missing(query.shift(1))
    falls = (rank < rank.shift(1)) & ~begins
    return not falls.any() and begins.sum() == query.n_unique()


def _nothing(frame: pl.DataFrame, dtype: Any) -> pl.Series:
    nothing: pl.Series = pl.Series([None], dtype=dtype).new_from_index(0, frame.height)
    return nothing


def _every_row(table: pl.DataFrame, good: pl.Expr, problem: str) -> None:
    if table.select(good.all()).item():
        return
    bad = table.with_row_index("row", offset=1).filter(~good)
    shown = bad.select("row", "query_id", "doc_id", "score").head(SHOWN_PROBLEMS).iter_rows()
    rows = [f"row {row}: query {q!r}, document {d!r}, score {s}" for row, q, d, s in shown]
    raise bad_rows_error(problem, bad.height, rows)


def _ids(frame: pl.DataFrame, column: str | None, role: str, notes: list[str], required: bool) -> pl.Series:
    assert column is not None
    series = frame[column]
    if series.dtype.is_integer():
        notes.append(number_ids_note(role))
    elif series.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        raise not_ids_error(column, role, str(series.dtype))
    if required and series.null_count():
        rows = [f"row {row + 1}" for row in series.is_null().arg_true().head(10).to_list()]
        raise empty_ids_error(column, role, series.null_count(), rows)
    ids: pl.Series = series.cast(pl.String).alias(role)
    return ids


def _numbers(frame: pl.DataFrame, column: str | None, role: str) -> pl.Series:
    assert column is not None
    series = frame[column]
    if series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
        numbers: pl.Series = series.cast(pl.Float64).alias(role)
        return numbers
    cast: pl.Series = series.cast(pl.String).cast(pl.Float64, strict=False)
    bad = (cast.is_null() & series.is_not_null()).arg_true().to_list()
    if bad:
        rows = [f"row {row + 1}: {series[row]!r}" for row in bad[:10]]
        raise not_numbers_error(column, role, len(bad), rows)
    return cast.rename(role)


def bad_rows_error(problem: str, total: int, rows: Sequence[str]) -> InputError:
    """Rows of a run that cannot be read: what each of them has, how many, and the first of them in words."""
    count = counted(total, "row of the run has", "rows of the run have")
    advice = "Mend those rows, or take them out of the run."
    return InputError(problem_report(f"{count} {problem}:", rows, advice, total=total))


def ungraded_error(total: int, rows: Sequence[str]) -> InputError:
    """Judgments without a grade."""
    headline = f"{counted(total, 'judgment has', 'judgments have')} no grade:"
    return InputError(problem_report(headline, rows, "Grade them, or take them out.", total=total))


def empty_ids_error(column: str, role: str, total: int, rows: Sequence[str]) -> InputError:
    """Rows that name no query."""
    headline = f"column {column!r} ({role}) is empty in {counted(total, 'row')}:"
    return InputError(problem_report(headline, rows, "Fill them in, or take the rows out.", total=total))


def not_numbers_error(column: str, role: str, total: int, rows: Sequence[str]) -> InputError:
    """Text in place of numbers."""
    headline = f"column {column!r} ({role}) does not hold a number in {counted(total, 'row')}:"
    advice = f"Mend them, or name another column ({role}=...)."
    return InputError(problem_report(headline, rows, advice, total=total))


def not_ids_error(column: str, role: str, kind: str) -> InputError:
    """A column of ids that are neither text nor whole numbers."""
    return InputError(
        f"column {column!r} ({role}) holds {kind}; expected text or whole numbers. "
        "Convert the column, or name another."
    )


def number_ids_note(role: str) -> str:
    """The note on ids that are numbers."""
    return f"{role} is a number there and was read as text"
