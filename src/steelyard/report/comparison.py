"""A comparison as text, Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from steelyard.comparison.scores import label
from steelyard.report.rows import (
    FAILED,
    is_long,
    leaderboard_table,
    movers_lines,
    movers_tables,
    pairs_in_short,
    pairs_tables,
    remarks,
    slice_table,
    title,
)
from steelyard.report.tables import (
    Cell,
    Table,
    code,
    comma_separated,
    escaped_latex,
    latex,
    latex_comment,
    markdown,
    pipe_table,
    plain,
)
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.comparison.leaderboard import Standing
    from steelyard.comparison.result import Comparison
    from steelyard.scores import Scores


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
        (pair.run, pair.label): f"$^{{{_WAYS.get(pair.verdict, '')}{pair.stars}}}$"
        for pair in comparison.tested
        if pair.baseline == baseline and "*" in pair.stars
    }
    if baseline is None and comparison.tested:
        marks = {(row.run, label(first, row.k)): f"$^{{{row.group}}}$" for row in comparison.standings}
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
            cells.append(text + marks.get((row.run, label(key, row.k)), ""))
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
    found: dict[str, Cell] = {}
    for key in comparison.keys if baseline is not None else ():
        for pair in comparison.tested:
            if (pair.run, pair.measure, pair.k) == (standing.run, key, standing.k):
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


_STYLE = """
.steelyard { font: 14px/1.5 system-ui, sans-serif; max-width: 70em; overflow-x: auto; }
.steelyard table { border-collapse: collapse; margin: 0.5em 0 1em; }
.steelyard th, .steelyard td { padding: 0.25em 0.75em; text-align: left; border-bottom: 1px solid #8886; }
.steelyard thead th { border-bottom: 2px solid #8889; font-weight: 600; white-space: nowrap; }
.steelyard caption { text-align: left; font-weight: 600; padding: 0.25em 0.75em; }
.steelyard ul { padding-left: 1.2em; opacity: 0.8; }
.steelyard .number { text-align: right; font-variant-numeric: tabular-nums; }
"""


def comparison_html(comparison: Comparison) -> str:
    """The verdict, the tables and the remarks."""
    sliced = slice_table(comparison)
    tables = [
        leaderboard_table(comparison),
        *pairs_tables(comparison),
        *([] if sliced is None else [sliced]),
    ]
    parts = [f"<p><strong>{escape(comparison.verdict)}</strong></p>", *map(table_html, tables)]
    parts.append("<ul>" + "".join(f"<li>{escape(line)}</li>" for line in remarks(comparison)) + "</ul>")
    return fragment(parts)


def fragment(parts: Sequence[str]) -> str:
    """Parts of HTML in the one style."""
    return f'<div class="steelyard"><style>{_STYLE}</style>{"".join(parts)}</div>'


def table_html(table: Table) -> str:
    """One table, everything escaped, the title as its caption."""
    right = table.numeric()
    head = "".join(f"<th{_kind(r)}>{escape(c)}</th>" for c, r in zip(table.columns, right, strict=True))
    rows = [
        "<tr>" + "".join(f"<td{_kind(r)}>{escape(c)}</td>" for c, r in zip(row, right, strict=True)) + "</tr>"
        for row in table.shown()
    ]
    title = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _kind(number: bool) -> str:
    return ' class="number"' if number else ""


def scores_html(scores: Scores) -> str:
    """The means with their intervals, and the coverage."""
    intervals = scores.intervals()
    rows: list[list[Cell]] = []
    for key, mean in scores.means.items():
        pair = intervals[key]
        shown = "" if pair is None or pair[0] != pair[0] else f"{pair[0]:.4f} to {pair[1]:.4f}"
        rows.append([key, mean, shown, scores.measures[key].spelled])
    table = Table(["measure", "value", "95 % interval", "as defined"], rows)
    title = f"Scores of {escape(scores.name)} over {counted(len(scores.queries), 'query', 'queries')}"
    how = [f"<p>Measured with {escape(scores.settings)}.</p>"] if scores.settings else []
    covered = f"<p>{escape(str(scores.coverage))}</p>"
    return fragment([f"<p><strong>{title}</strong></p>", table_html(table), *how, covered])
