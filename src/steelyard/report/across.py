"""Several datasets in one table, as text, Markdown, LaTeX and a page."""

from __future__ import annotations

import math
import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from steelyard.comparison.across import LIKE_THESE, THESE
from steelyard.notes import by_severity, sentence
from steelyard.report.page.embed import page_style, visible
from steelyard.report.tables import (
    Cell,
    Table,
    fragment,
    latex,
    latex_comment,
    markdown,
    plain,
    table_html,
)
from steelyard.safe_text import markdown_text
from steelyard.statistics import shown_p
from steelyard.version import __version__
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.comparison.across import Across, AcrossRow, Outcome

MISSING = "not measured"
REFUSED = "refused"


def across_tables(found: Across) -> list[Table]:
    """The means and ranks, the value on every dataset, the pairs, and the verdicts on every dataset."""
    return [summary_table(found), values_table(found), *pairs_tables(found)]


def short_table(found: Across) -> Table:
    """One row per run: macro mean, letters, and the value on every dataset."""
    rows: list[list[Cell]] = [
        [
            row.run,
            f"{row.macro:.4f}" if row.macro == row.macro else REFUSED,
            row.group,
            *(f"{value:.4f}" if value == value else "-" for value in row.values.values()),
        ]
        for row in found.rows
    ]
    return Table(["run", "macro mean", "group", *found.names], rows)


def summary_table(found: Across) -> Table:
    """One row per run: macro mean with its interval, micro mean, wins, mean rank and Borda count."""
    rows: list[list[Cell]] = [
        [
            row.run,
            row.macro if row.macro == row.macro else REFUSED,
            _span(row.these),
            _span(row.like_these),
            row.group,
            None if row.micro != row.micro else row.micro,
            row.wins,
            None if row.mean_rank != row.mean_rank else f"{row.mean_rank:.2f}",
            None if row.borda != row.borda else f"{row.borda:g}",
        ]
        for row in found.rows
    ]
    head = ["run", "macro mean", THESE, LIKE_THESE, "group", "micro mean", "wins", "mean rank", "Borda"]
    return Table(
        head,
        [[f"{cell:.4f}" if isinstance(cell, float) else cell for cell in row] for row in rows],
        title=f"{found.measure} over {counted(len(found.datasets), 'dataset')}",
        note=_legend(found),
    )


def _legend(found: Across) -> str:
    rules = {
        "complete": "none for a run without a value on every dataset",
        "all": "0 on a dataset without a value",
        "measured": "only runs with a value on the dataset count, and such a run has one point more",
    }
    return (
        "Macro mean: every dataset counts the same, with 95% intervals for both questions; micro mean: every query "
        f"does. Runs that share a letter are not significantly different {THESE}. Borda: one point for every run "
        f"beaten on a dataset ({rules[found.borda_rule]})."
    )


def values_table(found: Across) -> Table:
    """The mean of every run on every dataset, with its interval."""
    rows: list[list[Cell]] = []
    for row in found.rows:
        cells: list[Cell] = [row.run]
        for each in found.datasets:
            value, ends = row.values[each.name], each.intervals.get(row.run)
            cells.append(
                MISSING
                if value != value
                else f"{value:.4f}"
                if ends is None
                else f"{value:.4f} {_span(ends)}"
            )
        rows.append(cells)
    return Table(["run", *found.names], rows, title=f"{found.measure} by dataset")


def pairs_tables(found: Across) -> list[Table]:
    """Every two runs: the difference and both tests; and the verdict on every dataset alone."""
    if not found.tested_pairs:
        return []
    ranked = found.friedman is not None
    rows: list[list[Cell]] = [
        [
            pair.run,
            pair.baseline,
            f"{pair.difference:+.4f}",
            *_outcome(pair.these),
            *_outcome(pair.like_these),
            *([_p(pair.nemenyi)] if ranked else []),
        ]
        for pair in found.tested_pairs
    ]
    head = ["run", "baseline", "difference", THESE, "p", LIKE_THESE, "p", *(["Nemenyi p"] if ranked else [])]
    verdicts: list[list[Cell]] = [
        [pair.run, pair.baseline, *pair.datasets.values()] for pair in found.tested_pairs
    ]
    corrected = "p-values are corrected for all pairs; intervals are of the pair alone."
    if found.friedman is not None:
        corrected += (
            f" Friedman's test of all runs: F = {found.friedman.statistic:.2f}, p = {shown_p(found.friedman.p)}; "
            f"critical difference of mean ranks {found.friedman.critical_difference:.2f} (Nemenyi)."
        )
    return [
        Table(head, rows, title="Differences of macro means", keys=2, note=corrected),
        Table(["run", "baseline", *found.names], verdicts, title="Verdicts on each dataset alone", keys=2),
    ]


def _outcome(outcome: Outcome) -> tuple[str, str]:
    span = _span((outcome.low, outcome.high), "+.4f")
    return f"{outcome.verdict} {span}".rstrip(), _p(outcome.p_adjusted)


def _p(value: float) -> str:
    return "" if value != value else shown_p(value)


def _span(interval: tuple[float, float], form: str = ".4f") -> str:
    low, high = interval
    return f"[{low:{form}}, {high:{form}}]" if math.isfinite(low) and math.isfinite(high) else ""


def _lines(found: Across) -> list[str]:
    return [sentence(each) for each in by_severity(found.notes)]


def across_text(found: Across) -> str:
    """The verdict, the tables and the notes as plain text."""
    parts = [found.verdict, *map(plain, across_tables(found)), "\n".join(_lines(found))]
    return "\n\n".join(part for part in parts if part)


def across_markdown(found: Across) -> str:
    """The tables and the notes in Markdown."""
    lines = [found.verdict, *_lines(found)]
    notes = ["## Notes", "\n".join(f"- {markdown_text(line)}" for line in lines)]
    return "\n\n".join([*map(markdown, across_tables(found)), *notes])


def across_latex(found: Across) -> str:
    """Booktabs tables; the verdict and the notes as comments."""
    lines = map(latex_comment, [found.verdict, *_lines(found)])
    return "\n\n".join([*map(latex, across_tables(found)), "\n".join(lines)])


def across_fragment(found: Across) -> str:
    """The verdict, the tables and the notes for a notebook."""
    lines = "".join(f"<li>{escape(line)}</li>" for line in _lines(found))
    verdict = f"<p><strong>{escape(found.verdict)}</strong></p>"
    return fragment([verdict, *map(table_html, across_tables(found)), f"<ul>{lines}</ul>"])


# The page

_STYLE = """
.across { overflow-x: auto; margin-bottom: .75rem; }
.across table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.across th, .across tbody td { padding: .45rem .8rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
.across thead th { border-bottom: 2px solid var(--strong); white-space: nowrap; vertical-align: bottom; }
.across thead th small { display: block; font-weight: 400; color: var(--soft); }
.across tbody th { font-weight: 600; white-space: nowrap; position: sticky; left: 0; background: var(--paper); }
.across td.best .value { font-weight: 700; color: var(--accent); }
.across td small { display: block; color: var(--soft); white-space: nowrap; }
.across tbody td.mean { background: var(--sunk); }
.across td.mean .value { font-weight: 700; }
.across td.none { color: var(--soft); font-style: italic; }
.across svg { display: block; margin-top: .2rem; }
.across .verdict-better { color: var(--good); }
.across .verdict-worse { color: var(--bad); }
.across caption { text-align: left; font-weight: 600; padding: .5rem 0; }
.across td.letters { font-family: var(--mono); color: var(--violet); }
#notes .warning::marker { content: "! "; color: var(--gold); font-weight: 700; }
"""

_BAR, _HEIGHT = 120, 10
"""Width and height of the drawing of an interval, in pixels."""


def across_page(found: Across, folder: Path | None) -> str:
    """One page without scripts; datasets link to their own pages, relative to the folder that it is written to."""
    lines = [
        f'<li class="{each.severity}">{escape(sentence(each))}</li>' for each in by_severity(found.notes)
    ]
    notes = (
        f'<section id="notes"><h2>Notes</h2><ul class="note">{"".join(lines)}</ul></section>' if lines else ""
    )
    pairs = "".join(map(_pairs_html, pairs_tables(found)))
    title = f"{found.measure} over {counted(len(found.datasets), 'dataset')}"
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    queries = [each.queries for each in found.datasets]
    total = "" if None in queries else f" · {sum(filter(None, queries)):,} queries"
    return visible(
        '<!doctype html>\n<html lang="en" data-ready="yes">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="generator" content="Steelyard {__version__}">\n<title>{escape(title)} · Steelyard</title>\n'
        f"<style>{page_style()}{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<section id="verdict"><p class="kicker">{escape(title)} · {counted(len(found.runs), "run")}{total}</p>'
        f'<h1>{escape(found.verdict.headline)}</h1><p class="more">{escape(found.verdict.detail)}</p></section>\n'
        f'<section id="datasets"><h2>Runs and datasets</h2>{_matrix_html(found, folder)}</section>\n'
        f'<section id="differences"><h2>Differences</h2><p class="hint">{escape(_QUESTIONS)}</p>{pairs}</section>\n'
        f"{notes}\n</main>\n<footer>Steelyard {__version__}</footer>\n</body>\n</html>\n"
    )


_QUESTIONS = (
    f"The tests answer two questions. {THESE.capitalize()}: would other queries of the same datasets give the same "
    f"answer? {LIKE_THESE.capitalize()}: would other datasets of the same kind?"
)


def _matrix_html(found: Across, folder: Path | None) -> str:
    """One row per run and one column per dataset: value, interval and a drawing of both on the scale of the column."""
    heads = []
    for each in found.datasets:
        size = "" if each.queries is None else f"<small>{counted(each.queries, 'query', 'queries')}</small>"
        name = f"<bdi>{escape(each.name)}</bdi>"
        link = _link(each.page, folder)
        shown = (
            f'<a href="{escape(link)}" title="The report page of this dataset">{name}</a>' if link else name
        )
        heads.append(f'<th scope="col">{shown}{size}</th>')
    scales = {each.name: _scale(found, each.name) for each in found.datasets}
    body = "".join(_row_html(found, row, scales) for row in found.rows)
    columns = ["macro mean", "group", "micro mean", "wins", "mean rank", "Borda"]
    fixed = "".join(f'<th scope="col">{name}</th>' for name in columns)
    return (
        f'<div class="across"><table><thead><tr><th scope="col">run</th>{fixed}{"".join(heads)}</tr></thead>'
        f'<tbody>{body}</tbody></table></div><p class="hint">{escape(_legend(found))}</p>'
    )


def _row_html(found: Across, row: AcrossRow, scales: dict[str, tuple[float, float]]) -> str:
    macro = f'<td class="none">{REFUSED}</td>'
    if row.macro == row.macro:
        spans = [(THESE, row.these), (LIKE_THESE, row.like_these)]
        small = "".join(f"<small>{_span(ends)} {name}</small>" for name, ends in spans if _span(ends))
        macro = f'<td class="mean"><span class="value">{row.macro:.4f}</span>{small}</td>'
    cells = [
        macro,
        f'<td class="letters">{escape(row.group)}</td>',
        *(
            f"<td>{text}</td>"
            for text in (
                "" if row.micro != row.micro else f"{row.micro:.4f}",
                str(row.wins),
                "" if row.mean_rank != row.mean_rank else f"{row.mean_rank:.2f}",
                "" if row.borda != row.borda else f"{row.borda:g}",
            )
        ),
    ]
    for each, best in zip(found.datasets, found.best_values.tolist(), strict=True):
        value, ends = row.values[each.name], each.intervals.get(row.run)
        if value != value:
            cells.append(f'<td class="none">{MISSING}</td>')
            continue
        small = "" if ends is None else f"<small>{_span(ends)}</small>{_bar(value, ends, scales[each.name])}"
        mark = ' class="best"' if value == best else ""
        cells.append(f'<td{mark}><span class="value">{value:.4f}</span>{small}</td>')
    return f'<tr><th scope="row"><bdi>{escape(row.run)}</bdi></th>{"".join(cells)}</tr>'


def _scale(found: Across, name: str) -> tuple[float, float]:
    """The lowest and the highest end of an interval on a dataset."""
    each = next(each for each in found.datasets if each.name == name)
    ends = [end for interval in each.intervals.values() if interval is not None for end in interval]
    values = [end for end in [*ends, *each.means.values()] if math.isfinite(end)]
    return min(values), max(values)


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
    """A table of pairs, its verdicts coloured."""
    made = table_html(table)
    for verdict in ("better", "worse"):
        made = made.replace(f"<td>{verdict}", f'<td class="verdict-{verdict}">{verdict}')
    note = f'<p class="hint">{escape(table.note)}</p>' if table.note else ""
    return f'<div class="across">{made}</div>{note}'


def _link(page: Path | None, folder: Path | None) -> str:
    """The address of a dataset's page from a folder; empty if there is none."""
    if page is None or folder is None or not page.is_file():
        return ""
    return quote(Path(os.path.relpath(page, folder)).as_posix())
