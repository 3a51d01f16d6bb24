"""How differences are tested: the test, the correction, the significance level, and the number of random draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from steelyard.checks import whole_number
from steelyard.errors import PolicyError, did_you_mean
from steelyard.options import Policies
from steelyard.statistics import FAMILY_TESTS
from steelyard.statistics.corrections import check_correction
from steelyard.statistics.paired import TESTS

DRAWS = {"permutation": 100_000, "bootstrap": 10_000, "tukey": 10_000, "max-t": 10_000}
"""The number of random draws of each test that has any, unless `permutations` is given."""

INTERVAL_KINDS = {"holm": "Bonferroni", "bonferroni": "Bonferroni", "bh": "FCR", "tukey": "Tukey", "max-t": "max-T"}
"""How intervals are corrected where p-values are corrected for several pairs."""


class Statistics(TypedDict, total=False):
    """How differences are tested: keywords of `compare`, `compare_scores` and `gate`, which state the defaults.

    >>> statistics: Statistics = {"test": "permutation", "alpha": 0.01}
    >>> compare(qrels, runs, **statistics), gate(result, baseline=before, **statistics)  # doctest: +SKIP
    """

    test: str
    correction: str
    alpha: float
    permutations: int | None
    seed: int


STATISTICS = tuple(Statistics.__annotations__)


class CompareOptions(Policies, Statistics):
    """The keywords that `compare` shares with `evaluate` and with `gate`."""


@dataclass(frozen=True)
class Testing:
    """The settings that a comparison and a gate share. `permutations` is None for the number that the test has."""

    test: str = "t"
    correction: str = "holm"
    alpha: float = 0.05
    permutations: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low in (("permutations", 1), ("seed", 0)):
            if (number := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole_number(name, number, low, error=PolicyError))

    @property
    def permutations_used(self) -> int | None:
        """The number of random draws of the test; None for a test that draws nothing."""
        default = DRAWS.get(self.test)
        return default if self.permutations is None or default is None else self.permutations

    def check(self, tests: Sequence[str], refusal: str) -> None:
        """Raise for a test that is not one of these (`refusal` starts the message), and for an unknown correction."""
        if self.test not in tests:
            expected = f"expected one of {', '.join(tests)}.{did_you_mean(self.test, tests)}"
            raise PolicyError(f"{refusal} {self.test!r}; {expected}")
        check_correction(self.correction)


@dataclass(frozen=True)
class ComparisonPlan(Testing):
    """How pairs of runs are tested: every run vs the baseline or, without one, every two runs.

    `equivalence` is the margin within which runs are called equivalent; None: equivalence is not tested.
    """

    baseline: str | None = None
    equivalence: float | None = None

    def interval_kind(self, several: bool) -> str:
        """How the intervals of pairs are corrected: empty for intervals of each pair alone, as with one pair."""
        return INTERVAL_KINDS.get(self.corrected_by, "") if several else ""

    def intervals_are(self, several: bool, how: str) -> str:
        """What the intervals of differences are, as a part of a sentence; `how`: those of each pair alone."""
        kind = self.interval_kind(several)
        how = "Student's" if kind in ("Bonferroni", "FCR") and how != "prediction-powered" else how
        if kind == "Bonferroni":
            return f"{how} intervals at the Bonferroni level: simultaneous for the pairs of a measure"
        if kind == "FCR":
            missed = f"{100 * self.alpha:.4g}%"
            return f"{how} intervals by false coverage rate: {missed} of those of significant differences are wrong"
        if kind:
            return "simultaneous for the pairs of a measure, from the draws of the test"
        if self.test in FAMILY_TESTS:
            return "from the draws of the test"
        return f"{how} intervals of each pair alone"

    @property
    def corrected_by(self) -> str:
        """The correction of the p-values: the test itself where it tests all runs together."""
        return self.test if self.test in FAMILY_TESTS else self.correction

    def checked(self) -> ComparisonPlan:
        """The plan, or an error where a setting is wrong."""
        self.check(TESTS, "unknown test")
        if not 1e-12 <= self.alpha < 1.0:
            span = "above 0 and below 1 (1e-12 or more)"
            raise PolicyError(f"alpha is {self.alpha:g}; expected a number {span}, as in 0.05.")
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
            expected = f"expected one of {', '.join(runs)}.{did_you_mean(str(baseline), runs)}"
            raise PolicyError(f"the baseline {baseline!r} is not one of the runs; {expected}")
        return replace(self, baseline=baseline)
