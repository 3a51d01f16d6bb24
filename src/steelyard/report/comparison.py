"""A comparison: its tables and the remarks below them, and these as text, Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isnan

from steelyard.comparison.columns import board_rows, columns_of, measure_heading, partly_judged, scale_of, title
from steelyard.comparison.data import ComparisonData
from steelyard.comparison.movers import Mover, RunMovers
from steelyard.comparison.pairs import Pair
from steelyard.comparison.scores import COMPOSITE, label
from steelyard.coverage import coverage_lines, unjudged_line
from steelyard.notes import sentence
from steelyard.report.documents import Document, bullets, document_latex, document_text, joined
from steelyard.report.tables import Cell, Table, booktabs, code, escaped_latex, markdown
from steelyard.statistics import FAMILY_TESTS, shown_p
from steelyard.wording import counted

LONG = 40  # On a screen, pairs are shortened if they have more rows than this.
SHOWN_DOCUMENTS, SHOWN_TEXT = 4, 80
"""Documents shown per query, of which the others are counted; characters shown of a query's text."""
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
_ARROWS = {"better": r"\uparrow", "worse": r"\downarrow"}


def leaderboard_table(comparison: ComparisonData) -> Table:
    """The whole leaderboard, as a terminal and notebooks show it."""
    columns = columns_of(comparison, "table")
    headings = [column.heading("table") for column in columns]
    rows = [[column.cell(comparison, row, "table") for column in columns] for row in comparison.shown_rows]
    return Table(headings, rows, keys=3 if "k" in headings[:3] else 2)


def pairs_tables(comparison: ComparisonData) -> list[Table]:
    """The tests: difference, interval, corrected p, verdict, effect, and wins, ties and losses of every pair.

    Two runs: one table with one row per measure. With a baseline: one table per measure with one row per run.
    Otherwise one row per pair of runs, on the measure that ranks them: all measures would be too many rows.
    """
    tables, pairs = comparison.score_tables, comparison.tested_pairs
    scales = {label(column.key, scores.k): scale_of(column) for scores in tables for column in scores.columns}
    columns = ["difference", comparison.interval_heading, p_heading(comparison)]
    columns += ["verdict", "relative", "d", "won/tied/lost"]

    def cells(pair: Pair) -> Iterable[str]:
        return pair_cells(pair, scales[pair.label]).values()

    couples = list(dict.fromkeys((pair.run, pair.baseline) for pair in pairs))
    if len(couples) == 1:
        rows = [[with_unit(pair.label, scales[pair.label]), *cells(pair)] for pair in pairs]
        return [Table(["measure", *columns], rows, title=f"{couples[0][0]} vs {couples[0][1]}")]
    if comparison.plan.baseline is not None:
        suffix, keys, shown = f" vs {comparison.plan.baseline}", ["run"], list(scales)
    else:
        suffix, keys = "", ["run", "vs"]
        shown = [label(comparison.keys[0], scores.k) for scores in tables]
    return [
        Table(
            [*keys, *columns],
            [[*(pair.run, pair.baseline)[: len(keys)], *cells(pair)] for pair in pairs if pair.label == measure],
            title=f"{with_unit(measure, scales[measure])}{suffix}",
            keys=len(keys),
        )
        for measure in shown
        if pairs
    ]


def comparison_document(comparison: ComparisonData, screen: bool = False) -> Document:
    """The verdict, every table and the remarks; on a screen, the pairs are shortened where there are too many."""
    pairs = pairs_tables(comparison)
    short = screen and len(comparison.runs) > 2 and sum(len(table.rows) for table in pairs) > LONG
    shown = _shortened(comparison, pairs) if short else pairs
    tables = [leaderboard_table(comparison), *shown, *slice_tables(comparison)]
    return Document("Comparison", comparison.verdict, tables, remarks(comparison, short=short))


def _shortened(comparison: ComparisonData, tables: list[Table]) -> list[Table]:
    """With a baseline the pairs of the first measure, and the stars of every measure; otherwise those of the leader."""
    if comparison.plan.baseline is not None:
        return [tables[0], _stars_table(comparison)] if len(tables) > 1 else tables
    shortened = []
    for scores, table in zip(comparison.score_tables, tables, strict=True):
        leader = next(row.run for row in comparison.leaderboard_rows if row.k == scores.k)
        rows = [row[1:] for row in table.rows if row[0] == leader]
        title = f"{table.title}, {leader} vs every other run"
        shortened.append(replace(table, columns=table.columns[1:], rows=rows, title=title, keys=1))
    return shortened


def _stars_table(comparison: ComparisonData) -> Table:
    at = comparison.score_tables[0].k is not None
    shown = comparison.score_tables[0].columns
    tested = {(pair.run, pair.label): pair for pair in comparison.tested_pairs}
    rows: list[list[Cell]] = []
    for row in comparison.leaderboard_rows:
        pairs = [tested.get((row.run, label(column.key, row.k))) for column in shown]
        cells = [
            "" if pair is None or isnan(pair.difference)
            else f"{pair.difference * scale_of(column):+.4f} {pair.stars}".rstrip()
            for pair, column in zip(pairs, shown, strict=True)
        ]  # fmt: skip
        if any(pairs):
            rows.append([row.run, *([row.k] if at else []), *cells])
    heads = ["run", *(["k"] if at else []), *map(measure_heading, shown)]
    return Table(heads, rows, title=f"differences from {comparison.plan.baseline}", keys=2 if at else 1)


def p_heading(comparison: ComparisonData) -> str:
    """The heading of the p-values, with their correction."""
    return "p" if comparison.plan.corrected_by == "none" else f"p ({comparison.plan.corrected_by})"


def with_unit(measure: str, scale: float) -> str:
    """The label of a measure, with the unit of times."""
    return measure if scale == 1 else f"{measure} ms"


def pair_cells(pair: Pair, scale: float, missing: str = "") -> dict[str, str]:
    """The cells of a pair after its key, for every table of pairs. `missing`: what stands for a number that is none."""

    def number(value: float, form: str) -> str:
        return missing if isnan(value) else f"{value:{form}}"

    return {
        "difference": number(pair.difference * scale, "+.4f"),
        "interval": missing if isnan(pair.low) else f"{pair.low * scale:+.4f} to {pair.high * scale:+.4f}",
        "p": f"{shown_p(pair.p_adjusted)} {pair.stars if pair.stars != 'ns' else ''}".rstrip(),
        "verdict": pair.shown_verdict,
        "relative": number(pair.relative, "+.1%"),
        "effect": number(pair.effect, "+.2f"),
        "tally": f"{pair.wins}/{pair.ties}/{pair.losses}",
    }


def slice_tables(comparison: ComparisonData) -> list[Table]:
    """The measure that ranks the runs within each slice: one row per run, one column per slice."""
    if not comparison.slices:
        return []
    column = comparison.score_tables[0].columns[0]
    heads = [f"{cut.value} ({cut.queries:,})" for cut in comparison.slices]
    runs = list(dict.fromkeys(row.run for row in comparison.leaderboard_rows))
    rows: list[list[Cell]] = [
        [run, *(cut.means[run][column.key] * scale_of(column) for cut in comparison.slices)] for run in runs
    ]
    shown = with_unit(label(column.key, comparison.score_tables[0].k), scale_of(column))
    return [Table(["run", *heads], rows, title=f"{shown} by {comparison.slices[0].column} (queries)")]


def remarks(comparison: ComparisonData, *, groups: bool = True, tables: bool = True, short: bool = False) -> list[str]:
    """The sentences below the tables: settings, tests, groups, what is not shown, stability, coverage and notes.

    groups: the leaderboard has a column of groups; otherwise they are listed here.
    tables: the remarks are below tables of pairs and slices. short: the pairs are shortened.
    """
    lines = [f"Measured with {comparison.settings}."] if comparison.settings else []
    if comparison.tested_pairs:
        lines += [_how_tested(comparison), _groups(comparison, groups)]
        lines += _elsewhere(comparison, short) if tables else []
    if tables and partly_judged(comparison):
        lines.append(
            f"Judged: the share of judged documents above the cutoff of {comparison.keys[0]}; bounds: its lowest and "
            "highest value that any grading of the run's other documents gives."
        )
    # The notes on coverage come once for all runs that have the same note; the unjudged documents as a range.
    lines += [*stability_lines(comparison), *coverage_lines(comparison.coverage, heads=False)]
    return [*lines, *unjudged_lines(comparison), *map(sentence, comparison.notes)]


def stability_lines(comparison: ComparisonData) -> list[str]:
    """How much the ranking depends on the weights of the composite; empty where there is none."""
    stability = comparison.stability()
    if stability is None or not comparison.weights:
        return []
    lines = [
        f"With random weights around the given ones, the ranking changes in {stability.order_changes:.0%} "
        f"of draws and the first rank in {stability.top_changes:.0%}."
    ]
    if stability.flips:
        flip = stability.flips[0]
        measure, run = list(comparison.weights)[flip.measure], comparison.runs[flip.new_top]
        lines.append(f"A weight of {flip.flips_at:.3g} for {measure} (now {flip.weight:g}) would rank {run} first.")
    return lines


def _how_tested(comparison: ComparisonData) -> str:
    plan = comparison.plan
    per = "runs tested on it" if plan.baseline is not None else "pairs of runs"
    corrected = ""
    if len({(pair.run, pair.baseline) for pair in comparison.tested_pairs}) > 1:
        if plan.test in FAMILY_TESTS:
            corrected = f", corrected within each measure for the {per}"
        elif plan.correction != "none":
            corrected = f", corrected by {plan.correction} within each measure for the {per}"
    margin = plan.equivalence
    equivalence = "" if margin is None else f" Equivalent: the interval is within {margin:g} of 0."
    return (
        f"p: {comparison.tested_by}{corrected}; *** p < 0.001, ** p < 0.01, * p < 0.05, ns otherwise. "
        f"Verdicts are at alpha {plan.alpha:g}. Intervals are {comparison.intervals_are}.{equivalence}"
    )


def _elsewhere(comparison: ComparisonData, short: bool) -> list[str]:
    """Where to find what the tables leave out."""
    lines = []
    if short and comparison.plan.baseline is None:
        lines.append("The pairs of the other runs are in Markdown, LaTeX, JSON and the report.")
    elif short and len(comparison.keys) * len(comparison.score_tables) > 1:
        lines.append("Intervals and p of the other measures are in Markdown, LaTeX, CSV, JSON and the report.")
    if len(comparison.keys) > 1 and comparison.plan.baseline is None and len(comparison.runs) > 2:
        others = [
            f"{key} {sum(pair.verdict in ('better', 'worse') for pair in pairs)} of {len(pairs)}"
            for key in comparison.keys[1:]
            if (pairs := [pair for pair in comparison.tested_pairs if pair.measure == key])
        ]
        counts = f" (significant pairs: {', '.join(others)})" if others else ""
        lines.append(f"The tests of the other measures are in the JSON{counts}.")
    if len(comparison.keys) > 1 and comparison.slices:
        lines.append("The slices of the other measures are in the CSV and the JSON.")
    return lines


def _groups(comparison: ComparisonData, shown: bool) -> str:
    """The meaning of the letters of groups and, where no column shows them, the letters of every run."""
    meaning = f"Groups: runs that share a letter are not significantly different on {comparison.keys[0]}"
    if comparison.plan.baseline is not None and len(comparison.runs) > 2:
        meaning += "; pairs without the baseline are corrected together, apart from those with it"
    if shown:
        return f"{meaning}."
    k = comparison.score_tables[0].k
    letters = ", ".join(f"{row.run} {row.group}" for row in comparison.leaderboard_rows if row.k == k)
    return f"{meaning}: {letters}."


def unjudged_lines(comparison: ComparisonData, names: Mapping[str, str] | None = None) -> list[str]:
    """The range of unjudged documents above the cutoff of the first measure, if any. `names` replace those of runs."""
    if not any(c.unjudged for c in comparison.coverage.values()):
        return []
    table = comparison.score_tables[0]
    first = table.columns[0]
    cutoff = None if first.measure is None else first.measure.cutoff
    where = f"first {cutoff:g} documents" if cutoff is not None else "retrieved documents"
    shares = {
        run: 1 - judged
        for pair in comparison.tested_pairs
        if cutoff is not None and (pair.measure, pair.k) == (first.key, table.k)
        for run, judged in ((pair.run, pair.judged_run), (pair.baseline, pair.judged_baseline))
        if judged is not None
    }
    if not shares:
        where = "retrieved documents"
        counts = {run: comparison.coverage[run] for run in comparison.runs if run in comparison.coverage}
        shares = {run: count.unjudged / count.documents for run, count in counts.items() if count.documents}
    return [unjudged_line(shares, where, names)] if any(shares.values()) else []


def movers_lines(comparison: ComparisonData, most: int, texts: Mapping[str, object] | None) -> list[str]:
    """For every run the queries that it lost and won by most: a headline, and one line per query."""
    lines: list[str] = []
    for moved in comparison.movers_by_run(most):
        for headline, queries in _halves(moved):
            lines.append(headline)
            for mover in queries:
                text = f" {_text(mover, texts)}" if texts and mover.query_id in texts else ""
                documents = f"; {_documents(mover)}" if mover.documents else ""
                lines.append(f"- {mover.query_id}{text}: {mover.before:.4f} -> {mover.after:.4f}{documents}")
    return lines


def movers_tables(comparison: ComparisonData, most: int, texts: Mapping[str, object] | None) -> list[Table]:
    """The same as tables, one for the queries that a run lost and one for those it won; no empty ones."""
    heads = ["query", *(["text"] if texts else []), "before", "after", "documents"]
    tables = []
    for headline, queries in (half for moved in comparison.movers_by_run(most) for half in _halves(moved)):
        rows: list[list[Cell]] = [
            [mover.query_id, *([_text(mover, texts)] if texts else []), mover.before, mover.after, _documents(mover)]
            for mover in queries
        ]
        tables += [Table(heads, rows, title=headline)] if rows else []
    return tables


def _halves(moved: RunMovers) -> list[tuple[str, tuple[Mover, ...]]]:
    return [
        (f"{moved.run} vs {moved.baseline}: {counted(count, 'query', 'queries')} {what} on {moved.measure}", queries)
        for what, count, queries in (("lost", moved.queries_lost, moved.lost), ("won", moved.queries_won, moved.won))
    ]


def _text(mover: Mover, texts: Mapping[str, object]) -> str:
    """The text of a query on one line, cut if it is long."""
    line = " ".join(str(texts.get(mover.query_id, "")).split())
    return line if len(line) <= SHOWN_TEXT else f"{line[: SHOWN_TEXT - 3]}..."


def _documents(mover: Mover) -> str:
    none = "not retrieved"
    shown = [
        f"{move.doc_id} (grade {move.grade:g}) {move.before or none} -> {move.after or none}"
        for move in mover.documents[:SHOWN_DOCUMENTS]
    ]
    more = len(mover.documents) - len(shown)
    return "; ".join([*shown, *([f"and {counted(more, 'other')}"] if more else [])])


def comparison_text(comparison: ComparisonData, movers: int = 0, texts: Mapping[str, object] | None = None) -> str:
    """The verdict, the tables, the remarks and the queries that changed most as plain text."""
    text = document_text(comparison_document(comparison, screen=True))
    return joined([text, "\n".join(movers_lines(comparison, movers, texts)) if movers else ""])


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
