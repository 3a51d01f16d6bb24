"""Query sets: do some queries, as those that a model wrote, rank runs as the real ones do?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from steelyard.checks import whole_number
from steelyard.comparison.scores import ScoreTable, TableOptions, column_named, query_column, read_score_table
from steelyard.comparison.slices import column_values
from steelyard.dialects import listed_measures
from steelyard.errors import InputError, did_you_mean
from steelyard.judging.report import histogram, interval_text, scatter, typed, with_intervals
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure
from steelyard.notes import sentence
from steelyard.report.documents import Document, Documented, frame_table, plain_values
from steelyard.report.tables import Table
from steelyard.statistics.agreement import FEWEST_RUNS, QuerySetAgreement, query_set_agreement
from steelyard.statistics.arrays import Array
from steelyard.version import __version__
from steelyard.wording import counted, listed, worded

Measures: TypeAlias = str | Measure | Sequence[str | Measure]


def query_sets(
    scores: Any,
    queries: Any = None,
    by: str = "kind",
    reference: str | None = None,
    measures: Measures = ("nDCG@10",),
    *,
    draws: int = 1000,
    seed: int = 0,
) -> QuerySets:
    """The sets of queries in a table of scores, each compared with the set `reference`; see `agreement`."""
    whole_number("seed", seed)
    wanted = list(mean_measures(measures))
    options = TableOptions()
    table, notes = read_score_table(scores, wanted, options, "skip")
    values = query_column(scores, by, options) if queries is None else column_values(queries, by)
    set_of = {query: str(values[query]) for query in table.queries if values.get(query) is not None}
    sets = tuple(dict.fromkeys(set_of.values()))
    if reference not in sets:
        given = "reference is not given" if reference is None else f"no query of {by!r} {reference!r} has scores"
        raise InputError(
            f"{given}; expected the value of {by!r} that the real queries have: {', '.join(sets) or 'there is none'}."
            f"{did_you_mean(reference or '', sets)}"
        )
    if len(sets) < 2:
        raise InputError(f"every query with scores has {by!r} {reference!r}; expected at least one other set.")
    if len(table.runs) < 2:
        raise InputError(f"the table has scores of {counted(len(table.runs), 'run')}; expected at least two.")
    without = len(table.queries) - len(set_of)
    remark = f"{counted(without, 'query has', 'queries have')} no {by!r} and {worded(without, 'is', 'are')} left out."
    remarks = (*(sentence(note) for note in notes), *([remark] if without else []))
    ordered = (reference, *(name for name in sets if name != reference))
    return QuerySets(table, set_of, ordered, draws, seed, remarks)


def mean_measures(measures: Measures) -> tuple[str, ...]:
    """The names of the measures; an error for a geometric mean, since runs are ranked by means over queries."""
    names = tuple(map(str, listed_measures(measures)))
    if geometric := [name for name in names if column_named(name).geometric]:
        raise InputError(f"agreement compares means over queries; leave out {listed(geometric)}, a geometric mean.")
    return names


@dataclass(frozen=True, eq=False, repr=False)
class QuerySets(Documented):
    """Sets of queries compared with the first, the reference: `query_sets`, `verdict`, and the splits behind them."""

    table: ScoreTable
    set_of: Mapping[str, str]
    sets: tuple[str, ...]
    draws: int
    seed: int
    notes: tuple[str, ...] = ()

    def scores(self, name: str, measure: str) -> Array:
        """The scores of the runs on a set's queries, runs x queries; queries that lack a run are left out."""
        values = self.table.of(measure)
        mine = np.array([self.set_of.get(query) == name for query in self.table.queries])
        return np.asarray(values[:, mine & ~np.isnan(values).any(axis=0)], dtype=np.float64)

    @cached_property
    def agreements(self) -> dict[tuple[str, str], QuerySetAgreement]:
        """By set and measure: the figures of `query_sets`, and tau of every random split of the reference."""
        figures = {}
        for name in self.sets[1:]:
            for column in self.table.columns:
                one, other = self.scores(self.sets[0], column.key), self.scores(name, column.key)
                if not one.shape[1] or not other.shape[1]:
                    lacking = name if one.shape[1] else self.sets[0]
                    raise InputError(f"no query of {lacking!r} has {column.key} of every run; expected at least one.")
                figures[name, column.key] = query_set_agreement(one, other, self.draws, seed=self.seed)
        return figures

    @cached_property
    def query_sets(self) -> pl.DataFrame:
        """One row per set and measure: how it ranks the runs, compared with the reference.

        tau (Kendall's tau-b of the runs' means) with its bootstrap interval over queries; split_tau, split_low and
        split_high: tau of `split_queries` queries of the reference, as many as the set has, with the rest of them,
        mean and middle 95% of random splits; bias (mean score with the set - with the reference); the pairs of runs
        with a significant difference (paired t test, p < 0.05, not corrected); reversed: significant with both, in
        opposite directions; opposite: significant with the reference, and the set's means prefer the other run.
        """
        rows = []
        for (name, measure), figures in self.agreements.items():
            tested, sizes = figures.tested, [self.scores(label, measure).shape[1] for label in (name, self.sets[0])]
            row = [self.sets[0], name, measure, len(self.table.runs), *sizes]
            row += [*astuple(figures.tau), *astuple(figures.split), figures.split_queries, *astuple(figures.bias)]
            row += [tested.pairs, tested.a, tested.b, tested.both, tested.reversed, figures.opposite]
            rows.append(row)
        return pl.DataFrame(rows, schema=_COLUMNS, orient="row")

    @property
    def verdict(self) -> str:
        """One or two sentences per set, by the first measure."""
        first = self.table.columns[0].key
        rows = [row for row in self.query_sets.iter_rows(named=True) if row["measure"] == first]
        return " ".join(map(set_verdict, rows))

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `agreement` over query sets, with the verdict and notes."""
        data = {
            "steelyard": __version__,
            "verdict": self.verdict,
            "query_sets": self.query_sets.to_dicts(),
            "draws": self.draws,
            "seed": self.seed,
            "notes": list(self.notes),
        }
        return {name: plain_values(value) for name, value in data.items()}

    def data_table(self) -> Table:
        """The rows of `query_sets`."""
        return frame_table(self.query_sets)

    def document(self) -> Document:
        """The tables, and drawings: the splits with the set's tau, and the runs' scores with both sets."""
        title = f"Query sets {', '.join(self.sets[1:])} compared with {self.sets[0]}"
        drawings = []
        for (name, measure), agreement in self.agreements.items():
            drawings.append(histogram(self.sets[0], name, measure, agreement))
            scores = [self.scores(label, measure) for label in (self.sets[0], name)]
            across, up = f"{measure} with {self.sets[0]}", f"{measure} with {name}"
            drawings.append(scatter(self.table.runs, scores, across, up))
        return Document(title, self.verdict, _query_sets_tables(self), self.notes, drawings)


def _query_sets_tables(sets: QuerySets) -> list[Table]:
    """The rankings of runs by each set, and the pairs of runs with a significant difference."""
    rows = []
    for row in sets.query_sets.rename({"split_tau": "split"}).iter_rows(named=True):
        figures = [interval_text(row, "tau"), interval_text(row, "split"), row["split_queries"]]
        rows.append([row["set"], row["measure"], row["queries"], *figures, interval_text(row, "bias", "+.4f")])
    reference, queries = sets.sets[0], max(sets.query_sets["reference_queries"].to_list())
    note = (
        f"{len(sets.table.runs):,} runs; tau is tau-b with the {queries:,} queries of {reference}, with a 95% "
        f"bootstrap interval over queries. as many {reference}: tau of as many queries of {reference} (drawn) with the "
        "rest, mean and middle 95% of random splits. bias: mean score with the set minus that with the reference."
    )
    titles = ["set", "measure", "queries", "tau", f"as many {reference}", "drawn", "bias"]
    ranked = Table(titles, rows, title=f"Rankings of runs compared with {reference}", keys=2, note=note)
    names = ["set", "measure", "run_pairs", "significant_reference", "significant_set", "significant_both"]
    titles = ["set", "measure", "pairs", f"by {reference}", "by the set", "by both", "reversed", "opposite"]
    note = (
        "Paired t test over queries, p < 0.05, not corrected. reversed: significant by both, in opposite directions; "
        f"opposite: significant by {reference}, and the set's means prefer the other run."
    )
    tested = sets.query_sets.select(*names, "reversed", "opposite").rows()
    return [ranked, Table(titles, tested, title="Pairs of runs with a significant difference", keys=2, note=note)]


def set_verdict(row: Mapping[str, Any]) -> str:
    """What to make of a set: only a tau below what as many queries of the reference reach is the set's fault.

    >>> row = {"reference": "real", "set": "t5", "runs": 35, "queries": 13, "tau": 0.87, "bias": -0.086}
    >>> row |= {"split_queries": 13, "split_tau": 0.78, "split_low": 0.62, "split_high": 0.88, "reversed": 0}
    >>> row |= {"reference_queries": 51, "bias_low": -0.19, "bias_high": 0.02}
    >>> print(*set_verdict(row).split(": "), sep="\\n")
    t5 ranks the 35 runs as well as real queries of the same number do
    tau 0.87, and 13 of the 51 real queries reach 0.78 [0.62, 0.88] with the rest.
    >>> print(set_verdict({**row, "tau": 0.5}).split(": ")[0])
    t5 ranks the 35 runs less like real than as many real queries do
    """
    name, reference, tau = row["set"], row["reference"], row["tau"]
    if row["runs"] < FEWEST_RUNS or np.isnan(tau) or np.isnan(row["split_tau"]):
        few = f"{row['runs']:,} runs and {counted(row['reference_queries'], 'query', 'queries')} of {reference}"
        needed = f"about {FEWEST_RUNS} runs and several queries are needed"
        return f"Whether {name} ranks runs like {reference} cannot be judged from {few}; {needed}."
    same = row["split_queries"] == row["queries"]
    yardstick = f"{reference} queries of the same number" if same else f"half of the {reference} queries"
    if tau < row["split_low"]:
        many = f"as many {reference} queries do" if same else f"half of the {reference} queries does"
        first = f"{name} ranks the {row['runs']:,} runs less like {reference} than {many}"
    else:
        first = f"{name} ranks the {row['runs']:,} runs as well as {yardstick} {'do' if same else 'does'}"
    reached = f"{row['split_tau']:.2f} [{row['split_low']:.2f}, {row['split_high']:.2f}]"
    second = (
        f"tau {tau:.2f}, and {row['split_queries']:,} of the {row['reference_queries']:,} {reference} queries reach "
        f"{reached} with the rest."
    )
    bias = f" Its scores are {abs(row['bias']):.3f} {'higher' if row['bias'] > 0 else 'lower'} on average."
    bias = "" if row["bias_low"] <= 0.0 <= row["bias_high"] else bias
    turned = f" It reverses {counted(row['reversed'], 'significant difference')}." if row["reversed"] else ""
    return f"{first}: {second}{bias}{turned}"


_COLUMNS: dict[str, type] = {
    **typed("reference set measure", str),
    **typed("runs queries reference_queries", int),
    **with_intervals("tau"),
    **typed("split_tau split_low split_high", float),
    "split_queries": int,
    **with_intervals("bias"),
    **typed("run_pairs significant_reference significant_set significant_both reversed opposite", int),
}
