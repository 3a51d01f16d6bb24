"""The queries that moved most, as lines to read and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steelyard.report.tables import Cell, Table
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.comparison.movers import DocumentMove, Moved, Mover
    from steelyard.comparison.result import Comparison

SHOWN_DOCUMENTS = 4
"""Documents shown of a query that moved; how many others there are is said."""

SHOWN_TEXT = 80
"""Characters shown of a query's text."""


def movers_lines(comparison: Comparison, most: int, texts: Mapping[str, object] | None) -> list[str]:
    """For every run the queries lost and won most, a headline and a line each."""
    lines: list[str] = []
    for each in comparison.moved(most):
        for headline, found in _halves(each):
            lines.append(headline)
            lines += [_line(mover, texts or {}) for mover in found]
    return lines


def movers_tables(comparison: Comparison, most: int, texts: Mapping[str, object] | None) -> list[Table]:
    """The same as tables, one for what a run lost and one for what it won; none where there is nothing."""
    known = texts or {}
    return [
        Table(
            ["query", *(["text"] if known else []), "before", "after", "documents"],
            [_row(mover, known) for mover in found],
            title=headline,
        )
        for each in comparison.moved(most)
        for headline, found in _halves(each)
        if found
    ]


def _halves(each: Moved) -> list[tuple[str, tuple[Mover, ...]]]:
    return [
        (
            f"{each.run} against {each.baseline}: {counted(queries, 'query', 'queries')} {what} on {each.measure}",
            found,
        )
        for what, queries, found in (
            ("lost", each.queries_lost, each.lost),
            ("won", each.queries_won, each.won),
        )
    ]


def _line(mover: Mover, texts: Mapping[str, object]) -> str:
    asked = f" {_text(mover, texts)}" if mover.query_id in texts else ""
    documents = _documents(mover)
    return f"- {mover.query_id}{asked}: {mover.before:.4f} -> {mover.after:.4f}{f'; {documents}' if documents else ''}"


def _row(mover: Mover, texts: Mapping[str, object]) -> list[Cell]:
    asked = [_text(mover, texts)] if texts else []
    return [mover.query_id, *asked, mover.before, mover.after, _documents(mover)]


def _text(mover: Mover, texts: Mapping[str, object]) -> str:
    """A query's text on one line, cut where it is long."""
    line = " ".join(str(texts.get(mover.query_id, "")).split())
    return line if len(line) <= SHOWN_TEXT else f"{line[: SHOWN_TEXT - 3]}..."


def _documents(mover: Mover) -> str:
    shown = [_document(move) for move in mover.documents[:SHOWN_DOCUMENTS]]
    more = len(mover.documents) - len(shown)
    return "; ".join([*shown, *([f"and {counted(more, 'other')}"] if more else [])])


def _document(move: DocumentMove) -> str:
    return f"{move.doc_id} (grade {move.grade:g}) {move.before or 'absent'} -> {move.after or 'absent'}"
