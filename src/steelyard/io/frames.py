"""Frames of polars, pandas and pyarrow as runs and qrels, with every value checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.alignment.hits import JudgedDocs
from steelyard.errors import SHOWN_PROBLEMS, InputError
from steelyard.frames import as_polars
from steelyard.io.columns import ITERATION, QRELS_ROLES, RUN_NAMES, SURE_RUN_NAMES, find_name, first_named, rank_column
from steelyard.lazy import polars as pl
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import SHOWN_NAMES, counted, listed

NO_DOCUMENT = "a score or rank but no document"
NO_SCORE = "a score that is not a finite number"
NO_RANK = "a rank that is not a number"


def qrels_of_frame(frame: pl.DataFrame, columns: Mapping[str, str]) -> Qrels:
    """The qrels of a frame with one row per judgment; its columns are found by name, or named."""
    table, notes = qrels_columns(frame, columns)
    query_ids = table["query_id"].unique(maintain_order=True).to_list()
    judged = table.drop_nulls("doc_id")
    flat = judged["target"].null_count() == judged.height and bool(judged["grade"].is_finite().all())
    once = flat and not judged.select("query_id", "doc_id").is_duplicated().any()
    qrels = flat_qrels(judged, query_ids) if once else Qrels.from_rows(judged.rows(), query_ids)
    if find_name(frame.columns, "grade", columns.get("grade"), required=False) is None:
        notes.append(note("no-grades"))
    if not qrels.has_targets and judged.height > len(qrels):
        notes.append(note("judgments-merged", count=judged.height - len(qrels)))
    qrels.notes = tuple(notes)
    return qrels


def flat_qrels(judged: pl.DataFrame, query_ids: list[str]) -> Qrels:
    """The qrels of a table without targets in which every document is judged once for a query."""
    schema = {"query_id": pl.String, "place": pl.Int64}
    place = pl.DataFrame({"query_id": query_ids, "place": range(len(query_ids))}, schema=schema)
    judged = judged.join(place, on="query_id", how="left", maintain_order="left").sort("place", maintain_order=True)
    sizes = np.bincount(judged["place"].to_numpy(), minlength=len(query_ids))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    documents = JudgedDocs(query_ids, starts, judged["doc_id"].to_list())
    return Qrels.from_columns(documents, judged["grade"].cast(pl.Float64).to_numpy().copy())


def qrels_columns(frame: pl.DataFrame, columns: Mapping[str, str]) -> tuple[pl.DataFrame, list[Note]]:
    """query_id, doc_id, grade and target of a frame, checked, and notes on conversions."""
    names = _find_columns(frame, QRELS_ROLES, columns)
    notes: list[Note] = []
    grade, target = names["grade"], names["target"]
    table = pl.DataFrame(
        {
            "query_id": _ids(frame, names["query_id"], "query_id", notes, required=True),
            "doc_id": _ids(frame, names["doc_id"], "doc_id", notes),
            "grade": _numbers(frame, grade, "grade") if grade else pl.Series([1.0]).new_from_index(0, frame.height),
            "target": _ids(frame, target, "target", []) if target else _nulls(frame, pl.String),
        }
    )
    if not target and ITERATION in frame.columns:
        table = _with_subtopics(table, frame[ITERATION].cast(pl.String), notes)
    ungraded = table.filter(pl.col("doc_id").is_not_null() & pl.col("grade").is_null())
    if ungraded.height:
        pairs = ungraded.select("query_id", "doc_id").head(SHOWN_PROBLEMS).iter_rows()
        raise ungraded_error(ungraded.height, [f"query {query!r}, document {doc!r}" for query, doc in pairs])
    return table, notes


def _with_subtopics(table: pl.DataFrame, iteration: pl.Series, notes: list[Note]) -> pl.DataFrame:
    """The table with iterations as targets, by the rule for column 2 of a TREC file: see `steelyard.io.trec`."""
    values = iteration.drop_nulls().unique().sort().to_list()
    if len(values) < 2:
        return table
    rows = table.with_columns(iteration=iteration).drop_nulls("doc_id")
    if rows.group_by("query_id", "doc_id").agg(pl.col("iteration").n_unique())["iteration"].max() == 1:
        notes.append(note("iterations-ignored", count=len(values), values=values[:3]))
        return table
    notes.append(note("read-as-subtopics"))
    none = (iteration == "0") & (table["grade"] <= 0)
    return table.with_columns(target=pl.select(pl.when(none).then(None).otherwise(iteration)).to_series())


def run_of_frame(frame: pl.DataFrame, columns: Mapping[str, str], name: str | None = None) -> Run:
    """The run of a frame with one row per document, ordered by its scores.

    A run without scores is ordered by its ranks, or as the rows are; a run with scores is ordered by its ranks if
    their column is named, or called own_rank. A row without a document is an empty list.
    """
    names = _find_columns(frame, ("query_id", "doc_id", "score", "rank", "own_rank"), columns)
    _refuse_several_runs(frame, names["query_id"])
    notes: list[Note] = []
    data = {
        "query_id": _ids(frame, names["query_id"], "query_id", notes, required=True),
        "doc_id": _ids(frame, names["doc_id"], "doc_id", notes),
        "score": _numbers(frame, names["score"], "score") if names["score"] else _nulls(frame, pl.Float64),
    }
    scored = data["score"].null_count() < frame.height
    ranks = rank_column(names, scored, named=columns.get("rank") is not None)
    data["given"] = _numbers(frame, ranks, "rank") if ranks else _nulls(frame, pl.Float64)
    tokens = find_name(frame.columns, "tokens", required=False)
    if tokens:
        data["tokens"] = _numbers(frame, tokens, "tokens").cast(pl.Int64)
    table = pl.DataFrame(data)
    _check_run(table, scored, ranked=ranks is not None)
    if ranks and not _is_ranked(table):
        first_row = pl.col("_row").min().over("query_id")
        table = table.with_row_index("_row").sort(first_row, "given", maintain_order=True).drop("_row")
    elif not ranks and names["rank"]:
        notes += _rank_notes(table, frame[names["rank"]])
    listed, empty = table.drop("given"), list[str]()
    if table["doc_id"].null_count():
        listed = listed.drop_nulls("doc_id")
        answered = set(listed["query_id"].unique().to_list())
        without = table.filter(pl.col("doc_id").is_null())["query_id"].unique(maintain_order=True).to_list()
        empty = [query for query in without if query not in answered]
    return Run.from_table(listed, bool(ranks) or not scored, name=name, empty=tuple(empty), notes=tuple(notes))


def runs_of_frame(source: Any) -> dict[str, pl.DataFrame]:
    """The rows of each run of a long frame, which has a column that names the run.

    >>> long = pl.DataFrame({"run": ["a", "b"], "query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "score": [2.0, 1.0]})
    >>> list(runs_of_frame(long))
    ['a', 'b']
    """
    frame = as_polars(source)
    column = first_named(frame.columns, RUN_NAMES)
    if column is None:
        problem = f"one frame, and none of its columns ({', '.join(frame.columns)}) names the run"
        raise InputError(f"{problem}; call it run, or pass a mapping of name to frame.")
    names = frame[column].cast(pl.String)
    if names.null_count():
        raise empty_ids_error(column, "run", names.null_count(), [])
    return {name: frame.filter(names == name).drop(column) for name in names.unique(maintain_order=True).to_list()}


def _refuse_several_runs(frame: pl.DataFrame, query: str | None) -> None:
    """An error if a query has rows of more than one run."""
    column = first_named(frame.columns, SURE_RUN_NAMES)
    if column is None or query is None or is_constant(frame[column]):
        return
    if frame.group_by(query).agg(pl.col(column).n_unique())[column].max() == 1:
        return
    names = frame[column].cast(pl.String).drop_nulls().unique(maintain_order=True).to_list()
    problem = f"the column {column!r} names {counted(len(names), 'run')} ({listed(names, SHOWN_NAMES)}); expected one"
    raise InputError(f"{problem}. Select the rows of one; compare(qrels, frame) compares the runs of a frame.")


def is_constant(series: pl.Series) -> bool:
    """Whether a column has one value, or none; a null is a value.

    >>> is_constant(pl.Series(["a", "a"])), is_constant(pl.Series(["a", None]))
    (True, False)
    """
    return not len(series) or bool(series.eq_missing(series.head(1)).all())


def _find_columns(frame: pl.DataFrame, roles: Sequence[str], columns: Mapping[str, str]) -> dict[str, str | None]:
    return {role: find_name(frame.columns, role, columns.get(role), role in ("query_id", "doc_id")) for role in roles}


def _check_run(table: pl.DataFrame, scored: bool, ranked: bool) -> None:
    """Refuse a score or rank without a document, and a document without a finite score or rank."""
    required = [name for name, given in (("score", scored), ("given", ranked)) if given]
    if not table["doc_id"].null_count() and all(
        not table[name].null_count() and table[name].is_finite().all() for name in required
    ):
        return
    named = pl.col("doc_id").is_not_null()
    _check_rows(table, named | (pl.col("score").is_null() & pl.col("given").is_null()), NO_DOCUMENT)
    for column in required:
        finite = pl.col(column).is_not_null() & pl.col(column).is_finite()
        _check_rows(table, ~named | finite, NO_SCORE if column == "score" else NO_RANK)


def _rank_notes(table: pl.DataFrame, ranks: pl.Series) -> list[Note]:
    """The note on ranks that give another order than the scores, which are used."""
    if not (ranks.dtype.is_numeric() or ranks.dtype == pl.String):
        return []
    table = table.with_columns(given=ranks.cast(pl.Float64, strict=False)).drop_nulls(["doc_id", "given"])
    if not _is_ranked(table):
        table = table.sort("query_id", "given", maintain_order=True)
    query, score = table["query_id"], table["score"]
    rising = query.filter((score > score.shift(1)) & query.eq_missing(query.shift(1)))
    return [note("ranks-ignored", column=ranks.name, queries=rising.n_unique())] if len(rising) else []


def _is_ranked(table: pl.DataFrame) -> bool:
    """Whether each query's rows are together and in the order of their ranks."""
    query, rank = table["query_id"], table["given"]
    first = query.ne_missing(query.shift(1))
    falls = (rank < rank.shift(1)) & ~first
    return not falls.any() and first.sum() == query.n_unique()


def _nulls(frame: pl.DataFrame, dtype: Any) -> pl.Series:
    return pl.repeat(None, frame.height, dtype=dtype, eager=True)


def _check_rows(table: pl.DataFrame, good: pl.Expr, problem: str) -> None:
    if table.select(good.all()).item():
        return
    bad = table.with_row_index("row", offset=1).filter(~good)
    shown = bad.select("row", "query_id", "doc_id", "score").head(SHOWN_PROBLEMS).iter_rows()
    rows = [f"row {row}: query {q!r}, document {d!r}, score {s}" for row, q, d, s in shown]
    raise bad_rows_error(problem, bad.height, rows)


def _ids(frame: pl.DataFrame, column: str | None, role: str, notes: list[Note], required: bool = False) -> pl.Series:
    assert column is not None
    series = frame[column]
    if series.dtype.is_integer():
        notes.append(note("ids-are-numbers", role=role))
    elif series.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        raise not_ids_error(column, role, str(series.dtype))
    if required and series.null_count():
        rows = [f"row {row + 1}" for row in series.is_null().arg_true().head(SHOWN_PROBLEMS).to_list()]
        raise empty_ids_error(column, role, series.null_count(), rows)
    ids: pl.Series = series.cast(pl.String).alias(role)
    return ids


def _numbers(frame: pl.DataFrame, column: str, role: str) -> pl.Series:
    series = frame[column]
    if series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
        numbers: pl.Series = series.cast(pl.Float64).alias(role)
        return numbers
    is_text = series.dtype in (pl.String, pl.Categorical, pl.Enum)
    cast = series.cast(pl.String).cast(pl.Float64, strict=False) if is_text else _nulls(frame, pl.Float64)
    bad = (cast.is_null() & series.is_not_null()).arg_true().to_list()
    if bad:
        rows = [f"row {row + 1}: {series[row]!r}" for row in bad[:SHOWN_PROBLEMS]]
        raise not_numbers_error(column, role, len(bad), rows)
    return cast.rename(role)


def bad_rows_error(problem: str, total: int, rows: Sequence[str]) -> InputError:
    """Rows of a run that cannot be used: the problem, their number, and the first of them."""
    count = counted(total, "row of the run has", "rows of the run have")
    advice = "Fix these rows, or remove them from the run."
    return InputError.of_problems(f"{count} {problem}:", rows, advice, total=total)


def ungraded_error(total: int, rows: Sequence[str]) -> InputError:
    """Judgments without a grade."""
    headline = f"{counted(total, 'judgment has', 'judgments have')} no grade:"
    return InputError.of_problems(headline, rows, "Grade them, or remove them.", total=total)


def empty_ids_error(column: str, role: str, total: int, rows: Sequence[str]) -> InputError:
    """Rows without an id."""
    headline = f"column {column!r} ({role}) is empty in {counted(total, 'row')}:"
    return InputError.of_problems(headline, rows, "Fill them in, or remove the rows.", total=total)


def not_numbers_error(column: str, role: str, total: int, rows: Sequence[str]) -> InputError:
    """Text where a number is expected."""
    headline = f"column {column!r} ({role}) does not hold a number in {counted(total, 'row')}:"
    return InputError.of_problems(headline, rows, f"Fix them, or name another column ({role}=...).", total=total)


def not_ids_error(column: str, role: str, kind: str) -> InputError:
    """A column of ids that are neither text nor whole numbers."""
    expected = "expected text or whole numbers. Convert the column, or name another."
    return InputError(f"column {column!r} ({role}) holds {kind}; {expected}")
