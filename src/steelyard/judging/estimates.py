"""Estimates: scores of a run from the judgments of a pool that was drawn at random; see `sampling`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from steelyard.errors import InputError, MeasureError
from steelyard.judging.candidates import judged_grades, lowest_relevant
from steelyard.judging.pool import Pool
from steelyard.judging.sampling import Design
from steelyard.notes import Note, note
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.statistics.sampled import ESTIMATORS, SampledPool, bias_corrected, sampled_interval

ENOUGH_DRAWN = 16
"""Documents drawn per query from which on the corrected infNDCG has no bias left: dl2019, 2,000 draws."""
_WHOLE = ("statAP", "xinfAP")  # Measures of the whole list, without a cutoff.


@dataclass(frozen=True, eq=False)
class SampledScores:
    """Scores of one run, estimated from judgments of a sample.

    per_query: query_id, then one column per measure.
    errors: the standard error of each value of `per_query`, from the draw of documents.
    queries: number of queries that those measured were drawn from; None where all were measured.
    notes: what limits the estimates.
    """

    per_query: pl.DataFrame
    errors: pl.DataFrame
    queries: int | None = None
    notes: tuple[Note, ...] = ()

    @property
    def means(self) -> dict[str, float]:
        """Mean over the queries by measure."""
        return {name: float(np.mean(self.per_query[name].to_numpy())) for name in self.per_query.columns[1:]}

    def __getitem__(self, measure: str) -> float:
        """The mean of a measure."""
        return self.means[measure]

    def interval(self, measure: str, level: float = 0.95) -> tuple[float, float]:
        """(low, high) of the mean over the queries of the pool.

        It covers which documents were drawn and, where queries were drawn at random, which queries; not
        which queries would be asked in future.
        """
        values, errors = self.per_query[measure].to_numpy(), self.errors[measure].to_numpy()
        return sampled_interval(values, errors**2, level, self.queries)

    def __repr__(self) -> str:
        rows = ((name, mean, *self.interval(name)) for name, mean in self.means.items())
        parts = [f"{name} {mean:.4f} [{low:.4f}, {high:.4f}]" for name, mean, low, high in rows]
        head = f"SampledScores of {self.per_query.height:,} queries: {', '.join(parts)}"
        return "\n".join([head, *map(str, self.notes)])


def sampled_scores(
    run: Any, pool: Pool, qrels: Any, measures: Sequence[str] = ("statAP", "infNDCG"), *, rel: float | None = None
) -> SampledScores:
    """Estimate a run's scores from judgments of a pool with strategy `sample`.

    The estimated value is the one that judging the whole population of the pool would give, documents outside
    it being not relevant. Estimates are corrected for bias (jackknife); single queries may lie slightly outside 0 to 1.

    run: anything that `Run.of` takes. It need not be one of the pooled runs, but documents that only it returns
    count as not relevant.
    pool: from `pool(..., strategy="sample")`.
    qrels: grades of all documents of the pool.
    measures: of P@k, DCG, DCG@k, statAP, xinfAP, infNDCG, infNDCG@k.
    rel: the lowest grade that counts as relevant for P, statAP and xinfAP; by default that of the qrels' scale, or 1.
    """
    if pool.design is None:
        raise InputError(
            f"The pool was made with strategy {pool.settings.strategy!r}, so the probability of a document is "
            'not known. Make it with strategy="sample".'
        )
    qrels = Qrels.of(qrels)
    grades, level = judged_grades(qrels), lowest_relevant(qrels, rel)
    pairs = pool.frame.select("query_id", "doc_id").iter_rows()
    missing = [(query, doc) for query, doc in pairs if doc not in grades.get(query, {})]
    if missing:
        raise InputError(
            f"{len(missing):,} of {len(pool):,} documents of the pool are not in the qrels, the first is "
            f"{missing[0][1]!r} of query {missing[0][0]!r}. Estimates need a grade for every document that was drawn: "
            "judge the rest."
        )
    ranks: dict[str, dict[str, int]] = {}
    for query, doc, rank in Run.of(run).frame.select("query_id", "doc_id", "rank").iter_rows():
        ranks.setdefault(query, {}).setdefault(doc, rank)
    drawn = {query: set(docs) for query, docs in pool.frame.group_by("query_id").agg("doc_id").iter_rows()}
    pools = []
    for query, strata in pool.design.strata.items():
        docs = [(number, doc) for number, listed in enumerate(strata) for doc in listed]
        # Documents judged before the draw (stratum 0) count as drawn.
        judged = {doc for number, doc in docs if number == 0 or doc in drawn.get(query, ())}
        given = [grades.get(query, {}).get(doc, math.nan) if doc in judged else math.nan for _, doc in docs]
        run_ranks = [ranks.get(query, {}).get(doc, 0) for _, doc in docs]
        pools.append(SampledPool.of(run_ranks, [number for number, _ in docs], given))
    values, errors = {}, {}
    for text in measures:
        results = [bias_corrected(one, estimator_of(text, level)) for one in pools]
        values[text] = [float(result.corrected) for result in results]
        errors[text] = [math.sqrt(float(result.variance)) for result in results]
    means, deviations = (pl.DataFrame({"query_id": list(pool.design.strata), **table}) for table in (values, errors))
    of = pool.settings.queries if pool.settings.sampled_queries is not None else None
    return SampledScores(means, deviations, of, _notes(pool.design, measures))


def _notes(design: Design, measures: Sequence[str]) -> tuple[Note, ...]:
    """Whether infNDCG is still biased: with few documents per query, if not all of them were drawn."""
    drawn = sum(map(sum, design.drawn.values()))
    every = sum(len(docs) for strata in design.strata.values() for docs in strata)
    per_query = round(drawn / max(1, len(design.strata)))
    biased = any(text.strip().lower().startswith("infndcg") for text in measures)
    if drawn == every or per_query >= ENOUGH_DRAWN or not biased:
        return ()
    return (note("few-documents-drawn", documents=per_query, enough=ENOUGH_DRAWN),)


def estimator_of(text: str, rel: float) -> Callable[[SampledPool], npt.NDArray[np.float64]]:
    """The estimator that a measure's text names.

    >>> estimator_of("MAP", 1)
    Traceback (most recent call last):
    steelyard.errors.MeasureError: 'MAP' cannot be estimated from a sample; use P@k, DCG@k, statAP, xinfAP, infNDCG@k.
    """
    form = re.fullmatch(r"(\w+?)(?:@(\d+))?", text.strip())
    names = {name.lower(): name for name in ESTIMATORS}
    name = names.get(form.group(1).lower()) if form else None
    cutoff = int(form.group(2)) if form and form.group(2) else None
    if name is None or cutoff == 0 or (name == "P" and cutoff is None) or (name in _WHOLE and cutoff is not None):
        raise MeasureError(f"{text!r} cannot be estimated from a sample; use P@k, DCG@k, statAP, xinfAP, infNDCG@k.")
    given: dict[str, Any] = {} if name in ("DCG", "infNDCG") else {"rel": rel}
    return partial(ESTIMATORS[name], **given, **({} if name in _WHOLE else {"k": cutoff}))
