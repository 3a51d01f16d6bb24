"""Frames of polars, pandas and pyarrow, and records, as polars frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from steelyard.errors import InputError
from steelyard.lazy import polars as pl


def is_frame(source: Any) -> bool:
    """Whether an object is a frame of polars, pandas or pyarrow."""
    return type(source).__module__.partition(".")[0] in ("polars", "pandas", "pyarrow")


def as_polars(source: Any) -> pl.DataFrame:
    """A polars frame of a polars, pandas or pyarrow one, or of records."""
    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, list) and source and all(isinstance(record, Mapping) for record in source):
        return pl.DataFrame(list(map(dict, source)), infer_schema_length=None, strict=False)
    package = type(source).__module__.partition(".")[0] if hasattr(source, "columns") else ""
    if package == "pandas":
        if not source.columns.is_unique:
            repeated = source.columns[source.columns.duplicated()][0]
            raise InputError(f"the frame has more than one column {repeated!r}; rename or drop the others.")
        return pl.DataFrame({str(name): _pandas_column(source[name]) for name in source.columns}, strict=False)
    if package == "pyarrow":
        return pl.DataFrame(pl.from_arrow(source))
    kind, swapped = type(source).__name__, " Are the qrels and the run swapped?"
    advice = {"Qrels": swapped, "Run": swapped, "Series": " Make it a frame, as by reset_index() of pandas."}
    expected = "a mapping, a path, records, or a polars, pandas or pyarrow frame"
    raise InputError(f"a {kind} cannot be read; expected {expected}.{advice.get(kind, '')}")


def check_single(columns: Collection[str], *read: str | None) -> None:
    """Raise for a column to be read that occurs twice: polars gives the second one another name."""
    if twice := [name for name in read if f"{name}_duplicated_0" in columns]:
        raise InputError(f"two columns are called {twice[0]!r}; rename one of them.")


def _pandas_column(series: Any) -> Any:
    """A pandas column: numbers and Arrow text as they are, anything else as a list with None for missing values."""
    if series.dtype.kind in "iufb":
        return series.to_numpy()
    if getattr(series.dtype, "storage", None) == "pyarrow":
        return pl.Series(series)
    values, missing = series.tolist(), series.isna()
    if not missing.any():
        return values
    return [None if gone else value for value, gone in zip(values, missing.tolist(), strict=True)]


def parquet_bytes(frame: pl.DataFrame) -> bytes:
    """A frame as the bytes of a Parquet file."""
    from io import BytesIO

    buffer = BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
