"""The settings of a gate: how it tests, and how messages name its options."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from steelyard.comparison.testing import Testing
from steelyard.errors import PolicyError
from steelyard.statistics.paired import PAIRED_TESTS


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
        corrected = (
            f"{self.correction} correction over {tests} tests"
            if self.correction != "none" and tests > 1
            else "no correction"
        )
        return f"Tested by the paired {self.test} test over queries, one-sided, alpha {self.alpha:g}, {corrected}."

    def changed(self) -> dict[str, Any]:
        """The settings that differ from the defaults."""
        default = GatePlan()
        return {name: value for name, value in vars(self).items() if value != getattr(default, name)}


def option(name: str, value: str | int) -> str:
    """An argument of `gate` with its value, in Python and on the command line, as messages show it.

    >>> option("allow", "queries"), option("rules", "RR >= 0.4")
    ("allow='queries' (--allow queries)", "rules=['RR >= 0.4'] (--rule 'RR >= 0.4')")
    """
    flag = "rule" if name == "rules" else name.replace("_", "-")
    argument = f"{name}={[value]!r}" if name == "rules" else f"{name}={value!r}"
    return f"{argument} (--{flag} {shlex.quote(str(value))})"
