"""What the template shows: the verdict, the tables and how it was measured, ready to be written down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.comparison.leaderboard import Standing
from steelyard.comparison.pairs import Pair, disagreement
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import COMPOSITE, Board, Column
from steelyard.dialects.explain import explain
from steelyard.report.page.subject import Subject
from steelyard.report.rows import p_heading, scale_of, starred_p, title
from steelyard.statistics import FAMILY_TESTS, shown_p
from steelyard.wording import SHOWN_NAMES, listed, worded

FAR = 3
"""A run is far from the best when more than this many of the widest intervals lie between them."""


def view_of(subject: Subject) -> dict[str, Any]:
    """Everything the template needs but the data of the scripts and the charts."""
    comparison = subject.comparison
    odd = disagreement(comparison.tested, comparison.plan)
    pairs = _pairs(comparison)
    return {
        "title": subject.title,
        "verdict": (comparison.verdict.headline, comparison.verdict.detail),
        "lead": lead(comparison),
        "numbers": numbers(subject),
        "columns": [_head(comparison, column) for column in comparison.boards[0].columns],
        "boards": [_rows(comparison, board) for board in comparison.boards],
        "at": comparison.boards[0].k is not None,
        "sliders": _sliders(comparison),
        "stability": _stability(comparison),
        "pairs": pairs,
        "ranking": comparison.keys[0] if len(pairs) < len(comparison.tested) else "",
        "disagreement": odd,
        "plan": comparison.plan,
        "p_heading": p_heading(comparison),
        "corrected": _corrected(comparison),
        "costs": _costs(subject),
        "notes": [note for note in comparison.notes if note not in odd],
        "absent": subject.absent,
        "definitions": definitions(comparison),
        "dialect": comparison.dialect,
        "policies": policies(comparison),
        "coverage": _coverage(comparison),
        "made": [
            (run, *subject.made[run], ordered_by(comparison, run))
            for run in comparison.runs
            if run in subject.made
        ],
        "facts": subject.facts,
        "command": subject.command,
    }


def lead(comparison: Comparison) -> list[tuple[str, str]]:
    """The leader's difference from the run it is held against: what and how much."""
    top = comparison.standings[0].run
    first = comparison.boards[0].columns[0]
    pairs = [pair for pair in comparison.tested if pair.measure == first.key]
    mine = [pair for pair in pairs if top in (pair.run, pair.baseline)]
    if not mine:
        return []
    pair = mine[0]
    tied = [run for run in comparison.verdict.tied if run != top]
    said = [
        (f"{pair.run} vs {pair.baseline}", f"{pair.difference:+.4f}"),
        ("95% interval", "–" if pair.low != pair.low else f"{pair.low:+.4f} to {pair.high:+.4f}"),
        (p_heading(comparison), f"{starred_p(pair)}, {pair.verdict}"),
        ("Won, tied, lost", f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}"),
        ("Tied with the leader", listed(tied, SHOWN_NAMES) if tied else "no run"),
    ]
    if pair.needed and not pair.p_adjusted < comparison.plan.alpha:
        said.append(("Queries needed", f"about {pair.needed:,}"))
    return said


def numbers(subject: Subject) -> list[tuple[str, str]]:
    """How much was measured."""
    comparison = subject.comparison
    found = [("runs", f"{len(comparison.runs):,}"), ("queries", f"{len(comparison.boards[0].queries):,}")]
    if comparison.source is not None:
        found.append(("judgments", f"{len(comparison.source.qrels):,}"))
    return found


def shown(column: Column, value: float | None) -> str:
    """A mean as text: four places, milliseconds for times."""
    if value is None or value != value:
        return "–"
    if is_time(column):
        return f"{value * 1e3:.3g} ms"
    return f"{value:.4f}" if abs(value) >= 1e-4 or value == 0 else f"{value:.1e}"


def is_time(column: Column) -> bool:
    """Whether a measure's values are seconds."""
    return column.measure is not None and column.measure.name == "Latency"


def _head(comparison: Comparison, column: Column) -> dict[str, str]:
    return {
        "key": column.key,
        "title": title(column.key, comparison.dialect),
        "better": "less" if column.better == "less" else "more",
    }


def _letters(rows: Sequence[Standing]) -> set[str]:
    """The letters of some rows' groups."""
    return set("".join(row.group for row in rows))


def _rows(comparison: Comparison, board: Board) -> list[dict[str, Any]]:
    """The rows of one board, best first."""
    rows = [row for row in comparison.standings if row.k == board.k]
    base = comparison.plan.baseline
    tested = {
        (pair.run, pair.measure): pair
        for pair in comparison.tested
        if pair.baseline == base and pair.k == board.k
    }
    spans = {column.key: _span(rows, column) for column in board.columns}
    best = {column.key: _best(rows, column) for column in board.columns}
    return [
        {
            "run": row.run,
            "number": comparison.runs.index(row.run),
            "k": row.k,
            "rank": row.rank,
            "ranks": "" if row.rank_low == row.rank_high else f"{row.rank_low}–{row.rank_high}",
            "group": row.group,
            "opens": place > 0 and not _letters(rows[:place]) & _letters(rows[place:]),
            "baseline": row.run == base,
            "failed": comparison.failed.get(row.run, ""),
            "cells": [
                {
                    "value": ""
                    if row.means[column.key] != row.means[column.key]
                    else repr(row.means[column.key]),
                    "text": shown(column, row.means[column.key]),
                    "best": len(rows) > 1 and row.means[column.key] == best[column.key],
                    "composite": column.key == COMPOSITE,
                    "bar": _bar(row, column, spans[column.key]),
                    "change": _change(tested.get((row.run, column.key)), column),
                }
                for column in board.columns
            ],
        }
        for place, row in enumerate(rows)
    ]


def _best(rows: Sequence[Standing], column: Column) -> float | None:
    known = [row.means[column.key] for row in rows if row.means[column.key] == row.means[column.key]]
    if not known:
        return None
    return min(known) if column.better == "less" else max(known)


def _span(rows: Sequence[Standing], column: Column) -> tuple[float, float] | None:
    """The range that a column's interval bars share: of the runs that are not far from the best."""
    known = {row.run: pair for row in rows if (pair := row.intervals[column.key]) and pair[0] == pair[0]}
    best = _best([row for row in rows if row.run in known], column)
    if best is None:
        return None
    reach = FAR * max(high - low for low, high in known.values())
    near = [row.run for row in rows if row.run in known and abs(row.means[column.key] - best) <= reach]
    ends = [end for run in near for end in known[run]]
    return (min(ends), max(ends)) if ends and max(ends) > min(ends) else None


def _bar(row: Standing, column: Column, span: tuple[float, float] | None) -> dict[str, Any] | None:
    """Where a mean and its interval lie within the column's range, in hundredths."""
    interval, mean = row.intervals[column.key], row.means[column.key]
    if span is None or interval is None or interval[0] != interval[0] or mean != mean:
        return None
    low, high = span

    def at(value: float) -> float:
        return round(min(100.0, max(0.0, 100 * (value - low) / (high - low))), 2)

    said = f"95 % interval {shown(column, interval[0])} to {shown(column, interval[1])}"
    return {
        "low": repr(low),
        "high": repr(high),
        "from": at(interval[0]),
        "to": at(interval[1]),
        "mean": round(at(mean) - 1, 2),
        "off": not low <= mean <= high,
        "said": said,
    }


def _change(pair: Pair | None, column: Column) -> dict[str, str] | None:
    """The stars of a real difference from the baseline, and which way it goes."""
    if pair is None or pair.stars in ("", "ns"):
        return None
    better = (pair.difference < 0) == (column.better == "less")
    return {
        "shape": "▲" if better else "▼",
        "kind": "gain" if better else "loss",
        "stars": pair.stars,
        "said": f"{'better' if better else 'worse'} than {pair.baseline} by {abs(pair.difference):.4f}, p {shown_p(pair.p_adjusted)}",
    }


def _sliders(comparison: Comparison) -> list[dict[str, Any]]:
    board = comparison.components[0]
    if board is None or comparison.weights is None:
        return []
    top = max(1.0, *comparison.weights.values())
    return [
        {
            "key": column.key,
            "title": title(column.key, comparison.dialect),
            "less": column.better == "less",
            "weight": f"{comparison.weights[column.key]:g}",
            "top": f"{top:g}",
        }
        for column in board.columns
    ]


def _corrected(comparison: Comparison) -> str:
    plan = comparison.plan
    if plan.test in FAMILY_TESTS:
        return ", corrected for all pairs of a measure"
    return (
        "" if plan.correction == "none" else f", corrected by {plan.correction} over the pairs of a measure"
    )


def _stability(comparison: Comparison) -> str:
    found = comparison.stability()
    if found is None:
        return ""
    return (
        f"With weights drawn at random around the given ones, the order changes in {found.order_changes:.0%} "
        f"of draws and the top in {found.top_changes:.0%}."
    )


def _pairs(comparison: Comparison) -> list[dict[str, Any]]:
    """The pairs, measure by measure: of two runs or against a baseline all, else those of the ranking measure."""
    every = comparison.plan.baseline is not None or len(comparison.runs) < 3
    return [
        _pair(column, pair)
        for board in comparison.boards
        for column in (board.columns if every else board.columns[:1])
        for pair in comparison.tested
        if (pair.measure, pair.k) == (column.key, board.k)
    ]


def _pair(column: Column, pair: Pair) -> dict[str, Any]:
    scale = scale_of(column)
    told = "–" if pair.low != pair.low else f"{pair.low * scale:+.4f} to {pair.high * scale:+.4f}"
    return {
        "measure": pair.label if scale == 1 else f"{pair.label} ms",
        "run": pair.run,
        "against": pair.baseline,
        "difference": f"{pair.difference * scale:+.4f}",
        "interval": told,
        "p": starred_p(pair),
        "verdict": pair.verdict,
        "effect": "–" if pair.effect != pair.effect else f"{pair.effect:+.2f}",
        "tally": f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}",
        "sentence": pair.sentence if scale == 1 else f"{pair.sentence.partition(':')[0].rstrip('.')}.",
    }


_COSTS = (
    ("p50 ms", "p50_seconds", 1e3),
    ("p95 ms", "p95_seconds", 1e3),
    ("p99 ms", "p99_seconds", 1e3),
    ("queries/s", "queries_per_second", 1.0),
    ("index s", "index_seconds", 1.0),
    ("index MB", "index_bytes", 1e-6),
    ("peak MB", "peak_bytes", 1e-6),
)


def _costs(subject: Subject) -> dict[str, Any] | None:
    """What each run cost, the columns that are known of any."""
    known = [each for each in _COSTS if any(row.get(each[1]) is not None for row in subject.costs)]
    if not known:
        return None
    rows = [
        {
            "run": row["run"],
            "cells": [
                "–" if row.get(key) is None else f"{float(row[key]) * by:,.4g}" for _, key, by in known
            ],
            "errors": len(row.get("errors") or {}),
            "cached": bool(row.get("cached")),
        }
        for row in subject.costs
    ]
    return {
        "columns": [name for name, _, _ in known],
        "rows": rows,
        "cached": any(row["cached"] for row in rows),
    }


def definitions(comparison: Comparison) -> list[dict[str, str]]:
    """Every measure as it was used: what the caller wrote, what that is spelled out, and all of its definition."""
    seen: dict[str, dict[str, str]] = {}
    boards = [*comparison.boards, *(board for board in comparison.components if board is not None)]
    for board in boards:
        for column in board.columns:
            if column.measure is None or column.measure.spelled in seen:
                continue
            meant = column.measure
            text = str(explain(meant, comparison.dialect or "steelyard"))
            seen[meant.spelled] = {
                "key": column.key,
                "spelled": meant.spelled,
                "headline": meant.definition.headline,
                "text": text.partition("\n\n")[2],
            }
    return list(seen.values())


def policies(comparison: Comparison) -> list[tuple[str, str]]:
    """What was done in each edge case, in words; of ties and scores, to which runs it applies."""
    covered = next(iter(comparison.coverage.values()), None)
    if covered is None:
        return []
    kept = [run for run in comparison.runs if keeps_order(comparison, run)]
    only = ""
    if kept:
        only = f"; not of {listed(kept)}, which {worded(len(kept), 'keeps its', 'keep their')} own order"
    if len(kept) == len(comparison.runs):
        only = "; of no run here: each keeps its own order"
    return [
        (f"{name}={value}", text + (only if name in ("ties", "single") else ""))
        for name, (value, text) in covered.policies.meanings().items()
    ]


def keeps_order(comparison: Comparison, run: str) -> bool:
    """Whether a run came with an order of its own, which no policy touches."""
    return comparison.source is not None and comparison.source.run(run).ordered


def ordered_by(comparison: Comparison, run: str) -> str:
    """What put a run's documents in order, in words."""
    if keeps_order(comparison, run):
        return "its own: ranked lists, kept as they came"
    return f"score, highest first (ties={comparison.coverage[run].policies.ties})"


def _coverage(comparison: Comparison) -> dict[str, Any] | None:
    if not comparison.coverage:
        return None
    rows = [
        {
            "run": run,
            "counts": [f"{count:,}" for count in covered.counts().values()],
            "said": covered.all_notes(),
        }
        for run, covered in comparison.coverage.items()
    ]
    names = next(iter(comparison.coverage.values())).counts()
    return {"columns": [name.replace("_", " ") for name in names], "rows": rows}
