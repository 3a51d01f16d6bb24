"""How differences are tested: which test, which correction, at which level, and how chance is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from steelyard.errors import PolicyError, did_you_mean
from steelyard.statistics import FAMILY_TESTS
from steelyard.statistics.corrections import check_correction
from steelyard.statistics.paired import TESTS


@dataclass(frozen=True)
class Testing:
    """What a comparison and a gate have alike."""

    test: str = "t"
    correction: str = "holm"
    alpha: float = 0.05
    permutations: int = 100_000
    seed: int = 0

    def check(self, tests: Sequence[str], refusal: str) -> None:
        """Refuse a test that is none of these, in a sentence that begins so, and an unknown correction."""
        if self.test not in tests:
            raise PolicyError(
                f"{refusal} {self.test!r}; expected {', '.join(tests)}.{did_you_mean(self.test, tests)}"
            )
        check_correction(self.correction)


@dataclass(frozen=True)
class Plan(Testing):
    """How pairs are tested: every run against the baseline or, without one, every two runs."""

    baseline: str | None = None

    @property
    def corrected_by(self) -> str:
        """What corrects for many tests: the test itself where it is one of a family, else the correction."""
        return self.test if self.test in FAMILY_TESTS else self.correction

    def checked(self) -> Plan:
        """The plan, if it can be carried out."""
        self.check(TESTS, "there is no test")
        if not 0.0 < self.alpha < 1.0:
            raise PolicyError(f"alpha is {self.alpha:g}; expected a share above 0 and below 1, as in 0.05.")
        if self.test in FAMILY_TESTS and self.correction not in ("none", "holm"):
            raise PolicyError(
                f"the {self.test} test corrects for all its pairs itself, and correction={self.correction} would have "
                "no part in it; leave the correction out, or choose another test."
            )
        return self

    def against(self, baseline: str | None, runs: Sequence[str]) -> Plan:
        """The plan with a baseline, if it is one of the runs."""
        if baseline is not None and baseline not in runs:
            raise PolicyError(
                f"the baseline {baseline!r} is not among the runs; there are {', '.join(runs)}."
                f"{did_you_mean(baseline, runs)}"
            )
        return replace(self, baseline=baseline)
