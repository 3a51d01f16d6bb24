"""GateResult: whether a result passes, rule by rule."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from steelyard.comparison.rules import Rule
from steelyard.gate.settings import GatePlan
from steelyard.notes import Note, sentence
from steelyard.report.tables import Cell, Table, comma_separated, plain
from steelyard.version import __version__
from steelyard.wording import SHOWN_NAMES, counted, listed, worded

LONGEST = 100
"""Characters of a query's text that a line shows."""

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

    reference: the value of the baseline for the same queries. difference: the value minus the reference. low, high:
    the 95% interval of the value (a threshold) or of the difference. p: one-sided. detectable: the smallest change
    for the worse that this number of queries detects 80% of the time. source: where the rule comes from; "" if the
    caller gave it. undecided: the outcome depends on unjudged documents. judged, judged_baseline: the share of judged
    documents above the measure's cutoff, if it is below 1. bound_low, bound_high: the lowest and highest value (a
    threshold) or difference that any grading gives. unjudged: the number of unjudged documents of both runs.
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
        """Whether a rule failed although its interval contains 0, or passed although the interval is all on the wrong side.

        An undecided rule does neither.
        """
        if self.undecided or self.p is None or self.low is None or self.high is None:
            return False
        return self.passed == (self.high < 0 if self.rule.kind == "drop" else self.low > 0)

    @property
    def origin(self) -> str:
        """Where the rule comes from, in brackets; "" if the caller gave it."""
        return f" (from {self.source})" if self.source else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite are None."""
        made = {**asdict(self), "rule": self.rule.text}
        return {
            key: None if isinstance(value, float) and not abs(value) < float("inf") else value
            for key, value in made.items()
        }


@dataclass(frozen=True, eq=False)
class GateResult:
    """The result of `check`: one row per run and rule, in that order, and notes."""

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
        """passed, FAILED, or undecided: no rule failed, and the outcome of one depends on unjudged documents."""
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
        depend = f"{worded(undecided, 'depends', 'depend')} on unjudged documents"
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
        tested = self.plan.sentence(sum(row.p is not None for row in self.rows))
        spans = "Brackets are 95% intervals." if any(row.low is not None for row in self.rows) else ""
        return " ".join(part for part in (tested, spans, self._disagreement()) if part)

    def _disagreement(self) -> str:
        """The rules whose interval and p-value disagree, and why; empty if there are none."""
        rules = [f"`{row.rule.text}` for {row.run}" for row in self.rows if row.disagrees]
        if not rules:
            return ""
        corrected = sum(row.p is not None for row in self.rows) > 1 and self.plan.correction != "none"
        return (
            f"Interval and p-value disagree for {listed(rules, SHOWN_NAMES)}: the interval is two-sided and of one test "
            f"alone, p is one-sided{' and corrected' if corrected else ''}. The rules follow p."
        )

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
            "warnings": [each.to_dict() for each in self.warnings],
        }

    def to_json(self) -> str:
        """The JSON of `gate`; numbers are unrounded."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def to_csv(self) -> str:
        """CSV: one row per run and rule, failed rules first, with every number unrounded."""
        rows = [row.to_dict() | {"verdict": row.verdict} for row in sorted(self.rows, key=lambda r: r.order)]
        return comma_separated(Table(_COLUMNS, [[row[name] for name in _COLUMNS] for row in rows]))

    def to_junit(self) -> str:
        """JUnit XML: one test suite per run, one test case per rule."""
        from steelyard.gate.writers import junit

        return junit(self)

    def to_markdown(self) -> str:
        """Markdown for a pull request: the verdict, the table, the largest losses, how to reproduce it."""
        from steelyard.gate.writers import gate_markdown

        return gate_markdown(self)

    def to_text(self) -> str:
        """The verdict, every failed or undecided rule with its numbers and worst queries, and the notes."""
        lines = [self.sentence]
        for row in sorted(self.rows, key=lambda row: row.order):
            if row.passed and not row.undecided:
                continue
            number = f"{row.value}" if isinstance(row.value, int) else f"{row.value:.4f}"
            lines.append(f"  {row.run}: {row.rule.text}{row.origin}")
            lines.append(f"    {row.measure} is {number}, needed {row.needed}: {row.why}")
            lines += [f"      {loser}" for loser in row.losers]
        return "\n".join([*lines, *self.remarks])

    def __repr__(self) -> str:
        return "\n".join([self.sentence, plain(self.table), *self.remarks])

    def _repr_html_(self) -> str:
        from steelyard.gate.writers import gate_html

        return gate_html(self)
