"""Claims: every two runs on every measure, decided in one place for all that a comparison shows.

A pair is tested, its p-value is corrected for the pairs of its family, and a significant difference is checked for
unjudged documents (`judged`). The leaderboard's groups and ranks, the verdict, the tables, the matrix of the page and
the verdicts over several datasets all read the pairs from here, so that two runs have the same verdict everywhere.

A family is the pairs of one measure that were asked for: every run with the baseline or, without a baseline, every
two runs. With a baseline, the other pairs of the measure are a second family, tested when something shows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from steelyard.comparison.judged import JudgedDocuments, Part, with_conventions
from steelyard.comparison.overlap import Rules, by_every_rule
from steelyard.comparison.pairs import Pair, PairTest, tested_pairs
from steelyard.comparison.predicted import Predictions
from steelyard.comparison.scores import ScoreTable
from steelyard.comparison.testing import ComparisonPlan


@dataclass(eq=False)
class Claims:
    """The pairs of a comparison, each decided once.

    orders: the runs of every table, best first. judged: the documents of the runs; None where they are unknown.
    parts: the measures of every column, by its key and the cutoff of its table. rules: see `overlap`.
    """

    tables: Sequence[ScoreTable]
    orders: Sequence[Sequence[int]]
    plan: ComparisonPlan
    judged: JudgedDocuments | None = None
    parts: Mapping[tuple[str, int | None], Sequence[Part]] = field(default_factory=dict)
    predictions: Predictions | None = None
    rules: Rules = field(default_factory=dict)
    _every: dict[tuple[str, int | None], list[Pair]] = field(default_factory=dict, repr=False)

    @cached_property
    def asked(self) -> list[Pair]:
        """Every run compared with the baseline or, without one, every two runs, on every measure."""
        return self._decided(
            [
                PairTest(table, column, run, other)
                for table, order in zip(self.tables, self.orders, strict=True)
                for run, other in self._asked_couples(table, order)
                for column in table.columns
            ]
        )

    def every(self, key: str, k: int | None = None) -> list[Pair]:
        """Every two runs on a measure, the higher-ranked first; a pair with the baseline has it second."""
        if (key, k) not in self._every:
            table, order = next(each for each in zip(self.tables, self.orders, strict=True) if each[0].k == k)
            column = table.columns[table.column(key)]
            known = {pair.names: pair for pair in self.asked if (pair.measure, pair.k) == (key, k)}
            tests = [PairTest(table, column, run, other) for run, other in combinations(order, 2)]
            known |= {pair.names: pair for pair in self._decided([each for each in tests if each.names not in known])}
            self._every[key, k] = [known[each.names] for each in tests]
        return self._every[key, k]

    def _asked_couples(self, table: ScoreTable, order: Sequence[int]) -> list[tuple[int, int]]:
        if self.plan.baseline is None:
            return list(combinations(order, 2))
        base = table.runs.index(self.plan.baseline)
        return [(run, base) for run in order if run != base]

    def _decided(self, tests: Sequence[PairTest]) -> list[Pair]:
        """The pairs of some families: tested, corrected and checked."""
        pairs = tested_pairs(tests, self.plan)
        if self.rules:
            pairs = by_every_rule(pairs, tests, self.rules, self.plan)
        if self.judged is not None:
            pairs = with_conventions(pairs, self.parts, self.tables, self.plan, self.judged)
        if self.predictions is not None:
            pairs = self.predictions.pairs(pairs, self.plan, self.judged, self.parts)
        return pairs
