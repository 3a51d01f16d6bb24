"""The stages of a pipeline as text and as a page with the flow of the targets from stage to stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from urllib.parse import quote

from steelyard.comparison.stages import BELOW, DELIVERED, StagesData
from steelyard.lazy import polars as pl
from steelyard.notes import sentence
from steelyard.report.documents import Document
from steelyard.report.page.shell import scrolled, section, shell
from steelyard.report.tables import Cell, Table, table_html
from steelyard.safe_text import utf8
from steelyard.wording import counted, listed

SHOWN_TARGETS = 200  # Targets of a fate that the page lists; it counts the others.
PANEL_TARGETS = 50  # The same on the page of a bench.
_WIDTH, _HEIGHT, _TOP, _BAR, _LAST = 960, 300, 44, 16, 140


def stages_table(result: StagesData) -> Table:
    """One row per stage and one for the ordering."""
    k = result.measure.cutoff
    moved = f"in/out@{k:g}" if k is not None else "in/out"
    rows: list[list[Cell]] = []
    for row in result.rows:
        ends = [] if row["low"] is None else [f"{round(row[end], 3) + 0.0:.3f}" for end in ("low", "high")]
        moves = "" if row.get("lifted") is None else f"+{row['lifted']:,} -{row['pushed']:,}"
        lost = [row.get("ceiling"), row.get("value"), row["lost"], " to ".join(ends), row["targets_lost"], moves]
        rows.append([row["stage"], *lost])
    lost_heading = "targets lost" if result.unit == "target" else "docs lost"
    return Table(["stage", "ceiling", "value", "lost", "95% interval", lost_heading, moved], rows)


def stages_document(result: StagesData) -> Document:
    """The verdict, the stages and the slices."""
    tables = [stages_table(result)]
    if result.calls is not None:
        heads = ["stage", "call", "queries", "recall", "added", "nothing new", "nothing relevant"]
        tables.append(Table(heads, result.calls.rows(), title="Calls"))
    if result.slices is not None:
        heads = [name.removeprefix("lost ") for name in result.slices.columns]
        tables.append(Table(heads, result.slices.rows(), title="Lost by slice"))
    return Document("Stages", result.verdict, tables, [_summary(result), *map(sentence, result.notes)])


def _summary(result: StagesData) -> str:
    """What became of the targets, and the values at the ends."""
    fates = [f"{count:,} {fate}" for fate, count in result.fates.items() if count]
    by_step = list(zip(result.steps, result.below_depth, result.added, strict=True))
    deep = [f"{count:,} in {step}" for step, count, _ in by_step if count]
    added = [f"{count:,} in {step}" for step, _, count in by_step if count]
    ranked = f" Ranked below the documents that were passed on: {listed(deep)}." if deep else ""
    ranked += f" Added by a later stage: {listed(added)}." if added else ""
    alone = [f"{name} {ceiling:.4f} (it adds {adds:.4f})" for name, (ceiling, adds) in result.own.items()]
    ranked += f" Ceilings of the first stages alone: {listed(alone)}." if alone else ""
    ranked += f" Other runs with stages: {listed(result.others, 4)}." if result.others else ""
    ends = f"best {result.best.mean():.4f}, value {result.value:.4f}"
    name = f"{result.run}: " if result.run else ""
    return (
        f"{name}{result.measure} of {counted(len(result.queries), 'query', 'queries')}: {ends}. "
        f"Of {counted(result.target_fates.height, result.unit)}: {listed(fates) if fates else 'none'}.{ranked}"
    )


def stages_page(result: StagesData) -> str:
    """One page: the flow, the tables, and the targets of every fate; all of it is there without its script."""
    document = stages_document(result)
    hint = "".join(f'<p class="hint">{escape(line)}</p>' for line in document.notes)
    verdict = f'<p class="kicker">Stages</p><h1>{escape(result.verdict)}</h1>{hint}'
    sections = [
        section("flow", "From stage to stage", _drawing(result)),
        section("stages", f"{escape(str(result.measure))} by stage", _tables(result, document)),
        section("targets", f"{result.unit.capitalize()}s by fate", _targets(result)),
    ]
    return shell("Stages", verdict, sections)


def stages_panels(results: Sequence[StagesData]) -> str:
    """The stages of the runs of a bench on its page: one panel per run, the first one open."""
    panels = []
    for place, result in enumerate(results):
        document = stages_document(replace(result, others=()))
        panels.append(
            f'<details class="panel"{"" if place else " open"}><summary><bdi>{escape(result.run)}</bdi>: '
            f"<bdi>{escape(result.verdict)}</bdi></summary>{_drawing(result, place)}"
            f"{_tables(result, document)}<p class='hint'><bdi>{escape(document.notes[0])}</bdi></p>"
            f"{_targets(result, PANEL_TARGETS, place)}</details>"
        )
    return "".join(panels)


def _drawing(result: StagesData, panel: int = 0) -> str:
    """One column per stage: the targets that are still there, and below them those that were lost there, as links."""
    total = max(1, result.target_fates.height)
    lost = [row["targets_lost"] for row in result.rows]
    names = [*result.steps, f"first {result.measure.cutoff}" if result.measure.cutoff is not None else "last list"]
    left = [total - sum(lost[: place + 1]) for place in range(len(lost))]
    unit, gap = (_HEIGHT - _TOP - 30) / total, (_WIDTH - _LAST) / len(names)
    parts, before = [], total
    for place, (name, kept, gone) in enumerate([("relevant", total, 0), *zip(names, left, lost, strict=True)]):
        x, height, fallen = place * gap + 4, kept * unit, gone * unit
        title = f"{name}: {counted(kept, result.unit)}" + (f", {gone:,} lost" if gone else "")
        if place:
            previous = (place - 1) * gap + 4 + _BAR
            parts.append(
                f'<path class="kept band" d="M{previous:.1f} {_TOP}L{x:.1f} {_TOP}V{_TOP + height:.1f}'
                f'L{previous:.1f} {_TOP + height:.1f}Z"/>'
            )
        if gone:
            parts.append(
                f'<a href="#lost-{panel}-{place - 1}" aria-label="{escape(title)}">'
                f'<path class="gone band" d="M{previous:.1f} {_TOP + height:.1f}L{x:.1f} {_TOP + height + 6:.1f}'
                f'V{_TOP + height + 6 + fallen:.1f}L{previous:.1f} {_TOP + before * unit:.1f}Z"/>'
                f'<rect class="gone" x="{x:.1f}" y="{_TOP + height + 6:.1f}" width="{_BAR}" height="{fallen:.1f}">'
                f"<title>{escape(title)}</title></rect>"
            )
        parts.append(
            f'<rect class="kept" x="{x:.1f}" y="{_TOP}" width="{_BAR}" height="{height:.1f}">'
            f"<title>{escape(title)}</title></rect>"
            f'<text x="{x:.1f}" y="16">{escape(name)}</text>'
            f'<text x="{x:.1f}" y="34">{kept:,}{f" (−{gone:,})</text></a>" if gone else "</text>"}'
        )
        before = kept
    return _scrolled(
        result,
        "Flow from stage to stage",
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="group" '
        f'aria-label="{result.unit.capitalize()}s that are left after each stage">{"".join(parts)}</svg>',
    )


def _tables(result: StagesData, document: Document) -> str:
    return "".join(_scrolled(result, table.title or "Stages", table_html(table)) for table in document.tables)


def _scrolled(result: StagesData, what: str, content: str, name: str = "") -> str:
    """Scrolled content with a label that is unique on a page; a link to its id opens the closed list that has it."""
    return scrolled(f"{result.run}: {what}" if result.run else what, content, "flow", name)


def _targets(result: StagesData, most: int = SHOWN_TARGETS, panel: int | None = None) -> str:
    """For every fate the targets with their ranks, except the delivered ones; in a panel, queries are links to them."""
    parts = []
    for place, (fate, count) in enumerate(result.fates.items()):
        if not count or fate == DELIVERED:
            continue
        frame = result.target_fates.filter(pl.col("fate") == fate).drop("fate")
        more = f'<p class="hint">And {count - most:,} more.</p>' if count > most else ""
        heads = "".join(f'<th scope="col">{escape(name.removeprefix("rank "))}</th>' for name in frame.columns)
        rows = ""
        for query, target, *ranks in frame.head(most).rows():
            shown = escape(query)
            if panel is not None:
                opened, stages = (quote(utf8(text), safe="") for text in (query, result.run))
                shown = f'<a href="#query={opened}&amp;stages={stages}">{shown}</a>'
            cells = "".join(f'<td class="number">{"" if rank is None else rank}</td>' for rank in ranks)
            rows += f"<tr><td>{shown}</td><td>{escape(target)}</td>{cells}</tr>"
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        shown = _scrolled(result, fate, table, f"lost-{panel or 0}-{place}")
        name = f"{fate} ({count:,})" if fate != BELOW else f"{fate} of {result.measure} ({count:,})"
        parts.append(f"<details><summary>{escape(name)}</summary>{shown}{more}</details>")
    return "".join(parts)
