"""Estimates from judgments of a stratified random sample of a pool.

The pool of a query is divided into strata. In stratum h, n_h of N_h documents were drawn at random
without replacement and judged, so every document of it was drawn with probability n_h / N_h. Documents
outside the pool count as not relevant. A query is three arrays with one entry per document of the pool:
its rank in the list (0: not in the list), its stratum and its grade (NaN: not drawn).

Every estimator takes grades of shape (..., documents); further axes hold other draws of the pool, as the jackknife has.

AP and nDCG divide by an estimated number of relevant documents, so their estimates are biased upwards: on a sample of
half the pool by about 2%. The stratified delete-one jackknife with finite population correction (Shao and Tu, The
Jackknife and Bootstrap, 1995, chapter 6) estimates that bias and the variance. The variance is what the draw of
documents contributes, not the choice of queries. For `precision` and `discounted_gain` it equals the textbook variance
of a stratified total. With few documents the correction adds variance of its own: `bias_corrected` includes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from steelyard.errors import InputError
from steelyard.statistics.arrays import Array, normal_quantile

Ints = npt.NDArray[np.int64]
Estimator = Callable[["SampledPool"], Array]

EPSILON = 1e-5  # Smoothing of xinfAP's precision above a document, as in trec_eval's infAP.

MOST_TWICE = 40
"""Documents drawn for a query up to which the variance of the corrected estimate is computed: a second, at most."""


@dataclass(frozen=True, eq=False)
class SampledPool:
    """The pool of one query, in the order of the list; documents that the list lacks come last.

    rank: rank in the list, from 1; 0 for a pooled document that is not in the list.
    stratum: number of the document's stratum, from 0.
    grade: its grade, NaN where it was not drawn; shape (..., documents).
    """

    rank: Ints
    stratum: Ints
    grade: Array

    @classmethod
    def of(cls, rank: npt.ArrayLike, stratum: npt.ArrayLike, grade: npt.ArrayLike) -> SampledPool:
        """Check the arrays and sort them by rank.

        >>> SampledPool.of([2, 0, 1], [0, 1, 0], [1.0, float("nan"), 0.0]).rank.tolist()
        [1, 2, 0]
        """
        ranks, strata = np.asarray(rank, dtype=np.int64), np.asarray(stratum, dtype=np.int64)
        grades = np.asarray(grade, dtype=np.float64)
        if ranks.ndim != 1 or ranks.shape != strata.shape or grades.shape[-1:] != ranks.shape:
            problem = "rank, stratum and grade must have one entry per document of the pool;"
            raise InputError(f"{problem} got the shapes {ranks.shape}, {strata.shape} and {grades.shape}.")
        if len(ranks) and (ranks.min() < 0 or strata.min() < 0):
            raise InputError("Ranks start at 1 (0: not in the list) and strata at 0; got a negative number.")
        listed = ranks[ranks > 0]
        if len(np.unique(listed)) < len(listed):
            raise InputError("Two documents of the pool have the same rank; every rank holds one document.")
        order = np.argsort(np.where(ranks == 0, np.iinfo(np.int64).max, ranks), kind="stable")
        return cls(ranks[order], strata[order], grades[..., order])

    @property
    def members(self) -> npt.NDArray[np.bool_]:
        """Which documents are in which stratum; shape (strata, documents)."""
        count = int(self.stratum.max()) + 1 if len(self.stratum) else 0
        return np.asarray(self.stratum == np.arange(count)[:, None])

    @property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """Which documents were drawn and judged."""
        return ~np.isnan(self.grade)

    def sizes(self) -> tuple[Array, Array]:
        """Documents and drawn documents of every stratum; shapes (strata,) and (..., strata)."""
        members = self.members.astype(np.float64)
        return members.sum(axis=1), self.drawn @ members.T

    def weight(self) -> Array:
        """1 / probability of every drawn document, 0 for the others; shape of the grades."""
        size, drawn = self.sizes()
        factor = np.divide(size, drawn, out=np.zeros_like(drawn), where=drawn > 0)
        return np.where(self.drawn, factor[..., self.stratum], 0.0)

    def gain(self, rel: float = 1) -> Array:
        """1 for a drawn relevant document, 0 otherwise."""
        return np.where(self.grade >= rel, 1.0, 0.0)


def precision(pool: SampledPool, k: int, rel: float = 1, hajek: bool = False) -> Array:
    """P@k: Horvitz-Thompson estimate of the relevant documents in the first k, over k.

    P@k = sum over the drawn relevant documents in the first k of 1/probability, over k. Unbiased.
    hajek: scale every stratum by the drawn documents in the first k instead of those of the whole
    stratum. Less variable and never above 1, but biased where few documents are drawn.

    >>> float(precision(SampledPool.of([1, 2, 3, 4], [0, 0, 0, 0], [1, 0, np.nan, np.nan]), k=4))
    0.5
    """
    return _total(pool, np.where(pool.rank <= k, pool.gain(rel), 0.0), k, hajek) / k


def discounted_gain(pool: SampledPool, k: int | None = None, hajek: bool = False) -> Array:
    """DCG@k: Horvitz-Thompson estimate of the sum of grade / log2(rank + 1) over the first k.

    Grades below 0 count as 0. hajek: as for `precision`.
    """
    return _total(pool, np.nan_to_num(np.maximum(pool.grade, 0.0)) * _discounts(pool.rank), k, hajek)


def stat_ap(pool: SampledPool, rel: float = 1) -> Array:
    """statAP (Aslam and Pavlu 2007): average precision by inverse probabilities.

    statAP = S / R; S is the sum over the drawn relevant documents i of (1/p_i + sum over the drawn relevant documents j
    above i of 1/p_ij) / rank_i; R is the sum of 1/p_i over the drawn relevant documents. p_i and p_ij are the
    probabilities that i, and i and j together, are drawn: S and R are unbiased. 0 where no drawn document is relevant.
    """
    relevant, weight = pool.gain(rel) * (pool.rank > 0), pool.weight()
    size, drawn = pool.sizes()
    above = np.zeros_like(relevant)
    for h, inside in enumerate(pool.members):
        gain = np.where(inside, relevant, 0.0)
        seen = np.cumsum(gain, axis=-1) - gain
        # Given that i is drawn, j is drawn with n/N from another stratum and (n - 1)/(N - 1) from the same.
        other = _ratio(size[h], drawn[..., h])[..., None]
        same = _ratio(size[h] - 1.0, drawn[..., h] - 1.0)[..., None]
        above += seen * np.where(inside, same, other)
    terms = relevant * weight * (1.0 + above) * _inverse(pool.rank)
    return _ratio(terms.sum(axis=-1), (pool.gain(rel) * weight).sum(axis=-1))


def xinf_ap(pool: SampledPool, rel: float = 1, unseen: float = 0.5) -> Array:
    """xinfAP (Yilmaz, Kanoulas and Aslam 2008): inferred average precision with strata.

    The precision at a drawn relevant document of rank k is 1/k + sum over strata of (c/k) (r + e)/(d + e/unseen):
    c, d and r count the pooled, the drawn and the drawn relevant documents of the stratum above rank k;
    e = 0.00001. Its mean in each stratum is weighted with the stratum's estimated number of relevant documents.

    unseen: relevant share assumed where nothing above was drawn. 1/2 is trec_eval's infAP, which this equals with
    one stratum; 1/3 is NIST's sample_eval.pl.
    """
    relevant, weight, listed = pool.gain(rel), pool.weight(), (pool.rank > 0).astype(np.float64)
    above = np.zeros_like(relevant)
    for inside in pool.members:
        pooled, seen, hits = (
            np.cumsum(indicator, axis=-1) - indicator
            for indicator in (inside * listed, inside * listed * pool.drawn, inside * listed * relevant)
        )
        above += pooled * (hits + EPSILON) / (seen + EPSILON / unseen)
    terms = relevant * weight * (1.0 + above) * _inverse(pool.rank)
    return _ratio(terms.sum(axis=-1), (relevant * weight).sum(axis=-1))


def inf_ndcg(pool: SampledPool, k: int | None = None, published: bool = False) -> Array:
    """infNDCG (Yilmaz, Kanoulas and Aslam 2008): estimated DCG over the DCG of the estimated ideal list.

    DCG is the Horvitz-Thompson estimate of `discounted_gain`. The ideal list has, from the highest grade down, the
    estimated number of documents of each grade, cut at k; a fraction of a document counts as that fraction of the
    gain at its rank.

    published: as NIST's sample_eval.pl, with the Hajek estimate of DCG and the estimated numbers rounded to
    whole documents. Less variable, but its bias cannot be corrected by the jackknife.
    """
    return _ratio(discounted_gain(pool, k, hajek=published), _ideal(pool, k, published))


def _ideal(pool: SampledPool, k: int | None, rounded: bool) -> Array:
    """DCG of the ideal list with the estimated number of documents of each grade."""
    size, _ = pool.sizes()
    length = max(int(size.sum()) + len(size), 1) if k is None else k
    reached = np.concatenate([[0.0], np.cumsum(_discounts(np.arange(1, length + 1)))])
    depth, weight = np.arange(length + 1), pool.weight()
    position = np.zeros(pool.grade.shape[:-1])
    ideal = np.zeros_like(position)
    for grade in np.unique(pool.grade[pool.grade > 0])[::-1]:
        count = np.where(pool.grade == grade, weight, 0.0).sum(axis=-1)
        following = position + (np.floor(count + 0.5) if rounded else count)
        ideal += grade * (np.interp(following, depth, reached) - np.interp(position, depth, reached))
        position = following
    return ideal


def _total(pool: SampledPool, values: Array, k: int | None, hajek: bool) -> Array:
    """Estimated sum of the values over the pooled documents in the first k of the list."""
    inside = (pool.rank > 0) & (pool.rank <= (k if k is not None else np.iinfo(np.int64).max))
    kept = np.where(inside, values, 0.0)
    if not hajek:
        return np.asarray((kept * pool.weight()).sum(axis=-1))
    members = (pool.members & inside).astype(np.float64)
    drawn = pool.drawn @ members.T
    return np.asarray((_ratio(members.sum(axis=1), drawn) * (kept @ members.T)).sum(axis=-1))


def _discounts(rank: Ints) -> Array:
    return np.where(rank > 0, 1.0 / np.log2(np.maximum(rank, 1) + 1.0), 0.0)


def _inverse(rank: Ints) -> Array:
    return np.where(rank > 0, 1.0 / np.maximum(rank, 1), 0.0)


def _ratio(top: npt.ArrayLike, bottom: npt.ArrayLike) -> Array:
    """top / bottom, 0 where bottom is not positive."""
    above, below = np.broadcast_arrays(np.asarray(top, np.float64), np.asarray(bottom, np.float64))
    return np.asarray(np.divide(above, below, out=np.zeros(above.shape), where=below > 0))


@dataclass(frozen=True, eq=False)
class Jackknifed:
    """An estimate, the same with its bias corrected, and its variance; one entry per draw."""

    estimate: Array
    corrected: Array
    variance: Array


def jackknife(pool: SampledPool, estimator: Estimator) -> Jackknifed:
    """Bias and variance of an estimate that are due to which documents were drawn.

    With t the estimate, t_i the estimate without the drawn document i, and m the mean of t_i in a stratum:
    corrected = t - sum over strata of (1 - n/N) (n - 1) (m - t);
    variance = sum over strata of (1 - n/N) (n - 1)/n sum over its drawn documents of (t_i - m)^2.
    Both are NaN where one document was drawn from a stratum of several: its variance is unknown.
    """
    estimate = estimator(pool)
    size, drawn = pool.sizes()
    bias, variance = np.zeros_like(estimate), np.zeros_like(estimate)
    for h, inside in enumerate(pool.members):
        count = drawn[..., h]
        open_ = (count > 0) & (count < size[h])
        if not open_.any():
            continue
        most = int(count.max())
        places = np.argsort(~(pool.drawn & inside), axis=-1, kind="stable")[..., :most]
        # One copy of the grades per place of each draw, with that document not drawn: (places, ..., documents).
        grades = np.repeat(pool.grade[None], most, axis=0)
        np.put_along_axis(grades, np.moveaxis(places, -1, 0)[..., None], np.nan, axis=-1)
        without = estimator(SampledPool(pool.rank, pool.stratum, grades))
        kept = np.moveaxis(np.arange(most) < count[..., None], -1, 0)
        mean = _ratio(np.where(kept, without, 0.0).sum(axis=0), count)
        spread = np.where(kept, (without - mean) ** 2, 0.0).sum(axis=0)
        share = np.where(count == 1, np.nan, 1.0 - count / size[h])
        bias += np.where(open_, share * (count - 1.0) * (mean - estimate), 0.0)
        variance += np.where(open_, share * (count - 1.0) * _ratio(spread, count), 0.0)
    return Jackknifed(estimate, estimate - bias, variance)


def bias_corrected(pool: SampledPool, estimator: Estimator) -> Jackknifed:
    """`jackknife` with the variance of the corrected estimate instead of that of the plain one.

    The correction varies too: with few documents, the jackknife variance of the plain estimate is too small, by a
    third for xinfAP. That of the corrected estimate itself (from the estimates without two documents) is too large,
    since a jackknife counts the quadratic part of an estimate twice (Efron and Stein 1981). Both have about the same
    linear part, so that their mean contains the quadratic part of the corrected estimate once: it is the variance here.

    It is that of the plain estimate if more than `MOST_TWICE` documents were drawn, where the two are nearly equal,
    and if two were drawn from a stratum.
    """
    once = jackknife(pool, estimator)
    size, drawn = pool.sizes()
    unbiased = np.all(np.isnan(once.corrected) | (np.abs(once.corrected - once.estimate) < 1e-12))
    if unbiased or np.where(drawn < size, drawn, 0.0).sum(axis=-1).max() > MOST_TWICE:
        return once
    twice = jackknife(pool, lambda fewer: jackknife(fewer, estimator).corrected).variance
    return replace(once, variance=np.where(np.isnan(twice), once.variance, (once.variance + twice) / 2.0))


def sampled_interval(
    values: npt.ArrayLike, variances: npt.ArrayLike, level: float = 0.95, queries: int | None = None
) -> tuple[float, float]:
    """Normal interval (low, high) of a mean over queries, each estimated from a sample of its pool.

    queries: how many queries the measured ones were drawn from at random; None where all were measured. Then the choice
    of queries contributes too (two-stage sampling: Cochran, Sampling Techniques, 1977, chapter 11).

    >>> low, high = sampled_interval([0.4, 0.6, 0.5], [0.01, 0.02, 0.01])
    >>> round(low, 3), round(high, 3)
    (0.369, 0.631)
    """
    if not 0.0 < level < 1.0:
        raise InputError(f"The level must be between 0 and 1, got {level}. Write 0.95 for 95%.")
    estimates, noise = np.asarray(values, np.float64), np.asarray(variances, np.float64)
    if not len(estimates):
        return math.nan, math.nan
    error = math.sqrt(two_stage_variance(estimates, noise, queries))
    reach = normal_quantile(0.5 + level / 2.0) * error
    mean = float(estimates.mean())
    return mean - reach, mean + reach


def two_stage_variance(estimates: Array, noise: Array, queries: int | None) -> float:
    """Variance of the mean of the estimates, with the choice of queries where they were drawn from more."""
    count = len(estimates)
    if queries is None or queries <= count:
        return float(noise.sum()) / count**2
    if count < 2:
        return math.nan
    share = count / queries
    return (1.0 - share) * float(estimates.var(ddof=1)) / count + share * float(noise.sum()) / count**2


ESTIMATORS: dict[str, Callable[..., Array]] = {
    "P": precision,
    "DCG": discounted_gain,
    "statAP": stat_ap,
    "xinfAP": xinf_ap,
    "infNDCG": inf_ndcg,
}
"""Estimators by the name of their measure."""
