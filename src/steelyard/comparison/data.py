"""ComparisonData: what a comparison found, as values: the score tables, the leaderboard, the pairs, the verdict.

`result.Comparison` adds the frames and the output formats; report/ reads the data alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from typing import Any

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats, Remembers
from steelyard.alignment.scans import ScannedRun
from steelyard.checks import is_whole, unknown_name
from steelyard.comparison.judged import JudgedDocuments, PartsOf, RowJudged, judged_rows, with_conventions
from steelyard.comparison.leaderboard import LeaderboardRow, Verdict, verdict_of
from steelyard.comparison.movers import Mover, Moves, RunMovers, document_moves, movers, movers_by_run
from steelyard.comparison.pairs import Pair, PairTest, Rules, by_every_rule, interval_method, tested_pairs
from steelyard.comparison.predicted import Predictions
from steelyard.comparison.scores import Column, ScoreTable, label
from steelyard.comparison.slices import Slice
from steelyard.comparison.testing import ComparisonPlan
from steelyard.coverage import Coverage
from steelyard.errors import InputError
from steelyard.measures.grammar import Measure
from steelyard.notes import Note
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.scores import settings_of
from steelyard.statistics import Stability, rank_stability

QUICK_TESTS = ("t", "wilcoxon", "sign", "tukey")  # Tests without random draws.


@dataclass(frozen=True)
class ComparedRuns(Remembers):
    """The inputs of a comparison, kept to show single queries; `alignments` are the runs joined with the qrels.

    `chunked`: each run has a chunking and is joined with its qrels; `qrels` are those of all chunkings together.
    """

    qrels: Qrels
    runs: Mapping[str, Any]
    alignments: Mapping[str, Alignment]
    chunked: bool = False

    def run(self, name: str) -> Run:
        """A run; one that is a file is read the first time."""
        source = self.runs[name]
        lists = source.lists if isinstance(source, ScannedRun) else None
        return self.once(name, lambda: Run.of(source if lists is None else lists(), name=name))


@dataclass(frozen=True)
class EvaluatedRuns:
    """Runs that were evaluated to be compared: the tables of those that were measured, and why others were not.

    `coverage` and `source` have all runs; they are empty for a table of another tool. `rules`: see `by_every_rule`.
    """

    tables: tuple[ScoreTable, ...]
    components: tuple[ScoreTable | None, ...]
    weights: dict[str, float] | None
    source: ComparedRuns
    dialect: str = ""
    unmeasured: dict[str, str] = field(default_factory=dict)
    coverage: dict[str, Coverage] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    rules: Rules = field(default_factory=dict)


@dataclass(eq=False)
class Claims:
    """The pairs of a comparison, every two runs on every measure, each decided once for all that a comparison shows.

    A pair is tested, its p-value is corrected for the pairs of its family, and a significant difference is checked for
    unjudged documents (`judged`, None where they are unknown). A family is the pairs of one measure that were asked
    for: every run with the baseline or, without one, every two runs. With a baseline, the other pairs are a second
    family, tested if shown. orders: the runs of every table, best first.
    """

    tables: Sequence[ScoreTable]
    orders: Sequence[Sequence[int]]
    plan: ComparisonPlan
    judged: JudgedDocuments | None = None
    parts: PartsOf = field(default_factory=dict)
    predictions: Predictions | None = None
    rules: Rules = field(default_factory=dict)
    _every: dict[tuple[str, int | None], list[Pair]] = field(default_factory=dict, repr=False)

    @cached_property
    def asked(self) -> list[Pair]:
        """Every run compared with the baseline or, without one, every two runs, on every measure."""
        tests, baseline = [], self.plan.baseline
        for table, order in zip(self.tables, self.orders, strict=True):
            couples = list(combinations(order, 2))
            if baseline is not None:
                base = table.runs.index(baseline)
                couples = [(run, base) for run in order if run != base]
            tests += [PairTest(table, column, *both) for both in couples for column in table.columns]
        return self._decided(tests)

    def every(self, key: str, k: int | None = None) -> list[Pair]:
        """Every two runs on a measure, the higher-ranked first; a pair with the baseline has it second."""
        if (key, k) not in self._every:
            table, order = next(ranked for ranked in zip(self.tables, self.orders, strict=True) if ranked[0].k == k)
            pairs = {pair.names: pair for pair in self.asked if (pair.measure, pair.k) == (key, k)}
            tests = [PairTest(table, table.columns[table.column(key)], *both) for both in combinations(order, 2)]
            pairs |= {pair.names: pair for pair in self._decided([test for test in tests if test.names not in pairs])}
            self._every[key, k] = [pairs[test.names] for test in tests]
        return self._every[key, k]

    def _decided(self, tests: Sequence[PairTest]) -> list[Pair]:
        """The pairs of some families: tested, corrected and checked."""
        pairs = tested_pairs(tests, self.plan)
        if self.rules:
            pairs = by_every_rule(pairs, tests, self.rules, self.plan)
        if self.judged is not None:
            pairs = with_conventions(pairs, tests, self.parts, self.plan, self.judged)
        if self.predictions is not None:
            pairs = self.predictions.pairs(pairs, self.plan, self.judged, self.parts)
        return pairs


@dataclass(frozen=True)
class ShownMeasure:
    """One measure at one cutoff: its label, its score table, and its column."""

    label: str
    scores: ScoreTable
    column: Column

    @property
    def values(self) -> Floats:
        """Runs x queries, on the compared queries."""
        return self.scores.compared(self.column.key)

    @property
    def means(self) -> Floats:
        return self.scores.means()[:, self.scores.column(self.column.key)]


@dataclass(frozen=True, eq=False)
class ComparisonData:
    """What compare() found: one score table per cutoff, with the composite first where there are `weights`.

    `components` are the tables of its measures. `notes` are the `input_notes` and those of the comparison itself.
    `failed`: on how many queries of a bench a run failed, as in `2 of 6`. `unmeasured`: why the values of a run mean
    nothing; it is shown, and neither ranked nor tested. `cached`: runs with answers and times from a bench's cache.
    """

    score_tables: tuple[ScoreTable, ...]
    leaderboard_rows: tuple[LeaderboardRow, ...]
    tested_pairs: tuple[Pair, ...]
    claims: Claims
    plan: ComparisonPlan
    weights: dict[str, float] | None
    components: tuple[ScoreTable | None, ...]
    slices: tuple[Slice, ...]
    coverage: dict[str, Coverage]
    input_notes: tuple[Note, ...]
    notes: tuple[Note, ...]
    dialect: str
    source: ComparedRuns | None
    failed: Mapping[str, str] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    predicted_by: str = ""
    cached: tuple[str, ...] = ()
    judge_command: str = ""

    @property
    def policies(self) -> dict[str, Any] | None:
        """Every policy in force, with `rel` and `depth`; None for a table of values of another tool."""
        return None if self.options is None else vars(self.options).copy()

    @property
    def settings(self) -> str:
        """The dialect and the options that are not the defaults: what the names of the measures do not state."""
        return "" if self.options is None else settings_of(self.dialect, self.options)

    @property
    def tested_by(self) -> str:
        """The test of the pairs."""
        return "prediction-powered t test" if self.predicted_by else f"paired {self.plan.test} test by query"

    @property
    def interval_heading(self) -> str:
        """The heading of the intervals of differences: their level, and how they are corrected for several pairs."""
        kind = self.plan.interval_kind(self.several_pairs)
        return f"{100 * (1 - self.plan.alpha):.4g}% interval{f' ({kind})' if kind else ''}"

    @property
    def intervals_are(self) -> str:
        """What the intervals of the pairs are, as a part of a sentence."""
        how = "prediction-powered" if self.predicted_by else interval_method(self.tested_pairs)
        return self.plan.intervals_are(self.several_pairs, how)

    @property
    def several_pairs(self) -> bool:
        return len({pair.names for pair in self.tested_pairs}) > 1

    @property
    def options(self) -> Options | None:
        """The options of the evaluation; None for a table of values of another tool."""
        return next((covered.policies for covered in self.coverage.values()), None)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that were measured, in the order given."""
        return self.score_tables[0].runs

    @property
    def cached_times(self) -> tuple[str, ...]:
        """The runs whose times are from the cache, if times are shown."""
        return self.cached if any(column.timed for column in self.score_tables[0].columns) else ()

    @property
    def shown_rows(self) -> list[LeaderboardRow]:
        """The rows of the leaderboard; at every cutoff, those of the runs that were not measured come last."""
        rows, nothing = [], (dict.fromkeys(self.keys, math.nan), dict.fromkeys(self.keys))
        for table in self.score_tables:
            rows += [row for row in self.leaderboard_rows if row.k == table.k]
            rows += [LeaderboardRow(None, run, table.k, "", None, None, *nothing) for run in self.unmeasured]
        return rows

    @property
    def keys(self) -> list[str]:
        """The measures shown, as they were written; the composite first where there is one."""
        return [column.key for column in self.score_tables[0].columns]

    @cached_property
    def judged(self) -> dict[tuple[str, int | None], RowJudged]:
        """The judged shares and bounds of every row, by run and cutoff; empty where they are unknown or say nothing."""
        if self.predicted_by or self.claims.judged is None:
            return {}
        return judged_rows(self.score_tables, self.claims.parts, self.claims.judged)

    @property
    def shown_measures(self) -> list[ShownMeasure]:
        """Every measure of every score table, with the label that it has in pairs."""
        return [
            ShownMeasure(label(column.key, scores.k), scores, column)
            for scores in self.score_tables
            for column in scores.columns
        ]

    @property
    def run_order(self) -> list[str]:
        """The runs best first, at the first cutoff."""
        return [row.run for row in self.leaderboard_rows if row.k == self.score_tables[0].k]

    @property
    def verdict(self) -> Verdict:
        """Which run leads on the first measure (at the first cutoff), by how much, and whether that is significant."""
        table = self.score_tables[0]
        rows = [row for row in self.leaderboard_rows if row.k == table.k]
        labels = "" if self.source is None else self.source.qrels.labelled_by
        return verdict_of(table, rows, self.every_pair, bool(self.predicted_by), list(self.unmeasured), labels)

    @property
    def every_pair(self) -> list[Pair]:
        """Every two runs, asked for or not, on the measure that ranks them, at the first cutoff; the better first."""
        return self.claims.every(self.keys[0], self.score_tables[0].k)

    def pairs_on(self, measure: ShownMeasure) -> list[Pair]:
        """Every two runs, asked for or not, on a measure; none if the tests are slow and it does not rank the runs."""
        if measure.column.key != self.keys[0] and self.plan.test not in QUICK_TESTS:
            return []
        return self.claims.every(measure.column.key, measure.scores.k)

    @property
    def leading_pair(self) -> Pair | None:
        """The leader and the first run that differs from it, which the verdict is about; None where there is none."""
        top = self.leaderboard_rows[0].run
        pairs = [pair for pair in self.every_pair if top in (pair.run, pair.baseline)]
        return next((pair for pair in pairs if pair.verdict != "equal"), None)

    def stability(self, draws: int = 10_000) -> Stability | None:
        """How often the order changes when the composite's weights are drawn around the given ones."""
        table = self.components[0]
        if table is None or self.weights is None:
            return None
        inverted = [column.better == "less" for column in table.columns]
        return rank_stability(table.means(), list(self.weights.values()), inverted, draws=draws, seed=self.plan.seed)

    def movers(
        self, run: str, baseline: str | None = None, measure: str | Measure | None = None, most: int = 10
    ) -> list[Mover]:
        """The queries that changed most between two runs, with the judged documents that changed rank."""
        base = baseline or self.plan.baseline
        if base is None:
            raise InputError("name the run to compare with: movers(run, baseline).")
        for name in (run, base):
            if name not in self.runs:
                raise InputError(unknown_name("run", name, self.runs))
        places = self.runs.index(run), self.runs.index(base)
        return movers(self.score_tables[0], str(measure or self.keys[0]), *places, self._moves(run, base), most)

    def movers_by_run(self, most: int = 10) -> list[RunMovers]:
        """For every run the queries that it lost and won by most vs the baseline; without one, vs the last run."""
        if not is_whole(most):
            advice = "to_html and to_parquet write files, the others return texts"
            raise InputError(f"movers is {most!r}; expected a number of queries. {advice}.")
        base = self.plan.baseline or self.leaderboard_rows[-1].run
        return movers_by_run(self.score_tables[0], base, lambda run: self._moves(run, base), most)

    def _moves(self, run: str, baseline: str) -> Moves | None:
        """The documents that moved between two runs; None where the lists are unknown, or of different chunkings."""
        if self.source is None or self.source.chunked:
            return None
        ordering = self.coverage[run].policies.ordering
        return partial(document_moves, self.source.run(run), self.source.run(baseline), ordering, self.source.qrels)


def judged_documents(runs: EvaluatedRuns, plan: ComparisonPlan) -> JudgedDocuments | None:
    """What unjudged documents can change; None where lists or qrels are unknown, or each run has its own qrels."""
    source = runs.source
    unknown = any(isinstance(run, ScannedRun) and run.lists is None for run in source.runs.values())
    if source.chunked or unknown or not runs.coverage:
        return None
    options = next(iter(runs.coverage.values())).policies
    return JudgedDocuments(source.qrels, source.run, dict(source.alignments), options, plan.seed, plan.test)
