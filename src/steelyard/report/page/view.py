"""The content of the page's template: verdict, tables, notes, definitions and coverage, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any

import numpy as np

from steelyard.comparison import failures as kinds
from steelyard.comparison.columns import BoardColumn, bounds_text, columns_of, is_time, partly_judged, scale_of
from steelyard.comparison.data import ComparisonData
from steelyard.comparison.failures import RunFailures, low_cutoff, places_of
from steelyard.comparison.leaderboard import LeaderboardRow, Verdict
from steelyard.comparison.next_steps import next_steps
from steelyard.comparison.pairs import Pair, rule_outcomes
from steelyard.comparison.scores import COMPOSITE, Column, ScoreTable
from steelyard.dialects.explain import explain
from steelyard.notes import in_short, sentence
from steelyard.report.comparison import p_heading, pair_cells, stability_lines, with_unit
from steelyard.report.page.embed import embedded_json
from steelyard.report.page.queries import Kept
from steelyard.report.page.subject import Subject
from steelyard.report.stages import stages_panels
from steelyard.report.summary import all_notes, unchecked, verdict_lines
from steelyard.report.tables import LONG_NAME, long_ends, short_names, table_html
from steelyard.statistics import FAMILY_TESTS, shown_p
from steelyard.wording import counted, listed, worded

FAR = 3  # A run is far from the best if its distance is more than this many times the widest interval.
LINE, SHORT = 110, 28  # Characters of a line of the verdict, and of a name in it.
MANY = 12  # Runs from which on the page shows ranges of ranks instead of letters, and a matrix without numbers.
NAMED = 3  # Names in a list of the verdict: it names two of more and counts the others.


def view_of(subject: Subject, failures: Sequence[RunFailures], kept: Kept) -> dict[str, Any]:
    """Everything that the template shows, except the data of the scripts and the charts."""
    from markupsafe import Markup

    comparison = subject.comparison
    pairs, further = _pairs(comparison), columns_of(comparison, "page")
    verdict = verdict_lines(_with_short_names(comparison), LINE)
    counts = {"runs": len(comparison.runs), "queries": len(comparison.score_tables[0].queries)}
    counts |= {} if comparison.source is None else {"judgments": len(comparison.source.qrels)}
    # A value and what it would become stay on one line.
    findings = subject.check.tables[:1] if subject.check is not None else ()
    check = "".join(map(table_html, findings)).replace(" -&gt; ", "&nbsp;→&nbsp;")
    disagree = "interval-and-p-disagree"
    return {
        "long": LONG_NAME,
        "many": MANY,
        "shared": tuple(map(len, long_ends(comparison.runs))),
        "verdict": (verdict[0], " ".join(verdict[1:])),
        "unchecked": unchecked(comparison),
        "steps": _steps(subject),
        "warnings": warnings(comparison),
        "failures": _failures(subject, failures, kept),
        "matrix": _matrix(comparison),
        "uncharted": listed([run for run in comparison.runs if run not in subject.candidates] or [""]),
        "lead": lead(comparison),
        "numbers": [(name, f"{count:,}") for name, count in counts.items()],
        "boards": [_rows(subject, scores, further) for scores in comparison.score_tables],
        "further": [{"name": column.name, "heading": column.heading("page")} for column in further],
        "judged": partly_judged(comparison),
        "stability": " ".join(stability_lines(comparison)),
        "pairs": pairs,
        "ranking": comparison.keys[0] if len(pairs) < len(comparison.tested_pairs) else "",
        "disagreement": [sentence(note) for note in comparison.notes if note.code == disagree],
        "p_heading": p_heading(comparison),
        "corrected": _corrected(comparison),
        "approximation": _approximation(subject),
        "stages": Markup(stages_panels(subject.stages)),
        "check": Markup(check),
        "costs": _costs(subject),
        "notes": [sentence(note) for note in comparison.notes if note.severity == "info" and note.code != disagree],
        "definitions": definitions(comparison),
        "policies": policies(comparison),
        "made": [
            (run, *subject.made[run], sort_key(comparison, run)) for run in comparison.runs if run in subject.made
        ],
    }


def _with_short_names(comparison: ComparisonData) -> Verdict:
    verdict = comparison.verdict
    short = short_names((*comparison.runs, *comparison.unmeasured), SHORT)
    others = (verdict.tied, verdict.undecided, verdict.unmeasured)
    tied, undecided, unmeasured = ([short[run] for run in runs] for runs in others)
    lead = verdict.lead
    if lead is not None:
        lead = replace(lead, leaders=tuple(short[run] for run in lead.leaders), second=short[lead.second])
    return Verdict(verdict.headline, (), tied, undecided, unmeasured, lead, verdict.labels)


def _steps(subject: Subject) -> list[dict[str, Any]]:
    """What to do next: the text, and the state of the page that shows the queries."""
    comparison = subject.comparison
    short = short_names(comparison.runs)
    controls = tuple(set(comparison.runs) - set(subject.candidates))
    return [
        {
            "text": sentence(step.note.renamed(short)),
            "view": embedded_json({name: step.view[name] for name in step.view if name != "pool"}),
            "opens": bool(step.view) and "pool" not in step.view,
            "pool": step.view.get("pool", ""),
        }
        for step in next_steps(comparison, subject.seconds, subject.slice_columns, controls)
    ]


def warnings(comparison: ComparisonData) -> list[dict[str, str]]:
    """The notes that are not mere information, the most serious first: severity, a text for one line, and all of it.

    Of notes with the same code about several runs, the first is given, with the number of the others.
    """
    serious = [(about, note) for about, note in all_notes(comparison) if note.severity != "info"]
    others = Counter(note.code for about, note in serious if about)
    lines: dict[str, dict[str, str]] = {}
    for about, note in serious:
        more = f" ({counted(others[note.code] - 1, 'similar warning')})" if others[note.code] > 1 else ""
        short = f"{about}: {in_short(note)}{more}" if about else in_short(note)
        line = {"severity": note.severity, "short": short, "text": sentence(note)}
        lines.setdefault(note.code if about else str(note), line)
    return list(lines.values())


KINDS = (
    ("missed", "Missed", kinds.MISSED | kinds.UNANSWERED, "no relevant document in the whole list"),
    ("low", "Ranked low", kinds.LOW, "the first relevant document is below the cutoff"),
    ("partly", "Found in part", kinds.PARTLY, "some relevant documents are not within the cutoff"),
    (
        *("distracted", "Distractor above relevant", kinds.DISTRACTED),
        "a document that misleads is above the first relevant one",
    ),
    ("unjudged", "Unjudged at rank 1", kinds.UNJUDGED, "the first document has no judgment"),
    ("repeated", "Duplicates", kinds.REPEATED, "a document is repeated within the cutoff"),
    ("empty", "Empty list", kinds.UNANSWERED, "nothing was retrieved"),
)
"""The kinds of failure: name of the filter, title, bits, meaning."""


def _failures(subject: Subject, failures: Sequence[RunFailures], kept: Kept) -> dict[str, Any] | None:
    """The number of queries on which each run fails, by kind; kinds that do not occur are left out."""
    if not failures:
        return None
    comparison = subject.comparison
    places = places_of(failures, [comparison.score_tables[0].queries[place] for place in kept.places])
    counts = {}
    for run, run_failures in zip(comparison.runs, failures, strict=True):
        failed = np.where(run_failures.failures[places] & kinds.NOTHING, 0, run_failures.failures[places])
        counts[run] = [int(np.count_nonzero(failed & bits)) for _, _, bits, _ in KINDS]
    shown = [place for place in range(len(KINDS)) if any(row[place] for row in counts.values())]
    if not shown:
        return None
    size = max(1, len(places))
    rows = [
        {"run": run, "cells": [(KINDS[i][0], counts[run][i], round(counts[run][i] / size, 3)) for i in shown]}
        for run in comparison.run_order
    ]
    return {"kinds": [KINDS[place] for place in shown], "rows": rows, "cutoff": low_cutoff(comparison)}


def _matrix(comparison: ComparisonData) -> dict[str, Any] | None:
    """Every two runs on the measure that ranks them: rows of cells, and the details of every pair."""
    pairs = comparison.every_pair
    if not pairs or len(comparison.runs) < 3:
        return None
    column = comparison.score_tables[0].columns[0]
    order = comparison.run_order
    numbers = {frozenset((pair.run, pair.baseline)): number for number, pair in enumerate(pairs)}

    def cell(run: str, other: str) -> dict[str, Any] | None:
        number = numbers.get(frozenset((run, other)))
        if number is None:
            return None
        pair = pairs[number]
        difference = (1 if pair.run == run else -1) * pair.difference * scale_of(column)
        good = (difference > 0) == (column.better != "less")
        unclear = {"undecided": "undecided", "not significant": "same", "equal": "same", "not tested": "same"}
        return {
            "number": number,
            "text": "0.000" if abs(difference) < 5e-4 else f"{difference:+.3f}",
            "kind": unclear.get(pair.verdict, "gain" if good else "loss"),
            "stars": "?" if pair.verdict == "undecided" else pair.stars if "*" in pair.stars else "",
        }

    rows = [[cell(run, other) if run != other else None for other in order] for run in order]
    return {"runs": order, "rows": rows, "pairs": [_details(comparison, column, pair) for pair in pairs]}


def _details(comparison: ComparisonData, column: Column, pair: Pair) -> dict[str, Any]:
    """One pair, as the page shows it when a cell of the matrix is clicked."""
    cells = _pair(column, pair)
    return {
        "run": comparison.runs.index(pair.run),
        "against": comparison.runs.index(pair.baseline),
        "facts": [
            [f"Difference on {cells['measure']}", cells["difference"]],
            [comparison.interval_heading, cells["interval"]],
            [p_heading(comparison), f"{cells['p']}: {cells['verdict']}"],
            ["Won / tied / lost", cells["tally"]],
            ["Cohen's d", cells["effect"]],
        ],
        "power": cells["power"],
    }


def lead(comparison: ComparisonData) -> list[tuple[str, str]]:
    """The two runs that the verdict is about: pairs of name and value."""
    top, pair = comparison.leaderboard_rows[0].run, comparison.leading_pair
    if pair is None:
        return []
    short = short_names(comparison.runs)
    cells = _pair(comparison.score_tables[0].columns[0], pair)
    names = f"{short[pair.run]} vs {short[pair.baseline]}"
    facts = [
        (names, cells["difference"]),
        (comparison.interval_heading, cells["interval"]),
        (p_heading(comparison), f"{cells['p']}, {cells['verdict']}"),
        ("Won, tied, lost", cells["tally"]),
    ]
    undecided = [other for other in comparison.every_pair if other.verdict == "undecided" and top in other.names]
    if undecided:
        why = "overlap rule" if any(rule_outcomes(other.reason) for other in undecided) else "unjudged documents"
        others = [short[other.baseline if other.run == top else other.run] for other in undecided]
        facts.append((f"Undecided ({why})", listed(others, NAMED)))
    if rule_outcomes(pair.reason):
        facts.append(("Difference by overlap rule", rule_outcomes(pair.reason)))
    elif pair.needed and not pair.p_adjusted < comparison.plan.alpha:
        facts.append((f"Queries needed for {names}", f"about {float(f'{pair.needed:.2g}'):,.0f}"))
    return facts


def shown(column: Column, value: float | None) -> str:
    """A mean as text: four places, milliseconds for times."""
    if value is None or isnan(value):
        return "–"
    if is_time(column):
        return f"{value * 1e3:.3g} ms"
    return f"{value:.4f}" if abs(value) >= 1e-4 or value == 0 else f"{value:.1e}"


def _rows(subject: Subject, scores: ScoreTable, further: Sequence[BoardColumn]) -> list[dict[str, Any]]:
    """The rows of one score table, best first; a row opens a group that shares no letter with the rows above it."""
    comparison = subject.comparison
    rows = [row for row in comparison.leaderboard_rows if row.k == scores.k]
    base = comparison.plan.baseline
    against = [pair for pair in comparison.tested_pairs if pair.baseline == base and pair.k == scores.k]
    tested = {(pair.run, pair.measure): pair for pair in against}
    spans = {column.key: _span(rows, column) for column in scores.columns}
    best = {column.key: _best(rows, column, subject.candidates) if len(rows) > 1 else None for column in scores.columns}
    groups = [row.group for row in rows]
    opens = [i for i in range(1, len(rows)) if not set("".join(groups[:i])) & set("".join(groups[i:]))]
    tied = comparison.verdict.tied if scores is comparison.score_tables[0] else ()
    return [
        {
            **vars(row),
            "number": comparison.runs.index(row.run),
            "ranks": str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low} to {row.rank_high}",
            "opens": place in opens,
            "tied": len(tied) > 1 and row.run in tied,
            "control": row.run not in subject.candidates,
            "baseline": row.run == base,
            "further": [_further_cell(comparison, column, row) for column in further],
            "cells": [
                {
                    "value": "" if isnan(row.means[column.key]) else repr(row.means[column.key]),
                    "text": shown(column, row.means[column.key]),
                    "best": row.run in subject.candidates and row.means[column.key] == best[column.key],
                    "composite": column.key == COMPOSITE,
                    "bar": _bar(row, column, spans[column.key]),
                    "change": _change(tested.get((row.run, column.key)), column),
                }
                for column in scores.columns
            ],
        }
        for place, row in enumerate(rows)
    ]


def _further_cell(comparison: ComparisonData, column: BoardColumn, row: LeaderboardRow) -> dict[str, str]:
    """A cell of a column after the measures: what it is sorted by, its text, and an addition in small print."""
    cell = column.cell(comparison, row, "page")
    text = "" if cell is None else str(cell)
    aside = bounds_text(comparison, row) if column.name == "judged" else ""
    return {"value": text.removesuffix("%"), "text": text, "aside": aside}


def _best(rows: Sequence[LeaderboardRow], column: Column, candidates: Collection[str] | None = None) -> float | None:
    """The best mean; only of some runs where they are given."""
    rows = [row for row in rows if candidates is None or row.run in candidates]
    means = [row.means[column.key] for row in rows if not isnan(row.means[column.key])]
    return (min if column.better == "less" else max)(means, default=None)


def _span(rows: Sequence[LeaderboardRow], column: Column) -> tuple[float, float] | None:
    """The range of the interval bars of a column: that of the runs that are not far from the best."""
    intervals = {row.run: pair for row in rows if (pair := row.intervals[column.key]) and not isnan(pair[0])}
    best = _best([row for row in rows if row.run in intervals], column)
    if best is None:
        return None
    reach = FAR * max(high - low for low, high in intervals.values())
    near = [row.run for row in rows if row.run in intervals and abs(row.means[column.key] - best) <= reach]
    ends = [end for run in near for end in intervals[run]]
    return (min(ends), max(ends)) if ends and max(ends) > min(ends) else None


def _bar(row: LeaderboardRow, column: Column, span: tuple[float, float] | None) -> dict[str, Any] | None:
    """The position of a mean and its interval within the column's range, in percent."""
    interval, mean = row.intervals[column.key], row.means[column.key]
    if span is None or interval is None or isnan(interval[0]) or isnan(mean):
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
        "text": f"{'better' if better else 'worse'} than {pair.baseline} by {abs(pair.difference):.4f}, p "
        f"{shown_p(pair.p_adjusted)}",
    }


def _corrected(comparison: ComparisonData) -> str:
    plan = comparison.plan
    if plan.test in FAMILY_TESTS:
        return ", corrected for all pairs of a measure"
    return "" if plan.correction == "none" else f", corrected ({plan.correction}) for the pairs of a measure"


def _pairs(comparison: ComparisonData) -> list[dict[str, Any]]:
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
    return {
        "measure": with_unit(pair.label, scale),
        "run": pair.run,
        "vs": pair.baseline,
        **pair_cells(pair, scale, "–"),
        "tally": f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}",
        "power": pair.sentence if rule_outcomes(pair.reason) else pair.power_sentence(scale),
    }


COSTS = (
    ("p50 ms", "p50_seconds", 1e3, "p50 {:.2f} ms"),
    ("p95 ms", "p95_seconds", 1e3, "p95 {:.2f} ms"),
    ("p99 ms", "p99_seconds", 1e3, "p99 {:.2f} ms"),
    ("queries/s", "queries_per_second", 1.0, "{:,.0f} queries/s at once"),
    ("index s", "index_seconds", 1.0, "indexed in {:.2f} s"),
    ("index MB", "index_bytes", 1e-6, "index {:.2f} MB"),
    ("peak MB", "peak_bytes", 1e-6, "peak {:.2f} MB"),
)
"""The costs of a run: heading, field, factor, and how a sentence states it."""


def _approximation(subject: Subject) -> dict[str, Any] | None:
    """What approximate search costs: one row per run."""
    rows = subject.approximation
    if not rows:
        return None

    def cells(row: Mapping[str, Any]) -> list[str]:
        seconds, exact = row["seconds"], row["exact_seconds"]
        times = ["–"] * 3
        if seconds and exact:
            times = [_cost(seconds * 1e3), _cost(exact * 1e3), f"{exact / seconds:.1f}"]
        neighbours = "–" if row["neighbours"] is None else f"{row['neighbours']:.1%}"
        interval = f"{row['low']:+.4f} to {row['high']:+.4f}"
        return [neighbours, f"{row['lost']:.4f}", interval, shown_p(row["p_adjusted"]), *times]

    return {
        "k": rows[0]["k"],
        "measure": rows[0]["measure"],
        "filtered": any(row.get("filter") is not None for row in rows),
        "rows": [{"run": row["run"], "exact": row["exact"], "cells": cells(row)} for row in rows],
    }


def _costs(subject: Subject) -> dict[str, Any] | None:
    """The cost of each run, in the columns that are known for any run."""
    columns = [cost for cost in COSTS if any(row.get(cost[1]) is not None for row in subject.costs)]
    if not columns:
        return None
    rows = [
        {
            "run": row["run"],
            "cells": ["–" if row.get(key) is None else _cost(float(row[key]) * by) for _, key, by, _ in columns],
            "errors": len(row.get("errors") or {}),
        }
        for row in subject.costs
    ]
    return {"columns": [cost[0] for cost in columns], "rows": rows}


def _cost(value: float) -> str:
    """Four digits, never as a power of ten.

    >>> _cost(0.01234), _cost(15934.2)
    ('0.01234', '15,934')
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}" if value >= 1e-4 else f"{value:.6f}"


def definitions(comparison: ComparisonData) -> list[dict[str, str]]:
    """Every measure: as the caller wrote it, spelled out, and its definition."""
    seen: dict[str, dict[str, str]] = {}
    for scores in (*comparison.score_tables, *filter(None, comparison.components)):
        for column in scores.columns:
            measure = column.measure
            if measure is not None and measure.spelled not in seen:
                text = str(explain(measure, comparison.dialect or "steelyard")).partition("\n\n")[2]
                named = {"key": column.key, "spelled": measure.spelled}
                seen[measure.spelled] = {**named, "headline": measure.definition.headline, "text": text}
    return list(seen.values())


def policies(comparison: ComparisonData) -> list[tuple[str, str]]:
    """Every policy with its meaning; for ties and the precision of scores, the runs that they apply to."""
    if comparison.options is None:
        return []
    kept = [run for run in comparison.runs if keeps_order(comparison, run)]
    only = ""
    if kept:
        only = f" (not applied to {listed(kept)}, which {worded(len(kept), 'has its', 'have their')} own order)"
    if len(kept) == len(comparison.runs):
        only = " (not applied: every run has its own order)"
    return [
        (f"{name}={value}", text + (only if name in ("ties", "single") else ""))
        for name, (value, text) in comparison.options.meanings().items()
    ]


def keeps_order(comparison: ComparisonData, run: str) -> bool:
    """Whether a run has its own order, to which no policy is applied."""
    return comparison.source is not None and comparison.source.run(run).ordered


def sort_key(comparison: ComparisonData, run: str) -> str:
    """How the documents of a run are ordered."""
    if keeps_order(comparison, run):
        return "order of the run (ranked lists)"
    return f"score, descending (ties={comparison.coverage[run].policies.ties})"
