"""A gate as JUnit XML, which every CI server shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from steelyard.version import __version__

if TYPE_CHECKING:
    from steelyard.gate.result import GateResult, Row

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to hold, however it is escaped."""


def junit(gate: GateResult) -> str:
    """One test suite a run, one test case a rule; a broken rule is a failure with its numbers and worst queries.

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
            ElementTree.SubElement(suite, "system-err").text = _clean("\n".join(gate.warnings))
    return _written(root)


def junit_error(told: str) -> str:
    """A gate that could not be checked: one test case, which is an error."""
    counted = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0", "time": "0"}
    root = ElementTree.Element("testsuites", {"name": "steelyard gate", **counted})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "steelyard gate", **counted})
    named = {"classname": "steelyard.gate", "name": "the gate can be checked", "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", named)
    first = told.splitlines()[0] if told else ""
    error = ElementTree.SubElement(case, "error", {"message": _clean(first), "type": "input"})
    error.text = _clean(told)
    return _written(root)


def _written(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _case(suite: ElementTree.Element, row: Row) -> None:
    named = {"classname": _clean(f"steelyard.gate.{row.run}"), "name": _clean(row.rule.text), "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", named)
    told = f"{row.measure} is {row.value:.6g}, needed {row.needed}: {row.why}"
    if row.passed:
        ElementTree.SubElement(case, "system-out").text = _clean(told)
        return
    lost = [f"  {loser}" for loser in row.losers]
    failure = ElementTree.SubElement(case, "failure", {"message": _clean(told), "type": row.rule.kind})
    failure.text = _clean(
        "\n".join([row.rule.text + row.origin, told, *(["worst queries:", *lost] if lost else [])])
    )


def _counts(rows: tuple[Row, ...] | list[Row], name: str) -> dict[str, str]:
    failed = sum(not row.passed for row in rows)
    return {
        "name": _clean(name),
        "tests": str(len(rows)),
        "failures": str(failed),
        "errors": "0",
        "skipped": "0",
        "time": "0",
    }


def _facts(gate: GateResult, row: Row) -> list[tuple[str, str]]:
    known = [("steelyard", __version__), ("result", gate.result)]
    if gate.baseline is not None:
        known += [("baseline", gate.baseline), ("baseline run", row.baseline or "")]
    return [*known, *([("method", gate.method)] if gate.method else []), ("command", gate.command)]


def _clean(text: str) -> str:
    """The text with what XML cannot hold shown as its code."""
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
