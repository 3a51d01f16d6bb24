"""A comparison in Markdown: what people paste into a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.report.comparison_rows import FAILED, pairs_tables, remarks, slice_table, title
from steelyard.report.movers_rows import movers_tables
from steelyard.report.pipe_table import pipe_table
from steelyard.report.tables import Table, code, escaped_latex, markdown

if TYPE_CHECKING:
    from steelyard.comparison.result import Comparison

ROOM = 7
"""Decimals reserved in a measure's column, so that the same run's row looks the same in every table."""

_SYMBOLS = {
    "recall": "R",
    "precision": "P",
    "f1": "F1",
    "mrr": "MRR",
    "hit_rate": "HR",
    "ndcg": "nDCG",
    "confusion": "CR",
}


def comparison_markdown(
    comparison: Comparison, movers: int = 0, texts: Mapping[str, object] | None = None
) -> str:
    """The leaderboard, its composite explained, pairs, slices, remarks, and the queries that moved."""
    parts = [leaderboard_markdown(comparison)]
    if comparison.weights:
        parts.append(composite_markdown(comparison, comparison.weights))
    if comparison.tested:
        parts += ["## Differences", *map(_keys_as_code, pairs_tables(comparison))]
    sliced = slice_table(comparison)
    if sliced is not None:
        parts += ["## Slices", _keys_as_code(sliced)]
    said = [comparison.verdict, *remarks(comparison, groups=False)]
    parts += ["## Reading this", "\n".join(f"- {line}" for line in said)]
    if movers:
        moved = movers_tables(comparison, movers, texts)
        parts += ["## Queries that moved", *(map(markdown, moved) if moved else ["No query moved."])]
    return "\n\n".join(parts)


def _keys_as_code(table: Table) -> str:
    """A table whose rows begin with code: those of the leaderboard alone begin with a retriever's name."""
    rows = [[*(code(str(key)) for key in row[: table.keys]), *row[table.keys :]] for row in table.rows]
    return markdown(replace(table, rows=rows))


def leaderboard_markdown(comparison: Comparison) -> str:
    """One row a retriever and cutoff, by cutoff and then best first."""
    at = comparison.boards[0].k is not None
    columns = [
        "Retriever",
        *(["k"] if at else []),
        *(title(key, comparison.dialect) for key in comparison.keys),
        *([FAILED] if comparison.failed else []),
    ]
    rows: list[list[str | float]] = [
        [
            row.run.replace("|", "\\|"),
            *([row.k or 0] if at else []),
            *row.means.values(),
            *([comparison.failed.get(row.run, "")] if comparison.failed else []),
        ]
        for row in comparison.standings
    ]
    room = [ROOM if key != "composite" else 0 for key in comparison.keys]
    return pipe_table(columns, rows, [0, *([0] if at else []), *room, *([0] if comparison.failed else [])])


def composite_markdown(comparison: Comparison, weights: Mapping[str, float]) -> str:
    """The composite's formula, its weights, and a line on each component."""
    board = comparison.components[0]
    assert board is not None
    parts, legend, lines = [], [], []
    for place, (column, weight) in enumerate(zip(board.columns, weights.values(), strict=True)):
        symbol = _SYMBOLS.get(column.key, column.key) if comparison.dialect == "leaderboard" else column.key
        name = title(column.key, comparison.dialect)
        less = column.better == "less"
        label = f"1 - {symbol}" if less else symbol
        shown = f"\\text{{{escaped_latex(label)}}}"
        parts.append(f"{f'({shown})' if less else shown} \\times W_{{\\text{{{escaped_latex(symbol)}}}}}")
        legend.append(
            f"- **{label}**: {name}{', turned round: less of it is better' if less else ''} (weight {weight:g})"
        )
        spelled = dict.fromkeys(
            f"`{other.columns[place].measure}`" for other in comparison.components if other
        )
        if column.measure is not None:
            lines.append(f"- **{name}** is {', '.join(spelled)}: {column.measure.definition.headline}")
    formula = f"$$ \\text{{Composite}} = \\frac{{{' + '.join(parts)}}}{{\\sum W}} $$"
    text = [
        "## Composite score",
        formula,
        "### Weights",
        "\n".join([*legend, f"- The sum is divided by the weights' own, {sum(weights.values()):g}."]),
    ]
    return "\n\n".join([*text, *(["### Components", "\n".join(lines)] if lines else [])])
