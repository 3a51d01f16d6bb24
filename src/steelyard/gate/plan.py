"""How a gate tests."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.comparison.plan import Testing
from steelyard.errors import PolicyError
from steelyard.statistics.tests import PAIRED_TESTS


@dataclass(frozen=True)
class Plan(Testing):
    """One-sided and paired by query; the correction is over all tests of the gate."""

    def checked(self) -> Plan:
        """The plan, if it can be carried out."""
        self.check(PAIRED_TESTS, "a gate cannot test by")
        if not 0.0 < self.alpha < 0.5:
            raise PolicyError(f"alpha is {self.alpha:g}; expected a share above 0 and below 0.5, as in 0.05.")
        return self

    def sentence(self, tests: int) -> str:
        """How it was tested, in a sentence; nothing where nothing was."""
        if not tests:
            return ""
        corrected = (
            f"{self.correction} correction over {tests} tests"
            if self.correction != "none" and tests > 1
            else "no correction"
        )
        return f"Tested by the paired {self.test} test over queries, one-sided, alpha {self.alpha:g}, {corrected}."
