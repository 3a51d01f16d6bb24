"""A comparison as CSV: one table, because a file of two is read by nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.tables import Cell, Table, comma_separated

if TYPE_CHECKING:
    from steelyard.comparison.leaderboard import Standing
    from steelyard.comparison.result import Comparison


def comparison_csv(comparison: Comparison) -> str:
    """The leaderboard as in Python, with the differences from the baseline and the slices' means as columns."""
    frame = comparison.leaderboard
    rows: list[dict[str, Cell]] = [
        {**row, **_differences(comparison, standing), **_slices(comparison, standing)}
        for row, standing in zip(frame.iter_rows(named=True), comparison.standings, strict=True)
    ]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return comma_separated(Table(columns, [[row.get(name) for name in columns] for row in rows]))


def _differences(comparison: Comparison, standing: Standing) -> dict[str, Cell]:
    """What was tested of a run against the baseline, measure by measure."""
    baseline = comparison.plan.baseline
    end = "" if standing.k is None else f" at {standing.k}"
    found: dict[str, Cell] = {}
    for key in comparison.keys if baseline is not None else ():
        for pair in comparison.tested:
            if (pair.run, pair.measure) == (standing.run, key + end):
                found |= {
                    f"{key} difference": pair.difference,
                    f"{key} difference low": pair.low,
                    f"{key} difference high": pair.high,
                    f"{key} p_adjusted": pair.p_adjusted,
                    f"{key} verdict": pair.verdict,
                }
    return found


def _slices(comparison: Comparison, standing: Standing) -> dict[str, Cell]:
    """A run's means within every slice; slices are of the first cutoff."""
    if standing.k != comparison.boards[0].k:
        return {}
    return {
        f"{key} [{cut.column}={cut.value}]": mean
        for cut in comparison.slices
        for key, mean in cut.means[standing.run].items()
    }
