"""How a GateResult is written: JUnit XML, Markdown for a pull request, and HTML."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from steelyard.notes import sentence
from steelyard.report.tables import Cell, Table, code, fragment, markdown, table_html
from steelyard.version import __version__

if TYPE_CHECKING:
    from steelyard.gate.result import GateResult, Row

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even escaped."""


def junit(gate: GateResult) -> str:
    """One test suite per run, one test case per rule; a failed rule is a failure with its numbers and worst queries.

    An undecided rule is skipped, or an error if it does not pass.

    There are no times and no dates: the same gate gives the same bytes.
    """
    by_run: dict[str, list[Row]] = {}
    for row in gate.rows:
        by_run.setdefault(row.run, []).append(row)
    root = ElementTree.Element("testsuites", _counts(gate.rows, name="steelyard gate"))
    for run, rows in by_run.items():
        suite = ElementTree.SubElement(root, "testsuite", _counts(rows, name=run))
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in _facts(gate, rows[0]):
            ElementTree.SubElement(properties, "property", {"name": name, "value": _clean(value)})
        for row in rows:
            _case(suite, row)
        if gate.warnings:
            notes = "\n".join(map(sentence, gate.warnings))
            ElementTree.SubElement(suite, "system-err").text = _clean(notes)
    return _written(root)


def junit_error(message: str) -> str:
    """A gate that could not be checked: one test case, which is an error."""
    counts = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0", "time": "0"}
    root = ElementTree.Element("testsuites", {"name": "steelyard gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "steelyard gate", **counts})
    named = {"classname": "steelyard.gate", "name": "the gate can be checked", "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", named)
    first = message.splitlines()[0] if message else ""
    error = ElementTree.SubElement(case, "error", {"message": _clean(first), "type": "input"})
    error.text = _clean(message)
    return _written(root)


def _written(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _case(suite: ElementTree.Element, row: Row) -> None:
    named = {"classname": _clean(f"steelyard.gate.{row.run}"), "name": _clean(row.rule.text), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", named)
    text = f"{row.measure} is {row.value:.6g}, needed {row.needed}: {row.why}"
    if row.undecided and row.passed:
        ElementTree.SubElement(case, "skipped", {"message": _clean(f"undecided: {text}")})
        return
    if row.passed:
        ElementTree.SubElement(case, "system-out").text = _clean(text)
        return
    lost = [f"  {loser}" for loser in row.losers]
    kind = ("error", "undecided") if row.undecided else ("failure", row.rule.kind)
    failure = ElementTree.SubElement(case, kind[0], {"message": _clean(text), "type": kind[1]})
    failure.text = _clean(
        "\n".join([row.rule.text + row.origin, text, *(["worst queries:", *lost] if lost else [])])
    )


def _counts(rows: tuple[Row, ...] | list[Row], name: str) -> dict[str, str]:
    failed, undecided = [row for row in rows if not row.passed], [row for row in rows if row.undecided]
    return {
        "name": _clean(name),
        "tests": str(len(rows)),
        "failures": str(sum(not row.undecided for row in failed)),
        "errors": str(sum(row.undecided for row in failed)),
        "skipped": str(sum(row.passed for row in undecided)),
        "time": "0",
    }


def _facts(gate: GateResult, row: Row) -> list[tuple[str, str]]:
    known = [("steelyard", __version__), ("verdict", gate.sentence), ("result", gate.result)]
    if gate.baseline is not None:
        known += [("baseline", gate.baseline), ("baseline run", row.baseline or "")]
    return [*known, *([("method", gate.method)] if gate.method else []), ("command", gate.command)]


def _clean(text: str) -> str:
    """The text, with characters that XML does not allow shown as their codes."""
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


MARKDOWN_LONGEST = 120
_SPECIAL = re.compile(r"[\\`*_<~]|(?<=\])[(\[]")
_MENTION = re.compile(r"(?<!\w)@")


def gate_markdown(gate: GateResult) -> str:
    """The verdict, the table, the queries with the largest losses, notes, how to reproduce it.

    Names and texts are in code spans, and sentences are escaped: nothing in them can format, link or mention
    anybody.
    """
    parts = [f"## {escaped(gate.sentence)}", markdown(_table(gate))]
    shown = gate.failures or tuple(row for row in gate.rows if row.baseline and row.losers)[:1]
    for headline, row in {_headline(row): row for row in shown if row.losers}.items():
        parts += [headline, markdown(_losers(row))]
    if gate.remarks:
        parts += ["### Notes", "\n".join(f"- {escaped(line)}" for line in gate.remarks)]
    return "\n\n".join([*parts, "### To reproduce", _block(gate.command)])


def markdown_error(message: str) -> str:
    """Markdown for a gate that could not be checked."""
    return "\n\n".join(["## The gate could not be checked.", *map(escaped, message.splitlines())])


def escaped(text: str) -> str:
    """A sentence on one line, with the characters that Markdown interprets escaped."""
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
        return f"**{cell}**" if cell in ("FAILED", "undecided") else cell
    return escaped(cell) if isinstance(cell, str) else cell


def _headline(row: Row) -> str:
    rule = row.rule
    subject = row.measure if rule.column is None else f"{row.measure}[{rule.column}={rule.value}]"
    what = "The lowest values" if row.losers[0].before is None else "Largest losses"
    return f"### {what} on {code(subject)} in {code(row.run)}"


def _losers(row: Row) -> Table:
    before = row.losers[0].before is not None
    texts = any(loser.text for loser in row.losers)
    columns = ["query", *(["text"] if texts else []), *(["before"] if before else []), "after"]
    rows: list[list[Cell]] = [
        [
            code(loser.query_id, MARKDOWN_LONGEST),
            *([code(loser.text, MARKDOWN_LONGEST)] if texts else []),
            *([loser.before] if before else []),
            loser.after,
        ]
        for loser in row.losers
    ]
    return Table(columns, rows)


def _block(command: str) -> str:
    return "\n".join(f"    {line}" for line in command.splitlines() or [""])


def gate_html(gate: GateResult) -> str:
    """The verdict, the table and the notes."""
    notes = "".join(f"<li>{escape(line)}</li>" for line in gate.remarks)
    return fragment(
        [f"<p><strong>{escape(gate.sentence)}</strong></p>", table_html(gate.table), f"<ul>{notes}</ul>"]
    )
