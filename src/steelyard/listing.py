"""Listings: entries by name that print as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from steelyard.lazy import polars as pl

Entry = TypeVar("Entry")


class Listing(dict[str, Entry], Generic[Entry]):
    """Entries by name that print as a table. `row` gives the cells of an entry."""

    def __init__(self, named: dict[str, Entry], columns: Sequence[str], row: Callable[[Entry], Sequence[str]]) -> None:
        super().__init__(named)
        self.columns = tuple(columns)
        self.rows = [tuple(row(entry)) for entry in named.values()]

    @property
    def frame(self) -> pl.DataFrame:
        """The table as a polars frame."""
        return pl.DataFrame(self.rows, schema=list(self.columns), orient="row")

    def __repr__(self) -> str:
        width = max((len(row[0]) for row in self.rows), default=0)
        return "\n".join(f"{row[0]:<{width}}  {row[1]}" for row in self.rows)

    def _repr_html_(self) -> str:
        from steelyard.report.tables import Table, table_html

        return table_html(Table(self.columns, self.rows))
