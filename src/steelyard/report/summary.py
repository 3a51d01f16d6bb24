"""A comparison in short, as a terminal shows it: the verdict in two lines, one table that fits, three warnings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isnan

from steelyard.comparison.columns import FAILED, columns_of, is_time, measure_heading, run_label, scale_of
from steelyard.comparison.data import ComparisonData
from steelyard.comparison.leaderboard import LeaderboardRow, Verdict
from steelyard.comparison.next_steps import next_steps
from steelyard.comparison.pairs import Pair
from steelyard.comparison.scores import Column
from steelyard.notes import Note, by_severity, in_short
from steelyard.report.comparison import unjudged_lines
from steelyard.report.page.subject import comparison_subject
from steelyard.report.tables import WIDTH, Cell, Table, plain, short_names
from steelyard.wording import counted, listed, notes_by_names, shortened_name

MOST_ROWS = 20  # Runs that the table shows; --all shows the others.
MOST_WARNINGS = 3  # Warnings that are shown; --all shows the others.
MOST_STEPS = 2  # Things to do next that are shown; the page shows more.
SHORT_NAME = 14  # Characters of a name, of two on a line.
SHORTEST_NAME = 10  # Characters to which the name of a run is shortened at most.


@dataclass(frozen=True)
class Summary:
    """A comparison in short: the lines of the verdict, the table, what it leaves out, warnings, and what to do next.

    Each line of text fits the width. `significant`: whether the leader's lead is; None where nothing leads.
    """

    verdict: tuple[str, ...]
    significant: bool | None
    table: Table
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    next_steps: tuple[str, ...]


def summary(comparison: ComparisonData, width: int = WIDTH, notes: Iterable[Note] = ()) -> Summary:
    """The comparison in short, no line wider than `width`. `notes` are shown with its own."""
    verdict = comparison.verdict
    table, left_out = summary_table(comparison, width)
    controls = tuple(set(comparison.runs) - set(comparison_subject(comparison).candidates))
    steps = next_steps(comparison, controls=controls, most=MOST_STEPS)
    numbered = [("Next: " if place == 0 else "      ", step) for place, step in enumerate(steps[:MOST_STEPS])]
    return Summary(
        verdict=(*verdict_lines(verdict, width), *(cut(line, width) for line in unchecked(comparison))),
        significant=None if verdict.lead is None else verdict.lead.significant,
        table=table,
        left_out=tuple(left_out),
        warnings=tuple(warning_lines(all_notes(comparison, notes), width)),
        next_steps=tuple(head + cut(in_short(step.note), width - len(head)) for head, step in numbered),
    )


def summary_text(comparison: ComparisonData, width: int = WIDTH) -> str:
    """The comparison in short as text."""
    short = summary(comparison, width)
    table = [*plain(short.table).splitlines(), *short.left_out]
    last = [*short.warnings, *short.next_steps]
    return "\n".join([*short.verdict, "", *table, *(["", *last] if last else [])])


def unchecked(comparison: ComparisonData) -> list[str]:
    """The share of unjudged documents, if a lead is significant and nothing is known about them."""
    lead = comparison.verdict.lead
    known = {"relevant-documents-only", "documents-chosen"}.isdisjoint(note.code for note in comparison.notes)
    names = dict(zip(comparison.runs, _short_names(comparison.runs, SHORT_NAME), strict=True))
    return [] if known or lead is None or not lead.significant else unjudged_lines(comparison, names)


def verdict_lines(verdict: Verdict, width: int) -> list[str]:
    """The verdict in two lines: the longest wording that fits, perhaps with shortened names; then its judges.

    A headline of which no wording fits is wrapped: its last words say whether the difference is significant.
    """
    headlines = list(_headlines(verdict))
    fitting = next((line for line in headlines if len(line) <= width), headlines[-1])
    lines = [*textwrap.wrap(fitting, width), _fitting(_details(verdict), width), *textwrap.wrap(verdict.labels, width)]
    return [line for line in lines if line]


def _headlines(verdict: Verdict) -> Iterable[str]:
    """Ways to write the headline: with names as they are, then shorter and shorter."""
    lead = verdict.lead
    if lead is None:
        yield verdict.headline
        yield verdict.headline.replace(listed(verdict.tied), counted(len(verdict.tied), "run"))
        return
    longest = max(SHORTEST_NAME, *map(len, [*lead.leaders, lead.second]))
    for most in range(longest, SHORTEST_NAME - 1, -1):
        *names, second = _short_names([*lead.leaders, lead.second], most)
        leaders = names[0] if len(names) == 1 else f"{_joined(names, 2)} (equal)"
        leads = f"{'leads' if len(names) == 1 else 'lead'} {second} by {lead.difference:.4f}"
        outcomes, measure = lead.outcomes[1:] or lead.outcomes, f" on {lead.measure}"
        yield from (f"{leaders} ({lead.score:.4f}) {leads}{measure}: {outcome}" for outcome in outcomes)
        # The table has the measure, and nothing else has the number of queries that would be needed.
        yield from (f"{leaders} {leads}: {outcome}" for outcome in outcomes[:-1])
        yield from (f"{leaders} {leads}{shown}: {outcomes[-1]}" for shown in (measure, ""))


def _details(verdict: Verdict) -> Iterable[str]:
    """The runs that are not significantly below the leader, undecided or not measured: as many names as fit."""
    of = {
        "not significantly below the leader": verdict.tied[len(verdict.lead.leaders) :] if verdict.lead else (),
        "undecided": verdict.undecided,
        "not measured": verdict.unmeasured,
    }
    shown = {what: names for what, names in of.items() if names}
    longest = max((len(names) for names in shown.values()), default=0)
    for most in range(longest, -1, -1):
        lists = {what: _joined(names, most) if most else counted(len(names), "run") for what, names in shown.items()}
        text = "; ".join(f"{what}: {names}" for what, names in lists.items())
        yield f"{text[:1].upper()}{text[1:]}"


def _short_names(names: Sequence[str], most: int) -> list[str]:
    """The names; long ones without what they share, and without their middles."""
    parts = short_names(names, max(map(len, names), default=0))
    return [name if len(name) <= most else shortened_name(parts[name], most) for name in names]


def _joined(names: Sequence[str], most: int) -> str:
    """The first names and the number of the others."""
    return ", ".join([*names[:most], *([f"{len(names) - most:,} more"] if len(names) > most else [])])


def _fitting(texts: Iterable[str], width: int) -> str:
    """The first text that fits; otherwise the last one, cut."""
    last = ""
    for last in texts:
        if len(last) <= width:
            return last
    return cut(last, width)


def cut(text: str, width: int) -> str:
    """A text on one line, cut between two words where it is too long."""
    line = " ".join(text.split())
    if len(line) <= width:
        return line
    kept = line[: width - 4].rsplit(" ", 1)[0].rstrip(" ,;:.(")
    return f"{kept} ..."


def summary_table(comparison: ComparisonData, width: int) -> tuple[Table, list[str]]:
    """The leaderboard in the given width, and what it leaves out.

    Rank, run and the measure that ranks the runs come first, with the difference from the baseline (or from the first
    run) and its interval; then times and as many other measures as fit. Measures equal for all runs have none.
    """
    every = comparison.shown_rows
    baseline = [row for row in every[MOST_ROWS:] if row.run == comparison.plan.baseline]
    rows = [*every[: MOST_ROWS - len(baseline)], *baseline]
    first, *others = comparison.score_tables[0].columns
    fixed = {intervals: _fixed_columns(comparison, rows, first, intervals) for intervals in (True, False)}
    ranked = [row for row in every if row.rank is not None]
    texts = {column.key: {_text(row.means[column.key] * scale_of(column)) for row in ranked} for column in others}
    constant = [column for column in others if len(ranked) > 1 and len(texts[column.key]) == 1]
    optional = sorted((column for column in others if column not in constant), key=is_time, reverse=True)
    names = [run_label(row) for row in rows]
    chosen: list[Column] = []

    def made(kept: Sequence[Column], longest: int, intervals: bool = True) -> Table:
        cells = {"#": [row.rank for row in rows], "run": _short_names(names, longest)}
        cells |= fixed[intervals]
        failed = cells.pop(FAILED, None)
        for column in sorted(kept, key=lambda measure: (is_time(measure), others.index(measure))):
            cells["ms" if is_time(column) else column.key] = _values(rows, column)
        cells |= {} if failed is None else {FAILED: failed}
        return Table(list(cells), [list(row) for row in zip(*cells.values(), strict=True)], keys=2)

    longest = max((len(name) for name in names), default=0)
    lengths = range(longest, min(longest, SHORTEST_NAME) - 1, -1)
    forms = [(length, whole) for whole in (True, False) for length in lengths]
    least = next(((length, whole) for length, whole in forms if _width(made([], length, whole)) <= width), forms[-1])
    for column in optional:
        if _width(made([*chosen, column], *least)) <= width:
            chosen.append(column)
    lines = [f"{counted(len(every) - len(rows), 'more run')}: --all"] if len(every) > len(rows) else []
    if constant:
        equal = ", ".join(f"{column.key} {_text(rows[0].means[column.key] * scale_of(column))}" for column in constant)
        lines.append(cut(f"Equal for all runs: {equal}", width))
    if comparison.cached_times and not set(comparison.runs) - set(comparison.cached_times):
        lines.append("Times: cached, of an earlier run")
    left = [column.key for column in others if column not in chosen and column not in constant]
    if left:
        lines.append(cut(f"Also measured: {', '.join(left)} (--all)", width))
    if comparison.weights:
        lines.append(cut(f"composite: {_weights(comparison)}", width))
    if comparison.predicted_by:
        lines.append(cut(f"Estimated with judgments predicted by {comparison.predicted_by}", width))
    if comparison.tested_pairs:
        plan, interval = comparison.plan, comparison.interval_heading
        test = f"{plan.test} test{'' if plan.corrected_by == 'none' else f', {plan.corrected_by}'}"
        legend = f"[{interval}]; * p < .05, ** p < .01, *** p < .001 ({test})"
        lines.append(_fitting([legend, f"{test}: * p < .05, ** .01, *** .001; [{interval}]"], width))
    return made(chosen, *least), lines


def _weights(comparison: ComparisonData) -> str:
    components = comparison.components[0]
    assert components is not None
    assert comparison.weights is not None
    total = sum(comparison.weights.values())
    inverted = {column.key for column in components.columns if column.better == "less"}
    by_weight = sorted(comparison.weights.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{'1 - ' if name in inverted else ''}{name} {weight / total:.0%}" for name, weight in by_weight)


def _fixed_columns(
    comparison: ComparisonData, rows: Sequence[LeaderboardRow], first: Column, intervals: bool
) -> dict[str, list[Cell]]:
    """The columns that are always shown; differences with or without their intervals."""
    columns = {column.heading("summary"): column for column in columns_of(comparison, "summary")}
    cells = {heading: [column.cell(comparison, row, "summary") for row in rows] for heading, column in columns.items()}
    fixed = {"k": cells.pop("k")} if "k" in cells else {}
    fixed[measure_heading(first)] = _values(rows, first)
    if comparison.tested_pairs:
        name, pairs = _differences(comparison, rows, first)
        fixed[name] = _difference_cells(pairs, first, intervals)
    return fixed | cells


def _values(rows: Sequence[LeaderboardRow], column: Column) -> list[Cell]:
    """The means of a measure; times with two decimals below 10 ms, aligned."""
    values = [row.means[column.key] * scale_of(column) for row in rows]
    if not is_time(column):
        return list(values)
    digits = 2 if max(values) < 10 else 1 if max(values) < 1000 else 0
    texts = ["" if isnan(value) else f"{value:,.{digits}f}" for value in values]
    return [text.rjust(max(map(len, texts))) for text in texts]


def _differences(
    comparison: ComparisonData, rows: Sequence[LeaderboardRow], first: Column
) -> tuple[str, list[tuple[Pair, int] | None]]:
    """The heading of the differences, and for each row its pair and the sign of the difference."""
    baseline = comparison.plan.baseline
    leaders = {row.k: row.run for row in reversed(rows) if row.rank is not None}
    tested = [pair for pair in comparison.tested_pairs if pair.measure == first.key]
    pairs = {(pair.baseline, pair.run, pair.k): (pair, -1) for pair in tested}
    pairs |= {(pair.run, pair.baseline, pair.k): (pair, 1) for pair in tested}
    row_pairs = [pairs.get((row.run, baseline or leaders.get(row.k, ""), row.k)) for row in rows]
    names = set(leaders.values())
    other = baseline or (next(iter(names)) if len(names) == 1 else "first")
    return f"vs {_short_names([other, *(row.run for row in rows)], 20)[0]}", row_pairs


def _difference_cells(pairs: Sequence[tuple[Pair, int] | None], column: Column, intervals: bool) -> list[Cell]:
    """The difference, its interval and the stars of its test."""
    scale = scale_of(column)
    sizes = [abs(signed[0].difference * scale) for signed in pairs if signed is not None]
    digits = 4 if any(0 < size < 0.0005 for size in sizes) else 3
    cells: list[Cell] = []
    for signed in pairs:
        if signed is None:
            cells.append("")
            continue
        pair, sign = signed
        difference = sign * pair.difference * scale
        text = "" if isnan(difference) else f"{round(difference, digits) + 0.0:+.{digits}f}"
        if intervals and not isnan(pair.low):
            ends = sorted((sign * pair.low * scale, sign * pair.high * scale))
            text += f" [{', '.join(_bare(end, digits) for end in ends)}]"
        outcome = pair.verdict if pair.verdict in ("undecided", "not tested") else ""
        outcome = outcome or (pair.stars if "*" in pair.stars else "")
        equivalent = "equivalent" if pair.equivalent is not None else ""
        cells.append(" ".join(part for part in (text, outcome, equivalent) if part))
    return cells


def _bare(value: float, digits: int) -> str:
    """The end of an interval without the 0 before its point: -.000 is below 0, so that it agrees with the stars.

    >>> _bare(-0.0004, 3), _bare(-1e-17, 3), _bare(0.25, 3), _bare(-1.5, 1)
    ('-.000', '+.000', '+.250', '-1.5')
    """
    text = f"{round(value, 12) + 0.0:+.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 and text[1] == "0" else text


def _text(value: float) -> str:
    return "none" if isnan(value) else f"{value:.4f}"


def _width(table: Table) -> int:
    return max(map(len, plain(table).splitlines()))


def all_notes(comparison: ComparisonData, more: Iterable[Note] = ()) -> list[tuple[str, Note]]:
    """The notes on the comparison, each once, the most serious first, with the runs that they are about."""
    shared = notes_by_names({name: replace(cov, unjudged=0).all_notes() for name, cov in comparison.coverage.items()})
    everyone = tuple(comparison.coverage)
    about: dict[Note, str] = dict.fromkeys([*more, *comparison.notes], "")
    for names, notes in shared.items():
        for note in notes:
            about.setdefault(note, "" if names == everyone else _joined(names, 2))
    return [(about[note], note) for note in by_severity(about)]


def warning_lines(notes: Sequence[tuple[str, Note]], width: int) -> list[str]:
    """The warnings, one line each, the most serious first; of many, how many more there are."""
    serious = [(about, note) for about, note in notes if note.severity != "info"]
    texts = [f"{about}: {in_short(note)}" if about else in_short(note) for about, note in serious]
    shown = texts if len(texts) <= MOST_WARNINGS else texts[: MOST_WARNINGS - 1]
    lines = [cut(f"! {text}", width) for text in shown]
    if len(texts) > len(shown):
        lines.append(f"! {counted(len(texts) - len(shown), 'more warning')}: --all")
    return lines
