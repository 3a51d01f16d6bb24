"""A comparison in LaTeX: what people put into a paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.report.comparison_rows import pairs_tables, remarks, slice_table, title
from steelyard.report.movers_rows import movers_tables
from steelyard.report.tables import escaped_latex, latex, latex_comment

if TYPE_CHECKING:
    from steelyard.comparison.result import Comparison

_WAYS = {"better": r"\uparrow", "worse": r"\downarrow"}


def comparison_latex(
    comparison: Comparison, movers: int = 0, texts: Mapping[str, object] | None = None
) -> str:
    """Booktabs tables: the leaderboard, the pairs, the slices and the queries that moved; remarks as comments."""
    sliced = slice_table(comparison)
    tables = [
        *pairs_tables(comparison),
        *([] if sliced is None else [sliced]),
        *(movers_tables(comparison, movers, texts) if movers else []),
    ]
    said = map(latex_comment, [comparison.verdict, *remarks(comparison, groups=False)])
    return "\n\n".join([leaderboard_latex(comparison), *map(latex, tables), "\n".join(said)])


def leaderboard_latex(comparison: Comparison) -> str:
    """A booktabs table: the best of each column bold, and with each value what the tests say of it.

    Against a baseline that is an arrow, up for better, and stars; without one, the letters of the run's
    groups, on the measure that ranks the runs.
    """
    baseline, first = comparison.plan.baseline, comparison.keys[0]
    at = comparison.boards[0].k is not None
    marks = {
        (pair.run, pair.measure): f"$^{{{_WAYS.get(pair.verdict, '')}{pair.stars}}}$"
        for pair in comparison.tested
        if pair.baseline == baseline and "*" in pair.stars
    }
    if baseline is None and comparison.tested:
        marks = {
            (row.run, first if row.k is None else f"{first} at {row.k}"): f"$^{{{row.group}}}$"
            for row in comparison.standings
        }
    best = {
        (board.k, c.key): _best(board.means()[:, i], c.better)
        for board in comparison.boards
        for i, c in enumerate(board.columns)
    }
    lines = [
        rf"\begin{{tabular}}{{l{'r' if at else ''}{'r' * len(comparison.keys)}}}",
        r"\toprule",
        " & ".join(
            [
                "Run",
                *(["$k$"] if at else []),
                *(escaped_latex(title(key, comparison.dialect)) for key in comparison.keys),
            ]
        )
        + r" \\",
        r"\midrule",
    ]
    for number, row in enumerate(comparison.standings):
        if at and number and row.k != comparison.standings[number - 1].k:
            lines.append(r"\addlinespace")
        failed = f" (failed on {comparison.failed[row.run]} queries)" if row.run in comparison.failed else ""
        cells = [escaped_latex(row.run + failed), *([str(row.k)] if at else [])]
        for key, mean in row.means.items():
            text = "--" if mean != mean else f"{mean:.4f}"
            if mean == best[row.k, key]:
                text = rf"\textbf{{{text}}}"
            cells.append(text + marks.get((row.run, key if row.k is None else f"{key} at {row.k}"), ""))
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines)


def _best(means: object, better: str) -> float:
    import numpy as np

    values = np.asarray(means, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        return float("nan")
    return float(values.min() if better == "less" else values.max())
