"""The content of the page's template: verdict, tables, notes, definitions and coverage, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.comparison.leaderboard import LeaderboardRow
from steelyard.comparison.pairs import Pair
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import COMPOSITE, Column, ScoreTable
from steelyard.dialects.explain import explain
from steelyard.notes import Note, sentence
from steelyard.report.page.subject import Subject
from steelyard.report.rows import (
    is_time,
    p_heading,
    scale_of,
    shown_judged,
    stability_lines,
    starred_p,
    title,
)
from steelyard.statistics import FAMILY_TESTS, shown_p
from steelyard.wording import SHOWN_NAMES, listed, worded

FAR = 3
"""A run is far from the best if its distance is more than this many times the widest interval."""


def view_of(subject: Subject) -> dict[str, Any]:
    """Everything that the template shows, except the data of the scripts and the charts."""
    comparison = subject.comparison
    pairs = _pairs(comparison)

    def is_disagreement(each: Note) -> bool:
        return each.code == "interval-and-p-disagree"

    return {
        "title": subject.title,
        "verdict": (comparison.verdict.headline, comparison.verdict.detail),
        "lead": lead(comparison),
        "numbers": numbers(subject),
        "columns": [_head(comparison, column) for column in comparison.score_tables[0].columns],
        "boards": [_rows(comparison, scores) for scores in comparison.score_tables],
        "judged": bool(shown_judged(comparison)),
        "unmeasured": [
            (run, reason, comparison.failed.get(run, "")) for run, reason in comparison.unmeasured.items()
        ],
        "at": comparison.score_tables[0].k is not None,
        "sliders": _sliders(comparison),
        "stability": " ".join(stability_lines(comparison)),
        "pairs": pairs,
        "ranking": comparison.keys[0] if len(pairs) < len(comparison.tested_pairs) else "",
        "disagreement": [sentence(each) for each in comparison.notes if is_disagreement(each)],
        "tested_by": comparison.tested_by,
        "intervals_by": comparison.intervals_by,
        "plan": comparison.plan,
        "p_heading": p_heading(comparison),
        "corrected": _corrected(comparison),
        "costs": _costs(subject),
        "notes": [sentence(each) for each in comparison.notes if not is_disagreement(each)],
        "absent": subject.absent,
        "definitions": definitions(comparison),
        "dialect": comparison.dialect,
        "policies": policies(comparison),
        "coverage": _coverage(comparison),
        "made": [
            (run, *subject.made[run], sort_key(comparison, run))
            for run in comparison.runs
            if run in subject.made
        ],
        "facts": subject.facts,
        "command": subject.command,
    }


def lead(comparison: Comparison) -> list[tuple[str, str]]:
    """The leader compared with the baseline or the second run: pairs of name and value."""
    top = comparison.leaderboard_rows[0].run
    first = comparison.score_tables[0].columns[0]
    pairs = [pair for pair in comparison.tested_pairs if pair.measure == first.key]
    pair = next((pair for pair in pairs if top in (pair.run, pair.baseline)), None)
    if pair is None:
        return []
    tied = [run for run in comparison.verdict.tied if run != top]
    facts = [
        (f"{pair.run} vs {pair.baseline}", f"{pair.difference:+.4f}"),
        ("95% interval", "–" if pair.low != pair.low else f"{pair.low:+.4f} to {pair.high:+.4f}"),
        (p_heading(comparison), f"{starred_p(pair)}, {pair.shown_verdict}"),
        ("Won, tied, lost", f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}"),
        ("Tied with the leader", listed(tied, SHOWN_NAMES) if tied else "no run"),
    ]
    undecided = [
        each.baseline if each.run == top else each.run
        for each in pairs
        if each.verdict == "undecided" and top in (each.run, each.baseline)
    ]
    if undecided:
        facts.append(("Undecided (unjudged documents)", listed(undecided, SHOWN_NAMES)))
    if pair.needed and not pair.p_adjusted < comparison.plan.alpha:
        facts.append(("Queries needed", f"about {pair.needed:,}"))
    return facts


def numbers(subject: Subject) -> list[tuple[str, str]]:
    """The numbers of runs, queries and judgments."""
    comparison = subject.comparison
    counts = [
        ("runs", f"{len(comparison.runs):,}"),
        ("queries", f"{len(comparison.score_tables[0].queries):,}"),
    ]
    if comparison.source is not None:
        counts.append(("judgments", f"{len(comparison.source.qrels):,}"))
    return counts


def shown(column: Column, value: float | None) -> str:
    """A mean as text: four places, milliseconds for times."""
    if value is None or value != value:
        return "–"
    if is_time(column):
        return f"{value * 1e3:.3g} ms"
    return f"{value:.4f}" if abs(value) >= 1e-4 or value == 0 else f"{value:.1e}"


def _head(comparison: Comparison, column: Column) -> dict[str, str]:
    return {
        "key": column.key,
        "title": title(column.key, comparison.dialect),
        "better": "less" if column.better == "less" else "more",
    }


def _letters(rows: Sequence[LeaderboardRow]) -> set[str]:
    """The letters of some rows' groups."""
    return set("".join(row.group for row in rows))


def _rows(comparison: Comparison, scores: ScoreTable) -> list[dict[str, Any]]:
    """The rows of one score table, best first."""
    rows = [row for row in comparison.leaderboard_rows if row.k == scores.k]
    base = comparison.plan.baseline
    tested = {
        (pair.run, pair.measure): pair
        for pair in comparison.tested_pairs
        if pair.baseline == base and pair.k == scores.k
    }
    spans = {column.key: _span(rows, column) for column in scores.columns}
    best = {column.key: _best(rows, column) for column in scores.columns}
    judged = shown_judged(comparison)
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
            "cached": row.run in comparison.cached_times,
            "judged": judged.get((row.run, row.k)),
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
                for column in scores.columns
            ],
        }
        for place, row in enumerate(rows)
    ]


def _best(rows: Sequence[LeaderboardRow], column: Column) -> float | None:
    known = [row.means[column.key] for row in rows if row.means[column.key] == row.means[column.key]]
    if not known:
        return None
    return min(known) if column.better == "less" else max(known)


def _span(rows: Sequence[LeaderboardRow], column: Column) -> tuple[float, float] | None:
    """The range of the interval bars of a column: that of the runs that are not far from the best."""
    known = {row.run: pair for row in rows if (pair := row.intervals[column.key]) and pair[0] == pair[0]}
    best = _best([row for row in rows if row.run in known], column)
    if best is None:
        return None
    reach = FAR * max(high - low for low, high in known.values())
    near = [row.run for row in rows if row.run in known and abs(row.means[column.key] - best) <= reach]
    ends = [end for run in near for end in known[run]]
    return (min(ends), max(ends)) if ends and max(ends) > min(ends) else None


def _bar(row: LeaderboardRow, column: Column, span: tuple[float, float] | None) -> dict[str, Any] | None:
    """The position of a mean and its interval within the column's range, in percent."""
    interval, mean = row.intervals[column.key], row.means[column.key]
    if span is None or interval is None or interval[0] != interval[0] or mean != mean:
        return None
    low, high = span

    def at(value: float) -> float:
        return round(min(100.0, max(0.0, 100 * (value - low) / (high - low))), 2)

    return {
        "low": repr(low),
        "high": repr(high),
        "from": at(interval[0]),
        "to": at(interval[1]),
        "mean": round(at(mean) - 1, 2),
        "off": not low <= mean <= high,
        "text": f"95% interval {shown(column, interval[0])} to {shown(column, interval[1])}",
    }


def _change(pair: Pair | None, column: Column) -> dict[str, str] | None:
    """The stars and the direction of a significant difference from the baseline."""
    if pair is None or pair.stars in ("", "ns"):
        return None
    better = (pair.difference < 0) == (column.better == "less")
    return {
        "shape": "▲" if better else "▼",
        "kind": "gain" if better else "loss",
        "stars": pair.stars,
        "text": f"{'better' if better else 'worse'} than {pair.baseline} by {abs(pair.difference):.4f}, p {shown_p(pair.p_adjusted)}",
    }


def _sliders(comparison: Comparison) -> list[dict[str, Any]]:
    components = comparison.components[0]
    if components is None or comparison.weights is None:
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
        for column in components.columns
    ]


def _corrected(comparison: Comparison) -> str:
    plan = comparison.plan
    if plan.test in FAMILY_TESTS:
        return ", corrected for all pairs of a measure"
    return "" if plan.correction == "none" else f", corrected ({plan.correction}) for the pairs of a measure"


def _pairs(comparison: Comparison) -> list[dict[str, Any]]:
    """The pairs by measure: all for two runs or with a baseline, otherwise those of the measure that ranks the runs."""
    every = comparison.plan.baseline is not None or len(comparison.runs) < 3
    return [
        _pair(column, pair)
        for scores in comparison.score_tables
        for column in (scores.columns if every else scores.columns[:1])
        for pair in comparison.tested_pairs
        if (pair.measure, pair.k) == (column.key, scores.k)
    ]


def _pair(column: Column, pair: Pair) -> dict[str, Any]:
    scale = scale_of(column)
    interval = "–" if pair.low != pair.low else f"{pair.low * scale:+.4f} to {pair.high * scale:+.4f}"
    return {
        "measure": pair.label if scale == 1 else f"{pair.label} ms",
        "run": pair.run,
        "vs": pair.baseline,
        "difference": f"{pair.difference * scale:+.4f}",
        "interval": interval,
        "p": starred_p(pair),
        "verdict": pair.shown_verdict,
        "effect": "–" if pair.effect != pair.effect else f"{pair.effect:+.2f}",
        "tally": f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}",
        "power": pair.power_sentence(scale),
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
    """The cost of each run, in the columns that are known for any run."""
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
    """Every measure: as the caller wrote it, spelled out, and its definition."""
    seen: dict[str, dict[str, str]] = {}
    tables = [*comparison.score_tables, *filter(None, comparison.components)]
    for scores in tables:
        for column in scores.columns:
            measure = column.measure
            if measure is None or measure.spelled in seen:
                continue
            text = str(explain(measure, comparison.dialect or "steelyard"))
            seen[measure.spelled] = {
                "key": column.key,
                "spelled": measure.spelled,
                "headline": measure.definition.headline,
                "text": text.partition("\n\n")[2],
            }
    return list(seen.values())


def policies(comparison: Comparison) -> list[tuple[str, str]]:
    """Every policy with its meaning; for ties and the precision of scores, the runs that they apply to."""
    if comparison.options is None:
        return []
    kept = [run for run in comparison.runs if keeps_order(comparison, run)]
    only = ""
    if kept:
        only = (
            f" (not applied to {listed(kept)}, which {worded(len(kept), 'has its', 'have their')} own order)"
        )
    if len(kept) == len(comparison.runs):
        only = " (not applied: every run has its own order)"
    return [
        (f"{name}={value}", text + (only if name in ("ties", "single") else ""))
        for name, (value, text) in comparison.options.meanings().items()
    ]


def keeps_order(comparison: Comparison, run: str) -> bool:
    """Whether a run has its own order, to which no policy is applied."""
    return comparison.source is not None and comparison.source.run(run).ordered


def sort_key(comparison: Comparison, run: str) -> str:
    """How the documents of a run are ordered."""
    if keeps_order(comparison, run):
        return "order of the run (ranked lists)"
    return f"score, descending (ties={comparison.coverage[run].policies.ties})"


def _coverage(comparison: Comparison) -> dict[str, Any] | None:
    if not comparison.coverage:
        return None
    rows = [
        {
            "run": run,
            "counts": [f"{count:,}" for count in covered.counts().values()],
            "notes": list(map(sentence, covered.all_notes())),
        }
        for run, covered in comparison.coverage.items()
    ]
    counts = next(iter(comparison.coverage.values())).counts()
    return {"columns": [name.replace("_", " ") for name in counts], "rows": rows}
