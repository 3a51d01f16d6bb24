"""reconcile(): why two tools give different numbers for the same run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Floats, Remembers
from steelyard.dialects import Dialect
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import MeasureError
from steelyard.evaluation import scores_of
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure, as_text, build
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.scores import Scores
from steelyard.wording import counted

SAME = 1e-9  # Values closer than this are the same.


@dataclass(frozen=True)
class Reading:
    """The measure that a metric name means in a dialect, and the policies of the dialect."""

    dialect: str
    measure: Measure
    options: Options

    @classmethod
    def of(cls, dialect: Dialect, measure: Measure) -> Reading:
        """A measure with the policies that a dialect has for it."""
        return cls(dialect.name, measure, dialect.options_of(measure))


@dataclass(frozen=True)
class Clause:
    """A clause in which two readings differ, and how much it alone changes the mean."""

    name: str
    left: str
    right: str
    effect: float


@dataclass(frozen=True)
class QueryDifference:
    """A query on which two readings differ, and the clauses that cause it, the strongest first."""

    query: str
    left: float | None
    right: float | None
    clauses: tuple[str, ...]


@dataclass(frozen=True)
class Disagreement:
    """Two dialects that differ on a metric: the clauses, and the queries with the largest differences."""

    metric: str
    left: str
    right: str
    clauses: tuple[Clause, ...]
    queries: tuple[QueryDifference, ...]
    differing: int


@dataclass(frozen=True)
class Reconciliation:
    """The value of each metric in each dialect, and why they differ."""

    run: str
    readings: dict[str, dict[str, Reading]]
    values: dict[str, dict[str, float]]
    disagreements: tuple[Disagreement, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """One row per metric and dialect: the measure it means, and its value."""
        rows = [
            (metric, name, str(reading.measure), self.values[metric][name])
            for metric, readings in self.readings.items()
            for name, reading in readings.items()
        ]
        return pl.DataFrame(rows, schema=["metric", "dialect", "means", "value"], orient="row")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the command line writes them to JSON."""
        return {
            "run": self.run,
            "values": self.frame.to_dicts(),
            "disagreements": [
                {
                    "metric": d.metric,
                    "dialects": [d.left, d.right],
                    "differing_queries": d.differing,
                    "clauses": [vars(clause) for clause in d.clauses],
                    "queries": [
                        {"query": m.query, d.left: m.left, d.right: m.right, "clauses": list(m.clauses)}
                        for m in d.queries
                    ],
                }
                for d in self.disagreements
            ],
        }

    def __str__(self) -> str:
        lines: list[str] = []
        for metric, readings in self.readings.items():
            width = max(map(len, readings))
            lines.append(f"{metric} of run {self.run!r}")
            values = self.values[metric]
            lines += [f"  {name:<{width}}  {values[name]:.6f}  {r.measure}" for name, r in readings.items()]
            differences = [line for d in self.disagreements if d.metric == metric for line in _lines(d, values)]
            lines += [*(differences or ["  All agree."]), ""]
        return "\n".join(lines).rstrip()

    __repr__ = __str__


def reconcile(
    qrels: Any, run: Any, measures: str | Sequence[str], dialects: Sequence[str | Dialect], most: int = 5
) -> Reconciliation:
    """The value of each metric in each dialect and, for the queries that differ most, the clause that causes it.

    A clause is a parameter (denominator, ideal, gain, ...), the cutoff, or a policy (ties, missing queries, ...). Its
    effect is the change of the first dialect's value if only this clause is changed.
    """
    chosen = [dialect_of(name) for name in dialects]
    if len(chosen) < 2:
        raise MeasureError("expected at least two dialects to reconcile, as in trec_eval-9,multihop-rag.")
    table = _RunValues(Qrels.of(qrels), Run.of(run))
    metrics = [measures] if isinstance(measures, str) else list(measures)
    readings = {metric: {d.name: Reading.of(d, d.measure(metric)) for d in chosen} for metric in metrics}
    values: dict[str, dict[str, float]] = {}
    disagreements: list[Disagreement | None] = []
    for metric, by_dialect in readings.items():
        values[metric] = {name: table.mean(reading) for name, reading in by_dialect.items()}
        pairs = combinations(by_dialect.values(), 2)
        disagreements += [_disagreement(metric, left, right, table, most) for left, right in pairs]
    return Reconciliation(table.run.name, readings, values, tuple(filter(None, disagreements)))


class _RunValues(Remembers):
    """The values of the run under any reading; it is joined with the qrels once per ordering."""

    def __init__(self, qrels: Qrels, run: Run) -> None:
        self.qrels, self.run = qrels, run

    def values(self, reading: Reading) -> Floats:
        """One value per judged query; NaN if the reading leaves the query out."""
        scores = self._scores(reading)
        place = {query: number for number, query in enumerate(self.qrels.judged.query_ids)}
        by_query = np.full(len(place), np.nan)
        by_query[[place[query] for query in scores.queries]] = scores.matrix[0]
        return by_query

    def mean(self, reading: Reading) -> float:
        return self._scores(reading).means["value"]

    def _scores(self, reading: Reading) -> Scores:
        ordering = reading.options.ordering
        aligned = self.once(ordering, lambda: align(self.qrels, self.run, ordering))
        return scores_of(aligned, {"value": reading.measure}, Dialect(reading.dialect, ""), reading.options)


def _disagreement(metric: str, left: Reading, right: Reading, table: _RunValues, most: int) -> Disagreement | None:
    ours, theirs = table.values(left), table.values(right)
    gap = np.abs(np.nan_to_num(ours, nan=-1.0) - np.nan_to_num(theirs, nan=-1.0))
    differing = np.flatnonzero(gap > SAME)
    if not len(differing):
        return None
    changes = one_clause_changed(left, right)
    effects = {}
    for name, _, reading in changes:
        changed = table.values(reading)
        effects[name] = np.where(np.isnan(ours) != np.isnan(changed), np.inf, np.nan_to_num(np.abs(changed - ours)))
    mean = table.mean(left)
    clauses = [Clause(name, *shown, effect=table.mean(reading) - mean) for name, shown, reading in changes]
    clauses.sort(key=lambda clause: -abs(clause.effect))
    queries = []
    for query in differing[np.argsort(-gap[differing], kind="stable")][:most].tolist():
        causes = {name: effect[query] for name, effect in effects.items() if effect[query] > SAME}
        left_value, right_value = (None if np.isnan(one[query]) else float(one[query]) for one in (ours, theirs))
        why = tuple(sorted(causes, key=lambda name: -causes[name])) or ("several clauses together",)
        queries.append(QueryDifference(table.qrels.judged.query_ids[query], left_value, right_value, why))
    return Disagreement(metric, left.dialect, right.dialect, tuple(clauses), tuple(queries), len(differing))


def one_clause_changed(left: Reading, right: Reading) -> list[tuple[str, tuple[str, str], Reading]]:
    """The first reading with one clause of the second, for each clause in which they differ."""
    changed: list[tuple[str, tuple[str, str], Reading]] = []
    ours, theirs = left.measure, right.measure
    if ours.definition is not theirs.definition:
        changed.append(("measure", (str(ours), str(theirs)), replace(left, measure=theirs)))
    else:
        for name, value in theirs.parameters.items():
            mine = ours.parameters[name]
            if mine != value:
                other = build(ours.definition, {**ours.parameters, name: value}, ours.cutoff)
                changed.append((name, (as_text(mine), as_text(value)), replace(left, measure=other)))
        if ours.cutoff != theirs.cutoff:
            other = build(ours.definition, ours.parameters, theirs.cutoff)
            changed.append(("cutoff", (as_text(ours.cutoff), as_text(theirs.cutoff)), replace(left, measure=other)))
    for name, mine in vars(left.options).items():
        value = getattr(right.options, name)
        if mine != value:
            options = replace(left.options, **{name: value})
            changed.append((name, (as_text(mine), as_text(value)), replace(left, options=options)))
    return changed


def _lines(disagreement: Disagreement, values: dict[str, float]) -> list[str]:
    left, right = disagreement.left, disagreement.right
    gap = values[right] - values[left]
    lines = [f"  {left} and {right} differ on {counted(disagreement.differing, 'query', 'queries')}:"]
    without_effect = []
    for clause in disagreement.clauses:
        # An effect of NaN is one too: a mean is not defined.
        if abs(clause.effect) <= SAME:
            without_effect.append(f"{clause.name} ({clause.left}, {clause.right})")
            continue
        lines.append(f"    {clause.name}: {clause.left} in {left}, {clause.right} in {right}")
        lines.append(f"      alone it changes the mean by {clause.effect:+.6f}")
    interaction = gap - sum(clause.effect for clause in disagreement.clauses if abs(clause.effect) > SAME)
    together = len(disagreement.clauses) > 1 and abs(interaction) > SAME
    if together:
        lines.append(f"    together they change it by {gap:+.6f}, {interaction:+.6f} of it by their interaction")
    if without_effect:
        # With an interaction, a clause may matter only beside another one.
        lines.append(f"    without effect {'alone' if together else 'here'}: {', '.join(without_effect)}")
    for query in disagreement.queries:
        why = ", ".join(query.clauses)
        lines.append(f"    query {query.query!r}: {_shown(query.left)} and {_shown(query.right)}, because of {why}")
    return lines


def _shown(value: float | None) -> str:
    return "left out" if value is None else f"{value:.6f}"
