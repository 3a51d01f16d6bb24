"""Documents: what a result shows, built once, and one writer per format.

A result that is `Documented` builds its document; every output format comes from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from pathlib import Path
from typing import Any

from steelyard.frames import parquet_bytes
from steelyard.io.files import write_file
from steelyard.lazy import json, looked_up
from steelyard.lazy import polars as pl
from steelyard.report.tables import Table, comma_separated, fragment, latex, latex_comment, markdown, plain, table_html
from steelyard.safe_text import markdown_text


@dataclass(frozen=True)
class Document:
    """What a result shows: the verdict, the tables, drawings (SVG, shown in HTML only) and notes, one sentence each.

    title: the title of its page.
    """

    title: str
    verdict: str
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    drawings: Sequence[str] = ()


def document_text(document: Document) -> str:
    """The document as plain text."""
    return joined([document.verdict, *map(plain, document.tables), "\n".join(document.notes)])


def document_latex(document: Document) -> str:
    """Booktabs tables; the verdict and the notes as comments."""
    comments = [latex_comment(line) for line in (document.verdict, *document.notes) if line]
    return joined([*map(latex, document.tables), "\n".join(comments)])


def document_html(document: Document) -> str:
    """The document as a part of a page, for notebooks."""
    verdict = f"<p><strong>{escape(document.verdict)}</strong></p>" if document.verdict else ""
    notes = "".join(f"<li>{escape(line)}</li>" for line in document.notes)
    tables = map(table_html, document.tables)
    return fragment([verdict, *tables, *document.drawings, f"<ul>{notes}</ul>" if notes else ""])


def joined(parts: Iterable[str]) -> str:
    """Parts of a text with an empty line between them; empty parts are left out."""
    return "\n\n".join(part for part in parts if part)


def bullets(lines: Iterable[str]) -> str:
    """A list in Markdown, one line per item."""
    return "\n".join(f"- {markdown_text(line)}" for line in lines)


def plain_values(value: Any) -> Any:
    """A value as JSON can hold it: a number that is not finite is None, and so is an interval (a tuple) with such ends.

    >>> plain_values({"mean": 0.5, "p": float("nan"), "interval": (0.4, float("nan"))})
    {'mean': 0.5, 'p': None, 'interval': None}
    """
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain_values(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        values = list(map(plain_values, value))
        return None if isinstance(value, tuple) and None in values else values
    return value


class Documented(ABC):
    """The output formats of a result, from its document, its `data_table` and its `to_dict`."""

    @abstractmethod
    def document(self) -> Document:
        """What the result shows."""

    @abstractmethod
    def data_table(self) -> Table:
        """The table that CSV and Parquet files have, numbers unrounded."""

    @abstractmethod
    def to_dict(self) -> Any:
        """The plain values of the JSON."""

    def to_json(self) -> str:
        """The result as JSON; numbers are unrounded."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)

    def to_text(self) -> str:
        """The verdict, the tables and the notes as plain text."""
        return document_text(self.document())

    def to_markdown(self) -> str:
        """The verdict, the tables and the notes in Markdown."""
        document = self.document()
        notes = ["## Notes", bullets(document.notes)] if document.notes else []
        return joined([markdown_text(document.verdict), *map(markdown, document.tables), *notes])

    def to_latex(self) -> str:
        """Booktabs tables; the verdict and the notes as comments."""
        return document_latex(self.document())

    def to_csv(self) -> str:
        """The values as CSV."""
        return comma_separated(self.data_table())

    def to_parquet(self, path: str | Path) -> None:
        """Write the values as a Parquet file."""
        table = self.data_table()
        frame = pl.DataFrame(table.rows, schema=list(table.columns), orient="row", infer_schema_length=None)
        write_file(Path(path), parquet_bytes(frame))

    def to_html(self, path: str | Path | None = None) -> str:
        """The page; it is written to `path` if one is given."""
        page = self._page(None if path is None else Path(path).parent)
        if path is not None:
            write_file(Path(path), page.encode())
        return page

    def _page(self, folder: Path | None) -> str:
        """The page as text; links are relative to the folder that it is written to."""
        page: str = looked_up("steelyard.report.page.shell:document_page")(self.document())
        return page

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return document_html(self.document())


@dataclass(frozen=True, repr=False)
class Tables(Documented):
    """Tables without a verdict, and the plain values of their JSON (or a function that returns them)."""

    tables: Sequence[Table]
    data: Any | Callable[[], Any]

    def document(self) -> Document:
        """The tables alone."""
        return Document("", "", self.tables)

    def data_table(self) -> Table:
        """The first table."""
        return self.tables[0]

    def to_csv(self) -> str:
        """The tables as CSV, with an empty line between them."""
        return joined(map(comma_separated, self.tables))

    def to_dict(self) -> Any:
        """The plain values."""
        return self.data() if callable(self.data) else self.data

    def to_json(self) -> str:
        """The plain values as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)


def frame_table(frame: pl.DataFrame) -> Table:
    """A frame as a table."""
    return Table(frame.columns, frame.rows())
