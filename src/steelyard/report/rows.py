"""A comparison's tables as rows, shared by every way of writing them down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.comparison.scores import COMPOSITE, label
from steelyard.notes import sentence
from steelyard.report.tables import Cell, Table
from steelyard.statistics import FAMILY_TESTS, shown_p
from steelyard.wording import SHOWN_NAMES, counted, listed, said_once

if TYPE_CHECKING:
    from steelyard.comparison.movers import DocumentMove, Moved, Mover
    from steelyard.comparison.pairs import Pair
    from steelyard.comparison.result import Comparison
    from steelyard.comparison.scores import Board, Column


_TITLES = {
    "recall": "Average Recall",
    "precision": "Average Precision",
    "f1": "Average F1 Score",
    "mrr": "Average MRR",
    "hit_rate": "Average Hit Rate",
    "ndcg": "Average nDCG",
    "confusion": "Average Confusion Rate",
}


FAILED = "FAILED"
"""The heading of the queries that runs failed on."""


def title(key: str, dialect: str) -> str:
    """A measure's column title: its key, or what the leaderboard dialect calls it."""
    if key == COMPOSITE:
        return "Composite Score"
    return _TITLES.get(key.lower(), key) if dialect == "leaderboard" else key


def heading(column: Column) -> str:
    """A measure's column in a table of our own: times are in milliseconds."""
    return f"{column.key} ms" if scale_of(column) != 1 else column.key


def scale_of(column: Column) -> float:
    """What a measure's values are multiplied by to be read: seconds become milliseconds."""
    return 1e3 if column.measure is not None and column.measure.name == "Latency" else 1.0


def leaderboard_table(comparison: Comparison) -> Table:
    """Run, cutoff, values, the ranks it may have, its group, and on how many queries it failed, where any did."""
    at = comparison.boards[0].k is not None
    shown = comparison.boards[0].columns
    columns = ["rank", "run", *(["k"] if at else []), *map(heading, shown), "ranks", "group"]
    failed = comparison.failed
    columns += [FAILED] if failed else []
    rows: list[list[Cell]] = [
        [
            row.rank,
            row.run,
            *([row.k] if at else []),
            *(mean * scale_of(column) for mean, column in zip(row.means.values(), shown, strict=True)),
            f"{row.rank_low}-{row.rank_high}" if row.rank_low != row.rank_high else str(row.rank_low),
            row.group,
            *([failed.get(row.run, "")] if failed else []),
        ]
        for row in comparison.standings
    ]
    return Table(columns, rows, keys=3 if at else 2)


def pairs_tables(comparison: Comparison) -> list[Table]:
    """The tests: difference, interval, corrected p, verdict, effect and tally of every pair.

    Of two runs one table, a row a measure. Against a baseline a table for every measure, a row a run.
    Of every two runs the measure that ranks them, a row a pair: all measures would be too many.
    """
    scales = {
        label(column.key, board.k): scale_of(column)
        for board in comparison.boards
        for column in board.columns
    }
    p = p_heading(comparison)
    columns = ["difference", "95 % interval", p, "verdict", "relative", "d", "won/tied/lost"]
    tested = comparison.tested
    couples = list(dict.fromkeys((pair.run, pair.baseline) for pair in tested))
    if len(couples) == 1:
        rows = [[_unit(pair.label, scales), *_cells(pair, scales)] for pair in tested]
        return [Table(["measure", *columns], rows, title=f"{couples[0][0]} against {couples[0][1]}")]
    if comparison.plan.baseline is not None:
        against, ahead, shown = f" against {comparison.plan.baseline}", ["run"], list(scales)
    else:
        against, ahead = "", ["run", "against"]
        shown = [label(comparison.keys[0], board.k) for board in comparison.boards]
    return [
        Table(
            [*ahead, *columns],
            [
                [*(pair.run, pair.baseline)[: len(ahead)], *_cells(pair, scales)]
                for pair in tested
                if pair.label == measure
            ],
            title=f"{_unit(measure, scales)}{against}",
            keys=len(ahead),
        )
        for measure in shown
        if tested
    ]


LONG = 40
"""More rows of pairs than this are too many for a screen."""


def is_long(comparison: Comparison) -> bool:
    """Whether the pairs that `pairs_tables` shows are too many for a screen."""
    rows = sum(len(table.rows) for table in pairs_tables(comparison))
    return len(comparison.runs) > 2 and rows > LONG


def pairs_in_short(comparison: Comparison) -> list[Table]:
    """Of many pairs what a screen can take.

    Against a baseline: all of the measure that ranks the runs, and of every measure difference and stars.
    Of every two runs: those of the leader.
    """
    whole = pairs_tables(comparison)
    if comparison.plan.baseline is None:
        return [
            _leaders(comparison, board, table) for board, table in zip(comparison.boards, whole, strict=True)
        ]
    return [whole[0], _stars(comparison)] if len(whole) > 1 else whole


def _leaders(comparison: Comparison, board: Board, table: Table) -> Table:
    """The rows of a table of every two runs that are about the leader, which its title then names."""
    leader = next(row.run for row in comparison.standings if row.k == board.k)
    rows = [row[1:] for row in table.rows if row[0] == leader]
    return replace(
        table,
        columns=table.columns[1:],
        rows=rows,
        title=f"{table.title}, {leader} against every other run",
        keys=1,
    )


def _stars(comparison: Comparison) -> Table:
    """Every measure's difference from the baseline, with its stars."""
    at = comparison.boards[0].k is not None
    shown = comparison.boards[0].columns
    found = {(pair.run, pair.label): pair for pair in comparison.tested}
    rows: list[list[Cell]] = []
    for row in comparison.standings:
        pairs = [found.get((row.run, label(column.key, row.k))) for column in shown]
        cells = [
            "" if pair is None or pair.difference != pair.difference
            else f"{pair.difference * scale_of(column):+.4f} {pair.stars}".rstrip()
            for pair, column in zip(pairs, shown, strict=True)
        ]  # fmt: skip
        if any(pairs):
            rows.append([row.run, *([row.k] if at else []), *cells])
    heads = ["run", *(["k"] if at else []), *map(heading, shown)]
    return Table(heads, rows, title=f"differences from {comparison.plan.baseline}", keys=2 if at else 1)


def p_heading(comparison: Comparison) -> str:
    """The heading of the p-values: by what they are corrected."""
    how = comparison.plan.corrected_by
    return "p" if how == "none" else f"p ({how})"


def _unit(measure: str, scales: Mapping[str, float]) -> str:
    """A pair's measure, with its unit where its values are multiplied."""
    return measure if scales[measure] == 1 else f"{measure} ms"


def _cells(pair: Pair, scales: Mapping[str, float]) -> list[Cell]:
    """What a table shows of a pair, its name aside."""
    scale = scales[pair.label]
    return [
        "" if pair.difference != pair.difference else f"{pair.difference * scale:+.4f}",
        "" if pair.low != pair.low else f"{pair.low * scale:+.4f} to {pair.high * scale:+.4f}",
        starred_p(pair),
        pair.verdict,
        "" if pair.relative != pair.relative else f"{pair.relative:+.1%}",
        "" if pair.effect != pair.effect else f"{pair.effect:+.2f}",
        f"{pair.wins}/{pair.ties}/{pair.losses}",
    ]


def starred_p(pair: Pair) -> str:
    """The corrected p-value with its stars, if it has any."""
    return f"{shown_p(pair.p_adjusted)} {pair.stars if pair.stars != 'ns' else ''}".rstrip()


def slice_table(comparison: Comparison) -> Table | None:
    """The measure that ranks the runs, within each slice: a row a run, a column a slice."""
    if not comparison.slices:
        return None
    column = comparison.boards[0].columns[0]
    heads = [f"{cut.value} ({cut.queries:,})" for cut in comparison.slices]
    runs = list(dict.fromkeys(row.run for row in comparison.standings))
    rows: list[list[Cell]] = [
        [run, *(cut.means[run][column.key] * scale_of(column) for cut in comparison.slices)] for run in runs
    ]
    measure = label(column.key, comparison.boards[0].k)
    shown = _unit(measure, {measure: scale_of(column)})
    return Table(["run", *heads], rows, title=f"{shown} by {comparison.slices[0].column} (queries)")


def remarks(
    comparison: Comparison, *, groups: bool = True, tables: bool = True, short: bool = False
) -> list[str]:
    """What goes below the tables: how p-values were made, what is not shown, coverage and notes.

    `groups` says that the leaderboard shows each run's group; where it does not, the groups are listed.
    `tables` says that the remarks stand below the pairs and the slices, `short` that these are not all.
    """
    said = [f"Measured with {comparison.settings}."] if comparison.settings else []
    if comparison.tested:
        said += [_how_tested(comparison), _groups(comparison, groups)]
        said += _elsewhere(comparison, short) if tables else []
    stability = comparison.stability()
    if stability is not None and comparison.weights:
        said.append(
            f"With weights drawn around the given ones the order changes in {stability.order_changes:.0%} "
            f"of draws and the top in {stability.top_changes:.0%}."
        )
        if stability.flips:
            flip = stability.flips[0]
            name = list(comparison.weights)[flip.measure]
            said.append(
                f"A weight of {flip.flips_at:.3g} for {name} (now {flip.weight:g}) would put {comparison.runs[flip.new_top]} on top."
            )
    return said + _coverage(comparison) + list(comparison.notes)


def _how_tested(comparison: Comparison) -> str:
    plan = comparison.plan
    per = "runs tested on it" if plan.baseline is not None else "pairs of runs"
    corrected = ""
    if len({(pair.run, pair.baseline) for pair in comparison.tested}) > 1:
        if plan.test in FAMILY_TESTS:
            corrected = f", corrected within each measure for the {per}"
        elif plan.correction != "none":
            corrected = f", corrected by {plan.correction} within each measure for the {per}"
    return (
        f"p: paired {plan.test} test by query{corrected}; *** p < 0.001, ** p < 0.01, * p < 0.05, ns otherwise. "
        f"Verdicts are at alpha {plan.alpha:g}. Intervals are of each pair alone, by bootstrap."
    )


def _elsewhere(comparison: Comparison, short: bool) -> list[str]:
    """Where to find what the tables leave out."""
    said = []
    if short and comparison.plan.baseline is None:
        said.append("The pairs of the other runs are in Markdown, LaTeX, JSON and the report.")
    elif short and len(comparison.keys) * len(comparison.boards) > 1:
        said.append("Intervals and p of the other measures are in Markdown, LaTeX, CSV, JSON and the report.")
    if len(comparison.keys) > 1 and comparison.plan.baseline is None and len(comparison.runs) > 2:
        said.append("The tests of the other measures are in the JSON.")
    if len(comparison.keys) > 1 and comparison.slices:
        said.append("The slices of the other measures are in the CSV and the JSON.")
    return said


def _groups(comparison: Comparison, shown: bool) -> str:
    """What the letters of groups mean; and, where no column shows them, which runs have which."""
    meaning = f"Two runs share a letter where the data cannot tell them apart on {comparison.keys[0]}"
    if shown:
        return f"Groups: {meaning[0].lower()}{meaning[1:]}."
    board = comparison.boards[0]
    listed = ", ".join(f"{row.run} {row.group}" for row in comparison.standings if row.k == board.k)
    return f"{meaning}: {listed}."


def _coverage(comparison: Comparison) -> list[str]:
    """What coverage has to say, once for all runs that it says the same of."""
    alike = said_once(
        {name: map(sentence, replace(c, unjudged=0).all_notes()) for name, c in comparison.coverage.items()}
    )
    everyone = tuple(comparison.coverage)
    lines = [
        f"{'All runs' if names == everyone else listed(names, SHOWN_NAMES)}: {' '.join(alike[names])}"
        for names in sorted(alike, key=lambda names: names != everyone)
    ]
    shares = {name: c.unjudged / c.documents for name, c in comparison.coverage.items() if c.documents}
    if any(shares.values()):
        least, most = min(shares, key=lambda name: shares[name]), max(shares, key=lambda name: shares[name])
        low, high = f"{shares[least]:.0%}", f"{shares[most]:.0%}"
        span = low if low == high else f"{low} ({least}) to {high} ({most})"
        lines.append(f"Never judged: {span} of the documents that came back.")
    return lines


SHOWN_DOCUMENTS = 4
"""Documents shown of a query that moved; how many others there are is said."""

SHOWN_TEXT = 80
"""Characters shown of a query's text."""


def movers_lines(comparison: Comparison, most: int, texts: Mapping[str, object] | None) -> list[str]:
    """For every run the queries lost and won most, a headline and a line each."""
    lines: list[str] = []
    for each in comparison.moved(most):
        for headline, found in _halves(each):
            lines.append(headline)
            lines += [_line(mover, texts or {}) for mover in found]
    return lines


def movers_tables(comparison: Comparison, most: int, texts: Mapping[str, object] | None) -> list[Table]:
    """The same as tables, one for what a run lost and one for what it won; none where there is nothing."""
    known = texts or {}
    return [
        Table(
            ["query", *(["text"] if known else []), "before", "after", "documents"],
            [_row(mover, known) for mover in found],
            title=headline,
        )
        for each in comparison.moved(most)
        for headline, found in _halves(each)
        if found
    ]


def _halves(each: Moved) -> list[tuple[str, tuple[Mover, ...]]]:
    return [
        (
            f"{each.run} against {each.baseline}: {counted(queries, 'query', 'queries')} {what} on {each.measure}",
            found,
        )
        for what, queries, found in (
            ("lost", each.queries_lost, each.lost),
            ("won", each.queries_won, each.won),
        )
    ]


def _line(mover: Mover, texts: Mapping[str, object]) -> str:
    asked = f" {_text(mover, texts)}" if mover.query_id in texts else ""
    documents = _documents(mover)
    return f"- {mover.query_id}{asked}: {mover.before:.4f} -> {mover.after:.4f}{f'; {documents}' if documents else ''}"


def _row(mover: Mover, texts: Mapping[str, object]) -> list[Cell]:
    asked = [_text(mover, texts)] if texts else []
    return [mover.query_id, *asked, mover.before, mover.after, _documents(mover)]


def _text(mover: Mover, texts: Mapping[str, object]) -> str:
    """A query's text on one line, cut where it is long."""
    line = " ".join(str(texts.get(mover.query_id, "")).split())
    return line if len(line) <= SHOWN_TEXT else f"{line[: SHOWN_TEXT - 3]}..."


def _documents(mover: Mover) -> str:
    shown = [_document(move) for move in mover.documents[:SHOWN_DOCUMENTS]]
    more = len(mover.documents) - len(shown)
    return "; ".join([*shown, *([f"and {counted(more, 'other')}"] if more else [])])


def _document(move: DocumentMove) -> str:
    return f"{move.doc_id} (grade {move.grade:g}) {move.before or 'absent'} -> {move.after or 'absent'}"
