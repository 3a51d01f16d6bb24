"""A gate in Markdown: what people paste into a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from steelyard.report.tables import Cell, Table, code, markdown

if TYPE_CHECKING:
    from steelyard.gate.result import GateResult, Row

LONGEST = 120
_SPECIAL = re.compile(r"[\\`*_<~]|(?<=\])[(\[]")
_MENTION = re.compile(r"(?<!\w)@")


def gate_markdown(gate: GateResult) -> str:
    """The verdict, the table, the queries that lost most, what to know, how to reproduce it.

    Names and texts stand in code spans, and sentences are escaped: nothing in them can format, link or
    mention anybody.
    """
    parts = [f"## {escaped(gate.sentence)}", markdown(_table(gate))]
    shown = gate.failures or tuple(row for row in gate.rows if row.baseline and row.losers)[:1]
    for headline, row in {_headline(row): row for row in shown if row.losers}.items():
        parts += [headline, markdown(_losers(row))]
    said = [line for line in (gate.method, *gate.warnings) if line]
    if said:
        parts += ["### Worth knowing", "\n".join(f"- {escaped(line)}" for line in said)]
    return "\n\n".join([*parts, "### To reproduce", _block(gate.command)])


def markdown_error(told: str) -> str:
    """The same for a gate that could not be checked."""
    return "\n\n".join(["## The gate could not be checked.", *map(escaped, told.splitlines())])


def escaped(text: str) -> str:
    """A sentence of one line in which Markdown's own characters are plain."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return _MENTION.sub("@\u2060", _SPECIAL.sub(lambda found: f"\\{found.group()}", line))


def _table(gate: GateResult) -> Table:
    plain = gate.table
    rows = [[_cell(name, cell) for name, cell in zip(plain.columns, row, strict=True)] for row in plain.rows]
    return Table(plain.columns, rows)


def _cell(column: str, cell: Cell) -> Cell:
    if column in ("run", "rule"):
        return code(str(cell))
    if column == "verdict":
        return "**FAILED**" if cell == "FAILED" else cell
    return escaped(cell) if isinstance(cell, str) else cell


def _headline(row: Row) -> str:
    rule = row.rule
    subject = row.measure if rule.column is None else f"{row.measure}[{rule.column}={rule.value}]"
    what = "The lowest values" if row.losers[0].before is None else "What lost most"
    return f"### {what} on {code(subject)} in {code(row.run)}"


def _losers(row: Row) -> Table:
    before = row.losers[0].before is not None
    asked = any(loser.text for loser in row.losers)
    columns = ["query", *(["text"] if asked else []), *(["before"] if before else []), "after"]
    rows: list[list[Cell]] = [
        [
            code(loser.query_id, LONGEST),
            *([code(loser.text, LONGEST)] if asked else []),
            *([loser.before] if before else []),
            loser.after,
        ]
        for loser in row.losers
    ]
    return Table(columns, rows)


def _block(command: str) -> str:
    return "\n".join(f"    {line}" for line in command.splitlines() or [""])
