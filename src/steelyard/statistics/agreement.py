"""Agreement of two judges: of the grades they give, and of the rankings that follow from them; and of two query sets.

Grades are arrays with NaN where a judge gave none; rankings are arrays of scores, higher is better. The functions on
rankings take one ranking per row, so that all resamples of a bootstrap are computed at once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from steelyard.errors import InputError, PolicyError, did_you_mean
from steelyard.statistics.arrays import Array, snapped, student_quantile
from steelyard.statistics.paired import t_tests

Weights = Literal["linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = get_args(Level)

RBO_P = 0.9  # Persistence of RBO: at 0.9 the first ten ranks have 86% of the weight.
DIGITS = 12  # Resampled means are rounded to this many decimals, so that equal runs stay tied.
FEWEST_RUNS = 8  # With fewer, tau is one of a few values and says little: three runs have tau 1 in one of six orders.
SPLITS = 2000  # Random splits of the reference queries.
VALUES_PER_BLOCK = 2**21


# Grades


def paired_grades(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Array, Array]:
    """The grades of the items that both judges graded; NaN is no grade.

    >>> paired_grades([0, 1, float("nan")], [1, 1, 2])
    (array([0., 1.]), array([1., 1.]))
    """
    first, second = (np.asarray(grades, dtype=np.float64) for grades in (a, b))
    if first.shape != second.shape or first.ndim != 1:
        problem = f"Expected two lists of grades of the same length, got shapes {first.shape} and {second.shape}."
        raise InputError(f"{problem} Join them by item first, with NaN where a judge gave no grade.")
    both = ~(np.isnan(first) | np.isnan(second))
    return first[both], second[both]


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often judge a gave one grade and judge b another.

    `counts[i, j]` is the number of items with grade `grades[i]` by a and `grades[j]` by b.
    """

    grades: Array
    counts: npt.NDArray[np.int64]

    @property
    def n(self) -> int:
        """Number of items that both judges graded."""
        return int(self.counts.sum())


def confusion_matrix(a: npt.ArrayLike, b: npt.ArrayLike) -> Confusion:
    """The confusion matrix over the grades that either judge used, in ascending order.

    >>> confusion_matrix([0, 0, 1, 2], [0, 1, 1, 1]).counts
    array([[1, 1, 0],
           [0, 1, 0],
           [0, 1, 0]])
    """
    first, second = paired_grades(a, b)
    grades, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    size, n = len(grades), len(first)
    cells = place[:n] * size + place[n:]
    counts = np.bincount(cells, minlength=size * size).reshape(size, size)
    return Confusion(grades, counts.astype(np.int64))


def cohen_kappa(a: npt.ArrayLike, b: npt.ArrayLike, weights: Weights | None = None) -> float:
    """Cohen's kappa, plain or with weights, as in scikit-learn.

    1 - sum(w o) / sum(w e), o the confusion matrix, e the matrix that the marginals give by chance. The weight
    of a cell is 1 off the diagonal, or |i - j| (`linear`), or (i - j)^2 (`quadratic`), i and j the positions
    of the two grades among the grades that either judge used. NaN where both judges used one and the same
    grade only, or no item was graded by both.

    >>> round(cohen_kappa([0, 0, 1, 2], [0, 1, 1, 2]), 4)
    0.6364
    """
    return kappa_of(confusion_matrix(a, b), weights)


def kappa_of(confusion: Confusion, weights: Weights | None = None) -> float:
    """Cohen's kappa of a confusion matrix; see `cohen_kappa`."""
    if weights not in (None, "linear", "quadratic"):
        raise PolicyError(f"Unknown weights {weights!r}: expected None, 'linear' or 'quadratic'.")
    counts = confusion.counts.astype(np.float64)
    place = np.arange(len(counts), dtype=np.float64)
    apart = np.abs(place[:, None] - place[None, :])
    weight = {None: np.sign(apart), "linear": apart, "quadratic": apart**2}[weights]
    by_chance = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(counts.sum(), 1.0)
    return _one_minus_ratio(weight * counts, weight * by_chance)


def kappa_interval(
    a: npt.ArrayLike, b: npt.ArrayLike, clusters: Sequence[str], level: float = 0.95
) -> tuple[float, float]:
    """An interval of Cohen's plain kappa by the jackknife over clusters, as the queries of documents.

    Documents of one query are alike, so that they are left out together; the variance of the values without each
    cluster gives a Student interval. For 30 documents of TREC DL 2019 drawn at random it misses the kappa of all in
    4.5% of draws, the bootstrap over queries in 7.2%. NaN with fewer than two clusters.

    >>> kappa_interval([0, 1, 0, 1], [0, 1, 0, 1], ["q1", "q1", "q2", "q2"])
    (1.0, 1.0)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    both = ~(np.isnan(first) | np.isnan(second))
    whole = confusion_matrix(first, second)
    names, cluster = np.unique(np.asarray(clusters, dtype=str)[both], return_inverse=True)
    size, n = len(whole.grades), len(names)
    if n < 2:
        return math.nan, math.nan
    places = (np.searchsorted(whole.grades, grades[both]) for grades in (first, second))
    parts = np.zeros((n, size, size), dtype=np.int64)
    np.add.at(parts, (cluster, *places), 1)
    without = np.array([kappa_of(Confusion(whole.grades, whole.counts - part)) for part in parts])
    without = without[~np.isnan(without)]
    error = math.sqrt((n - 1) / n * float(np.sum((without - without.mean()) ** 2))) if len(without) else math.nan
    kappa, wide = kappa_of(whole), student_quantile((1.0 + level) / 2.0, n - 1) * error
    return max(-1.0, kappa - wide), min(1.0, kappa + wide)


def _one_minus_ratio(observed: Array, expected: Array) -> float:
    below = float(expected.sum())
    return 1.0 - float(observed.sum()) / below if below > 0.0 else math.nan


def ac1_of(confusion: Confusion) -> float:
    """Gwet's AC1 (2008): agreement corrected for chance, stable where nearly all items have one grade.

    (p_a - p_e) / (1 - p_e), p_a the share of items with equal grades, p_e = sum_k pi_k (1 - pi_k) / (q - 1),
    pi_k the mean of the two judges' shares of grade k, q the number of grades that either used. 1 where both
    used one and the same grade only; NaN where no item was graded by both.

    >>> round(ac1_of(confusion_matrix([0, 0, 0, 1], [0, 0, 1, 1])), 4)
    0.5294
    """
    n, grades = confusion.n, len(confusion.grades)
    if n == 0:
        return math.nan
    if grades == 1:
        return 1.0
    share = (confusion.counts.sum(axis=0) + confusion.counts.sum(axis=1)) / (2.0 * n)
    by_chance = float((share * (1.0 - share)).sum()) / (grades - 1)
    agreed = float(np.trace(confusion.counts)) / n
    return (agreed - by_chance) / (1.0 - by_chance)


def grade_bias(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Mean grade of b minus mean grade of a, over the items that both graded; NaN if there are none.

    >>> grade_bias([0, 1, 2], [1, 1, 3])
    0.6666666666666667
    """
    first, second = paired_grades(a, b)
    return float(second.mean() - first.mean()) if len(first) else math.nan


def krippendorff_alpha(grades: npt.ArrayLike, level: Level = "ordinal") -> float:
    """Krippendorff's alpha of a matrix judges x items, NaN where a judge gave no grade.

    1 - observed disagreement / disagreement by chance, over the items with at least two grades. The
    disagreement of two grades is 1 unless they are equal (`nominal`), the square of their difference
    (`interval`), or the square of the number of grades given from the one to the other, both ends counted
    half (`ordinal`). NaN where fewer than two different grades remain.

    >>> gap = float("nan")
    >>> round(krippendorff_alpha([[1, 2, 3, 3, gap], [1, 2, 3, 2, 4], [gap, 2, 3, 3, 4]], "nominal"), 4)
    0.8
    """
    if level not in LEVELS:
        raise PolicyError(
            f"Unknown level {level!r}: expected one of {', '.join(LEVELS)}.{did_you_mean(str(level), LEVELS)}"
        )
    matrix = np.asarray(grades, dtype=np.float64)
    if matrix.ndim != 2:
        raise InputError(f"Expected a matrix of judges x items, got {matrix.ndim} dimensions.")
    # How often each item has each of the grades given: only items with at least two grades.
    kept = matrix[:, np.count_nonzero(~np.isnan(matrix), axis=0) >= 2]
    judge, item = np.nonzero(~np.isnan(kept))
    values, place = np.unique(kept[judge, item], return_inverse=True)
    if len(values) < 2:
        return math.nan
    shape = kept.shape[1], len(values)
    counts = np.bincount(item * shape[1] + place, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    share = counts / (counts.sum(axis=1) - 1.0)[:, None]
    observed = counts.T @ share - np.diag(share.sum(axis=0))
    total = counts.sum(axis=0)
    expected = (np.outer(total, total) - np.diag(total)) / (total.sum() - 1.0)
    if level == "ordinal":
        # The number of grades given up to the middle of each value: differences count the ends half.
        values = np.cumsum(total) - total / 2.0
    apart = (values[:, None] - values[None, :]) ** 2
    disagreement = np.sign(apart) if level == "nominal" else apart
    return _one_minus_ratio(disagreement * observed, disagreement * expected)


# Rankings


def kendall_tau(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """Kendall's tau-b of the rankings in each row of a and b (rankings x items of scores).

    (concordant - discordant) / sqrt((pairs not tied in a) (pairs not tied in b)). NaN where one has ties only.

    >>> kendall_tau([[3, 2, 1, 0]], [[3, 2, 0, 1]])
    array([0.66666667])
    """
    first, second = _rankings(a, b)
    i, j = np.triu_indices(first.shape[1], 1)
    parts = []
    for rows in _blocks(first):
        one, other = (np.sign(scores[rows][:, i] - scores[rows][:, j]) for scores in (first, second))
        pairs = np.abs(one).sum(axis=1) * np.abs(other).sum(axis=1)
        with np.errstate(invalid="ignore"):
            parts.append((one * other).sum(axis=1) / np.sqrt(pairs))
    return np.concatenate(parts)


def tau_ap(reference: npt.ArrayLike, ranking: npt.ArrayLike) -> Array:
    """tau_AP of each row of `ranking` against the same row of `reference` (Yilmaz, Aslam and Robertson 2008).

    2 / (n - 1) * sum over the items from rank 2 of `ranking` of C(i) / (i - 1), minus 1, C(i) the number of
    items above rank i that `reference` puts above this item too: Kendall's tau with more weight at the top.
    It is not symmetric. With ties it is the mean over all ways to order the tied items: Urbano and
    Marrero's (2017) tau_AP,a, extended to ties in the reference by the same rule. NaN for one item.

    >>> tau_ap([[4, 3, 2, 1]], [[3, 4, 2, 1]])
    array([0.33333333])
    """
    truth, order = _rankings(reference, ranking)
    items = truth.shape[1]
    if items < 2:
        return np.full(len(truth), math.nan)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, items + 1))])
    parts = []
    for rows in _blocks(truth):
        in_order, in_truth = _signs(order[rows]), _signs(truth[rows])
        above = in_order < 0
        before = above.sum(axis=2)
        tied = (in_order == 0).sum(axis=2)
        concordant = np.where(above, (1.0 - in_truth) / 2.0, 0.0).sum(axis=2)
        # An item of a group of t tied items, with b items before the group, is at place b + k with chance 1 / t.
        last = before + tied - 1
        shares = (harmonic[last] - harmonic[np.maximum(before - 1, 0)]) / tied
        outside = np.where(before > 0, concordant * shares, 0.0)
        within = (tied - 1 - before * (harmonic[last] - harmonic[before])) / (2.0 * tied)
        parts.append(2.0 / (items - 1) * (outside + within).sum(axis=1) - 1.0)
    return np.concatenate(parts)


def rbo(a: npt.ArrayLike, b: npt.ArrayLike, p: float = RBO_P) -> Array:
    """Extrapolated rank-biased overlap of two rankings of the same n items (Webber, Moffat and Zobel 2010).

    (1 - p) * sum over depths d of p^(d - 1) * overlap(d) / d, plus p^n for the depths below the last, where
    the overlap is complete. overlap(d) is the number of items in the first d of both. An item of a group of
    tied items is among the first d with the chance that a random order of the group gives, independently in the
    two rankings (RBO^a of Corsi and Urbano 2024): a mean over all ways to order the ties.

    >>> rbo([[3, 2, 1]], [[3, 2, 1]]), rbo([[3, 2, 1]], [[2, 3, 1]], p=0.5)
    (array([1.]), array([0.5]))
    """
    _check_p(p)
    first, second = _rankings(a, b)
    items = first.shape[1]
    depth = np.arange(1, items + 1, dtype=np.float64)
    weight = (1.0 - p) * p ** (depth - 1.0) / depth
    overlaps = ((_chances(first[rows]) * _chances(second[rows])).sum(axis=1) for rows in _blocks(first))
    return np.concatenate([overlap @ weight + p**items for overlap in overlaps])


def rbo_lists(a: Sequence[Hashable], b: Sequence[Hashable], p: float = RBO_P) -> float:
    """Extrapolated rank-biased overlap of two lists, of any lengths and any items (equation 32 of the paper).

    Below the end of the shorter list (length s) its agreement at s is assumed to continue, below the end of the
    longer one (length l) that of the last depth:
    (1 - p) / p * (sum_d p^d X_d / d + sum_{d > s} p^d X_s (d - s) / (s d)) + p^l ((X_l - X_s) / l + X_s / s).
    Two empty lists have an overlap of 1, an empty list and another one of 0.

    >>> round(rbo_lists("abc", "abd", p=0.9), 4)
    0.73
    """
    _check_p(p)
    short, long = sorted((list(a), list(b)), key=len)
    for items in (short, long):
        if len(set(items)) < len(items):
            raise InputError("An item is repeated in the list; RBO needs lists of different items.")
    if not short:
        return 1.0 if not long else 0.0
    overlap, seen, other = [], set[Hashable](), set[Hashable]()
    for place, item in enumerate(long):
        seen.add(item)
        other.update(short[place : place + 1])
        overlap.append(len(seen & other))
    depth = np.arange(1, len(long) + 1, dtype=np.float64)
    shared = np.array(overlap, dtype=np.float64)
    at_short, length = shared[len(short) - 1], len(short)
    below = np.maximum(depth - length, 0.0) * at_short / length
    mass = float(((shared + below) / depth * p ** (depth - 1.0)).sum()) * (1.0 - p)
    end = (shared[-1] - at_short) / len(long) + at_short / length
    return mass + float(p ** len(long) * end)


def drops(reference: npt.ArrayLike, ranking: npt.ArrayLike) -> Array:
    """How many places each item is lower in `ranking` than in `reference` (rankings x items).

    Negative where it is higher; tied items share the mean of their places.

    >>> drops([[3, 2, 1]], [[1, 3, 2]])
    array([[ 2., -1., -1.]])
    """
    first, second = _rankings(reference, ranking)
    return _places(second) - _places(first)


def _places(scores: Array) -> Array:
    """The place of every item from 0, tied items the mean of theirs."""
    signs = (_signs(scores[rows]) for rows in _blocks(scores))
    return np.concatenate([(block < 0).sum(axis=2) + ((block == 0).sum(axis=2) - 1) / 2.0 for block in signs])


def _chances(scores: Array) -> Array:
    """rankings x items x depths: the chance that an item is among the first d."""
    signs = _signs(scores)
    before, tied = (signs < 0).sum(axis=2), (signs == 0).sum(axis=2)
    depth = np.arange(1, scores.shape[1] + 1)
    return np.asarray(np.clip((depth - before[:, :, None]) / tied[:, :, None], 0.0, 1.0))


def _signs(scores: Array) -> Array:
    """rankings x items x items: 1 where the first item is above the second, -1 below, 0 tied."""
    return np.sign(scores[:, :, None] - scores[:, None, :])


def _blocks(scores: Array) -> list[slice]:
    """Rows in blocks whose item x item matrices stay small."""
    size = max(1, VALUES_PER_BLOCK // max(1, scores.shape[1] ** 2))
    return [slice(start, start + size) for start in range(0, max(1, len(scores)), size)]


def _rankings(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Array, Array]:
    first, second = (np.asarray(scores, dtype=np.float64) for scores in (a, b))
    if first.ndim != 2 or first.shape != second.shape:
        raise InputError(
            f"Expected two matrices of rankings x items of one shape, got {first.shape} and {second.shape}."
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("The scores of a ranking must be finite; leave out items without a score.")
    return first, second


def _check_p(p: float) -> None:
    if not 0.0 < p < 1.0:
        raise InputError(f"p of RBO lies strictly between 0 and 1, got {p}.")


# Rankings of runs, with intervals over queries


@dataclass(frozen=True)
class Estimate:
    """A figure with its bootstrap interval over queries."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class RankAgreement:
    """How two judges' rankings of the same runs agree; `drop` is the largest drop of a run, in places."""

    tau: Estimate
    tau_ap: Estimate
    rbo: Estimate
    drop: Estimate
    dropped: int
    bias: Estimate


def rank_agreement(
    a: npt.ArrayLike, b: npt.ArrayLike, p: float = RBO_P, draws: int = 1000, seed: int = 0, less_is_better: bool = False
) -> RankAgreement:
    """Agreement of two rankings of runs, each from a matrix runs x queries, with intervals over queries.

    `a` is the reference of tau_AP, of the drops and of the bias (mean of b - mean of a). Runs are ranked by means,
    highest or lowest first. The queries are resampled with replacement, the same ones for both judges and all runs.
    Resampling adds noise, which lowers the agreement of rankings; so the percentiles of the resamples are
    shifted until their median is the estimate. `dropped` is the number of the run with the largest drop.
    """
    first, second = _score_matrices(a, b)
    counts = resample_counts(first.shape[1], draws, seed)
    means_a, means_b = resampled_means(first, counts), resampled_means(second, counts)
    ranked = (-means_a, -means_b) if less_is_better else (means_a, means_b)
    fallen = drops(*ranked)
    return RankAgreement(
        tau=estimate(kendall_tau(*ranked), (-1.0, 1.0)),
        tau_ap=estimate(tau_ap(*ranked), (-1.0, 1.0)),
        rbo=estimate(rbo(*ranked, p), (0.0, 1.0)),
        drop=estimate(fallen.max(axis=1), (0.0, math.inf)),
        dropped=int(fallen[0].argmax()),
        bias=estimate((means_b - means_a).mean(axis=1)),
    )


def resample_counts(queries: int, draws: int, seed: int | tuple[int, ...]) -> Array:
    """How often each query is in each resample (resamples x queries); the first row is the sample itself."""
    if draws < 1:
        raise InputError(f"The number of draws must be at least 1, got {draws}.")
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(queries, np.full(queries, 1.0 / queries), size=draws)
    return np.vstack([np.ones((1, queries)), drawn])


def _score_matrices(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Array, Array]:
    first, second = _rankings(a, b)
    if first.shape[0] < 2 or first.shape[1] < 1:
        raise InputError(f"Expected at least two runs and one query, got a matrix {first.shape}.")
    return first, second


def resampled_means(scores: Array, counts: Array) -> Array:
    """The means of runs (runs x queries) in each resample (resamples x queries), resamples x runs."""
    return np.asarray(np.round(counts @ scores.T / counts.sum(axis=1, keepdims=True), DIGITS))


def estimate(drawn: Array, bounds: tuple[float, float] = (-math.inf, math.inf), level: float = 0.95) -> Estimate:
    """The first value, and the percentiles of the others shifted to it; NaN is left out."""
    value, kept = float(drawn[0]), drawn[1:][~np.isnan(drawn[1:])]
    if not len(kept) or math.isnan(value):
        return Estimate(value, math.nan, math.nan)
    low, middle, high = np.quantile(kept, [(1.0 - level) / 2.0, 0.5, (1.0 + level) / 2.0])
    low, high = np.clip([low + value - middle, high + value - middle], *bounds)
    return Estimate(value, float(low), float(high))


@dataclass(frozen=True)
class SignificantPairs:
    """Pairs of runs with a significant difference by judge a, by judge b, by both; and both, but reversed."""

    pairs: int
    a: int
    b: int
    both: int
    reversed: int


def significant_pairs(a: npt.ArrayLike, b: npt.ArrayLike, alpha: float = 0.05) -> SignificantPairs:
    """Counts of the pairs of runs whose difference is significant (paired t test over queries, p < alpha).

    No correction for the number of pairs: every pair as if it were the only one. `both` counts pairs that are
    significant by both judges; `reversed` those of them where the judges prefer different runs.
    """
    first, second = _score_matrices(a, b)
    return sign_agreement(significant_signs(first, alpha), significant_signs(second, alpha))


def sign_agreement(one: Array, other: Array) -> SignificantPairs:
    """Counts of the pairs of runs from their `significant_signs` by both judges."""
    return SignificantPairs(
        pairs=len(one),
        a=int(np.count_nonzero(one)),
        b=int(np.count_nonzero(other)),
        both=int(np.count_nonzero(one * other)),
        reversed=int(np.count_nonzero(one * other < 0)),
    )


def significant_signs(scores: Array, alpha: float = 0.05) -> Array:
    """For every pair of rows i < j: the sign of the mean of row i - row j where it is significant, otherwise 0.

    alpha=inf: the sign of every mean difference, significant or not.
    """
    tested = (t_tests(row - scores[i + 1 :]) for i, row in enumerate(scores[:-1]))
    return np.concatenate([np.where(p < alpha, np.sign(snapped(means)), 0.0) for means, p in tested])


# Rankings of runs by two sets of queries. Two samples of real queries do not rank runs alike either: the tau of a set
# with the reference is compared with the tau that as many queries of the reference reach with the rest of it.


@dataclass(frozen=True, eq=False)
class QuerySetAgreement:
    """How a set of queries ranks runs, compared with the reference.

    bias: mean score with the set minus that with the reference.
    splits: tau of `split_queries` queries of the reference with its other queries, one value per random split.
    tested: pairs of runs with significant differences; opposite: those significant with the reference where the set's
    means, significant or not, prefer the other run.
    """

    tau: Estimate
    bias: Estimate
    split_queries: int
    splits: Array
    tested: SignificantPairs
    opposite: int

    @property
    def split(self) -> Estimate:
        """The mean of the splits' tau, and the range of the middle 95% of them."""
        kept = self.splits[~np.isnan(self.splits)]
        if not len(kept):
            return Estimate(float("nan"), float("nan"), float("nan"))
        low, high = np.quantile(kept, [0.025, 0.975])
        return Estimate(float(kept.mean()), float(low), float(high))


def query_set_agreement(
    reference: npt.ArrayLike, other: npt.ArrayLike, draws: int = 1000, splits: int = SPLITS, seed: int = 0
) -> QuerySetAgreement:
    """Agreement of two matrices runs x queries, the same runs over different queries.

    The intervals resample queries within the reference and within the other set. They are shifted until the median of
    the resamples is the estimate, as in `rank_agreement`.
    """
    a, b = (np.asarray(scores, dtype=np.float64) for scores in (reference, other))
    if a.ndim != 2 or b.ndim != 2 or len(a) != len(b) or len(a) < 2 or not a.shape[1] or not b.shape[1]:
        raise InputError(
            f"Expected two matrices runs x queries of the same runs, at least two, got {a.shape}, {b.shape}."
        )
    means_a = resampled_means(a, resample_counts(a.shape[1], draws, seed))
    means_b = resampled_means(b, resample_counts(b.shape[1], draws, (seed, 1)))
    signs_a, signs_b = significant_signs(a), significant_signs(b)
    # As many as the other set has; half of the reference if that has no more.
    size = b.shape[1] if b.shape[1] < a.shape[1] else a.shape[1] // 2
    return QuerySetAgreement(
        tau=estimate(kendall_tau(means_a, means_b), (-1.0, 1.0)),
        bias=estimate(means_b.mean(axis=1) - means_a.mean(axis=1)),
        split_queries=size,
        splits=split_taus(a, size, splits, seed),
        tested=sign_agreement(signs_a, signs_b),
        opposite=int(np.count_nonzero(signs_a * significant_signs(b, np.inf) < 0)),
    )


def split_taus(scores: Array, size: int, splits: int = SPLITS, seed: int = 0) -> Array:
    """tau-b between the means of `size` random queries and of all others, one value per split; none without queries."""
    queries = scores.shape[1]
    if not 0 < size < queries:
        return np.empty(0)
    generator = np.random.default_rng((seed, 2))
    order = generator.permuted(np.tile(np.arange(queries), (splits, 1)), axis=1)
    chosen = np.zeros((splits, queries))
    np.put_along_axis(chosen, order[:, :size], 1.0, axis=1)
    return kendall_tau(resampled_means(scores, chosen), resampled_means(scores, 1.0 - chosen))
