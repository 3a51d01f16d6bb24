"""How differences are tested: the test, the correction, the significance level, and the number of random draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from steelyard.checks import whole_number
from steelyard.errors import PolicyError, did_you_mean
from steelyard.statistics import FAMILY_TESTS
from steelyard.statistics.corrections import check_correction
from steelyard.statistics.paired import TESTS


@dataclass(frozen=True)
class Testing:
    """The settings that a comparison and a gate share."""

    test: str = "t"
    correction: str = "holm"
    alpha: float = 0.05
    permutations: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low in (("permutations", 1), ("seed", 0)):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), low, error=PolicyError))

    def check(self, tests: Sequence[str], refusal: str) -> None:
        """Raise for a test that is not one of these (the message starts with `refusal`), and for an unknown correction."""
        if self.test not in tests:
            raise PolicyError(
                f"{refusal} {self.test!r}; expected one of {', '.join(tests)}.{did_you_mean(self.test, tests)}"
            )
        check_correction(self.correction)


@dataclass(frozen=True)
class ComparisonPlan(Testing):
    """How pairs of runs are tested: every run vs the baseline or, without one, every two runs.

    `equivalence` is the margin within which runs are called equivalent; None: equivalence is not tested.
    """

    baseline: str | None = None
    equivalence: float | None = None

    @property
    def corrected_by(self) -> str:
        """The correction of the p-values: the test itself where it tests all runs together."""
        return self.test if self.test in FAMILY_TESTS else self.correction

    def checked(self) -> ComparisonPlan:
        """The plan, or an error where a setting is wrong."""
        self.check(TESTS, "unknown test")
        if not 0.0 < self.alpha < 1.0:
            raise PolicyError(f"alpha is {self.alpha:g}; expected a number above 0 and below 1, as in 0.05.")
        if self.equivalence is not None and not 0.0 < self.equivalence < float("inf"):
            raise PolicyError(f"equivalence is {self.equivalence:g}; expected a margin above 0, as in 0.01.")
        if self.test in FAMILY_TESTS and self.correction not in ("none", "holm"):
            raise PolicyError(
                f"the {self.test} test corrects for all its pairs itself, so correction={self.correction} has no "
                "effect; leave the correction out, or choose another test."
            )
        return self

    def with_baseline(self, baseline: str | None, runs: Sequence[str]) -> ComparisonPlan:
        """The plan with a baseline, or an error where it is not one of the runs."""
        if baseline is not None and baseline not in runs:
            raise PolicyError(
                f"the baseline {baseline!r} is not one of the runs; expected one of {', '.join(runs)}."
                f"{did_you_mean(baseline, runs)}"
            )
        return replace(self, baseline=baseline)
