"""A comparison as text, Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isnan

from steelyard.comparison.columns import board_rows, columns_of, title
from steelyard.comparison.data import ComparisonData
from steelyard.comparison.scores import COMPOSITE, label
from steelyard.report.documents import Document, bullets, document_latex, document_text, joined
from steelyard.report.rows import comparison_document, movers_lines, movers_tables, pairs_tables, remarks, slice_tables
from steelyard.report.tables import Cell, Table, booktabs, code, escaped_latex, markdown


def comparison_text(comparison: ComparisonData, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
    """The verdict, the tables, the remarks and the queries that changed most as plain text."""
    text = document_text(comparison_document(comparison, screen=True))
    return joined([text, "\n".join(movers_lines(comparison, movers, texts)) if movers else ""])


DECIMALS = 7  # Decimals reserved for a measure in Markdown, so that the row of a run is the same in every leaderboard.

_SYMBOLS = {
    "recall": "R",
    "precision": "P",
    "f1": "F1",
    "mrr": "MRR",
    "hit_rate": "HR",
    "ndcg": "nDCG",
    "confusion": "CR",
}


def comparison_markdown(comparison: ComparisonData, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
    """The leaderboard, its composite explained, pairs, slices, remarks, and the queries that changed most."""
    parts = [leaderboard_markdown(comparison)]
    if comparison.weights:
        parts.append(composite_markdown(comparison, comparison.weights))
    if comparison.tested_pairs:
        parts += ["## Differences", *map(_keys_as_code, pairs_tables(comparison))]
    if comparison.slices:
        parts += ["## Slices", *map(_keys_as_code, slice_tables(comparison))]
    parts += ["## Notes", bullets([comparison.verdict, *remarks(comparison, groups=False)])]
    if movers:
        tables = movers_tables(comparison, movers, texts)
        parts += ["## Queries that changed most", *(map(markdown, tables) if tables else ["No query changed."])]
    return "\n\n".join(parts)


def _keys_as_code(table: Table) -> str:
    """A table with its keys as code, so that only the rows of the leaderboard start with a retriever's name."""
    rows = [[*(code(str(key)) for key in row[: table.keys]), *row[table.keys :]] for row in table.rows]
    return markdown(replace(table, rows=rows))


def leaderboard_markdown(comparison: ComparisonData) -> str:
    """One row per retriever and cutoff, by cutoff and then best first."""
    columns = columns_of(comparison, "markdown")
    rows = [[column.cell(comparison, row, "markdown") for column in columns] for row in comparison.shown_rows]
    decimals = [DECIMALS if column.measure is not None and column.name != COMPOSITE else 0 for column in columns]
    headings = [column.heading("markdown") for column in columns]
    return markdown(Table(headings, rows, digits=None, decimals=decimals), padded=True)


def composite_markdown(comparison: ComparisonData, weights: Mapping[str, float]) -> str:
    """The formula of the composite, its weights, and one line per component."""
    components = comparison.components[0]
    assert components is not None
    parts, legend, lines = [], [], []
    for place, (column, weight) in enumerate(zip(components.columns, weights.values(), strict=True)):
        symbol = _SYMBOLS.get(column.key, column.key) if comparison.dialect == "leaderboard" else column.key
        name = title(column.key, comparison.dialect)
        less = column.better == "less"
        label = f"1 - {symbol}" if less else symbol
        shown = f"\\text{{{escaped_latex(label)}}}"
        parts.append(f"{f'({shown})' if less else shown} \\times W_{{\\text{{{escaped_latex(symbol)}}}}}")
        legend.append(f"- **{label}**: {name}{', inverted (lower is better)' if less else ''} (weight {weight:g})")
        spelled = dict.fromkeys(f"`{other.columns[place].measure}`" for other in comparison.components if other)
        if column.measure is not None:
            lines.append(f"- **{name}** is {', '.join(spelled)}: {column.measure.definition.headline}")
    formula = f"$$ \\text{{Composite}} = \\frac{{{' + '.join(parts)}}}{{\\sum W}} $$"
    legend.append(f"- The sum is divided by the sum of the weights, {sum(weights.values()):g}.")
    text = ["## Composite score", formula, "### Weights", "\n".join(legend)]
    return "\n\n".join([*text, *(["### Components", "\n".join(lines)] if lines else [])])


_ARROWS = {"better": r"\uparrow", "worse": r"\downarrow"}


def comparison_latex(comparison: ComparisonData, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
    """Booktabs tables: the leaderboard, the pairs, the slices and the queries that changed; remarks as comments."""
    tables = [*pairs_tables(comparison), *slice_tables(comparison)]
    tables += movers_tables(comparison, movers, texts) if movers else []
    document = Document("", comparison.verdict, tables, remarks(comparison, groups=False))
    return joined([leaderboard_latex(comparison), document_latex(document)])


def leaderboard_latex(comparison: ComparisonData) -> str:
    """A booktabs table of the means: the best of each column in bold, significant differences marked.

    With a baseline the mark is an arrow, up for better, and stars; without one, the letters of the run's groups on
    the measure that ranks the runs.
    """
    marks = _latex_marks(comparison)
    best = {}
    for scores in comparison.score_tables:
        for measure, means in zip(scores.columns, scores.means().T.tolist(), strict=True):
            finite = [mean for mean in means if not isnan(mean)]
            best[scores.k, measure.key] = (min if measure.better == "less" else max)(finite, default=None)
    columns, shown_rows = columns_of(comparison, "latex"), comparison.shown_rows
    values = [[column.cell(comparison, row, "latex") for column in columns] for row in shown_rows]
    rows = []
    for row, cells in zip(shown_rows, values, strict=True):
        texts = []
        for column, cell in zip(columns, cells, strict=True):
            if column.measure is None:
                texts.append(escaped_latex(str(cell)))
                continue
            text = "--" if isnan(cell) else f"{cell:.4f}"
            if cell == best[row.k, column.name]:
                text = rf"\textbf{{{text}}}"
            texts.append(text + marks.get((row.run, label(column.name, row.k)), ""))
        rows.append(texts)
    headings = [column.heading("latex") for column in columns]
    return booktabs(
        "".join("r" if number else "l" for number in Table(headings, values).numeric()),
        [heading if heading == "$k$" else escaped_latex(heading) for heading in headings],
        rows,
        spaced={number for number in range(1, len(rows)) if shown_rows[number].k != shown_rows[number - 1].k},
    )


def _latex_marks(comparison: ComparisonData) -> dict[tuple[str, str], str]:
    """The superscripts of the values, by run and measure."""
    if comparison.plan.baseline is None and comparison.tested_pairs:
        first, rows = comparison.keys[0], comparison.leaderboard_rows
        return {(row.run, label(first, row.k)): f"$^{{{row.group}}}$" for row in rows}
    return {
        (pair.run, pair.label): f"$^{{{_ARROWS.get(pair.verdict, '')}{pair.stars}}}$"
        for pair in comparison.tested_pairs
        if "*" in pair.stars
    }


def comparison_values(comparison: ComparisonData) -> Table:
    """The leaderboard as in Python, with the differences from the baseline and the slices' means as columns."""
    rows: list[dict[str, Cell]] = board_rows(comparison, "frame")
    for cells, row in zip(rows, comparison.shown_rows, strict=True):
        for pair in comparison.tested_pairs if comparison.plan.baseline is not None else ():
            if (pair.run, pair.k) == (row.run, row.k):
                tested: dict[str, Cell] = {"difference": pair.difference, "difference low": pair.low}
                tested |= {"difference high": pair.high, "p_adjusted": pair.p_adjusted, "verdict": pair.verdict}
                tested |= {"equivalent": pair.equivalent} if comparison.plan.equivalence else {}
                cells |= {f"{pair.measure} {name}": cell for name, cell in tested.items()}
        # Slices are of the first cutoff.
        for cut in comparison.slices if row.k == comparison.score_tables[0].k and row.rank is not None else ():
            cells |= {f"{key} [{cut.column}={cut.value}]": mean for key, mean in cut.means[row.run].items()}
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return Table(columns, [[row.get(name) for name in columns] for row in rows])
