"""A comparison for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.report.comparison_rows import leaderboard_table, pairs_tables, remarks, slice_table
from steelyard.report.movers_rows import movers_lines
from steelyard.report.tables import Table, plain

if TYPE_CHECKING:
    from steelyard.comparison.result import Comparison


def comparison_text(
    comparison: Comparison, movers: int = 0, texts: Mapping[str, object] | None = None
) -> str:
    """The verdict, the tables, the remarks and the queries that moved as plain text."""
    parts = [comparison.verdict, *map(plain, comparison_tables(comparison)), "\n".join(remarks(comparison))]
    if movers:
        parts.append("\n".join(movers_lines(comparison, movers, texts)))
    return "\n\n".join(part for part in parts if part)


def comparison_tables(comparison: Comparison) -> list[Table]:
    """The leaderboard, the pairs and the slices."""
    sliced = slice_table(comparison)
    return [
        leaderboard_table(comparison),
        *pairs_tables(comparison),
        *([] if sliced is None else [sliced]),
    ]
