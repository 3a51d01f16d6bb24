"""Listings of what there is: entries by name, with a table to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import polars as pl


Entry = TypeVar("Entry")


class Listing(dict[str, Entry], Generic[Entry]):
    """Entries by name, with a table of them to look at."""

    def __init__(
        self, entries: dict[str, Entry], columns: Sequence[str], row: Callable[[Entry], Sequence[str]]
    ) -> None:
        super().__init__(entries)
        self.columns = tuple(columns)
        self.rows = [tuple(row(entry)) for entry in entries.values()]

    @property
    def frame(self) -> pl.DataFrame:
        """The table as a polars frame."""
        import polars as pl

        return pl.DataFrame(self.rows, schema=list(self.columns), orient="row")

    def __repr__(self) -> str:
        width = max((len(row[0]) for row in self.rows), default=0)
        return "\n".join(f"{row[0]:<{width}}  {row[1]}" for row in self.rows)

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
