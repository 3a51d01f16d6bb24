"""A comparison's tables as rows, shared by every way of writing them down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.comparison.board import COMPOSITE
from steelyard.report.tables import Cell, Table

if TYPE_CHECKING:
    from steelyard.comparison.pairs import Pair
    from steelyard.comparison.result import Comparison

_TITLES = {
    "recall": "Average Recall",
    "precision": "Average Precision",
    "f1": "Average F1 Score",
    "mrr": "Average MRR",
    "hit_rate": "Average Hit Rate",
    "ndcg": "Average nDCG",
    "confusion": "Average Confusion Rate",
}


def title(key: str, dialect: str) -> str:
    """A measure's column title: its key, or what the leaderboard dialect calls it."""
    if key == COMPOSITE:
        return "Composite Score"
    return _TITLES.get(key.lower(), key) if dialect == "leaderboard" else key


def leaderboard_table(comparison: Comparison) -> Table:
    """Run, cutoff, values, the ranks it may have, and its group."""
    at = comparison.boards[0].k is not None
    columns = ["rank", "run", *(["k"] if at else []), *comparison.keys, "ranks", "group"]
    rows: list[list[Cell]] = [
        [
            row.rank,
            row.run,
            *([row.k] if at else []),
            *row.means.values(),
            f"{row.rank_low}-{row.rank_high}" if row.rank_low != row.rank_high else str(row.rank_low),
            row.group,
        ]
        for row in comparison.standings
    ]
    return Table(columns, rows)


def pairs_table(comparison: Comparison) -> Table:
    """Each measure and pair: difference, interval, p, stars, effect, wins, ties and losses.

    Without a baseline there are many pairs: those of the measure that ranks the runs are shown.
    """
    columns = [
        "measure",
        "run",
        "against",
        "difference",
        "relative",
        "95 % interval",
        "p",
        "stars",
        "d",
        "wins/ties/losses",
    ]
    rows: list[list[Cell]] = [
        [
            pair.measure,
            pair.run,
            pair.baseline,
            f"{pair.difference:+.4f}",
            "" if pair.relative != pair.relative else f"{pair.relative:+.1%}",
            "" if pair.low != pair.low else f"{pair.low:+.4f} to {pair.high:+.4f}",
            shown_p(pair.p_adjusted),
            pair.stars,
            "" if pair.effect != pair.effect else f"{pair.effect:+.2f}",
            f"{pair.wins}/{pair.ties}/{pair.losses}",
        ]
        for pair in _shown_pairs(comparison)
    ]
    return Table(columns, rows)


def _shown_pairs(comparison: Comparison) -> list[Pair]:
    """The pairs worth a row, measure by measure."""
    measures = list(dict.fromkeys(pair.measure for pair in comparison.tested))
    if comparison.plan.baseline is None:
        measures = measures[:: len(comparison.keys)]
    return [pair for measure in measures for pair in comparison.tested if pair.measure == measure]


def slice_tables(comparison: Comparison) -> list[tuple[str, Table]]:
    """One table a slice, runs best first."""
    return [
        (
            f"{cut.column} = {cut.value} ({cut.queries:,} queries)",
            Table(["run", *comparison.keys], [[run, *cut.means[run].values()] for run in cut.order]),
        )
        for cut in comparison.slices
    ]


def shown_p(p: float) -> str:
    """A p-value to read: three digits, or below a thousandth."""
    if p != p:
        return "no test"
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def remarks(comparison: Comparison) -> list[str]:
    """What goes below the tables: how p-values were made, what the groups mean, coverage and notes."""
    plan = comparison.plan
    said = []
    if comparison.tested:
        corrected = (
            ""
            if plan.correction == "none"
            else f", corrected by {plan.correction} over {len(comparison.tested)} tests"
        )
        if plan.test in ("tukey", "max-t"):
            corrected = ", corrected for all pairs of a measure"
        said.append(
            f"p: paired {plan.test} test by query{corrected}. *** p < 0.001, ** p < 0.01, * p < 0.05, ns otherwise."
        )
        hidden = len(comparison.tested) - len(_shown_pairs(comparison))
        if hidden:
            said.append(f"{hidden:,} more tests, of the other measures, are in the JSON and in `pairs`.")
        said.append(
            "Runs in one group cannot be told apart by these queries; `ranks` is where a run may stand (95 %)."
        )
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
    covered = {name: each.sentences() for name, each in comparison.coverage.items()}
    said += [f"{name}: {' '.join(sentences)}" for name, sentences in covered.items() if sentences]
    return said + list(comparison.notes)
