"""A comparison for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.report.comparison_rows import (
    is_long,
    leaderboard_table,
    pairs_in_short,
    pairs_tables,
    remarks,
    slice_table,
)
from steelyard.report.movers_rows import movers_lines
from steelyard.report.tables import Table, plain

if TYPE_CHECKING:
    from steelyard.comparison.result import Comparison


def comparison_text(
    comparison: Comparison, movers: int = 0, texts: Mapping[str, object] | None = None
) -> str:
    """The verdict, the tables, the remarks and the queries that moved as plain text."""
    said = remarks(comparison, short=is_long(comparison))
    parts = [comparison.verdict, *map(plain, comparison_tables(comparison)), "\n".join(said)]
    if movers:
        parts.append("\n".join(movers_lines(comparison, movers, texts)))
    return "\n\n".join(part for part in parts if part)


def comparison_tables(comparison: Comparison) -> list[Table]:
    """The leaderboard, the pairs and the slices; of many pairs only as much as a screen can take."""
    sliced = slice_table(comparison)
    return [
        leaderboard_table(comparison),
        *(pairs_in_short(comparison) if is_long(comparison) else pairs_tables(comparison)),
        *([] if sliced is None else [sliced]),
    ]
