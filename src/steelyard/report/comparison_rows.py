"""A comparison's tables as rows, shared by every way of writing them down."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.comparison.board import COMPOSITE
from steelyard.report.tables import Cell, Table

if TYPE_CHECKING:
    from steelyard.comparison.board import Column
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


def heading(column: Column) -> str:
    """A measure's column in a table of our own: times are in milliseconds."""
    return f"{column.key} ms" if scale_of(column) != 1 else column.key


def scale_of(column: Column) -> float:
    """What a measure's values are multiplied by to be read: seconds become milliseconds."""
    return 1e3 if column.measure is not None and column.measure.name == "Latency" else 1.0


def _gap(pair: Pair, scale: float) -> str:
    return (
        "" if pair.difference != pair.difference else f"{pair.difference * scale:+.4f} {pair.stars}".rstrip()
    )


def leaderboard_table(comparison: Comparison) -> Table:
    """Run, cutoff, values, the ranks it may have, and its group."""
    at = comparison.boards[0].k is not None
    shown = comparison.boards[0].columns
    columns = ["rank", "run", *(["k"] if at else []), *map(heading, shown), "ranks", "group"]
    rows: list[list[Cell]] = [
        [
            row.rank,
            row.run,
            *([row.k] if at else []),
            *(mean * scale_of(column) for mean, column in zip(row.means.values(), shown, strict=True)),
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
    scales = [scale_of(column) for column in comparison.boards[0].columns]
    columns = [f"against {baseline}", *(["k"] if at else []), *map(heading, comparison.boards[0].columns)]
    found = {(pair.run, pair.measure): pair for pair in comparison.tested}
    rows: list[list[Cell]] = []
    for standing in comparison.standings:
        if standing.run != baseline:
            labels = [key if standing.k is None else f"{key} at {standing.k}" for key in comparison.keys]
            cells = [
                _gap(found[standing.run, label], scale) for label, scale in zip(labels, scales, strict=True)
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
        per = "runs tested on it" if plan.baseline is not None else "pairs of runs"
        corrected = (
            ""
            if plan.correction == "none"
            else f", corrected by {plan.correction} within each measure for the {per}"
        )
        if plan.test in ("tukey", "max-t"):
            corrected = f", corrected within each measure for the {per}"
        said.append(
            f"p: paired {plan.test} test by query{corrected}. *** p < 0.001, ** p < 0.01, * p < 0.05, ns otherwise."
        )
        said.append(
            "Every test, with intervals and effect sizes, is in the JSON, in `pairs` and in the report."
        )
        said += [_groups(comparison)]
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


def _groups(comparison: Comparison) -> str:
    """The runs that differences too small to tell join, in words."""
    board = comparison.boards[0]
    groups: dict[int, list[str]] = {}
    for row in comparison.standings:
        if row.k == board.k:
            groups.setdefault(row.group, []).append(row.run)
    listed = "; ".join(", ".join(runs) for runs in groups.values())
    return f"Joined by differences on {comparison.keys[0]} too small to tell: {listed}."


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
