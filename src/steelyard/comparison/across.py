"""Across: several datasets in one table: means, ranks, two tests with their questions, and what one dataset decides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from steelyard.alignment.hits import Floats
from steelyard.checks import unknown_name
from steelyard.comparison.leaderboard import NOT_BELOW, Verdict
from steelyard.comparison.result import Comparison
from steelyard.comparison.scores import Column, ScoreTable
from steelyard.comparison.testing import ComparisonPlan
from steelyard.errors import InputError, MeasureError, PolicyError
from steelyard.lazy import looked_up
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import parse
from steelyard.notes import Note, note
from steelyard.report.documents import Document, Documented, frame_table, plain_values
from steelyard.report.tables import Table
from steelyard.statistics import datasets as over_datasets
from steelyard.statistics import groups_of
from steelyard.statistics.arrays import ROUNDING
from steelyard.version import __version__
from steelyard.wording import SHOWN_NAMES, counted, listed

Missing = Literal["refuse", "skip"]
MISSING: tuple[Missing, ...] = get_args(Missing)

THESE, LIKE_THESE = "on these datasets", "on datasets like these"  # The questions of the two tests.


@dataclass(frozen=True, eq=False)
class DatasetValues:
    """One dataset: the mean of every run that was measured on it, with its interval where it has one.

    `per_query` has one value per query and run, on the queries that all these runs have; it is empty for published
    means. `verdicts` are those of every two runs (run, baseline) on this dataset alone. `page` is its report page.
    `others`: means by other measures, by their labels. `range` is that of the measure, if known.
    """

    name: str
    means: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    per_query: Mapping[str, Floats] = field(default_factory=dict)
    verdicts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    page: Path | None = None
    timed_apart: bool = False
    others: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    range: tuple[float, float] = (-math.inf, math.inf)

    @property
    def queries(self) -> int | None:
        """The number of queries; None if it is not known."""
        return next((len(values) for values in self.per_query.values()), None)


def measured_column(comparison: Comparison, measure: str | None) -> tuple[ScoreTable, Column]:
    """The score table and the column of a measure, by its label or its definition; the first one by default."""
    shown = comparison.shown_measures
    if measure is None:
        return shown[0].scores, shown[0].column
    matching = [named for named in shown if named.label.lower() == measure.lower()]
    if not matching:
        with suppress(MeasureError):
            spelled = parse(measure).spelled
            own = [(named, named.column.measure) for named in shown if named.scores.k is None]
            matching = [named for named, defined in own if defined is not None and defined.spelled == spelled]
    if not matching:
        raise MeasureError(unknown_name("measure", measure, [named.label for named in shown]))
    return matching[0].scores, matching[0].column


def dataset_values(
    name: str, comparison: Comparison, table: ScoreTable, column: Column, page: Path | None
) -> DatasetValues:
    """The values of one dataset from its comparison; means, intervals and verdicts are those of the comparison."""
    board = comparison.leaderboard_rows
    rows = {row.run: row for row in board if row.k == table.k and not math.isnan(row.means[column.key])}
    means = {run: rows[run].means[column.key] for run in table.runs if run in rows}
    values = table.compared(column.key)[[table.runs.index(run) for run in means]]
    kept = values[:, ~np.isnan(values).any(axis=0)]
    pairs = comparison.claims.every(column.key, table.k)
    verdicts = {(pair.run, pair.baseline): pair.verdict for pair in pairs}
    verdicts |= {(pair.baseline, pair.run): reverse(pair.verdict) for pair in pairs}
    others = {
        shown.label: {row.run: row.means[shown.column.key] for row in board if row.k == shown.scores.k}
        for shown in comparison.shown_measures
        if shown.column is not column
    }
    apart = column.timed and not all(table.comparable(column, i, j) for i, j in combinations(range(len(table.runs)), 2))
    intervals = {run: rows[run].intervals[column.key] for run in means}
    per_query = dict(zip(means, kept, strict=True)) if column.averaged and not column.geometric else {}
    return DatasetValues(name, means, intervals, per_query, verdicts, page, apart, others, column.range)


def reverse(verdict: str) -> str:
    """The verdict of the baseline compared with the run."""
    return {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}.get(verdict, verdict)


@dataclass(frozen=True)
class Outcome:
    """One test of a pair: p corrected for all pairs, the 95% interval of this pair alone, the verdict; why no test."""

    p_adjusted: float
    low: float
    high: float
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class AcrossRow:
    """One run: its means over datasets, its ranks, its values, and the datasets that it was not measured on."""

    run: str
    macro: float
    these: tuple[float, float]
    like_these: tuple[float, float]
    micro: float
    wins: int
    mean_rank: float
    borda: float
    borda_rank: int | None
    group: str
    like_group: str
    values: dict[str, float]
    intervals: dict[str, tuple[float, float] | None]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class AcrossPair:
    """Two runs: the difference of macro means, both tests, Nemenyi's p-value, and the verdict on every dataset."""

    run: str
    baseline: str
    difference: float
    these: Outcome
    like_these: Outcome
    nemenyi: float
    datasets: dict[str, str]


@dataclass(frozen=True, eq=False)
class AcrossData:
    """What across() found: `table`, `pairs` and `verdict` over several datasets. missing, borda_rule: see `across`."""

    datasets: tuple[DatasetValues, ...]
    measure: str
    better: str = "more"
    missing: Missing = "refuse"
    borda_rule: over_datasets.BordaRule = "complete"
    alpha: float = 0.05
    seed: int = 0
    input_notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        if self.missing not in MISSING:
            raise PolicyError(unknown_name("missing", self.missing, MISSING))
        if len(self.datasets) < 2:
            raise InputError(
                f"across compares runs over several datasets, and there is {counted(len(self.datasets), 'dataset')}: "
                "give more results, or use compare for one."
            )
        ComparisonPlan(alpha=self.alpha).checked()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dataset.name for dataset in self.datasets)

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """The runs, in the order in which they occur."""
        return tuple(dict.fromkeys(run for dataset in self.datasets for run in dataset.means))

    @cached_property
    def values(self) -> Floats:
        """The mean of every run on every dataset, runs x datasets; NaN where it was not measured."""
        return np.array([[dataset.means.get(run, math.nan) for dataset in self.datasets] for run in self.runs])

    @cached_property
    def _sign(self) -> float:
        return -1.0 if self.better == "less" else 1.0

    @cached_property
    def compared(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The positions of what is tested: of the complete runs (`refuse`), or of the complete datasets (`skip`)."""
        measured = np.asarray(~np.isnan(self.values))
        if self.missing == "skip":
            return tuple(range(len(self.runs))), tuple(np.flatnonzero(measured.all(axis=0)).tolist())
        return tuple(np.flatnonzero(measured.all(axis=1)).tolist()), tuple(range(len(self.datasets)))

    @cached_property
    def macro(self) -> Floats:
        """The macro mean of every run: over all datasets, or with `skip` over those that it has; NaN if refused."""
        if self.missing == "skip":
            return np.array([float(np.nanmean(row)) for row in self.values])
        return np.asarray(self.values.mean(axis=1))

    @cached_property
    def _tested_by_query(self) -> tuple[int, ...]:
        """The runs of the test by queries: those of `compared` with values per query on every dataset."""
        runs, places = self.compared
        return tuple(run for run in runs if all(self.runs[run] in self.datasets[place].per_query for place in places))

    @cached_property
    def these(self) -> over_datasets.MacroTests | None:
        """The test 'on these datasets' of the runs in `_tested_by_query`; None where there is no value per query."""
        places = self.compared[1]
        runs = self._tested_by_query
        if not runs or not places or any(self.datasets[place].timed_apart for place in places):
            return None
        matrices = [np.array([self.datasets[place].per_query[self.runs[run]] for run in runs]) for place in places]
        return over_datasets.these_datasets(matrices, seed=self.seed)

    @cached_property
    def like_these(self) -> over_datasets.MacroTests | None:
        """The test 'on datasets like these' of the compared runs; None with fewer than two datasets."""
        runs, places = self.compared
        if not runs or len(places) < 2 or any(self.datasets[place].timed_apart for place in places):
            return None
        return over_datasets.datasets_like_these(self.values[np.ix_(runs, places)], seed=self.seed)

    @property
    def _tests(self) -> dict[str, tuple[over_datasets.MacroTests | None, tuple[int, ...]]]:
        """Both tests by their questions, each with the runs that it tested."""
        return {THESE: (self.these, self._tested_by_query), LIKE_THESE: (self.like_these, self.compared[0])}

    @cached_property
    def friedman(self) -> over_datasets.FriedmanResult | None:
        """Friedman's and Nemenyi's tests of the compared runs; None with fewer than five datasets."""
        runs, places = self.compared
        if len(runs) < 2 or len(places) < over_datasets.FRIEDMAN_FROM:
            return None
        return over_datasets.friedman(self._sign * self.values[np.ix_(runs, places)], self.alpha)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The runs by macro mean, best first; those whose mean is refused come last, in the order given."""
        worth = np.where(np.isnan(self.macro), -np.inf, self._sign * self.macro)
        return tuple(sorted(range(len(self.runs)), key=lambda run: -round(float(worth[run]), 12)))

    @cached_property
    def rows(self) -> tuple[AcrossRow, ...]:
        """One row per run, best first."""
        worth = self._sign * self.values
        ranks = over_datasets.dataset_ranks(worth)
        by_name = sorted(range(len(self.runs)), key=lambda run: self.runs[run])
        counts = np.empty(len(self.runs))
        counts[by_name] = over_datasets.borda(worth[by_name], self.borda_rule)
        wins = (worth > np.nanmax(worth, axis=0) - ROUNDING).sum(axis=1)
        nothing = (math.nan, math.nan)
        # An interval over the shared datasets is not one of a mean over more of them.
        whole = len(self.compared[1]) == len(self.datasets)
        these, like = (
            dict(zip(members, map(tuple, np.clip(tests.run_intervals, *self._range).tolist()), strict=True))
            if tests is not None and whole
            else {}
            for tests, members in self._tests.values()
        )
        letters, like_letters = (self._letters(*test) for test in self._tests.values())
        rows = []
        for run in self.order:
            absent = tuple(name for name, value in zip(self.names, self.values[run], strict=True) if math.isnan(value))
            refused = bool(absent) and self.missing == "refuse"
            measured = [dataset for dataset in self.datasets if self.runs[run] in dataset.means]
            by_query = [values.per_query[self.runs[run]] for values in measured if self.runs[run] in values.per_query]
            whole_micro = not refused and len(by_query) == len(measured)
            rows.append(
                AcrossRow(
                    run=self.runs[run],
                    macro=float(self.macro[run]),
                    these=these.get(run, nothing),
                    like_these=like.get(run, nothing),
                    micro=float(np.concatenate(by_query).mean()) if whole_micro else math.nan,
                    wins=int(wins[run]),
                    mean_rank=math.nan if refused else float(np.nanmean(ranks[run])),
                    borda=float(counts[run]),
                    borda_rank=None if math.isnan(counts[run]) else 1 + int((counts > counts[run]).sum()),
                    group=letters[run],
                    like_group=like_letters[run],
                    values=dict(zip(self.names, self.values[run].tolist(), strict=True)),
                    intervals={dataset.name: dataset.intervals.get(self.runs[run]) for dataset in self.datasets},
                    missing=absent,
                )
            )
        return tuple(rows)

    @property
    def _range(self) -> tuple[float, float]:
        """The range of the measure, within which every interval is."""
        return min(values.range[0] for values in self.datasets), max(values.range[1] for values in self.datasets)

    def _letters(self, tests: over_datasets.MacroTests | None, members: Sequence[int]) -> list[str]:
        """Letters: runs that share one are not significantly different; empty for runs that were not tested."""
        if tests is None or len(members) < 2:
            return [""] * len(self.runs)
        p = np.ones((len(members), len(members)))
        for (i, j), value in zip(tests.pairs, tests.p, strict=True):
            p[i, j] = p[j, i] = value
        groups = groups_of(self._sign * self._shared_means[list(members)], p, self.alpha)
        letters = dict(zip(members, groups, strict=True))
        return [letters.get(run, "") for run in range(len(self.runs))]

    @cached_property
    def _shared_means(self) -> Floats:
        """The macro means over the datasets that are tested."""
        places = list(self.compared[1])
        return np.asarray(self.values[:, places].mean(axis=1)) if places else np.full(len(self.runs), math.nan)

    @cached_property
    def tested_pairs(self) -> tuple[AcrossPair, ...]:
        """Every two runs that have a macro mean, the better first."""
        ranked = [run for run in self.order if not math.isnan(self.macro[run])]
        outcomes = {}
        for name, (tests, members) in self._tests.items():
            if tests is None:
                continue
            pairs = zip(tests.pairs, tests.differences, tests.p, tests.intervals, strict=True)
            for (i, j), difference, p, (low, high) in pairs:
                verdict = self._verdict(difference, p, low, high)
                low, high = np.clip((low, high), self._range[0] - self._range[1], self._range[1] - self._range[0])
                outcomes[name, members[i], members[j]] = Outcome(p, low, high, verdict, tests.reason)
                outcomes[name, members[j], members[i]] = Outcome(p, -high, -low, reverse(verdict), tests.reason)
        runs, ranks = self.compared[0], self.friedman
        by_rank = zip(ranks.pairs, ranks.nemenyi, strict=True) if ranks is not None else ()
        nemenyi = {frozenset((runs[i], runs[j])): p for (i, j), p in by_rank}
        every_pair = []
        for one, other in combinations(ranked, 2):
            names, gap = (self.runs[one], self.runs[other]), self._shared_means[one] - self._shared_means[other]
            these = outcomes.get((THESE, one, other)) or self._no_test(THESE, one, other)
            like_these = outcomes.get((LIKE_THESE, one, other)) or self._no_test(LIKE_THESE, one, other)
            by_ranks = nemenyi.get(frozenset((one, other)), math.nan)
            verdicts = {dataset.name: dataset.verdicts.get(names, "not tested") for dataset in self.datasets}
            every_pair.append(AcrossPair(*names, float(gap), these, like_these, by_ranks, verdicts))
        return tuple(every_pair)

    def _verdict(self, difference: float, p: float, low: float, high: float) -> str:
        if math.isnan(p):
            return "not tested"
        if difference == 0.0 and low == high:
            return "equal"
        if not p < self.alpha:
            return "not significant"
        return "better" if self._sign * difference > 0 else "worse"

    def _no_test(self, question: str, one: int, other: int) -> Outcome:
        """The outcome where there was no test, with the reason."""
        if not self.compared[1]:
            reason = "no dataset has a value of every run"
        elif any(self.datasets[place].timed_apart for place in self.compared[1]):
            reason = "the times were not measured together"
        elif question == THESE:
            lacking = [self.runs[run] for run in (one, other) if run not in self._tested_by_query]
            reason = f"{listed(lacking)} has no values per query on every dataset"
        else:
            reason = "one dataset only"
        return Outcome(math.nan, math.nan, math.nan, "not tested", reason)

    # What one dataset decides

    @property
    def deciding(self) -> tuple[tuple[str, str, str, str], ...]:
        """(run, baseline, dataset, outcome) of significant differences that depend on one dataset."""
        return self._left_out[0]

    @property
    def need_every(self) -> tuple[tuple[str, str], ...]:
        """(run, baseline) of significant differences that are not significant without any one of the datasets."""
        return self._left_out[1]

    @cached_property
    def _left_out(self) -> tuple[tuple[tuple[str, str, str, str], ...], tuple[tuple[str, str], ...]]:
        """`deciding` and `need_every`: the tests without one dataset at a time.

        Without a dataset that decides, the difference is `reversed` or `not significant` on the others; where it is not
        significant without any one of them, all decide together (`need_every`).
        """
        tests, members, places = self.these, self._tested_by_query, self.compared[1]
        if tests is None or not tests.without:
            return (), ()
        rank = {run: place for place, run in enumerate(self.order)}
        deciding, every = [], []
        for number, ((i, j), p) in enumerate(zip(tests.pairs, tests.p, strict=True)):
            if not p < self.alpha:
                continue
            one, other = sorted((members[i], members[j]), key=lambda run: rank[run])
            gaps = self._sign * (self.values[one, list(places)] - self.values[other, list(places)])
            lost = [not without[number] < self.alpha for without in tests.without]
            if all(lost):
                every.append((self.runs[one], self.runs[other]))
            for at, place in enumerate(places):
                reversed_sign = float(np.delete(gaps, at).sum()) * float(gaps.sum()) < 0
                if reversed_sign or (lost[at] and not all(lost)):
                    outcome = "reversed" if reversed_sign else "not significant"
                    deciding.append((self.runs[one], self.runs[other], self.names[place], outcome))
        return tuple(deciding), tuple(every)

    @cached_property
    def leaders_without(self) -> dict[str, str]:
        """For every dataset without which another run leads: that run."""
        runs, places = self.compared
        if len(places) < 2 or len(runs) < 2:
            return {}
        table = self._sign * self.values[np.ix_(runs, places)]
        first = int(np.argmax(table.mean(axis=1)))
        without = (int(np.argmax(np.delete(table, at, axis=1).mean(axis=1))) for at in range(len(places)))
        leaders = {self.names[place]: run for place, run in zip(places, without, strict=True)}
        return {name: self.runs[runs[run]] for name, run in leaders.items() if run != first}

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """Missing datasets, few datasets, and results that depend on one dataset."""
        notes, places, skipped = list(self.input_notes), self.compared[1], self.missing == "skip"
        absent = [(row.run, row.missing) for row in self.rows if row.missing]
        if absent:
            notes.append(note("across-missing", runs=absent, skipped=skipped))
        if absent and skipped:
            shared = [self.names[place] for place in places]
            notes.append(note("across-shared-datasets", shared=shared, datasets=len(self.datasets)))
        if self.like_these is not None and over_datasets.smallest_dataset_p(len(places)) * 2 >= self.alpha:
            notes.append(note("across-few-datasets", datasets=len(places), alpha=self.alpha))
        top = (*self._ranked[0], *self.rows)[0]
        tied = {row.run for row in self.rows if set(row.group) & set(top.group)}
        others = [(name, run) for name, run in self.leaders_without.items() if run not in tied]
        if others:
            notes.append(note("across-leader-depends", leader=top.run, without=others))
        opposite = [
            (pair.run, pair.baseline, pair.these.verdict, name)
            for pair in self.tested_pairs
            for name, verdict in pair.datasets.items()
            if {pair.these.verdict, verdict} == {"better", "worse"}
        ]
        of_pairs = {"across-one-dataset-decides": self.deciding, "across-every-dataset-needed": self.need_every}
        of_pairs["across-opposite"] = tuple(opposite)
        return (*notes, *(note(code, pairs=pairs) for code, pairs in of_pairs.items() if pairs))

    @cached_property
    def _ranked(self) -> tuple[list[AcrossRow], dict[str, float]]:
        """The runs with a mean, best first, and the means that are tested: of the datasets of every run, if any."""
        # Of runs measured on different datasets, a mean over more of them says nothing about a difference.
        shared = self._shared_means.tolist() if self.compared[1] else self.macro.tolist()
        means = dict(zip(self.runs, shared, strict=True))
        rows = [row for row in self.rows if not math.isnan(row.macro)]
        return sorted(rows, key=lambda row: -round(self._sign * means[row.run], 12)), means

    @cached_property
    def verdict(self) -> Verdict:
        """Which run leads by macro mean, by how much, and what the two tests say; then who is best where."""
        ranked, means = self._ranked
        shared, number = len(self.compared[1]), len(self.datasets)
        partly = f"the {shared} of {number} datasets that every run has"
        over = f"{self.measure} over {f'{number} datasets' if shared in (0, number) else partly}"
        if not ranked:
            problem = f"No run was measured on all of the {len(self.datasets)} datasets, so no mean is given;"
            return Verdict(f"{problem} missing=skip (--set missing=skip) averages over the datasets that each run has.")
        top = ranked[0]
        if len(ranked) == 1:
            return Verdict(f"{top.run} scores {top.macro:.4f} on {over} (macro mean); no other run to compare with.")
        second = ranked[1].run
        pair = next(pair for pair in self.tested_pairs if {pair.run, pair.baseline} == {top.run, second})
        answers = [
            f"{'significant' if test.verdict in ('better', 'worse') else test.verdict} {question}"
            for question, test in ((THESE, pair.these), (LIKE_THESE, pair.like_these))
        ]
        lead, mean = abs(means[top.run] - means[second]), f"(macro mean {means[top.run]:.4f})"
        headline = f"{top.run} leads {second} on {over} by {lead:.4f} {mean}: {', '.join(answers)}."
        if lead < ROUNDING:
            headline = f"{top.run} and {second} have the same mean on {over} {mean}: {', '.join(answers)}."
        tied = [row.run for row in ranked[1:] if set(row.group) & set(top.group)]
        details = [f"{NOT_BELOW} {THESE}: {listed(tied, SHOWN_NAMES)}."] if tied else []
        best: dict[tuple[str, ...], list[str]] = {}
        for name, value in zip(self.names, self.best_values.tolist(), strict=True):
            runs = tuple(row.run for row in self.rows if abs(row.values[name] - value) < ROUNDING)
            if top.run not in runs:
                best.setdefault(runs, []).append(name)
        for runs, names in best.items():
            details.append(f"Best on {listed(names, SHOWN_NAMES)}: {listed(runs, SHOWN_NAMES)}.")
        return Verdict(headline, details, [top.run, *tied])

    @cached_property
    def best_values(self) -> Floats:
        """The best value on every dataset."""
        return np.asarray(self._sign * np.nanmax(self._sign * self.values, axis=0))

    # Frames and files

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per run, best first: means, wins, mean rank, Borda count, letters, and the value on every dataset.

        macro_low and macro_high are the interval 'on these datasets', like_low and like_high 'on datasets like
        these'. Means that are refused, and values that were not measured, are null.
        """
        numbers = ("macro", "macro_low", "macro_high", "like_low", "like_high", "micro", "wins", "mean_rank", "borda")
        types: dict[str, Any] = {"run": pl.String, **dict.fromkeys(numbers, pl.Float64), "wins": pl.Int64}
        types |= {"borda_rank": pl.Int64, "group": pl.String, "like_group": pl.String}
        types |= {f"dataset {name}" if name in types else name: pl.Float64 for name in self.names}
        data: list[list[Any]] = []
        for row in self.rows:
            means = [row.run, row.macro, *row.these, *row.like_these, row.micro, row.wins, row.mean_rank, row.borda]
            data.append([*means, row.borda_rank, row.group, row.like_group, *row.values.values()])
        return pl.DataFrame(plain_values(data), schema=types, orient="row")

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """One row per pair of runs: the difference of macro means, both tests, and the verdict on every dataset."""
        types: dict[str, Any] = {"run": pl.String, "baseline": pl.String, "difference": pl.Float64}
        for test in ("these", "like_these"):
            types |= dict.fromkeys((f"{test}_p_adjusted", f"{test}_low", f"{test}_high"), pl.Float64)
            types |= dict.fromkeys((f"{test}_verdict", f"{test}_reason"), pl.String)
        types["nemenyi"] = pl.Float64
        types |= {f"dataset {name}" if name in types else name: pl.String for name in self.names}
        data = []
        for pair in self.tested_pairs:
            tests = (*vars(pair.these).values(), *vars(pair.like_these).values())
            data.append([pair.run, pair.baseline, pair.difference, *tests, pair.nemenyi, *pair.datasets.values()])
        return pl.DataFrame(plain_values(data), schema=types, orient="row")


class Across(Documented, AcrossData):
    """The result of across(): its data, and the output formats."""

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `across`."""
        names = {"these": "interval", "like_these": "like_interval"}
        rows = [{names.get(name, name): value for name, value in vars(row).items()} for row in self.rows]
        of_ranks = ("statistic", "p", "critical_difference")
        ranks, tests = self.friedman, {"these": self.these, "like_these": self.like_these}
        return {
            "steelyard": __version__,
            "datasets": list(self.names),
            **{name: getattr(self, name) for name in ("measure", "missing", "borda_rule", "alpha", "seed")},
            "queries": {dataset.name: dataset.queries for dataset in self.datasets},
            "verdict": self.verdict,
            "table": plain_values(rows),
            "pairs": plain_values([asdict(pair) for pair in self.tested_pairs]),
            "friedman": None if ranks is None else plain_values({name: getattr(ranks, name) for name in of_ranks}),
            "methods": {name: test.method for name, test in tests.items() if test is not None},
            "notes": [note.to_dict() for note in self.notes],
        }

    def data_table(self) -> Table:
        """One row per run, as in `table`."""
        return frame_table(self.table)

    def document(self) -> Document:
        """The means and ranks, the value on every dataset, the pairs and the notes."""
        return cast(Document, looked_up("steelyard.report.across:across_document")(self))

    def _page(self, folder: Path | None) -> str:
        """A matrix of runs and datasets with intervals, the tests and the notes; datasets link to their own pages."""
        return cast(str, looked_up("steelyard.report.across:across_page")(self, folder))
