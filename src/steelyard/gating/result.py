"""GateResult: whether a result passes, rule by rule; written as JUnit XML, as Markdown for a pull request, and more."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress
from typing import Any
from xml.etree import ElementTree

from steelyard.comparison.pairs import DEPENDS
from steelyard.comparison.rules import Rule
from steelyard.comparison.testing import Testing
from steelyard.errors import PolicyError
from steelyard.notes import Note, sentence
from steelyard.report.documents import Document, Documented, plain_values
from steelyard.report.tables import Cell, Table, code, markdown, plain
from steelyard.statistics.paired import PAIRED_TESTS
from steelyard.version import __version__
from steelyard.wording import SHOWN_NAMES, counted, in_words, listed, worded


@dataclass(frozen=True)
class GatePlan(Testing):
    """How a gate tests: one-sided and paired by query; the correction is over all tests of the gate."""

    def checked(self) -> GatePlan:
        """The plan, or an error if a setting is wrong."""
        self.check(PAIRED_TESTS, "a gate cannot use the test")
        if not 0.0 < self.alpha < 0.5:
            raise PolicyError(f"alpha is {self.alpha:g}; expected a number above 0 and below 0.5, as in 0.05.")
        return self

    def sentence(self, tests: int) -> str:
        """How it was tested, as a sentence; empty if nothing was tested."""
        if not tests:
            return ""
        several = self.correction != "none" and tests > 1
        corrected = f"{self.correction} correction over {tests} tests" if several else "no correction"
        return f"Tested by the paired {self.test} test over queries, one-sided, alpha {self.alpha:g}, {corrected}."

    def changed(self) -> dict[str, Any]:
        """The settings that differ from the defaults."""
        default = GatePlan()
        return {name: value for name, value in vars(self).items() if value != getattr(default, name)}


def option(name: str, value: str | int) -> str:
    """An argument of `gate` with its value, as messages show it: in Python with the option of the command line.

    >>> option("allow", "queries"), option("rules", "RR >= 0.4")
    ("allow='queries' (--allow queries)", "rules=['RR >= 0.4'] (--rule 'RR >= 0.4')")
    """
    argument = f"{name}={[value]!r}" if name == "rules" else f"{name}={value!r}"
    command = shlex.join(flags(name, value))
    return in_words(f"{argument} ({command})", command)


def flags(name: str, value: Any) -> list[str]:
    """An argument of `gate` with its value, as the command line takes it."""
    if name == "allow_failed":
        return ["--allow", f"failed={value}"]
    text = f"{value:g}" if isinstance(value, float) else str(value)
    if name in ("rules", "run", "allow", "baseline"):
        return ["--rule" if name == "rules" else f"--{name}", text]
    return ["--set", f"{name}={text}"]


LONGEST = 100  # Characters of a query's text that a line shows.

_COLUMNS = (
    "run", "rule", "measure", "verdict", "value", "needed", "why", "queries", "baseline", "reference",
    "difference", "low", "high", "effect", "p", "p_adjusted", "detectable", "judged", "judged_baseline", "bound_low",
    "bound_high", "unjudged",
)  # fmt: skip


@dataclass(frozen=True)
class Loser:
    """A query with a loss: its value, its value in the baseline (None without one), and its text if known."""

    query_id: str
    before: float | None
    after: float
    text: str = ""

    def __str__(self) -> str:
        line = " ".join(self.text.split())
        text = f" {line if len(line) <= LONGEST else line[: LONGEST - 3] + '...'!r}" if line else ""
        was = "" if self.before is None else f"{self.before:.4f} -> "
        return f"{self.query_id}{text}: {was}{self.after:.4f}"


@dataclass(frozen=True)
class Row:
    """One rule and one run. Numbers that a rule of its kind does not have are None.

    reference: the value of the baseline for the same queries. low, high: the 95% interval of the value (a threshold) or
    of the difference. p: one-sided. detectable: the smallest change for the worse that so many queries detect 80% of
    the time. source: where the rule comes from; "" if the caller gave it. undecided: the outcome depends on unjudged
    documents, or on the overlap rule of chunks; then `overlaps` has the difference by each. judged, judged_baseline:
    the share of judged documents above the measure's cutoff, if it is below 1. bound_low, bound_high: the lowest and
    highest value (a threshold) or difference that any grading gives. unjudged: unjudged documents of both runs.
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
    detectable: float | None = None
    losers: tuple[Loser, ...] = ()
    source: str = ""
    undecided: bool = False
    judged: float | None = None
    judged_baseline: float | None = None
    bound_low: float | None = None
    bound_high: float | None = None
    unjudged: int = 0
    overlaps: Mapping[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """passed, FAILED or undecided."""
        if self.undecided:
            return "undecided"
        return "passed" if self.passed else "FAILED"

    @property
    def order(self) -> tuple[bool, bool]:
        """Failed rules come first in a table, then undecided ones."""
        return self.passed, not self.undecided

    @property
    def disagrees(self) -> bool:
        """Whether a rule failed although its interval contains 0, or passed although it is all on the wrong side."""
        if self.undecided or self.p is None or self.low is None or self.high is None:
            return False
        return self.passed == (self.high < 0 if self.rule.kind == "drop" else self.low > 0)

    @property
    def origin(self) -> str:
        """Where the rule comes from, in brackets; "" if the caller gave it."""
        return f" (from {self.source})" if self.source else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite are None."""
        return {name: plain_values(value) for name, value in {**asdict(self), "rule": self.rule.text}.items()}


@dataclass(frozen=True, eq=False, repr=False)
class GateResult(Documented):
    """The result of `gate`: one row per run and rule, in that order, and notes."""

    rows: tuple[Row, ...]
    warnings: tuple[Note, ...]
    result: str
    baseline: str | None
    plan: GatePlan
    command: str

    @property
    def passed(self) -> bool:
        """Whether no rule failed; a gate without rules does not pass.

        An undecided rule fails only with `strict_judged`; `verdict` is "undecided" otherwise.
        """
        return bool(self.rows) and all(row.passed for row in self.rows)

    @property
    def verdict(self) -> str:
        """passed, FAILED, or undecided: no rule failed, and one is undecided."""
        if not self.passed:
            return "FAILED"
        return "undecided" if any(row.undecided for row in self.rows) else "passed"

    @property
    def failures(self) -> tuple[Row, ...]:
        """The rules that failed."""
        return tuple(row for row in self.rows if not row.passed)

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        runs = list(dict.fromkeys(row.run for row in self.rows))
        of = f" of run {runs[0]}" if len(runs) == 1 else f" over {len(runs)} runs"
        rules = counted(len(self.rows), "rule")
        undecided = sum(row.undecided for row in self.rows)
        failed = len([row for row in self.failures if not row.undecided])
        overlap = any(row.overlaps for row in self.rows)
        what = DEPENDS.removeprefix("depends ") if overlap else "on unjudged documents"
        depend = f"{worded(undecided, 'depends', 'depend')} {what}"
        if self.verdict == "passed":
            return f"The gate passed: {rules}{of} passed."
        if self.verdict == "undecided":
            return f"Undecided: {undecided} of {rules}{of} {depend}."
        if not failed:
            return f"The gate FAILED: {undecided} of {rules}{of} {depend} (undecided)."
        more = f", and {undecided} {depend} (undecided)" if undecided else ""
        return f"The gate FAILED: {failed} of {rules}{of} failed{more}."

    @property
    def method(self) -> str:
        """How it was tested, and what the brackets are; empty if nothing needs explaining."""
        tests = sum(row.p is not None for row in self.rows)
        parts = [self.plan.sentence(tests)]
        parts += ["Brackets are 95% intervals."] if any(row.low is not None for row in self.rows) else []
        rules = [f"`{row.rule.text}` for {row.run}" for row in self.rows if row.disagrees]
        if rules:
            corrected = " and corrected" if tests > 1 and self.plan.correction != "none" else ""
            parts.append(
                f"Interval and p-value disagree for {listed(rules, SHOWN_NAMES)}: the interval is two-sided and of one "
                f"test alone, p is one-sided{corrected}. The rules follow p."
            )
        return " ".join(part for part in parts if part)

    @property
    def table(self) -> Table:
        """Rule, value, needed, verdict and why, failed rules first; also the run if there are several."""
        return self.table_of(self.rows)

    def table_of(self, rows: Sequence[Row]) -> Table:
        """The table of some of the rows."""
        several = len({row.run for row in self.rows}) > 1
        columns = [*(["run"] if several else []), "rule", "value", "needed", "verdict", "why"]
        cells: list[list[Cell]] = [
            [*([row.run] if several else []), row.rule.text, row.value, row.needed, row.verdict, row.why]
            for row in sorted(rows, key=lambda row: row.order)
        ]
        return Table(columns, cells)

    @property
    def remarks(self) -> list[str]:
        """How it was tested and the notes, as sentences."""
        return [*([self.method] if self.method else []), *map(sentence, self.warnings)]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `gate`."""
        return {
            "steelyard": __version__,
            "passed": self.passed,
            "verdict": self.verdict,
            "result": self.result,
            "baseline": self.baseline,
            **asdict(self.plan),
            "rows": [row.to_dict() for row in self.rows],
            "warnings": [warning.to_dict() for warning in self.warnings],
        }

    def data_table(self) -> Table:
        """One row per run and rule, failed rules first, with every number."""
        rows = [row.to_dict() | {"verdict": row.verdict} for row in sorted(self.rows, key=lambda r: r.order)]
        return Table(_COLUMNS, [[row[name] for name in _COLUMNS] for row in rows])

    def document(self) -> Document:
        """The verdict, the table and the notes."""
        return Document("Gate", self.sentence, [self.table], self.remarks)

    def to_junit(self) -> str:
        """JUnit XML: one test suite per run, one test case per rule.

        A failed rule is a failure with its numbers and worst queries. An undecided rule is skipped, or an error if it
        does not pass. There are no times and no dates: the same gate gives the same bytes.
        """
        by_run: dict[str, list[Row]] = {}
        for row in self.rows:
            by_run.setdefault(row.run, []).append(row)
        root = ElementTree.Element("testsuites", _counts(self.rows, name="steelyard gate"))
        for run, rows in by_run.items():
            suite = ElementTree.SubElement(root, "testsuite", _counts(rows, name=run))
            properties = ElementTree.SubElement(suite, "properties")
            facts = {"steelyard": __version__, "verdict": self.sentence, "result": self.result}
            if self.baseline is not None:
                facts |= {"baseline": self.baseline, "baseline run": rows[0].baseline or ""}
            facts |= {"method": self.method} if self.method else {}
            for name, value in {**facts, "command": self.command}.items():
                ElementTree.SubElement(properties, "property", {"name": name, "value": _clean(value)})
            for row in rows:
                _case(suite, row)
            if self.warnings:
                notes = "\n".join(map(sentence, self.warnings))
                ElementTree.SubElement(suite, "system-err").text = _clean(notes)
        return _written(root)

    def to_markdown(self) -> str:
        """Markdown for a pull request: the verdict, the table, the largest losses, how to reproduce it.

        Names and texts are in code spans, and sentences are escaped: they cannot format, link or mention anybody.
        """
        table = self.table
        cells = [[_cell(name, cell) for name, cell in zip(table.columns, row, strict=True)] for row in table.rows]
        parts = [f"## {escaped(self.sentence)}", markdown(Table(table.columns, cells))]
        shown = self.failures or tuple(row for row in self.rows if row.baseline and row.losers)[:1]
        for headline, table in dict(_losses(row) for row in shown if row.losers).items():
            parts += [headline, markdown(table)]
        if self.remarks:
            parts += ["### Notes", "\n".join(f"- {escaped(line)}" for line in self.remarks)]
        indented = "\n".join(f"    {line}" for line in self.command.splitlines() or [""])
        return "\n\n".join([*parts, "### To reproduce", indented])

    def to_text(self) -> str:
        """The verdict, every failed or undecided rule with its numbers and worst queries, and the notes."""
        lines = [self.sentence]
        for row in sorted(self.rows, key=lambda row: row.order):
            if not row.passed or row.undecided:
                number = f"{row.value}" if isinstance(row.value, int) else f"{row.value:.4f}"
                lines.append(f"  {row.run}: {row.rule.text}{row.origin}")
                lines.append(f"    {row.measure} is {number}, needed {row.needed}: {row.why}")
                lines += [f"      {loser}" for loser in row.losers]
        return "\n".join([*lines, *self.remarks])

    def __repr__(self) -> str:
        return "\n".join([self.sentence, plain(self.table), *self.remarks])


_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even escaped."""


def junit_error(message: str) -> str:
    """A gate that could not be checked: one test case, which is an error."""
    counts = {"name": "steelyard gate", "tests": "1", "failures": "0", "errors": "1", "skipped": "0", "time": "0"}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", counts)
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
    if row.passed:
        if row.undecided:
            ElementTree.SubElement(case, "skipped", {"message": _clean(f"undecided: {text}")})
        else:
            ElementTree.SubElement(case, "system-out").text = _clean(text)
        return
    lost = [f"  {loser}" for loser in row.losers]
    kind = ("error", "undecided") if row.undecided else ("failure", row.rule.kind)
    failure = ElementTree.SubElement(case, kind[0], {"message": _clean(text), "type": kind[1]})
    failure.text = _clean("\n".join([row.rule.text + row.origin, text, *(["worst queries:", *lost] if lost else [])]))


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


def _clean(text: str) -> str:
    """The text, with characters that XML does not allow shown as their codes."""
    return _FORBIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


MARKDOWN_LONGEST = 120
_SPECIAL = re.compile(r"[\\`*_<~]|(?<=\])[(\[]")
_MENTION = re.compile(r"(?<!\w)@")


def markdown_error(message: str) -> str:
    """Markdown for a gate that could not be checked."""
    return "\n\n".join(["## The gate could not be checked.", *map(escaped, message.splitlines())])


def escaped(text: str) -> str:
    """A sentence on one line, with the characters that Markdown interprets escaped."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return _MENTION.sub("@\u2060", _SPECIAL.sub(lambda match: f"\\{match.group()}", line))


def _cell(column: str, cell: Cell) -> Cell:
    if column in ("run", "rule"):
        return code(str(cell))
    if column == "verdict":
        return f"**{cell}**" if cell in ("FAILED", "undecided") else cell
    return escaped(cell) if isinstance(cell, str) else cell


def _losses(row: Row) -> tuple[str, Table]:
    """The worst queries of a row: a headline and a table."""
    rule, before = row.rule, row.losers[0].before is not None
    subject = row.measure if rule.column is None else f"{row.measure}[{rule.column}={rule.value}]"
    headline = f"### {'Largest losses' if before else 'The lowest values'} on {code(subject)} in {code(row.run)}"
    texts = any(loser.text for loser in row.losers)
    shown = [True, texts, before, True]  # Which of the columns.
    rows: list[list[Cell]] = []
    for loser in row.losers:
        query, text = code(loser.query_id, MARKDOWN_LONGEST), code(loser.text, MARKDOWN_LONGEST)
        rows.append(list(compress([query, text, loser.before, loser.after], shown)))
    return headline, Table(list(compress(["query", "text", "before", "after"], shown)), rows)
