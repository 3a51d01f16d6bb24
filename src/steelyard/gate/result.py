"""GateResult: whether a result may pass, rule by rule, and how to write that down."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from html import escape
from typing import Any
from xml.etree import ElementTree

from steelyard.comparison.rules import Rule
from steelyard.gate.baseline import Plan
from steelyard.report.tables import (
    Cell,
    Table,
    code,
    comma_separated,
    fragment,
    markdown,
    plain,
    table_html,
)
from steelyard.version import __version__
from steelyard.wording import SHOWN_NAMES, counted, listed

LONGEST = 100

_COLUMNS = (
    "run", "rule", "measure", "verdict", "value", "needed", "why", "queries", "baseline", "reference",
    "difference", "low", "high", "effect", "p", "p_adjusted", "notices",
)  # fmt: skip


@dataclass(frozen=True)
class Loser:
    """A query that did badly: its value, what it was in the baseline (None without one), and its text if known."""

    query_id: str
    before: float | None
    after: float
    text: str = ""

    def __str__(self) -> str:
        line = " ".join(self.text.split())
        asked = f" {line if len(line) <= LONGEST else line[: LONGEST - 3] + '...'!r}" if line else ""
        was = "" if self.before is None else f"{self.before:.4f} -> "
        return f"{self.query_id}{asked}: {was}{self.after:.4f}"


@dataclass(frozen=True)
class Row:
    """One rule on one run. Numbers that a rule of its kind does not have are None.

    `reference` is the baseline's value on the same queries, `difference` the run's minus it, `low` and
    `high` the 95 % interval of the value (a threshold) or of the difference, `p` one-sided, `notices`
    the smallest change for the worse that so many queries find 80 % of the time, `source` where the rule comes
    from, "" where it was given.
    """

    run: str
    baseline: str | None
    rule: Rule
    measure: str
    value: float
    needed: str
    passed: bool
    why: str
    queries: int
    reference: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    effect: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    notices: float | None = None
    losers: tuple[Loser, ...] = ()
    source: str = ""

    @property
    def verdict(self) -> str:
        """passed or FAILED."""
        return "passed" if self.passed else "FAILED"

    @property
    def at_odds(self) -> bool:
        """Whether a rule was broken though its interval holds 0, or kept though it lies wholly on the wrong side."""
        if self.p is None or self.low is None or self.high is None:
            return False
        return self.passed == (self.high < 0 if self.rule.kind == "drop" else self.low > 0)

    @property
    def origin(self) -> str:
        """Where the rule comes from, in brackets; "" where it was given."""
        return f" (from {self.source})" if self.source else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is not a finite number is None."""
        made = {**asdict(self), "rule": self.rule.text}
        return {
            key: None if isinstance(value, float) and not abs(value) < float("inf") else value
            for key, value in made.items()
        }


@dataclass(frozen=True, eq=False)
class GateResult:
    """What `check` gives: a row for every run and rule, in that order, and what to know about them."""

    rows: tuple[Row, ...]
    warnings: tuple[str, ...]
    result: str
    baseline: str | None
    plan: Plan
    command: str

    @property
    def passed(self) -> bool:
        """Whether every rule was kept; a gate without rules never passes."""
        return bool(self.rows) and all(row.passed for row in self.rows)

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rules that were broken."""
        return tuple(row for row in self.rows if not row.passed)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        runs = list(dict.fromkeys(row.run for row in self.rows))
        of = f" of run {runs[0]}" if len(runs) == 1 else f" over {len(runs)} runs"
        rules = counted(len(self.rows), "rule")
        if self.passed:
            return f"The gate passed: {rules}{of} kept."
        return f"The gate FAILED: {len(self.failures)} of {rules}{of} broken."

    @property
    def method(self) -> str:
        """How it was tested, and what brackets are; empty where there is nothing to say."""
        tested = self.plan.sentence(sum(row.p is not None for row in self.rows))
        spans = "Brackets are 95 % intervals." if any(row.low is not None for row in self.rows) else ""
        return " ".join(part for part in (tested, spans, self._odd()) if part)

    def _odd(self) -> str:
        """Which rules have an interval that says something else than p, and why; empty where none has."""
        odd = [f"`{row.rule.text}` for {row.run}" for row in self.rows if row.at_odds]
        if not odd:
            return ""
        many = sum(row.p is not None for row in self.rows) > 1 and self.plan.correction != "none"
        return (
            f"Interval and p disagree on {listed(odd, SHOWN_NAMES)}: an interval is two-sided and of one test "
            f"alone, p is one-sided{' and corrected' if many else ''}. The rules go by p."
        )

    @property
    def table(self) -> Table:
        """Rule, value, needed, verdict and why, the broken ones first; the run too where there are several."""
        several = len({row.run for row in self.rows}) > 1
        columns = [*(["run"] if several else []), "rule", "value", "needed", "verdict", "why"]
        rows: list[list[Cell]] = [
            [*([row.run] if several else []), row.rule.text, row.value, row.needed, row.verdict, row.why]
            for row in sorted(self.rows, key=lambda row: row.passed)
        ]
        return Table(columns, rows)

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `gate`."""
        return {
            "steelyard": __version__,
            "passed": self.passed,
            "result": self.result,
            "baseline": self.baseline,
            **asdict(self.plan),
            "rows": [row.to_dict() for row in self.rows],
            "warnings": list(self.warnings),
        }

    def to_json(self) -> str:
        """The JSON of `gate`; numbers are unrounded."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def to_csv(self) -> str:
        """CSV: one row a run and rule, the broken ones first, with every number unrounded."""
        kept = [row.to_dict() | {"verdict": row.verdict} for row in sorted(self.rows, key=lambda r: r.passed)]
        return comma_separated(Table(_COLUMNS, [[row[name] for name in _COLUMNS] for row in kept]))

    def to_junit(self) -> str:
        """JUnit XML: one test suite a run, one test case a rule."""
        return junit(self)

    def to_markdown(self) -> str:
        """What to paste into a pull request: the verdict, the table, what lost most, how to reproduce it."""
        return gate_markdown(self)

    def to_text(self) -> str:
        """The verdict, every broken rule with its numbers and worst queries, and the warnings."""
        lines = [self.sentence]
        for row in self.failures:
            number = f"{row.value}" if isinstance(row.value, int) else f"{row.value:.4f}"
            lines.append(f"  {row.run}: {row.rule.text}{row.origin}")
            lines.append(f"    {row.measure} is {number}, needed {row.needed}: {row.why}")
            lines += [f"      {loser}" for loser in row.losers]
        return "\n".join([*lines, *([self.method] if self.method else []), *self.warnings])

    def __repr__(self) -> str:
        parts = [self.sentence, plain(self.table), self.method, *self.warnings]
        return "\n".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        return gate_html(self)


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


MARKDOWN_LONGEST = 120
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
            code(loser.query_id, MARKDOWN_LONGEST),
            *([code(loser.text, MARKDOWN_LONGEST)] if asked else []),
            *([loser.before] if before else []),
            loser.after,
        ]
        for loser in row.losers
    ]
    return Table(columns, rows)


def _block(command: str) -> str:
    return "\n".join(f"    {line}" for line in command.splitlines() or [""])


def gate_html(gate: GateResult) -> str:
    """The verdict, the table, and what to know about it."""
    said = "".join(f"<li>{escape(line)}</li>" for line in (gate.method, *gate.warnings) if line)
    return fragment(
        [f"<p><strong>{escape(gate.sentence)}</strong></p>", table_html(gate.table), f"<ul>{said}</ul>"]
    )
