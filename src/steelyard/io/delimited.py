"""CSV and TSV text: read with every value as text, and written."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.errors import InputError
from steelyard.io.text import Source, bad_lines
from steelyard.lazy import polars as pl
from steelyard.wording import counted


def read_table(source: Source, separator: str) -> pl.DataFrame:
    """Every column as text, so that an id like 007 is kept; every row as wide as the header."""
    import io

    text = source.text
    if not text.strip():
        raise InputError("the file is empty. Expected a header line and one row per document.", source.path)
    try:
        frame = pl.read_csv(io.BytesIO(text.encode()), separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        _check_widths(source, separator)
        raise InputError(f"cannot be read as a table: {str(error).partition(chr(10))[0]}", source.path) from None
    last = frame[frame.columns[-1]]
    if last.null_count():
        # A truncated row ends in null, and so does a row whose last field is empty: only the widths differ.
        _check_widths(source, separator)
    if not frame.height:
        raise InputError("there is a header line and nothing else.", source.path)
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def table_bytes(frame: pl.DataFrame, separator: str) -> bytes:
    """The table as text."""
    import io

    buffer = io.BytesIO()
    frame.write_csv(buffer, separator=separator)
    return buffer.getvalue()


def _check_widths(source: Source, separator: str) -> None:
    problems = list(_wrong_widths(source, separator))
    if problems:
        raise bad_lines(
            source.path,
            problems,
            "Expected as many columns as in the header, with quotes around text that holds the separator.",
        )


def _wrong_widths(source: Source, separator: str) -> Iterator[tuple[int, str]]:
    import csv
    import io

    reader = csv.reader(io.StringIO(source.text, newline=""), delimiter=separator, strict=True)
    try:
        width = len(next(reader))
        for row in reader:
            if row and len(row) != width:
                yield reader.line_num, f"{counted(len(row), 'column')}, and the header has {width}"
    except csv.Error as error:
        yield reader.line_num, str(error)
