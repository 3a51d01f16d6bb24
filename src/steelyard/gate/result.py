"""GateResult: whether a result may pass, rule by rule, and how to write that down."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from steelyard.comparison.rules import Rule
from steelyard.gate.plan import Plan
from steelyard.report.tables import Cell, Table, comma_separated, plain
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
        from steelyard.gate.junit import junit

        return junit(self)

    def to_markdown(self) -> str:
        """What to paste into a pull request: the verdict, the table, what lost most, how to reproduce it."""
        from steelyard.gate.markdown import gate_markdown

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
        from steelyard.gate.html import gate_html

        return gate_html(self)
