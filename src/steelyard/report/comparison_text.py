"""A comparison for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.comparison_rows import leaderboard_table, pairs_table, remarks, slice_table
from steelyard.report.tables import plain

if TYPE_CHECKING:
    from steelyard.comparison.result import Comparison


def comparison_text(comparison: Comparison) -> str:
    """The verdict, the tables and the remarks as plain text."""
    parts = [comparison.verdict, plain(leaderboard_table(comparison))]
    if comparison.tested:
        parts.append(plain(pairs_table(comparison)))
    sliced = slice_table(comparison)
    if sliced is not None:
        parts.append(plain(sliced))
    parts.append("\n".join(remarks(comparison)))
    return "\n\n".join(part for part in parts if part)
