"""Sampling: documents drawn for judging with known probabilities, and scores estimated from them.

The documents of a query are divided into two strata by their best rank: the first quarter of the depth, and the
rest. Each is sampled at random without replacement, the second at half the rate of the first, so that documents
at good ranks, which matter most, are drawn most often. More strata would give smaller errors, but fewer documents
in each, and then the errors cannot be estimated well. Documents that are judged already are a stratum of their own
(number 0), drawn with probability 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from steelyard.errors import InputError, MeasureError
from steelyard.judging.candidates import Candidates, Judged, Pairs, judged_grades
from steelyard.run import Run
from steelyard.statistics.sampled import ESTIMATORS, Jackknifed, SampledPool, jackknife, sampled_interval

if TYPE_CHECKING:
    from steelyard.judging.pool import Pool

SMALLEST_DRAW = 4
"""Documents drawn from every stratum at least, so that the jackknife can estimate bias and variance."""


@dataclass(frozen=True)
class Design:
    """A stratified sample of the documents of every query.

    strata: for every query its strata, each a list of document ids; the first holds those judged already.
    drawn: for every query the number of documents drawn from each stratum.
    """

    strata: Mapping[str, Sequence[Sequence[str]]]
    drawn: Mapping[str, Sequence[int]]

    def of(self, query: str, doc: str) -> tuple[float, int]:
        """The probability that the document was drawn, and its stratum."""
        stratum = self._stratum[query][doc]
        return self.drawn[query][stratum] / len(self.strata[query][stratum]), stratum

    @cached_property
    def _stratum(self) -> dict[str, dict[str, int]]:
        return {
            query: {doc: number for number, docs in enumerate(strata) for doc in docs}
            for query, strata in self.strata.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """For JSON: strata and drawn."""
        return {
            "strata": {query: [list(docs) for docs in strata] for query, strata in self.strata.items()},
            "drawn": {query: list(drawn) for query, drawn in self.drawn.items()},
        }

    @classmethod
    def from_dict(cls, made: Mapping[str, Any]) -> Design:
        """From what `to_dict` gives."""
        return cls(made["strata"], made["drawn"])


def draw_queries(queries: Sequence[str], count: int, seed: int) -> tuple[str, ...]:
    """`count` of the queries, drawn at random without replacement, in the order given.

    The draw depends on the query ids and the seed, not on the order of the queries. A larger draw with the same
    seed contains the smaller one, so that a sample can be extended.
    """
    if count > len(queries):
        raise InputError(f"queries={count}, but the runs have {len(queries)} queries; give at most that.")
    drawn = np.random.default_rng([seed, 1]).permutation(len(queries))[:count]
    ordered = sorted(queries)
    chosen = {ordered[place] for place in drawn}
    return tuple(query for query in queries if query in chosen)


def draw_documents(
    found: Candidates, judged: Judged, depth: int, budget: int | None, seed: int
) -> tuple[Design, Pairs]:
    """A stratified sample of `budget` unjudged documents (all by default), and its documents in random order."""
    bounds = sorted({math.ceil(depth / 4), depth})
    strata = {query: _strata(found.ranks(query), judged.get(query, {}), bounds) for query in found.lists}
    sizes = np.array([[len(docs) for docs in of_query[1:]] for of_query in strata.values()], dtype=np.int64)
    counts = allocation(sizes.reshape(len(strata), len(bounds)), budget)
    rng = np.random.default_rng([seed, 2])
    order: Pairs = []
    for (query, of_query), row in zip(strata.items(), counts, strict=True):
        for docs, count in zip(of_query[1:], row, strict=True):
            order += [(query, docs[place]) for place in rng.choice(len(docs), int(count), replace=False)]
    drawn = {
        query: [len(of_query[0]), *map(int, row)]
        for (query, of_query), row in zip(strata.items(), counts, strict=True)
    }
    return Design(strata, drawn), [order[place] for place in rng.permutation(len(order))]


def _strata(
    ranks: Mapping[str, Mapping[int, int]], known: Mapping[str, float], bounds: Sequence[int]
) -> list[list[str]]:
    """Document ids: those judged already, then the others by best rank."""
    strata: list[list[str]] = [[] for _ in range(len(bounds) + 1)]
    for doc in sorted(ranks):
        best = min(ranks[doc].values())
        strata[0 if doc in known else 1 + int(np.searchsorted(bounds, best))].append(doc)
    return strata


def allocation(sizes: npt.NDArray[np.int64], budget: int | None) -> npt.NDArray[np.int64]:
    """How many documents to draw from each stratum (rows: queries) so that the sum is the budget.

    The rate halves from stratum to stratum; no rate is above 1, and at least `SMALLEST_DRAW` documents
    are drawn from each.

    >>> allocation(np.array([[10, 20, 40]]), 30).tolist()
    [[10, 10, 10]]
    """
    if budget is None or budget >= sizes.sum():
        return sizes
    least = np.minimum(sizes, SMALLEST_DRAW)
    if budget < least.sum():
        raise InputError(
            f"A sample needs {SMALLEST_DRAW} documents of both strata of every query, {least.sum():,} in all; "
            f"budget={budget:,} is less. Raise the budget, or draw fewer queries with queries=N."
        )
    wanted = sizes * 0.5 ** np.arange(sizes.shape[1])
    low, high = 0.0, 2.0 ** sizes.shape[1]
    for _ in range(60):
        middle = (low + high) / 2.0
        over = np.clip(np.floor(middle * wanted), least, sizes).sum() > budget
        low, high = (low, middle) if over else (middle, high)
    counts = np.clip(np.floor(low * wanted), least, sizes).astype(np.int64)
    missing = np.where(counts < sizes, low * wanted - counts, -np.inf)
    largest = np.argsort(-missing, axis=None, kind="stable")[: budget - int(counts.sum())]
    counts.ravel()[largest] += 1
    return counts


@dataclass(frozen=True, eq=False)
class SampledScores:
    """Scores of one run, estimated from judgments of a sample.

    per_query: query_id, then one column per measure.
    errors: the standard error of each value of `per_query`, from the draw of documents.
    queries: number of queries that those measured were drawn from; None where all were measured.
    """

    per_query: pl.DataFrame
    errors: pl.DataFrame
    queries: int | None = None

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
        parts = []
        for name, mean in self.means.items():
            low, high = self.interval(name)
            parts.append(f"{name} {mean:.4f} [{low:.4f}, {high:.4f}]")
        return f"SampledScores of {self.per_query.height:,} queries: {', '.join(parts)}"


def sampled_scores(
    run: Any, pool: Pool, qrels: Any, measures: Sequence[str] = ("statAP", "infNDCG"), *, rel: float = 1
) -> SampledScores:
    """Estimate a run's scores from judgments of a pool with strategy `sample`.

    The estimated value is the one that judging the whole population of the pool would give, documents outside
    it being not relevant. Estimates are corrected for bias with the jackknife; single queries may therefore lie
    slightly outside 0 to 1.

    Parameters
    ----------
    run : run
        Anything that `Run.of` takes. It need not be one of the pooled runs, but documents that only it
        returns count as not relevant.
    pool : Pool
        From `pool(..., strategy="sample")`.
    qrels : qrels
        Grades of all documents of the pool.
    measures : sequence of str
        P@k, DCG, DCG@k, statAP, xinfAP, infNDCG, infNDCG@k.
    rel : float
        The lowest grade that counts as relevant for P, statAP and xinfAP.
    """
    if pool.design is None:
        raise InputError(
            f"The pool was made with strategy {pool.settings.strategy!r}, so the probability of a document is "
            'not known. Make it with strategy="sample".'
        )
    grades = judged_grades(qrels)
    _check_judged(pool, grades)
    ranks = _ranks(Run.of(run))
    drawn = _drawn(pool)
    pools = [
        _sampled_pool(strata, drawn.get(query, set()), grades.get(query, {}), ranks.get(query, {}))
        for query, strata in pool.design.strata.items()
    ]
    values, errors = {}, {}
    for text in measures:
        results = [jackknife(one, estimator_of(text, rel)) for one in pools]
        values[text] = [float(result.corrected) for result in results]
        errors[text] = [_standard_error(result) for result in results]
    queries = {"query_id": list(pool.design.strata)}
    of = pool.settings.queries if pool.settings.sampled_queries is not None else None
    return SampledScores(pl.DataFrame({**queries, **values}), pl.DataFrame({**queries, **errors}), of)


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
    has_cutoff = cutoff is not None
    if name is None or cutoff == 0 or (name == "P" and not has_cutoff) or (name in _WHOLE and has_cutoff):
        raise MeasureError(
            f"{text!r} cannot be estimated from a sample; use P@k, DCG@k, statAP, xinfAP, infNDCG@k."
        )
    given: dict[str, Any] = {} if name in ("DCG", "infNDCG") else {"rel": rel}
    return partial(ESTIMATORS[name], **given, **({} if name in _WHOLE else {"k": cutoff}))


_WHOLE = ("statAP", "xinfAP")
"""Measures of the whole list, without a cutoff."""


def _check_judged(pool: Pool, grades: Judged) -> None:
    pairs = pool.frame.select("query_id", "doc_id").iter_rows()
    missing = [(query, doc) for query, doc in pairs if doc not in grades.get(query, {})]
    if missing:
        query, doc = missing[0]
        raise InputError(
            f"{len(missing):,} of {len(pool):,} documents of the pool are not in the qrels, the first is {doc!r} of "
            f"query {query!r}. Estimates need a grade for every document that was drawn: judge the rest."
        )


def _ranks(run: Run) -> dict[str, dict[str, int]]:
    """Rank by query and document."""
    ranks: dict[str, dict[str, int]] = {}
    for query, doc, rank in run.frame.select("query_id", "doc_id", "rank").iter_rows():
        ranks.setdefault(query, {}).setdefault(doc, rank)
    return ranks


def _drawn(pool: Pool) -> dict[str, set[str]]:
    drawn: dict[str, set[str]] = {}
    for query, doc in pool.frame.select("query_id", "doc_id").iter_rows():
        drawn.setdefault(query, set()).add(doc)
    return drawn


def _sampled_pool(
    strata: Sequence[Sequence[str]], drawn: set[str], grades: Mapping[str, float], ranks: Mapping[str, int]
) -> SampledPool:
    """One query's population as arrays; documents judged before the draw (stratum 0) count as drawn."""
    docs = [(number, doc) for number, listed in enumerate(strata) for doc in listed]
    return SampledPool.of(
        [ranks.get(doc, 0) for _, doc in docs],
        [number for number, _ in docs],
        [grades.get(doc, math.nan) if number == 0 or doc in drawn else math.nan for number, doc in docs],
    )


def _standard_error(result: Jackknifed) -> float:
    return math.sqrt(float(result.variance))
