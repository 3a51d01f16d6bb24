"""Few human judgments and many predicted ones: prediction-powered estimates of means and differences.

A query's value is known by human judgments for some queries, and by predicted judgments (of a model) for these and
for others. The estimate uses the predictions for the other queries and the human judgments to correct their bias
(Angelopoulos et al. 2023). It is valid only if the human-judged queries were drawn at random.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.errors import InputError
from steelyard.lazy import polars as pl
from steelyard.measures.bounds import rank_cutoff
from steelyard.measures.compute import averaged, values
from steelyard.measures.gradings import is_fixed
from steelyard.measures.grammar import Measure
from steelyard.measures.registry import definitions
from steelyard.notes import Note, Texts, by_severity, declare, note
from steelyard.qrels import Qrels
from steelyard.scores import Scores, key_of, no_interval
from steelyard.statistics.prediction_powered import PredictionPowered, prediction_powered
from steelyard.wording import counted


def _predictions_worth(n: int, others: int, effective: float) -> str:
    if effective <= n * 1.005:
        human = counted(n, "human-judged query", "human-judged queries")
        return f"the predictions do not help: the estimate is that of the {human}"
    human = counted(n, "human-judged query counts", "human-judged queries count")
    return f"with predictions for {counted(others, 'other query', 'other queries')}, the {human} like {effective:.0f}"


WARNINGS: Texts = {
    "not-a-random-sample": "the interval is valid only if the {count:,} {count:human-judged query was|human-judged "
    "queries were} drawn at random; {pool:none?no pool records that|{pool:all?the queries of this pool were not "
    "drawn at random|not all of them are among the queries that this pool drew at random}} (steelyard pool "
    "--set queries=N draws them)",
    "unjudged-by-people": "people left {share:.0%} of the first {k} of {run} unjudged (on {measure}), in the queries "
    "that they judged: human values are then too low, and the correction too. Differences of such runs are undecided; "
    "judge the first {k} of every run completely",
    "no-predictions": "{count:,} {count:human-judged query has|human-judged queries have} no predicted judgments "
    "and {count:is|are} left out ({examples:joined})",
}
INFO: Texts = {
    "predicted-judgments": "estimated from human judgments and from judgments predicted by {judge}",
    "predictions-worth": _predictions_worth,
}
SHORT: Texts = {
    "unjudged-by-people": "people left {share:.0%} of the first {k} of {run} unjudged: undecided",
    "not-a-random-sample": "the {count:,} {count:human-judged query|human-judged queries} may not be a random sample",
}
declare(warning=WARNINGS, info=INFO, short=SHORT)


@dataclass(frozen=True, eq=False)
class PredictedScores(Scores):
    """Scores estimated from few human judgments and many predicted ones.

    `means` and `interval` are prediction-powered estimates; `human` and `predicted` are the scores by either kind of
    judgments alone. `per_query` has the human value (null where a query has none) and the predicted one.
    `these_queries`: intervals are of the mean over exactly these queries, not over all queries like them.
    """

    human: Scores | None = None
    predicted: Scores | None = None
    judge: str = ""
    these_queries: bool = False
    about: tuple[Note, ...] = field(default=())

    @cached_property
    def estimates(self) -> dict[str, PredictionPowered]:
        """The estimate of every measure that is a mean over queries."""
        return self._estimated(0.95)

    def _estimated(self, level: float) -> dict[str, PredictionPowered]:
        estimates: dict[str, PredictionPowered] = {}
        for key, measure in self.measures.items():
            if averaged(measure):
                (human, predicted), bounds = self._rows(key), value_bounds(measure)
                (estimates[key],) = prediction_powered([human], [predicted], bounds, level, finite=self.these_queries)
        return estimates

    def _rows(self, key: str) -> tuple[Floats, Floats]:
        """The human values of all queries, NaN where there is none, and the predicted ones."""
        assert self.human is not None
        assert self.predicted is not None
        by_query = dict(zip(self.human.queries, self.human.values(key).tolist(), strict=True))
        human = np.array([by_query.get(query, np.nan) for query in self.predicted.queries])
        return human, self.predicted.values(key)

    @cached_property
    def means(self) -> dict[str, float]:
        """The estimate of each measure; NaN for measures that are not means over queries."""
        return {key: self.estimates[key].estimate if key in self.estimates else float("nan") for key in self.measures}

    def interval(
        self, measure: str | Measure, level: float = 0.95, draws: int | None = None, seed: int = 0
    ) -> tuple[float, float]:
        """The interval of the estimate."""
        key = key_of(measure, self.measures)
        if (ends := self.intervals(level)[key]) is None:
            raise no_interval(key)
        return ends

    def intervals(self, level: float = 0.95, seed: int = 0) -> dict[str, tuple[float, float] | None]:
        """The interval of every estimate; None for measures that are not means over queries."""
        estimates = self._estimated(level)
        return {key: (estimates[key].low, estimates[key].high) if key in estimates else None for key in self.measures}

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A polars frame: query_id, then for each measure its human value and its predicted one."""
        columns: dict[str, pl.Series] = {}
        for key in self.measures:
            human, predicted = self._rows(key)
            columns |= {key: pl.Series(human).fill_nan(None), f"{key} predicted": pl.Series(predicted)}
        return pl.DataFrame({"query_id": pl.Series(list(self.queries), dtype=pl.String), **columns})

    @property
    def notes(self) -> list[Note]:
        """What a reader should know, the most serious first: whose labels these are, and what they add."""
        return by_severity([*self.about, *self.coverage.all_notes()])

    def to_dict(self, per_query: bool = False) -> dict[str, Any]:
        """As in the JSON of `evaluate`, with the judge and the estimates."""
        record = super().to_dict(per_query)
        estimates: dict[str, Any] = {}
        for key, estimate in self.estimates.items():
            size = {"n": estimate.n, "N": estimate.N, "lambda": estimate.lambda_, "effective_n": estimate.effective_n}
            human = {"human": estimate.human_estimate, "human_interval": [estimate.human_low, estimate.human_high]}
            estimates[key] = size | human
        record["predicted"] = {"judge": self.judge, "estimates": estimates, "notes": list(map(str, self.about))}
        if per_query:
            assert self.human is not None
            record["predicted"]["per_query"] = record["per_query"]
            record["per_query"] = self.human.to_dict(per_query)["per_query"]
        return record

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *(f"  {remark}." for remark in self.about)])


def value_bounds(measure: Measure | None) -> tuple[float, float] | None:
    """The bounds of the values of a measure; None where there are none, or the measure is not known."""
    return None if measure is None or not np.isfinite(measure.range).all() else measure.range


def human_judged(queries: Sequence[str], qrels: Qrels, predicted: Sequence[str]) -> tuple[list[str], list[str]]:
    """The queries that have a human judgment: those with predicted judgments, and those without any.

    A query without a judgment is not judged, which is not the same as a score of 0.
    """
    judged = {qrels.judged.query_ids[number] for number in np.unique(qrels.doc_query).tolist()}
    by_model, human = set(predicted), [query for query in queries if query in judged]
    both, absent = [query for query in human if query in by_model], [query for query in human if query not in by_model]
    if not both:
        raise InputError("no human-judged query has predicted judgments; check that the two belong together.")
    return both, absent


def predicted_scores(
    human: Scores, qrels: Qrels, predicted: Scores, judge: str, pool: Any = None, these_queries: bool = False
) -> PredictedScores:
    """The scores of a run by human and by predicted judgments, as one estimate."""
    queries, absent = human_judged(human.queries, qrels, predicted.queries)
    places = [human.queries.index(query) for query in queries]
    human = replace(human, queries=queries, matrix=human.matrix[:, places])
    shared = {member.name: getattr(predicted, member.name) for member in fields(Scores) if member.name != "lists"}
    scores = PredictedScores(**shared, human=human, predicted=predicted, judge=judge, these_queries=these_queries)
    first = next(iter(scores.estimates.values()), None)
    notes = [note("predicted-judgments", judge=judge)]
    if first is not None:
        notes.append(note("predictions-worth", n=first.n, others=first.N, effective=first.effective_n))
    if human.lists is not None:
        worst = most_unjudged(predicted.name, human.measures.values(), human.lists, queries)
        notes += unjudged_notes([] if worst is None else [worst])
    notes += sample_notes(human.queries, pool)
    if absent:
        notes.append(note("no-predictions", count=len(absent), examples=absent[:3]))
    object.__setattr__(scores, "about", tuple(notes))
    return scores


MOST_UNJUDGED = 0.1
"""The share of the first documents above which human values are too incomplete to correct predicted ones."""
FIRST = 10  # The first documents of a measure without a cutoff.


class TopUnjudged(NamedTuple):
    """The share of the first k documents of a run that people left unjudged, by a measure."""

    share: float
    k: int
    run: str
    measure: str


def most_unjudged(run: str, measures: Iterable[Measure], a: Alignment, queries: Collection[str]) -> TopUnjudged | None:
    """The largest share of a run's first documents that these queries' human judgments lack; None if it is small."""
    kept = np.isin(np.array(a.queries, dtype=object), np.array(list(queries), dtype=object))
    answered = a.answered & (a.retrieved > 0) & kept
    unjudged = []
    for measure in measures:
        if answered.any() and not is_fixed(measure):
            k = rank_cutoff(measure) or FIRST
            judged = values(Measure(definitions()["Judged"], cutoff=k), a)[answered].mean()
            unjudged.append(TopUnjudged(1.0 - float(judged), k, run, str(measure)))
    most = max(unjudged, default=None)
    return most if most is not None and most.share > MOST_UNJUDGED + 1e-9 else None


def unjudged_notes(found: Sequence[TopUnjudged]) -> list[Note]:
    """A note on the largest share."""
    return [note("unjudged-by-people", **max(found)._asdict())] if found else []


def sample_notes(queries: Sequence[str], pool: Any) -> list[Note]:
    """A note, unless a pool records that these queries were drawn at random."""
    sampled = getattr(getattr(pool, "settings", None), "sampled_queries", None)
    if sampled is not None and set(queries) <= set(sampled):
        return []
    why = "none" if pool is None else "all" if sampled is None else "others"
    return [note("not-a-random-sample", count=len(queries), pool=why)]


def judge_of(predicted: Any) -> str:
    """The name of whoever predicted the judgments."""
    judges = getattr(predicted, "judges", None)
    if judges:
        return ", ".join(judges)
    return Path(predicted).stem if isinstance(predicted, (str, Path)) else "a model"
