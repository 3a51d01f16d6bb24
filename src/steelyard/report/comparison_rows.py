"""A comparison's tables as rows, shared by every way of writing them down."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.comparison.board import COMPOSITE
from steelyard.report.tables import Cell, Table

if TYPE_CHECKING:
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
    """The tests: against a baseline, a row a run; otherwise a row a pair, on the measure that ranks the runs."""
    return _against_baseline(comparison) if comparison.plan.baseline is not None else _every_two(comparison)


def _against_baseline(comparison: Comparison) -> Table:
    """Every measure's difference from the baseline, with its stars."""
    baseline = comparison.plan.baseline
    at = comparison.boards[0].k is not None
    columns = [f"against {baseline}", *(["k"] if at else []), *comparison.keys]
    found = {(pair.run, pair.measure): pair for pair in comparison.tested}
    rows: list[list[Cell]] = []
    for standing in comparison.standings:
        if standing.run != baseline:
            labels = [key if standing.k is None else f"{key} at {standing.k}" for key in comparison.keys]
            cells = [
                f"{found[standing.run, label].difference:+.4f} {found[standing.run, label].stars}".rstrip()
                for label in labels
            ]
            rows.append([standing.run, *([standing.k] if at else []), *cells])
    return Table(columns, rows)


def _every_two(comparison: Comparison) -> Table:
    """The pairs of the measure that ranks the runs: difference, interval, p, effect, wins, ties and losses."""
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
    ranking = {
        key if board.k is None else f"{key} at {board.k}"
        for board in comparison.boards
        for key in comparison.keys[:1]
    }
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
        for pair in comparison.tested
        if pair.measure in ranking
    ]
    return Table(columns, rows)


def slice_table(comparison: Comparison) -> Table | None:
    """The measure that ranks the runs, within each slice: a row a run, a column a slice."""
    if not comparison.slices:
        return None
    key = comparison.keys[0]
    heads = [f"{cut.value} ({cut.queries:,})" for cut in comparison.slices]
    runs = list(dict.fromkeys(row.run for row in comparison.standings))
    rows: list[list[Cell]] = [[run, *(cut.means[run][key] for cut in comparison.slices)] for run in runs]
    return Table([f"{key} by {comparison.slices[0].column}", *heads], rows)


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
        said.append(
            "Every test, with intervals and effect sizes, is in the JSON, in `pairs` and in the report."
        )
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
    return said + _coverage(comparison) + list(comparison.notes)


def _coverage(comparison: Comparison) -> list[str]:
    """What coverage has to say, once where it is the same for every run."""
    said: dict[str, list[str]] = {}
    for name, covered in comparison.coverage.items():
        for sentence in replace(covered, unjudged=0).sentences():
            said.setdefault(sentence, []).append(name)
    everyone = [s for s, names in said.items() if len(names) == len(comparison.coverage)]
    lines = [f"All runs: {' '.join(everyone)}"] if everyone else []
    for name in comparison.coverage:
        own = [s for s, names in said.items() if name in names and s not in everyone]
        if own:
            lines.append(f"{name}: {' '.join(own)}")
    shares = {name: c.unjudged / c.documents for name, c in comparison.coverage.items() if c.documents}
    if any(shares.values()):
        least, most = min(shares, key=lambda name: shares[name]), max(shares, key=lambda name: shares[name])
        span = (
            f"{shares[least]:.0%} ({least}) to {shares[most]:.0%} ({most})"
            if least != most
            else f"{shares[least]:.0%}"
        )
        lines.append(f"Never judged: {span} of the documents that came back.")
    return lines
