"""The mean of one run under any reading of a measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.alignment.align import Aligned, align
from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Ordering
from steelyard.coverage import Levels, coverage_of, level_of, refuse_strangers, without_relevant
from steelyard.errors import MeasureError, PolicyError
from steelyard.judgments import Qrels
from steelyard.measures.compute import summary, values
from steelyard.measures.grammar import Measure
from steelyard.policies import Policies, policies
from steelyard.reconciliation import Reading
from steelyard.runs import Run


class Means:
    """The run's mean under any reading. It is joined with the judgments once per ordering that can matter.

    `grades` are the levels above 1 that the judgments have: those at which relevance may begin.
    """

    def __init__(self, qrels: Qrels, run: Run | str | Path) -> None:
        self._qrels, self._run = qrels, run
        self._aligned: dict[Ordering, Aligned | None] = {}
        self._lists: dict[tuple[Ordering, str], Alignment] = {}
        self._means: dict[tuple[Ordering, str, Measure], dict[tuple[str, str], float]] = {}
        self._refusals: dict[str, None] = {}
        first = align(qrels, run, Ordering(single=True))
        a = first.alignment
        coverage = coverage_of(first, a, Policies(), Levels(), np.inf)
        refuse_strangers({first.name: coverage})
        self.name = first.name
        self._answered, self._barren = a.answered, without_relevant(a, None)
        self._unjudged = coverage.unjudged > 0
        self._tied, self._repeated = bool(np.any(a.tie_size > 1)), coverage.repeated > 0
        grades = np.unique(a.judged.grade)
        self.grades = [int(grade) for grade in grades if 1 < grade <= 10 and grade == int(grade)]
        if not self._tied:
            self._aligned[self._ordering(Policies())] = first

    @property
    def refused(self) -> tuple[str, ...]:
        """Why the run cannot be measured under some policies."""
        return tuple(self._refusals)

    def mean(self, reading: Reading) -> float | None:
        """The reading's value over all queries; None where it cannot be had."""
        rules = reading.rules
        key = (self._ordering(rules), rules.unjudged if self._unjudged else "keep", reading.measure)
        if key not in self._means:
            self._means[key] = self._under_each_policy(*key)
        missing = "zero" if rules.missing == "error" else rules.missing
        found = self._means[key].get((missing, rules.no_relevant))
        return found if found is not None and np.isfinite(found) else None

    def other_policies(self, reading: Reading) -> Iterator[tuple[Reading, str]]:
        """The reading with one policy changed, for each that can matter to this run, and what it is."""
        choices: dict[str, tuple[Any, ...]] = {}
        if not self._answered.all():
            choices["missing"] = ("zero", "skip")
        if self._barren.any():
            choices["no_relevant"] = ("zero", "skip")
        if self._tied:
            choices["ties"] = ("docid-desc", "docid-asc", "stable", "expected")
        if self._repeated:
            choices["duplicates"] = ("hold", "collapse")
        if self._unjudged:
            choices["unjudged"] = ("keep", "remove")
        for policy, others in choices.items():
            for value in others:
                if value != getattr(reading.rules, policy):
                    rules = replace(reading.rules, **{policy: value})
                    yield replace(reading, rules=rules), f"{policy}={value}"

    def _ordering(self, rules: Policies) -> Ordering:
        """The ordering under the rules, as far as this run has ties and repeats."""
        asked = rules.ordering
        return Ordering(
            asked.ties if self._tied else "docid-desc",
            asked.duplicates if self._repeated else "hold",
            asked.single and self._tied,
        )

    def _under_each_policy(
        self, ordering: Ordering, unjudged: str, measure: Measure
    ) -> dict[tuple[str, str], float]:
        """A measure's mean by what becomes of missing queries and of those without a relevant document."""
        aligned = self._joined(ordering)
        if aligned is None:
            return {}
        if (ordering, unjudged) not in self._lists:
            rules = policies({"duplicates": ordering.duplicates, "unjudged": unjudged})
            self._lists[ordering, unjudged] = rules.lists(aligned.alignment, None)
        a = self._lists[ordering, unjudged]
        try:
            row = values(measure, a, expected=ordering.ties == "expected")
        except MeasureError:
            return {}
        barren = without_relevant(a, level_of(measure))
        sparing = np.where(barren, np.nan, row) if measure.definition.needs_relevant else row
        return {
            ("zero", "zero"): summary(measure, row),
            ("zero", "skip"): summary(measure, sparing),
            ("skip", "zero"): summary(measure, row[self._answered]),
            ("skip", "skip"): summary(measure, sparing[self._answered]),
        }

    def _joined(self, ordering: Ordering) -> Aligned | None:
        if ordering not in self._aligned:
            try:
                self._aligned[ordering] = align(self._qrels, self._run, ordering)
            except PolicyError as error:
                self._refusals[f"duplicates={ordering.duplicates} was left out: {error}"] = None
                self._aligned[ordering] = None
        return self._aligned[ordering]
