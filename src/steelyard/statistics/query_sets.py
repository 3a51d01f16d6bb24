"""Agreement of two sets of queries on the ranking of the same runs, and what chance alone allows.

Two samples of real queries do not rank runs alike either. So the tau of a set with the reference is compared with the
tau that as many queries of the reference reach with the rest of the reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.errors import InputError
from steelyard.statistics import agreement

SPLITS = 2000  # Random splits of the reference.


@dataclass(frozen=True, eq=False)
class QuerySetAgreement:
    """How a set of queries ranks runs, compared with the reference.

    bias: mean score with the set minus that with the reference.
    splits: tau of `split_queries` queries of the reference with its other queries, one value per random split.
    tested: pairs of runs with significant differences; opposite: those significant with the reference where the set's
    means, significant or not, prefer the other run.
    """

    tau: agreement.Estimate
    bias: agreement.Estimate
    split_queries: int
    splits: agreement.Array
    tested: agreement.SignificantPairs
    opposite: int

    @property
    def split(self) -> agreement.Estimate:
        """The mean of the splits' tau, and the range of the middle 95% of them."""
        kept = self.splits[~np.isnan(self.splits)]
        if not len(kept):
            return agreement.Estimate(float("nan"), float("nan"), float("nan"))
        low, high = np.quantile(kept, [0.025, 0.975])
        return agreement.Estimate(float(kept.mean()), float(low), float(high))


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
    means_a = agreement.resampled_means(a, agreement.resample_counts(a.shape[1], draws, seed))
    means_b = agreement.resampled_means(b, agreement.resample_counts(b.shape[1], draws, (seed, 1)))
    signs_a, signs_b = agreement.significant_signs(a), agreement.significant_signs(b)
    opposite = signs_a * agreement.significant_signs(b, np.inf) < 0
    size = split_size(a.shape[1], b.shape[1])
    return QuerySetAgreement(
        tau=agreement.estimate(agreement.kendall_tau(means_a, means_b), 0.95, (-1.0, 1.0)),
        bias=agreement.estimate(means_b.mean(axis=1) - means_a.mean(axis=1), 0.95),
        split_queries=size,
        splits=split_taus(a, size, splits, seed),
        tested=agreement.sign_agreement(signs_a, signs_b),
        opposite=int(np.count_nonzero(opposite)),
    )


def split_size(reference: int, other: int) -> int:
    """Queries of the reference that a split takes: as many as the other set has, or half if it has as many or more.

    >>> split_size(51, 13), split_size(51, 80)
    (13, 25)
    """
    return other if other < reference else reference // 2


def split_taus(scores: agreement.Array, size: int, splits: int = SPLITS, seed: int = 0) -> agreement.Array:
    """tau-b between the means of `size` random queries and of all others, one value per split; none without queries."""
    queries = scores.shape[1]
    if not 0 < size < queries:
        return np.empty(0)
    generator = np.random.default_rng((seed, 2))
    order = generator.permuted(np.tile(np.arange(queries), (splits, 1)), axis=1)
    chosen = np.zeros((splits, queries))
    np.put_along_axis(chosen, order[:, :size], 1.0, axis=1)
    return agreement.kendall_tau(
        agreement.resampled_means(scores, chosen), agreement.resampled_means(scores, 1.0 - chosen)
    )
