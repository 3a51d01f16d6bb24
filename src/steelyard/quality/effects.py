"""The leaderboard as it is, and as it would be if the data were fixed: what every finding costs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice
from typing import Any

import numpy as np

from steelyard.alignment.alignment import align
from steelyard.alignment.hits import Floats
from steelyard.datasets import Dataset
from steelyard.evaluation import measure_values
from steelyard.lazy import polars as pl
from steelyard.measures.grammar import Measure
from steelyard.notes import Severity
from steelyard.options import Options
from steelyard.qrels import Qrels
from steelyard.run import Run

EXAMPLES = 5  # Examples that a finding keeps.

PERFECT = "perfect ranking"
"""The name of the run that effects are computed for if there is no other: all judged documents of the corpus."""


@dataclass(frozen=True)
class CheckFinding:
    """One kind of problem: its code and severity, how often it occurs, where, and its effect on the leaderboard.

    effect: None, or a mapping with the `measure`, and by run its value `now` and the value if the problem is `fixed`;
    if that cannot be computed, the values on the queries that it affects (`affected`) and on all `others`. `largest` is
    the largest change from now to fixed (or others), and `reordered` the pairs of runs whose order it changes.
    """

    code: str
    severity: Severity
    count: int
    text: str
    examples: tuple[str, ...] = ()
    effect: Mapping[str, Any] | None = None

    @property
    def largest(self) -> float:
        """The largest change of a run's value; 0 if there is none."""
        return 0.0 if self.effect is None else float(self.effect["largest"])


@dataclass(frozen=True, eq=False)
class Board:
    """A dataset and runs, and the mean of every run by the first measure."""

    dataset: Dataset
    runs: Mapping[str, Run]
    measures: Mapping[str, Measure]
    options: Options = field(default_factory=Options)

    @property
    def qrels(self) -> Qrels:
        """The qrels of the dataset."""
        return self.dataset.qrels

    @property
    def key(self) -> str:
        """The measure of the effects."""
        return next(iter(self.measures))

    @cached_property
    def shown(self) -> Mapping[str, Run]:
        """The runs, or a perfect ranking if there are none."""
        return self.runs or {PERFECT: self.perfect}

    @cached_property
    def perfect(self) -> Run:
        """All judged documents that the corpus has, by grade; of qrels without a corpus, all."""
        qrels, corpus = self.qrels, self.dataset.corpus
        lists: dict[str, list[str]] = {query: [] for query in qrels.queries}
        ids = qrels.judged.doc_ids
        for place in np.lexsort((-qrels.grades, qrels.doc_query)).tolist():
            if not len(corpus) or ids[place] in corpus:
                lists[qrels.judged.query_ids[qrels.doc_query[place]]].append(ids[place])
        return Run.from_lists(lists, ordered=True, name=PERFECT)

    @cached_property
    def rows(self) -> pl.DataFrame:
        """The qrels as rows: query_id, doc_id, grade, target; targets only if the qrels name them."""
        frame = self.qrels.frame.drop_nulls("doc_id")
        return frame if self.qrels.has_targets else frame.with_columns(target=pl.lit(None, pl.String))

    def fixed_qrels(self, rows: pl.DataFrame) -> Qrels:
        """Qrels from changed rows; the queries are those of the dataset."""
        return Qrels.from_rows(rows.rows(), self.qrels.queries).on_scale_of(self.qrels)

    def values(self, qrels: Qrels, run: Any) -> Floats:
        """The value of every query of the qrels."""
        a = self.options.lists(align(qrels, run, self.options.ordering).alignment)
        return measure_values(self.measures[self.key], a, self.options)

    @cached_property
    def now(self) -> dict[str, Floats]:
        """The values of every run as the data are."""
        return {name: self.values(self.qrels, run) for name, run in self.shown.items()}

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of every run as the data are."""
        return {name: mean_of(values) for name, values in self.now.items()}

    def effect(self, qrels: Qrels | None = None, fix: Callable[[Run], Run] = lambda run: run) -> dict[str, Any] | None:
        """The leaderboard with other qrels, other runs, or both."""
        judged = self.qrels if qrels is None else qrels
        fixed = {name: mean_of(self.values(judged, fix(run))) for name, run in self.shown.items()}
        return self.compared("fixed", self.means, fixed)

    def effect_on(self, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> dict[str, Any] | None:
        """The leaderboard with the rows of one run changed."""
        run = self.runs[name]
        return self.effect(fix=lambda other: changed_run(run, change) if other is run else other)

    def effect_without(self, pairs: pl.DataFrame) -> dict[str, Any] | None:
        """The leaderboard without the judgments of some queries and documents."""
        return self.effect(self.fixed_qrels(self.rows.join(pairs, on=["query_id", "doc_id"], how="anti")))

    def without(self, queries: Collection[str]) -> dict[str, Any] | None:
        """The leaderboard without some queries."""
        kept = np.array([query not in queries for query in self.qrels.queries], dtype=bool)
        return self.compared("fixed", self.means, {name: mean_of(values[kept]) for name, values in self.now.items()})

    def affected(self, documents: Collection[str]) -> dict[str, Any] | None:
        """The value on queries with a relevant document among these, and on all others."""
        relevant = self.rows.filter((pl.col("grade") > 0) & pl.col("doc_id").is_in(list(documents)))
        inside = pl.Series(self.qrels.queries, dtype=pl.String).is_in(relevant["query_id"].to_list()).to_numpy()
        return self.on_queries(inside) if inside.any() and not inside.all() else None

    def on_queries(self, inside: Any) -> dict[str, Any] | None:
        """The value on some queries, and on all others."""
        others = {name: mean_of(values[~inside]) for name, values in self.now.items()}
        effect = self.compared("others", self.means, others)
        for name, row in effect["runs"].items() if effect is not None else ():
            row["affected"] = mean_of(self.now[name][inside])
        return None if effect is None else {**effect, "queries": int(inside.sum())}

    def compared(self, what: str, now: Mapping[str, float], then: Mapping[str, float]) -> dict[str, Any] | None:
        """The effect from the means now and then."""
        names = [name for name in now if not np.isnan(now[name]) and not np.isnan(then[name])]
        if not names:
            return None
        pairs = [(now[a] - now[b]) * (then[a] - then[b]) for a, b in combinations(names, 2)]
        return {
            "measure": self.key,
            "runs": {name: {"now": now[name], what: then[name]} for name in names},
            "largest": max(abs(then[name] - now[name]) for name in names),
            "reordered": sum(product < 0 for product in pairs),
        }


def mean_of(values: Floats) -> float:
    """The mean of the values that are known; NaN if there are none."""
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else float("nan")


def changed_run(run: Run, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Run:
    """A run with changed rows, in its order."""
    rows = change(run.frame.select("query_id", "doc_id", "score"))
    return Run.from_table(rows, ordered=True, name=run.name, empty=run.empty)


def examples(items: Iterable[Any]) -> tuple[str, ...]:
    """The first items as texts, in their order."""
    return tuple(map(str, islice(items, EXAMPLES)))
