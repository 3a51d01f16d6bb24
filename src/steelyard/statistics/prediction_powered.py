"""Prediction-powered estimates: a few human values and many predicted ones, with valid intervals.

Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023), with the tuning of PPI++ (Angelopoulos, Duchi and Zrnic
2023). y is known for n queries drawn at random, the prediction f for these and for N others. The estimate of
the mean of y is lambda mean_N(f) + mean_n(y - lambda f). It is unbiased whatever the predictions are worth; the
better they follow y, the narrower its interval. lambda = 0 is the mean of the human values alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.errors import InputError
from steelyard.lazy import special
from steelyard.statistics.arrays import ROUNDING, Array, checked_level, rounding, row_differences, same_sign_p
from steelyard.wording import counted

Bools = npt.NDArray[np.bool_]

FEWEST = 5  # With fewer human values lambda is 0: there is too little to estimate it from.

BOUND_WEIGHT = 0.15
SKEW_WEIGHT = 0.1
SKEW_LIMIT = 0.5
"""Constants of the correction for bounded values (see `bounded_interval`), found by simulation at n = 10."""

VALUES_PER_BLOCK = 2**20


@dataclass(frozen=True)
class PredictionPowered:
    """One estimate with its interval, and the one from the human values alone.

    `lambda_` is the weight of the predictions (the mean over the cross-fitting folds), `n` the number of
    queries with a human value, `N` the number with a predicted value only. `effective_n` is the number of human
    values that would give the same variance without predictions. `p` is the two-sided p of the mean being 0;
    NaN for values with bounds. `left_out` counts queries without a predicted value.
    """

    estimate: float
    low: float
    high: float
    p: float
    lambda_: float
    n: int
    N: int
    effective_n: float
    human_estimate: float
    human_low: float
    human_high: float
    left_out: int = 0

    @property
    def helped(self) -> bool:
        """Whether the predictions have any weight."""
        return self.lambda_ > 0.0

    def summary(self) -> str:
        """One sentence on what the predictions add.

        >>> prediction_powered([[0.1, 0.9, 0.4, 0.6, 0.5]], [[0.2, 0.8, 0.4, 0.7, 0.5]])[0].summary()
        'No query has a predicted value only: this is the estimate from 5 human-judged queries.'
        """
        human = counted(self.n, "human-judged query", "human-judged queries")
        if self.N == 0:
            return f"No query has a predicted value only: this is the estimate from {human}."
        if not self.helped:
            return f"The predictions do not help: this is the estimate from {human}."
        return f"{human} with predictions count like {self.effective_n:.0f} without."


def prediction_powered(
    human: npt.ArrayLike,
    predicted: npt.ArrayLike,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    weight: npt.ArrayLike | None = None,
    *,
    finite: bool = False,
) -> list[PredictionPowered]:
    """Prediction-powered estimates of the mean of every row of a matrix series x queries.

    `human` has NaN where a query has no human value; `predicted` has a value for these queries and for the
    others. A query without a predicted value is left out. The queries with a human value must be a random
    sample of all queries: otherwise the interval is not valid.

    lambda minimises the variance lambda^2 var(f) / N + var_n(y - lambda f) / n. It is estimated by
    cross-fitting, the weight for each query from all others, so that the estimate is unbiased. It is shrunk
    by the factor 1 - 1 / t^2, t the t statistic of the correlation of y and f, and is 0 where the
    predictions do not help: fewer than 5 human values, a correlation of 0 or below, or no smaller variance.

    The interval uses Student's t, with the degrees of freedom of Welch and Satterthwaite for the two variances. For the
    mean of a measure, give the `bounds` of its values, (0, 1) for nDCG: the interval is then corrected for skewness and
    never leaves the bounds. For differences leave `bounds` out; `p` is the p-value of the mean difference being 0.

    `weight` is the lambda of every query, as `shared_weight` gives it; by default each row has its own.

    finite: the interval is of the mean over exactly these n + N queries, not over all queries like them. The estimate
    is the same; its variance is (1 - n / (n + N)) var_n(y - lambda f (n + N) / N) / n, as f is known for them.

    >>> nan = float("nan")
    >>> human = [0.31, 0.52, 0.88, 0.64, 0.12, 0.47, nan, nan, nan, nan, nan, nan]
    >>> predicted = [0.35, 0.60, 0.95, 0.69, 0.20, 0.50, 0.45, 0.70, 0.30, 0.55, 0.80, 0.62]
    >>> (found,) = prediction_powered([human], [predicted], bounds=(0, 1))
    >>> round(found.estimate, 3), round(found.human_estimate, 3), found.n, found.N
    (0.513, 0.49, 6, 6)
    """
    y, f = _matrices(human, predicted)
    checked_level(level)
    if bounds is not None and not bounds[0] < bounds[1]:
        raise InputError(f"The bounds must be a lower and a higher value, got {bounds}.")
    size = max(1, VALUES_PER_BLOCK // max(1, y.shape[1]))
    shared = None if weight is None else np.asarray(weight, dtype=np.float64)
    estimates: list[PredictionPowered] = []
    for start in range(0, len(y), size):
        estimates += _block(y[start : start + size], f[start : start + size], bounds, level, shared, finite)
    return estimates


def prediction_powered_differences(
    human: npt.ArrayLike,
    predicted: npt.ArrayLike,
    pairs: Sequence[tuple[int, int]],
    level: float = 0.95,
    weight: npt.ArrayLike | None = None,
    *,
    finite: bool = False,
) -> list[PredictionPowered]:
    """`prediction_powered` of row i minus row j for every pair (i, j); matrices are runs x queries."""
    y, f = _matrices(human, predicted)
    return prediction_powered(row_differences(y, pairs), row_differences(f, pairs), None, level, weight, finite=finite)


def shared_weight(human: npt.ArrayLike, predicted: npt.ArrayLike) -> Array:
    """One lambda per query for all rows, so that the estimate of a difference is the difference of the estimates.

    It minimises the sum of the variances of the rows' differences from their mean, and so the sum over all pairs of
    rows; that of the mean for a single row. Each query's weight is from all other queries, shrunk as for one row; 0 for
    all where that sum is not smaller. A query counts if every row has its human and its predicted value.
    """
    y, f = _matrices(human, predicted)
    has_f = np.logical_not(np.isnan(f).any(axis=0))[None]
    asked = np.logical_not(np.isnan(y).any(axis=0))[None]
    sample, others = asked & has_f, ~asked & has_f
    y0, f0 = np.where(sample, y, 0.0), np.where(has_f, f, 0.0)
    if len(y) > 1:
        y0, f0 = y0 - y0.mean(axis=0), f0 - f0.mean(axis=0)
    inside = np.where(sample, f0, 0.0)
    weight = _cross_fitted(y0, inside, np.where(others, f0, 0.0), sample, others, shared=True)
    human_only, powered = (_parts(y0, inside, f0, sample, others, lam).variance.sum() for lam in (0 * weight, weight))
    return weight[0] if powered < human_only else np.zeros(y.shape[1])


def _matrices(human: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[Array, Array]:
    y, f = (np.asarray(values, dtype=np.float64) for values in (human, predicted))
    if y.ndim != 2 or y.shape != f.shape:
        problem = "Expected human and predicted values as two matrices series x queries of the same shape,"
        raise InputError(f"{problem} got {y.shape} and {f.shape}. Use NaN where a query has no human value.")
    if np.isinf(y).any() or np.isinf(f).any():
        raise InputError("Values must be finite; use NaN where a query has no value.")
    return y, f


@dataclass(frozen=True, eq=False)
class Parts:
    """An estimate for every row, with the two parts of its variance and what the interval needs.

    `residual` is y - lambda f, centred (0 where there is no human value). `weighted`: lambda was estimated. `left` is
    the share of the queries without a human value if the mean of exactly these queries is meant, otherwise 1.
    """

    estimate: Array
    residual: Array
    sample: Bools
    n: Array
    others: Array
    of_mean: Array
    of_predictions: Array
    weighted: Bools
    left: Array

    @property
    def variance(self) -> Array:
        """The variance of the estimate."""
        return self.of_mean + self.of_predictions


def _block(
    y: Array, f: Array, bounds: tuple[float, float] | None, level: float, shared: Array | None, finite: bool
) -> list[PredictionPowered]:
    has_f, asked = ~np.isnan(f), ~np.isnan(y)
    # Where no human-judged query has a prediction, the human values alone are used.
    useless = ~(has_f & asked).any(axis=1, keepdims=True)
    sample = asked & (has_f | useless)
    others = ~asked & has_f & ~useless
    y0, f0 = np.where(sample, y, 0.0), np.where(sample & has_f, f, 0.0)
    nothing = np.zeros_like(y0)
    human = _parts(y0, f0, f, sample, others, nothing, finite)
    if shared is None:
        weight = _cross_fitted(y0, f0, np.where(others, f, 0.0), sample, others)
        with_f, without = (_parts(y0, f0, f, sample, others, lam).variance for lam in (weight, nothing))
        worse = ~(with_f < without)
        weight = np.where(worse[:, None], 0.0, weight)
    else:
        weight = np.where(sample, shared, 0.0)
    powered = _parts(y0, f0, f, sample, others, weight, finite)
    low, high, p = _intervals(powered, y0, bounds, level)
    human_low, human_high, _ = _intervals(human, y0, bounds, level)
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = np.where(powered.variance > 0.0, human.variance / powered.variance, 1.0)
        weights = weight.sum(axis=1) / human.n
    columns = (
        *(powered.estimate, low, high, p, np.where(human.n > 0, weights, 0.0)),
        *(human.n.astype(np.int64), human.others.astype(np.int64), human.n * gained),
        *(human.estimate, human_low, human_high, (~sample & ~others).sum(axis=1)),
    )
    return [PredictionPowered(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _cross_fitted(y: Array, f: Array, other_f: Array, sample: Bools, others: Bools, shared: bool = False) -> Array:
    """lambda for every query with a human value, from all other queries; 0 elsewhere.

    Without query i: cov(y, f) / (var(f) (1 + n / N)), shrunk by 1 - 1 / t^2; `shared`: of the sums over all rows.
    """
    n, more = sample.sum(axis=1, keepdims=True), others.sum(axis=1, keepdims=True)
    usable = sample & (n >= FEWEST) & (more >= 2)
    m = np.maximum(n - 1.0, 2.0)
    centre = f.sum(axis=1, keepdims=True) / np.maximum(n, 1)
    yc = np.where(sample, y - y.sum(axis=1, keepdims=True) / np.maximum(n, 1), 0.0)
    fc, gc = np.where(sample, f - centre, 0.0), np.where(others, other_f - centre, 0.0)

    def without(values: Array, more: float | Array = 0.0) -> Array:
        return np.asarray(values.sum(axis=1, keepdims=True) + more - values)

    covariance = (without(yc * fc) - without(yc) * without(fc) / m) / (m - 1.0)
    of_y = (without(yc**2) - without(yc) ** 2 / m) / (m - 1.0)
    of_f = (without(fc**2) - without(fc) ** 2 / m) / (m - 1.0)
    together = m + more
    total = without(fc, gc.sum(axis=1, keepdims=True))
    squares = without(fc**2, (gc**2).sum(axis=1, keepdims=True))
    pooled = (squares - total**2 / together) / (together - 1.0)
    if shared:
        covariance, of_y, of_f, pooled = (
            np.broadcast_to(moment.sum(axis=0, keepdims=True), y.shape) for moment in (covariance, of_y, of_f, pooled)
        )
    usable = usable & (pooled > 0.0) & (of_f > 0.0) & (of_y > 0.0) & (covariance > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = covariance / (pooled * (1.0 + n / more))
        r2 = np.minimum(covariance**2 / (of_f * of_y), 1.0)
        shrunk = best * np.maximum(1.0 - (1.0 - r2) / (r2 * (m - 2.0)), 0.0)
    return np.where(usable, shrunk, 0.0)


def _parts(
    y: Array, f: Array, every_f: Array, sample: Bools, others: Bools, weight: Array, finite: bool = False
) -> Parts:
    """The estimate with these weights, one per query with a human value, and its variance."""
    n, more = sample.sum(axis=1).astype(np.float64), others.sum(axis=1).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_f = np.where(more > 0, np.where(others, every_f, 0.0).sum(axis=1) / more, 0.0)
        inside = np.where(sample, f, 0.0).sum(axis=1) / n
        values = np.where(sample, y - weight * (f - mean_f[:, None]), 0.0)
        estimate = values.sum(axis=1) / n
        # Centred at the sample's own mean of f, so that the offset of the two means adds no variance.
        left = more / (n + more) if finite else np.ones_like(n)
        full = np.where(sample & (weight > 0.0), weight / left[:, None], 0.0)
        residual = np.where(sample, y - full * (f - inside[:, None]), 0.0)
        residual = np.where(sample, residual - (residual.sum(axis=1) / n)[:, None], 0.0)
        of_mean = left * (residual**2).sum(axis=1) / (n * (n - 1.0))
        all_f = np.where(sample, f, np.where(others, every_f, 0.0))
        middle = all_f.sum(axis=1) / (n + more)
        spread = np.where(sample | others, all_f - middle[:, None], 0.0)
        of_f = (spread**2).sum(axis=1) / (n + more - 1.0)
        lambda_ = weight.sum(axis=1) / n
        of_predictions = np.where((lambda_ > 0.0) & (not finite), lambda_**2 * of_f / more, 0.0)
    return Parts(estimate, residual, sample, n, more, of_mean, of_predictions, lambda_ > 0.0, left)


def _intervals(parts: Parts, y: Array, bounds: tuple[float, float] | None, level: float) -> tuple[Array, Array, Array]:
    """Low, high and p of every row; NaN where there are fewer than two human values."""
    if bounds is not None:
        low, high = bounded_interval(parts, y, bounds, level)
        return low, high, np.full(len(y), math.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(parts.variance)
        freedom = _freedom(parts, parts.of_mean)
        t = np.where(np.abs(parts.estimate) < ROUNDING, 0.0, np.abs(parts.estimate) / error)
        equal = (error <= rounding(parts.estimate)) & (t > 0.0)
        p = np.where(np.isnan(error), math.nan, np.where(equal, same_sign_p(parts.n), 2.0 * special.stdtr(freedom, -t)))
        margin = _quantile(freedom, level) * error
    return parts.estimate - margin, parts.estimate + margin, p


def bounded_interval(parts: Parts, y: Array, bounds: tuple[float, float], level: float) -> tuple[Array, Array]:
    """Student's interval for values with bounds, corrected for what it misses with few skewed values.

    Two corrections, both of which vanish as n grows. First, a fraction of one more observation at the bound
    that is further from the mean: 0.15 times (how far the mean is from the middle of the bounds, 0 to 1, plus
    the share of values at a bound). Ten values of RR that are all 1 then have an interval of some width.
    Second, 0.1 of Johnson's (1978) shift for skewness, at most half of the interval's half width.
    """
    bottom, top = bounds
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.clip(parts.estimate, bottom, top)
        far = np.where(mean > (bottom + top) / 2.0, bottom, top)
        low, high = ((parts.sample & (y == bound)).sum(axis=1) for bound in bounds)
        at_bound = np.maximum(low, high) / parts.n
        weight = BOUND_WEIGHT * (np.abs(2.0 * (mean - bottom) / (top - bottom) - 1.0) + at_bound)
        n = parts.n + weight
        moved = weight * (far - parts.estimate) / n
        squares = (parts.residual**2).sum(axis=1) + parts.n * weight / n * (far - parts.estimate) ** 2
        of_mean = parts.left * squares / (n * (n - 1.0))
        variance = of_mean + parts.of_predictions
        third = (np.where(parts.sample, parts.residual - moved[:, None], 0.0) ** 3).sum(axis=1)
        third = (third + weight * (far - parts.estimate - moved) ** 3) / n
        quantile = _quantile(_freedom(parts, of_mean), level)
        margin = quantile * np.sqrt(variance)
        skew = SKEW_WEIGHT * third / (6.0 * n**2 * variance) * (1.0 + 2.0 * quantile**2)
        skew = np.where(variance > 0.0, np.clip(skew, -SKEW_LIMIT * margin, SKEW_LIMIT * margin), 0.0)
        middle = parts.estimate + moved + skew
    return np.maximum(middle - margin, bottom), np.minimum(middle + margin, top)


def _freedom(parts: Parts, of_mean: Array) -> Array:
    """Degrees of freedom of the sum of the two variances (Welch and Satterthwaite).

    n - 1 of the human values, or n - 2 where lambda was estimated too; n + N - 1 of the predictions.
    """
    total = of_mean + parts.of_predictions
    squares = of_mean**2 / (parts.n - 1.0 - parts.weighted)
    squares = squares + parts.of_predictions**2 / np.maximum(parts.n + parts.others - 1.0, 1.0)
    return np.where(total > 0.0, total**2 / squares, parts.n - 1.0)


def _quantile(freedom: Array, level: float) -> Array:
    return np.asarray(special.stdtrit(freedom, 0.5 + level / 2.0), dtype=np.float64)
