"""The settings of a gate: how it tests, and how messages name its options."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from steelyard.comparison.testing import Testing
from steelyard.errors import PolicyError
from steelyard.statistics.paired import PAIRED_TESTS
from steelyard.wording import in_words


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
