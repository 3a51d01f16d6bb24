"""Cases: a rule of a gate and a run, with the values that decide it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from steelyard.alignment.hits import Bools, Floats
from steelyard.comparison.rules import TOLERANCE, Rule, not_worse, within_margin
from steelyard.comparison.scores import Column
from steelyard.statistics import mean_interval

Runs: TypeAlias = Sequence[tuple[str, str | None]]  # Runs, each with the run of the baseline that it is compared with.


@dataclass(frozen=True)
class ResolvedRule:
    """A rule, the key of its measure in the result, its queries (None: all), and where it comes from."""

    rule: Rule
    key: str
    selected: Bools | None
    source: str = ""


@dataclass(frozen=True)
class RuleCase:
    """A rule and a run: the values of the run, and those of the baseline for the same queries.

    `candidates` (candidates x queries) are the values of all that the baseline was chosen from as the best, if it was.
    """

    resolved: ResolvedRule
    run: str
    baseline_run: str | None
    column: Column
    queries: tuple[str, ...]
    values: Floats
    baseline_values: Floats | None
    candidates: Floats | None = None

    @property
    def rule(self) -> Rule:
        """The rule."""
        return self.resolved.rule

    @property
    def value(self) -> float:
        """The value of the run."""
        return self.column.mean(self.values)

    @property
    def reference(self) -> float:
        """The value of the baseline."""
        assert self.baseline_values is not None
        return self.column.mean(self.baseline_values)

    @property
    def differences(self) -> Floats:
        """The run minus the baseline, per query; 0 for differences by rounding, which depend on the machine.

        For a geometric mean, of the logarithms.
        """
        assert self.baseline_values is not None
        differences = self.column.tested(self.values) - self.column.tested(self.baseline_values)
        rounding = TOLERANCE * np.maximum(1.0, np.abs(self.baseline_values))
        return np.where(np.abs(differences) <= rounding, 0.0, differences)

    @property
    def gains(self) -> Floats:
        """The differences, negative where the rule forbids them: of a rule on a rise, inverted."""
        return self.differences if self.rule.kind == "drop" else -self.differences

    @property
    def losses_from_candidates(self) -> Floats | None:
        """What the run lost against each of the candidates, positive where the rule forbids it; None without any."""
        if self.candidates is None:
            return None
        lost = self.column.tested(self.candidates) - self.column.tested(self.values)
        return lost if self.rule.kind == "drop" else -lost

    def interval(self, seed: int) -> tuple[float, float]:
        """The 95% interval of the difference from the baseline."""
        ends = mean_interval(self.differences, seed=seed)
        low, high = (self.column.within_range(self.column.change(end, self.reference)) for end in ends)
        return low, high


def keeps_margin(rule: Rule, low: float, high: float, column: Column) -> bool:
    """Whether an interval of the difference satisfies a rule of non-inferiority or equivalence."""
    if rule.kind == "not worse":
        return not_worse(low, high, rule.number, column.better)
    return within_margin(low, high, rule.number)
