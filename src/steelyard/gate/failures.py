"""Runs that failed on queries: their values are of no answer, so they do not pass unless that is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.comparison.rules import Rule
from steelyard.errors import PolicyError
from steelyard.gate.advice import option
from steelyard.gate.measured import Measured
from steelyard.gate.result import Row
from steelyard.whole_numbers import is_whole
from steelyard.wording import counted

MEASURE = "failed queries"


def allowance(given: Any, now: Measured) -> int:
    """How many queries a run may fail on: what was given, or else what the result brings along."""
    if given is None:
        return now.allow_failed
    if not is_whole(given, 0):
        raise PolicyError(f"`allow_failed` is {given!r}; expected a whole number of queries, 0 or more.")
    return int(given)


def failure_rows(now: Measured, runs: Sequence[str], allowed: int) -> list[Row]:
    """A row for every run that failed on any query; broken where that is more than is allowed."""
    text = f"at most {counted(allowed, 'failed query', 'failed queries')}" if allowed else "no failed queries"
    rule = Rule(text, "failed", MEASURE, "<=", float(allowed))
    rows = []
    for run in runs:
        found = now.failed.get(run)
        if found is None:
            continue
        kept = found.failed <= allowed
        advice = "" if kept else f"; mend it, or allow it: {option('allow_failed', found.failed)}"
        rows.append(
            Row(
                run=run,
                baseline=None,
                rule=rule,
                measure=MEASURE,
                value=found.failed,
                needed=f"<= {allowed}",
                passed=kept,
                why=f"{found}{advice}",
                queries=found.asked,
            )
        )
    return rows
