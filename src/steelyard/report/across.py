"""Several datasets in one table, as text, Markdown, LaTeX and a page."""

from __future__ import annotations

import json
import math
from html import escape
from importlib.resources import files
from pathlib import Path

from steelyard.comparison.across import LIKE_THESE, THESE, AcrossData, AcrossRow, Outcome
from steelyard.comparison.scores import column_named
from steelyard.notes import by_severity, sentence
from steelyard.report.documents import Document
from steelyard.report.page.shell import page_link, scrolled, section, shell, table_part
from steelyard.report.tables import Cell, Table
from steelyard.statistics import shown_p
from steelyard.statistics.arrays import ROUNDING
from steelyard.wording import counted

MISSING, REFUSED = "not measured", "refused"
_BAR, _HEIGHT = 120, 10  # Width and height of the drawing of an interval, in pixels.
_QUESTIONS = (
    f"The tests answer two questions. {THESE.capitalize()}: would other queries of the same datasets give the same "
    f"answer? {LIKE_THESE.capitalize()}: would other datasets of the same kind?"
)


def short_table(result: AcrossData) -> Table:
    """One row per run: macro mean, letters, and the value on every dataset."""
    rows: list[list[Cell]] = []
    for row in result.rows:
        values = (_number(value, missing="-") for value in row.values.values())
        rows.append([row.run, _number(row.macro, missing=REFUSED), row.group, *values])
    return Table(["run", "macro mean", "group", *result.names], rows)


def summary_table(result: AcrossData) -> Table:
    """One row per run: macro mean with its interval, micro mean, wins, mean rank and Borda count."""
    rows: list[list[Cell]] = []
    for row in result.rows:
        macro = [_number(row.macro, missing=REFUSED), _span(row.these), _span(row.like_these)]
        ranks = [_number(row.mean_rank, ".2f"), _number(row.borda, "g")]
        rows.append([row.run, *macro, row.group, _number(row.micro), row.wins, *ranks])
    head = ["run", "macro mean", THESE, LIKE_THESE, "group", "micro mean", "wins", "mean rank", "Borda"]
    rules = {
        "complete": "none for a run without a value on every dataset",
        "all": "0 on a dataset without a value",
        "measured": "only runs with a value on the dataset count, and such a run has one point more",
    }
    note = (
        "Macro mean: every dataset counts the same, with 95% intervals for both questions; micro mean: every query "
        f"does. Runs that share a letter are not significantly different {THESE}. Borda: one point for every run "
        f"beaten on a dataset ({rules[result.borda_rule]})."
    )
    return Table(head, rows, title=_title(result), note=note)


def _number(value: float, form: str = ".4f", missing: str = "") -> str:
    return missing if math.isnan(value) else f"{value:{form}}"


def values_table(result: AcrossData) -> Table:
    """The mean of every run on every dataset, with its interval."""
    rows: list[list[Cell]] = []
    for row in result.rows:
        cells: list[Cell] = [row.run]
        for dataset in result.datasets:
            ends = dataset.intervals.get(row.run)
            value = _number(row.values[dataset.name], missing=MISSING)
            cells.append(value if ends is None or value == MISSING else f"{value} {_span(ends)}")
        rows.append(cells)
    return Table(["run", *result.names], rows, title=f"{result.measure} by dataset")


def pairs_tables(result: AcrossData) -> list[Table]:
    """Every two runs: the difference and both tests; and the verdict on every dataset alone."""
    if not result.tested_pairs:
        return []
    ranked = result.friedman is not None
    rows: list[list[Cell]] = []
    for pair in result.tested_pairs:
        outcomes = [*_outcome(pair.these), *_outcome(pair.like_these), *([_p(pair.nemenyi)] if ranked else [])]
        rows.append([pair.run, pair.baseline, f"{pair.difference:+.4f}", *outcomes])
    head = ["run", "baseline", "difference", THESE, "p", LIKE_THESE, "p", *(["Nemenyi p"] if ranked else [])]
    verdicts: list[list[Cell]] = [[pair.run, pair.baseline, *pair.datasets.values()] for pair in result.tested_pairs]
    corrected = "p-values are corrected for all pairs; intervals are of the pair alone."
    if result.friedman is not None:
        p = shown_p(result.friedman.p)
        corrected += (
            f" Friedman's test of all runs (Iman and Davenport's F): F = {result.friedman.statistic:.2f}, "
            f"p {'' if '<' in p else '= '}{p}; "
            f"critical difference of mean ranks {result.friedman.critical_difference:.2f} (Nemenyi)."
        )
    return [
        Table(head, rows, title="Differences of macro means", keys=2, note=corrected),
        Table(["run", "baseline", *result.names], verdicts, title="Verdicts on each dataset alone", keys=2),
    ]


def _outcome(outcome: Outcome) -> tuple[str, str]:
    return f"{outcome.verdict} {_span((outcome.low, outcome.high), '+.4f')}".rstrip(), _p(outcome.p_adjusted)


def _p(value: float) -> str:
    return "" if math.isnan(value) else shown_p(value)


def _span(interval: tuple[float, float], form: str = ".4f") -> str:
    low, high = interval
    return f"[{low:{form}}, {high:{form}}]" if math.isfinite(low) and math.isfinite(high) else ""


def across_document(result: AcrossData) -> Document:
    """The means and ranks, the value on every dataset, the pairs, the verdicts on every dataset, and the notes."""
    tables = [summary_table(result), values_table(result), *pairs_tables(result)]
    return Document(_title(result), result.verdict, tables, list(map(sentence, by_severity(result.notes))))


def _title(result: AcrossData) -> str:
    return f"{result.measure} over {counted(len(result.datasets), 'dataset')}"


def across_page(result: AcrossData, folder: Path | None) -> str:
    """One page; datasets link to their own pages, relative to the folder that it is written to."""
    lines = [f'<li class="{note.severity}">{escape(sentence(note))}</li>' for note in by_severity(result.notes)]
    queries = [dataset.queries for dataset in result.datasets]
    total = "" if None in queries else f" · {sum(filter(None, queries)):,} queries"
    verdict = (
        f'<p class="kicker">{escape(_title(result))} · {counted(len(result.runs), "run")}{total}</p>'
        f'<h1>{escape(result.verdict.headline)}</h1><p class="more">{escape(result.verdict.detail)}</p>'
    )
    differences = f'<p class="hint">{escape(_QUESTIONS)}</p>{"".join(map(_pairs_html, pairs_tables(result)))}'
    sections = [
        section("datasets", "Runs and datasets", _values_html(result, folder)),
        section("means", "Means and ranks", f"{_ranks_html(result)}{table_part(summary_table(result))}"),
        section("differences", "Differences", differences),
        section("notes", "Notes", f'<ul class="note">{"".join(lines)}</ul>' if lines else ""),
    ]
    return shell(_title(result), verdict, sections, (files("steelyard.report") / "across.css").read_text("utf-8"))


def _values_html(result: AcrossData, folder: Path | None) -> str:
    """The values by the measure of the tests; then the means by the others, one of which the page shows at a time."""
    others = dict.fromkeys(name for dataset in result.datasets for name in dataset.others)
    options = "".join(f"<option>{escape(name)}</option>" for name in (result.measure, *others))
    chooser = f'<p class="controls"><label hidden>Measure <select data-shows="values">{options}</select></label></p>'
    parts = [f"<div><h3>{escape(result.measure)}</h3>{_matrix_html(result, folder)}</div>"]
    for name in others:
        rows: list[list[Cell]] = []
        for row in result.rows:
            means = [dataset.others.get(name, {}).get(row.run, math.nan) for dataset in result.datasets]
            rows.append([row.run, sum(means) / len(means), *means])
        shade = "" if column_named(name.partition(" at ")[0]).better == "less" else "column"
        table = Table(["run", "macro mean", *result.names], rows, title=name, shade=shade)
        parts.append(f"<div>{table_part(table)}</div>")
    return f'{chooser if others else ""}<div id="values">{"".join(parts)}</div>'


def _matrix_html(result: AcrossData, folder: Path | None) -> str:
    """One row per run and one column per dataset: value, interval and a drawing of both on the scale of the column."""
    heads, scales = [], {}
    for dataset in result.datasets:
        ends = [end for interval in dataset.intervals.values() if interval is not None for end in interval]
        values = [end for end in [*ends, *dataset.means.values()] if math.isfinite(end)]
        scales[dataset.name] = min(values), max(values)
        size = "" if dataset.queries is None else f"<small>{counted(dataset.queries, 'query', 'queries')}</small>"
        name = f"<bdi>{escape(dataset.name)}</bdi>"
        link = page_link(dataset.page, folder)
        shown = f'<a href="{escape(link)}" title="The report page of this dataset">{name}</a>' if link else name
        heads.append(f'<th scope="col">{shown}{size}</th>')
    body = "".join(_row_html(result, row, scales) for row in result.rows)
    fixed = "".join(f'<th scope="col">{name}</th>' for name in ("run", "macro mean", "group"))
    less = ' class="less"' if result.better == "less" else ""
    head = f"<thead><tr>{fixed}{''.join(heads)}</tr></thead>"
    table = f'<table data-shade="column"{less}>{head}<tbody>{body}</tbody></table>'
    hint = (
        "A value is darker the better it is on its dataset. Runs that share a letter are not significantly different."
    )
    return f'{scrolled(f"{result.measure} by dataset", table)}<p class="hint">{hint}</p>'


def _row_html(result: AcrossData, row: AcrossRow, scales: dict[str, tuple[float, float]]) -> str:
    macro = f'<td class="none">{REFUSED}</td>'
    if not math.isnan(row.macro):
        macro = f'<td class="heat"><span class="value">{row.macro:.4f}</span></td>'
    cells = [macro, f'<td class="letters">{escape(row.group)}</td>']
    for dataset, best in zip(result.datasets, result.best_values.tolist(), strict=True):
        value, ends = row.values[dataset.name], dataset.intervals.get(row.run)
        if math.isnan(value):
            cells.append(f'<td class="none">{MISSING}</td>')
            continue
        small = "" if ends is None else f"<small>{_span(ends)}</small>{_bar(value, ends, scales[dataset.name])}"
        mark = " best" if abs(value - best) < ROUNDING else ""
        cells.append(f'<td class="heat{mark}"><span class="value">{value:.4f}</span>{small}</td>')
    return f'<tr><th scope="row"><bdi>{escape(row.run)}</bdi></th>{"".join(cells)}</tr>'


def _ranks_html(result: AcrossData) -> str:
    """The data of the critical-difference diagram, which the script draws."""
    if result.friedman is None:
        return ""
    ranks = [[row.run, round(row.mean_rank, 4)] for row in result.rows if not math.isnan(row.mean_rank)]
    difference = result.friedman.critical_difference
    hint = f"Mean ranks; runs joined by a bar differ by less than the critical difference {difference:.2f} (Nemenyi)."
    return (
        f'<figure class="ranks" data-difference="{difference:.4f}" data-ranks="{escape(json.dumps(ranks))}">'
        f'<div class="drawings"></div><figcaption class="hint">{hint}</figcaption></figure>'
    )


def _bar(value: float, ends: tuple[float, float], scale: tuple[float, float]) -> str:
    """An interval as a line and its mean as a point."""
    low, width = scale[0], (scale[1] - scale[0]) or 1.0
    if not all(map(math.isfinite, ends)):
        return ""

    def place(number: float) -> float:
        return 4 + (_BAR - 8) * (number - low) / width

    middle = _HEIGHT / 2
    return (
        f'<svg width="{_BAR}" height="{_HEIGHT}" viewBox="0 0 {_BAR} {_HEIGHT}" aria-hidden="true">'
        f'<line x1="{place(ends[0]):.1f}" x2="{place(ends[1]):.1f}" y1="{middle}" y2="{middle}" '
        'stroke="currentColor" stroke-opacity=".45" stroke-width="2"/>'
        f'<circle cx="{place(value):.1f}" cy="{middle}" r="3.5" fill="currentColor"/></svg>'
    )


def _pairs_html(table: Table) -> str:
    html = table_part(table)
    for verdict in ("better", "worse"):
        html = html.replace(f"<td>{verdict}", f'<td class="verdict-{verdict}">{verdict}')
    return html
