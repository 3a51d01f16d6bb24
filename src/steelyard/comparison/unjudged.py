"""Whether the difference of two runs depends on documents that nobody judged.

A measure treats unjudged documents as not relevant. If the documents of one run were judged and those of the other were
not, the other run scores too low, and a paired test of the two can be significant and wrong. Therefore a significant
difference is reported as `better` or `worse` only if it stays significant, with the same sign, when the unjudged
documents get estimated grades, by multiple imputation (Rubin 1987). Otherwise the verdict is `undecided`.

1. For every grade above the lowest, a logistic regression of "the grade is this or higher" is fitted on the
   judged documents of both lists. The features are the logarithm of the document's rank in the one list and
   in the other (the length of the list + 1 where it is absent), and an effect of each query, which has a
   normal prior with mean 0 and variance `QUERY_VARIANCE`.
2. `DRAWS` times, coefficients are drawn from their approximate posterior, and every unjudged document in the first k of
   either list gets a grade drawn from its probabilities. A document that both runs return has one grade in both. Newly
   relevant documents count in R and in the ideal list. The log-odds of all unjudged documents are shifted by one amount
   per draw, normal with standard deviation `SHIFT`: unjudged documents can differ from judged ones at the same ranks.
3. The measure is computed for both runs with each set of grades, and the differences are combined by Rubin's rules: the
   variance of the mean difference is the mean of the variances over queries plus (1 + 1/DRAWS) times the variance
   between draws. The t test has Barnard and Rubin's (1999) degrees of freedom.
4. The p-value is that of the test that was chosen. Tests of ranks and signs are computed with each set of
   grades, and their normal scores z are combined by Rubin's rules, with variance 1 within a draw (Licht 2010).
   For the permutation test, the bootstrap, max-T and Tukey's test, which are tests of the mean, z of the plain
   test is moved by as much as the estimate moves z of the t test. With nothing unjudged, that is the plain test.

The rule applies only if the qrels were pooled from ranked lists: see `pooled`. For other qrels an unjudged document is
a non-relevant one, and verdicts do not change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from steelyard.alignment.alignment import Alignment, sums
from steelyard.alignment.hits import Bools, Floats, Ints
from steelyard.alignment.scans import row_hashes
from steelyard.errors import MeasureError
from steelyard.lazy import polars as pl
from steelyard.lazy import special
from steelyard.measures.bounds import Bounds, Case, bounds_of
from steelyard.measures.gradings import ABSENT, Unjudged, grade_levels, unjudged
from steelyard.measures.grammar import Measure
from steelyard.qrels import Qrels
from steelyard.statistics import paired_tests, sign_test
from steelyard.statistics.arrays import rounding
from steelyard.statistics.paired import PairedTest, t_tests

DRAWS = 50
QUERY_VARIANCE = 1.0
SHIFT = 0.25
RIDGE = 0.25
FEATURES = 3
MOST_LEVELS = 10
FEWEST_JUDGED = 2
LOWEST_SHARE = 0.05
LOWEST_Z = -2.0
MOST_RANKS = 100  # Ranks of each list that the estimate reads; unjudged documents below count as not relevant.

Words: TypeAlias = NDArray[np.uint64]
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class PairedLists:
    """The documents of two ranked lists per query, one entry per document in either list.

    `query` is the number of its query; `ranks` (2 x documents) its rank in each list, from 1, infinite where it is
    absent; `grade` its grade, NaN where it is unjudged. `lengths` (2 x queries) is how many documents each list has.
    """

    query: Ints
    ranks: Floats
    grade: Floats
    lengths: Ints

    @property
    def unjudged(self) -> Bools:
        return np.isnan(self.grade)

    def within(self, depth: int) -> Bools:
        """Which documents are in the first `depth` of either list."""
        return np.asarray((self.ranks <= depth).any(axis=0))


@dataclass(frozen=True)
class DifferenceTest:
    """A mean difference (first run - second run), p, the 95% interval; the lowest and highest mean of single draws."""

    difference: float
    p: float
    low: float = float("nan")
    high: float = float("nan")
    drawn: tuple[float, float] | None = None


def pooled(pair: PairedLists, depth: int, rel: float = 1.0) -> bool:
    """Whether the qrels were pooled: whether non-relevant documents were judged because they were returned.

    The qrels are pooled if both hold in one of the two runs:

    - Non-relevant documents were judged: of the documents in the first d ranks that are not known to be relevant (the
      unjudged ones, and grades from 0 to below `rel`: a distractor was chosen, not returned), for some d up to `depth`
      at least `FEWEST_JUDGED`, and at least the share `LOWEST_SHARE`. Not so for qrels of relevant documents only.
    - They do not rank above the relevant ones (rank-sum test over the whole lists, z at least `LOWEST_Z`), as those do
      that were judged because they were returned. Not so if non-relevant ones were chosen (cranfield; hard negatives).
    """
    for all_ranks in pair.ranks:
        there = np.isfinite(all_ranks)
        rank, grade = all_ranks[there].astype(np.int64), pair.grade[there]
        unjudged, not_relevant, relevant = (
            np.bincount(rank[kept], minlength=int(rank.max(initial=0)) + 1)
            for kept in (np.isnan(grade), (grade >= 0) & (grade < rel), grade >= rel)
        )
        judged, unknown = (np.cumsum(counts)[1 : depth + 1] for counts in (not_relevant, unjudged))
        enough = (judged >= FEWEST_JUDGED) & (judged / np.maximum(judged + unknown, 1) >= LOWEST_SHARE)
        if np.any(enough) and _rank_sum(not_relevant, relevant) >= LOWEST_Z:
            return True
    return False


def _rank_sum(these: Ints, others: Ints) -> float:
    """z of the rank-sum test of counts of 0, 1, 2 ...; negative if `these` are the smaller ones, 0 without any."""
    few, many = int(these.sum()), int(others.sum())
    if not few or not many:
        return 0.0
    size, total = (these + others).astype(np.float64), few + many
    middle = np.cumsum(size) - (size - 1) / 2
    excess = float(these @ middle) - few * (total + 1) / 2
    ties = float((size**3 - size).sum()) / (total * (total - 1))
    variance = few * many / 12 * (total + 1 - ties)
    return float(excess / np.sqrt(variance)) if variance > 0 else 0.0


class Noise:
    """The random numbers of drawn grades. They do not depend on the runs: all pairs of a comparison share them."""

    def __init__(self, draws: int, queries: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.coefficients = self._random.standard_normal((draws, FEATURES))
        self.effects = self._random.standard_normal((draws, queries))
        self.shift = SHIFT * self._random.standard_normal(draws)
        self._thresholds = np.empty((0, draws))

    def thresholds(self, count: int) -> Floats:
        """Logits of uniform numbers, documents x draws; a grade is reached if one is below its log-odds."""
        documents, draws = self._thresholds.shape
        if documents < count:
            chance = self._random.random((count - documents, draws))
            with np.errstate(divide="ignore"):
                self._thresholds = np.concatenate([self._thresholds, np.log(chance) - np.log1p(-chance)])
        return self._thresholds[:count]


class GradeDraws:
    """Grades for the unjudged documents of two runs, drawn from the model that is fitted on the judged ones.

    Each is drawn once: the grades of the first 10 documents are the same whether a measure reads 10 of them or 100.
    """

    def __init__(self, pair: PairedLists, noise: Noise) -> None:
        judged, queries = ~pair.unjudged, pair.lengths.shape[1]
        self._pair, self._noise = pair, noise
        self.levels = np.unique(pair.grade[judged])
        if len(self.levels) > MOST_LEVELS:
            self.levels = np.unique(np.quantile(pair.grade[judged], np.linspace(0, 1, MOST_LEVELS), method="lower"))
        # 1 and the logarithm of the rank in each list; an absent document ranks behind the last one.
        last = pair.lengths[:, pair.query] + 1.0
        self._features = np.column_stack([np.ones(len(pair.query)), *np.log(np.minimum(pair.ranks, last))])
        self._features[:, 1:] -= self._features[judged, 1:].mean(axis=0)
        features, query, grade = self._features[judged], pair.query[judged], pair.grade[judged]
        self._models = [_fit(features, query, queries, grade >= level) for level in self.levels[1:]]
        self._thresholds = noise.thresholds(int(pair.unjudged.sum()))
        self._drawn = np.zeros(self._thresholds.shape, dtype=np.uint8)
        self._known = np.zeros(len(pair.query), dtype=bool)

    def numbers(self, wanted: Bools) -> NDArray[np.uint8]:
        """The grades of the `wanted` documents, all of them unjudged, as places in `levels`: draws x documents."""
        unjudged = self._pair.unjudged
        new = wanted & ~self._known
        if new.any():
            thresholds, features = self._thresholds[new[unjudged]], self._features[new]
            drawn = np.zeros(thresholds.shape, dtype=np.uint8)
            reached = np.ones(thresholds.shape, dtype=bool)
            for model in self._models:
                coefficients, effects = _drawn(self._noise, *model)
                odds = features[:, 1:] @ coefficients
                odds += effects[self._pair.query[new]]
                # A level is reached if the level below is and its log-odds are above the document's threshold.
                reached &= thresholds < odds
                drawn += reached
            self._drawn[new[unjudged]] = drawn
            self._known |= new
        return np.ascontiguousarray(self._drawn[wanted[unjudged]].T)


def _drawn(
    noise: Noise, mode: Floats, query_mode: Floats, precision: Floats, cross: Floats, query_precision: Floats
) -> tuple[Floats, Floats]:
    """Coefficients of the features and of the queries (each x draws) of a model of `_fit`, drawn from the normal
    approximation; those of the queries contain the constant and the shift."""
    moved = noise.coefficients @ np.linalg.cholesky(np.linalg.inv(precision)).T
    effects = -(moved @ cross.T) / query_precision + noise.effects / np.sqrt(query_precision)
    coefficients = (mode + moved).T
    return coefficients[1:], (query_mode + effects).T + (coefficients[0] + noise.shift)


def _fit(features: Floats, query: Ints, queries: int, outcome: Bools) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """A logistic regression with query effects by Newton's method: the modes, and the blocks of its Hessian."""
    penalty = np.array([1e-3, *[RIDGE] * (features.shape[1] - 1)])
    coefficients, effects = np.zeros(len(penalty)), np.zeros(queries)
    for _ in range(25):
        mean = 0.5 * (1.0 + np.tanh(0.5 * (features @ coefficients + effects[query])))
        weight = np.maximum(mean * (1 - mean), 1e-6)
        error = outcome - mean
        gradient = features.T @ error - penalty * coefficients
        query_gradient = sums(query, error, queries) - effects / QUERY_VARIANCE
        query_precision = sums(query, weight, queries) + 1 / QUERY_VARIANCE
        cross = np.column_stack([sums(query, weight * column, queries) for column in features.T])
        precision = (features * weight[:, None]).T @ features + np.diag(penalty)
        # The query effects are eliminated, so that a step costs one pass over the documents.
        precision -= cross.T @ (cross / query_precision[:, None])
        step = np.linalg.solve(precision, gradient - cross.T @ (query_gradient / query_precision))
        query_step = (query_gradient - cross @ step) / query_precision
        size = max(np.abs(step).max(), np.abs(query_step).max(initial=0.0))
        shorter = min(1.0, 3.0 / max(size, 1e-12))
        coefficients, effects = coefficients + shorter * step, effects + shorter * query_step
        if size < 1e-6:
            break
    return coefficients, effects, precision, cross, query_precision


def combined_test(differences: Floats) -> DifferenceTest:
    """The t test of a mean by Rubin's rules; `differences` is draws x queries. NaN in a draw skips the query."""
    kept = differences[:, ~np.isnan(differences).any(axis=0)]
    draws, queries = kept.shape
    if queries < 2:
        return DifferenceTest(float(kept.mean()) if kept.size else float("nan"), float("nan"))
    means = kept.mean(axis=1)
    within = float((kept.var(axis=1, ddof=1) / queries).mean())
    between = (1 + 1 / draws) * float(means.var(ddof=1)) if draws > 1 else 0.0
    difference, total = float(means.mean()), within + between
    if total * queries <= rounding(difference) ** 2:
        return DifferenceTest(difference, float(t_tests(kept[:1])[1][0]), difference, difference)
    share = between / total
    freedom = queries - 1.0
    if share > 1e-12:
        observed = (freedom + 1) / (freedom + 3) * freedom * (1 - share)
        freedom = 1 / (share**2 / (draws - 1) + 1 / observed)
    reach = float(special.stdtrit(freedom, 0.975) * np.sqrt(total))
    p = float(2 * special.stdtr(freedom, -abs(difference) / np.sqrt(total)))
    return DifferenceTest(difference, p, difference - reach, difference + reach)


RANK_TESTS = ("wilcoxon", "sign")  # Tests that are not of the mean difference.


def combined_rank_test(differences: Floats, test: str) -> float:
    """The p-value of a test of ranks or signs over draws x queries, by Rubin's rules for normal scores."""
    kept = differences[:, ~np.isnan(differences).any(axis=0)]
    signs = np.sign(np.sum(np.sign(kept), axis=1) if test == "sign" else kept.mean(axis=1))
    scores = signs * normal_scores(np.array([result.p for result in paired_tests(kept, cast(PairedTest, test))]))
    between = (1 + 1 / len(scores)) * float(scores.var(ddof=1)) if len(scores) > 1 else 0.0
    return float(2 * special.ndtr(-abs(float(scores.mean()) / math.sqrt(1 + between))))


def largest_p(low: Floats, high: Floats, test: str) -> float | None:
    """An upper bound of p over all differences between the ends, the mean being above 0; None for Wilcoxon's test.

    Of the differences with one sum, t is smallest for those with the largest sum of squares: queries are at `high` in
    the order of low + high, the others at `low`, at most one is between.
    """
    if test in RANK_TESTS:
        return None if test == "wilcoxon" else sign_test(low).p if np.sign(np.round(low, 12)).sum() > 0 else 1.0
    order, n = np.argsort(-(low + high)), len(low)
    total, square = (np.cumsum([np.sum(low**e), *(high**e - low**e)[order]]) for e in (1, 2))
    square[:-1] = np.maximum(square[:-1], square[1:])
    t = float(np.min(total * np.sqrt((n - 1) / np.maximum(n * square - total**2, 1e-300))))
    return max(float(2 * special.stdtr(n - 1, -t)), 2 * 0.5**n)


def moved_p(plain_p: float, plain_t: float, estimated_t: float) -> float:
    """A p-value, moved as the estimate moves that of the t test (negative if the sign is the opposite)."""
    moved = math.copysign(float(normal_scores(abs(estimated_t))), estimated_t) - float(normal_scores(plain_t))
    return float(2 * special.ndtr(-max(0.0, float(normal_scores(plain_p)) + moved)))


def normal_scores(p: Any) -> Any:
    """|z| of a two-sided p-value."""
    return -special.ndtri(np.clip(p, 1e-300, 1.0) / 2)


# The lists of two runs joined by document. A run is prepared once and joined with every other run by hashes. A match of
# hashes is confirmed by the ids; if one is not, or two documents of a list share a hash, the ids join the frames.


class SharedUnjudged(NamedTuple):
    """The unjudged documents that are in the lists of both runs: the query and the rank in each list."""

    query: Ints
    rank_a: Ints
    rank_b: Ints


class JoinedLists(NamedTuple):
    """The documents of two runs, and the unjudged ones that both have."""

    pair: PairedLists
    shared: SharedUnjudged


@dataclass(frozen=True, eq=False)
class RunLists:
    """The documents of a run for judged queries, each once, by query and rank; `grade` is NaN where it is unjudged.

    `by_hash` are the rows in the order of their hashes, `hashes` the hashes in that order; `distinct`: all differ.
    """

    frame: pl.DataFrame
    query: Ints
    rank: Ints
    grade: Floats
    by_hash: Ints
    hashes: Words
    distinct: bool
    _unjudged: dict[int, tuple[Words, Ints]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, rows: pl.DataFrame, qrels: Qrels) -> RunLists:
        """The lists of ranked rows: query_id, doc_id and rank."""
        ids = pl.Series("query_id", qrels.judged.query_ids, dtype=pl.String)
        numbers = ids.to_frame().with_row_index("query").cast({"query": pl.Int64})
        joined = rows.drop_nulls("doc_id").join(numbers, on="query_id", maintain_order="left")
        frame = joined.select("query", "doc_id", pl.col("rank").cast(pl.Int64))
        step, down = np.diff(frame["query"].to_numpy()), np.diff(frame["rank"].to_numpy()) > 0
        if not np.all((step > 0) | ((step == 0) & down)):
            frame = frame.sort("query", "rank")
        hashes = row_hashes(frame["doc_id"], frame["query"].to_numpy())
        by_hash = np.argsort(hashes)
        equal = np.diff(hashes[by_hash]) == 0
        if equal.any():
            # Documents that are in an earlier row of the query go. Only rows with equal hashes are compared.
            rows_again = np.sort(by_hash[np.append(equal, False) | np.insert(equal, 0, False)])
            first = frame[rows_again].select(pl.struct("query", "doc_id").is_first_distinct()).to_series()
            kept: Bools = np.ones(len(hashes), dtype=bool)
            kept[rows_again] = first.to_numpy()
            frame, hashes = frame.filter(pl.Series(kept)), hashes[kept]
            by_hash = np.argsort(hashes)
        judged = pl.DataFrame(
            {"query": qrels.doc_query, "doc_id": qrels.judged.doc_ids, "grade": qrels.grades},
            schema={"query": pl.Int64, "doc_id": pl.String, "grade": pl.Float64},
        )
        grade = frame.join(judged, on=["query", "doc_id"], how="left", maintain_order="left")["grade"]
        columns = frame["query"].to_numpy(), frame["rank"].to_numpy(), grade.fill_null(float("nan")).to_numpy()
        return cls(frame, *columns, by_hash, hashes[by_hash], bool(np.diff(hashes[by_hash]).all()))

    def unjudged_to(self, depth: int) -> tuple[Words, Ints]:
        """The unjudged documents down to a rank: their hashes in order, and their rows."""
        if depth not in self._unjudged:
            chosen = (np.isnan(self.grade) & (self.rank <= depth))[self.by_hash]
            self._unjudged[depth] = self.hashes[chosen], self.by_hash[chosen]
        return self._unjudged[depth]


def count_unjudged(one: RunLists, two: RunLists, depth: int) -> int:
    """The number of unjudged documents that are in the first `depth` of either list."""
    first, second = one.unjudged_to(depth), two.unjudged_to(depth)
    return len(first[1]) + len(second[1]) - len(_same_documents(one, first, two, second)[0])


def join_lists(one: RunLists, two: RunLists, size: int) -> JoinedLists:
    """The documents of two runs by query: those of the second alone by rank, then those of the first by theirs."""
    matched, others = _same_documents(one, (one.hashes, one.by_hash), two, (two.hashes, two.by_hash))
    rank_b = np.full(len(one.query), np.inf)
    rank_b[matched] = two.rank[others]
    alone: Bools = np.ones(len(two.query), dtype=bool)
    alone[others] = False
    both: Bools = np.isfinite(rank_b) & np.isnan(one.grade)
    shared = SharedUnjudged(one.query[both], one.rank[both], rank_b[both].astype(np.int64))
    first = (one.rank <= MOST_RANKS) | (rank_b <= MOST_RANKS)
    rest = np.flatnonzero(alone & (two.rank <= MOST_RANKS))
    query, other = one.query[first], two.query[rest]
    # Both parts are sorted by query: the place of a row follows from the number of rows of the other part before it.
    counts, other_counts = np.bincount(query, minlength=size), np.bincount(other, minlength=size)
    place = np.arange(len(query)) + np.cumsum(other_counts)[query]
    place_other = np.arange(len(other)) + (np.cumsum(counts) - counts)[other]

    def merged(values: NDArray[_Number], others: NDArray[_Number]) -> NDArray[_Number]:
        """The values of the two parts at their places."""
        column: NDArray[Any] = np.empty(len(query) + len(other), dtype=values.dtype)
        column[place], column[place_other] = values, others
        return column

    in_one = merged(one.rank[first].astype(float), np.full(len(rest), np.inf))
    in_two = merged(rank_b[first], two.rank[rest].astype(float))
    grade = merged(one.grade[first], two.grade[rest])
    lengths = np.array([np.bincount(lists.query, minlength=size) for lists in (one, two)])
    return JoinedLists(PairedLists(merged(query, other), np.array([in_one, in_two]), grade, lengths), shared)


def _same_documents(
    one: RunLists, some: tuple[Words, Ints], two: RunLists, others: tuple[Words, Ints]
) -> tuple[Ints, Ints]:
    """The rows of both runs with the same document, out of some rows of each, with their hashes in order."""
    (hashes, rows), (other_hashes, other_rows) = some, others
    if one.distinct and two.distinct:
        _, at, other_at = np.intersect1d(hashes, other_hashes, assume_unique=True, return_indices=True)
        ids = one.frame[rows[at]], two.frame[other_rows[other_at]]
        if all((ids[0][name] == ids[1][name]).all() for name in ("query", "doc_id")):
            return rows[at], other_rows[other_at]
    pairs = one.frame.with_row_index("row").join(two.frame.with_row_index("other"), on=["query", "doc_id"])
    matched, other_matched = (pairs[name].to_numpy().astype(np.int64) for name in ("row", "other"))
    kept = np.isin(matched, rows) & np.isin(other_matched, other_rows)
    return matched[kept], other_matched[kept]


def pair_bounds(measure: Measure, a: Alignment, b: Alignment, shared: SharedUnjudged) -> Bounds:
    """For each query, the bounds of the difference a - b over all gradings of the unjudged documents of either list."""
    in_a, in_b = unjudged(a), unjudged(b)
    rank_b = np.full(len(in_a.query), ABSENT)
    rank_b[_places(in_a, shared.query, shared.rank_a)] = shared.rank_b
    only_b = np.ones(len(in_b.query), dtype=bool)
    only_b[_places(in_b, shared.query, shared.rank_b)] = False
    query = np.concatenate([in_a.query, in_b.query[only_b]])
    order = np.argsort(query, kind="stable")
    ranks_a = np.concatenate([in_a.ranks[0], np.full(int(only_b.sum()), ABSENT)])
    ranks_b = np.concatenate([rank_b, in_b.ranks[0][only_b]])
    either = Unjudged(query[order], (ranks_a[order], ranks_b[order]), a.size)
    return bounds_of(Case(measure, [a, b], either, grade_levels(a)))


def _places(docs: Unjudged, query: Ints, rank: Ints) -> Ints:
    """The numbers of the unjudged documents at some ranks; it is an error where there is none."""
    step = int(max(docs.ranks[0].max(initial=0), rank.max(initial=0))) + 1
    keys, wanted = docs.query * step + docs.ranks[0], query * step + rank
    place = np.searchsorted(keys, wanted)
    if np.any(np.append(keys, -1)[np.minimum(place, len(keys))] != wanted):
        raise MeasureError("a shared document has a rank at which its list has no unjudged document.")
    return place
