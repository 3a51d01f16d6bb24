"""Score tables from elsewhere: values per run and query, in CSV or Parquet, wide or long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from steelyard.comparison.board import Board, column_named
from steelyard.errors import InputError, PolicyError, did_you_mean, problem_report
from steelyard.formats.columns import as_polars
from steelyard.wording import counted, worded

_REPEATS = ("seed", "repetition", "repeat", "trial", "fold", "iteration")
_RUNS = ("run", "method", "system", "retriever", "model", "name")
_QUERIES = ("query_id", "qid", "query", "query-id", "q_id", "topic")


@dataclass(frozen=True)
class TableOptions:
    """Where a score table keeps what: the columns of run, query, measure and value (long), repetition."""

    run_column: str | None = None
    query_column: str | None = None
    measure_column: str | None = None
    value_column: str | None = None
    repeat_column: str | None = None
    repeats: Literal["average", "blocks"] = "average"


def board_of_table(
    source: Any, measures: Sequence[str] | None, options: TableOptions, missing: str = "zero"
) -> tuple[Board, list[str]]:
    """A board of a score table, and notes on what was averaged, kept apart or missing."""
    frame = _read(Path(source)) if isinstance(source, (str, Path)) else as_polars(source)
    run = _column(frame, options.run_column, _RUNS, "run", "--run-column")
    query = _column(frame, options.query_column, _QUERIES, "query", "--query-column")
    repeat = _repeat_column(frame, options)
    frame = frame.with_columns(pl.col(run).cast(pl.String), pl.col(query).cast(pl.String))
    frame, keys = _wide(frame, [run, query, *([repeat] if repeat else [])], measures, options)
    notes: list[str] = []
    if repeat:
        frame, note = _repeated(frame, run, query, repeat, keys, options.repeats)
        notes += [note]
    _refuse_twice(frame, run, query)
    return _board(frame, run, query, keys, missing, notes), notes


def column_of_table(source: Any, column: str, options: TableOptions) -> dict[str, object]:
    """Each query's value in another column of a score table; two values for one query are an error."""
    frame = _read(Path(source)) if isinstance(source, (str, Path)) else as_polars(source)
    query = _column(frame, options.query_column, _QUERIES, "query", "--query-column")
    if column not in frame.columns:
        raise InputError(
            f"slicing by {column!r} needs a column of that name in the score table, which has "
            f"{', '.join(frame.columns)}, or the queries' columns (queries=..., --queries FILE)."
            f"{did_you_mean(column, frame.columns)}"
        )
    repeat = _repeat_column(frame, options)
    frame = frame.with_columns(pl.col(query).cast(pl.String))
    if repeat and options.repeats == "blocks":
        frame = frame.with_columns(_block(query, repeat))
    values = frame.select(query, column).unique(maintain_order=True)
    twice = values.filter(pl.col(query).is_duplicated())
    if twice.height:
        name = twice[query][0]
        held = ", ".join(map(repr, twice.filter(pl.col(query) == name)[column].to_list()))
        raise InputError(
            f"query {name!r} has more than one value in column {column!r} of the score table ({held}); "
            "expected one value a query, the same for every run."
        )
    return dict(values.rows())


def _board(
    frame: pl.DataFrame, run: str, query: str, keys: list[str], missing: str, notes: list[str]
) -> Board:
    runs = frame[run].unique(maintain_order=True).to_list()
    queries = frame[query].unique(maintain_order=True).to_list()
    values = np.full((len(runs), len(keys), len(queries)), np.nan)
    place = frame.select(
        pl.col(run).replace_strict(runs, range(len(runs)), return_dtype=pl.Int64),
        pl.col(query).replace_strict(queries, range(len(queries)), return_dtype=pl.Int64),
    )
    at_run, at_query = place[run].to_numpy(), place[query].to_numpy()
    for number, key in enumerate(keys):
        values[at_run, number, at_query] = frame[key].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    holes = np.argwhere(np.isnan(values))
    if len(holes):
        shown = [f"run {runs[r]!r}, query {queries[q]!r}, {keys[m]}" for r, m, q in holes[:10].tolist()]
        if missing == "error":
            raise PolicyError(
                problem_report(
                    f"{counted(len(holes), 'value is', 'values are')} missing from the score table "
                    "(missing=error):",
                    shown,
                    "Fill them in, or choose missing=zero or missing=skip.",
                    total=len(holes),
                )
            )
        one, many = ("counts", "count") if missing == "zero" else ("is", "are")
        fate = f"{worded(len(holes), one, many)} {'as 0' if missing == 'zero' else 'left out pair by pair'}"
        notes.append(
            f"{counted(len(holes), 'value is', 'values are')} missing from the score table and {fate} (the "
            f"first: {shown[0]})."
        )
        if missing == "zero":
            values = np.nan_to_num(values, nan=0.0)
    return Board(tuple(runs), tuple(column_named(key) for key in keys), tuple(queries), values)


def _read(path: Path) -> pl.DataFrame:
    try:
        with path.open("rb") as file:
            head = file.readline()
        if head.startswith(b"PAR1"):
            return pl.read_parquet(path)
        return pl.read_csv(path, separator="\t" if b"\t" in head else ",", infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"{path}: the score table cannot be read ({error}); expected CSV, TSV or Parquet."
        ) from None


def _column(frame: pl.DataFrame, named: str | None, usual: Sequence[str], what: str, option: str) -> str:
    if named is not None:
        if named in frame.columns:
            return named
        raise InputError(
            f"the score table has no column {named!r}; there are {', '.join(frame.columns)}.{did_you_mean(named, frame.columns)}"
        )
    lower = {column.lower(): column for column in frame.columns}
    for name in usual:
        if name in lower:
            return lower[name]
    raise InputError(
        f"no column of the score table names the {what}; there are {', '.join(frame.columns)}. Name it with {option}."
    )


def _wide(
    frame: pl.DataFrame, ids: list[str], measures: Sequence[str] | None, options: TableOptions
) -> tuple[pl.DataFrame, list[str]]:
    """The table with one column a measure."""
    lower = {column.lower(): column for column in frame.columns}
    measure = options.measure_column or lower.get("measure") or lower.get("metric")
    value = options.value_column or lower.get("value")
    if measure and value:
        twice = frame.group_by([*ids, measure]).len().filter(pl.col("len") > 1)
        if twice.height:
            raise _twice_error([tuple(row[: len(ids)]) for row in twice.head(10).rows()], twice.height)
        frame = frame.pivot(on=measure, index=ids, values=value)
    numeric = [c for c in frame.columns if c not in ids and frame[c].dtype.is_numeric()]
    wanted = list(measures) if measures else numeric
    for key in wanted:
        if key not in frame.columns:
            raise InputError(
                f"the score table has no measure {key!r}; there are {', '.join(numeric)}.{did_you_mean(key, numeric)}"
            )
        if not frame[key].dtype.is_numeric():
            raise InputError(f"column {key!r} of the score table holds {frame[key].dtype}; expected numbers.")
    if not wanted:
        raise InputError(
            "the score table has no column of numbers; expected one column a measure, or measure and value."
        )
    return frame, wanted


def _repeat_column(frame: pl.DataFrame, options: TableOptions) -> str | None:
    return options.repeat_column or next((c for c in frame.columns if c.lower() in _REPEATS), None)


def _block(query: str, repeat: str) -> pl.Expr:
    """The name of a query in one repetition."""
    return pl.concat_str([pl.col(query), pl.lit(" #"), pl.col(repeat).cast(pl.String)]).alias(query)


def _repeated(
    frame: pl.DataFrame, run: str, query: str, repeat: str, keys: list[str], how: str
) -> tuple[pl.DataFrame, str]:
    times = frame[repeat].n_unique()
    if how == "blocks":
        return frame.with_columns(
            _block(query, repeat)
        ), f"Each of {counted(times, 'value')} of {repeat!r} is kept as a block of its own."
    averaged = frame.group_by([run, query], maintain_order=True).agg(pl.col(key).mean() for key in keys)
    return (
        averaged,
        f"Values are averaged over {counted(times, 'value')} of {repeat!r} before anything is tested.",
    )


def _refuse_twice(frame: pl.DataFrame, run: str, query: str) -> None:
    twice = frame.group_by([run, query], maintain_order=True).len().filter(pl.col("len") > 1)
    if twice.height:
        raise _twice_error([row[:2] for row in twice.head(10).rows()], twice.height)


def _twice_error(rows: Sequence[Sequence[Any]], total: int) -> InputError:
    return InputError(
        problem_report(
            f"{counted(total, 'query comes', 'queries come')} more than once for one run in the score table:",
            [f"run {row[0]!r}, query {row[1]!r}" for row in rows],
            "Keep one row each, or name the column that tells the repetitions apart (--repeat-column).",
            total=total,
        )
    )
