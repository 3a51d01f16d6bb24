"""Statistics over several datasets: two tests of a macro mean, Friedman and Nemenyi, ranks and Borda counts.

A dataset is a matrix runs x queries; a table of values is runs x datasets, with NaN where a run was not measured. More
is better. `these_datasets` resamples the queries; `datasets_like_these` treats the datasets as a sample as well.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from steelyard.checks import unknown_name, whole_number
from steelyard.errors import InputError, PolicyError
from steelyard.lazy import special
from steelyard.statistics import arrays
from steelyard.statistics.arrays import Array, Pair
from steelyard.statistics.corrections import max_t
from steelyard.statistics.intervals import Interval, mean_intervals
from steelyard.statistics.paired import mean_ranks, permutation_test

BordaRule = Literal["complete", "all", "measured"]
BORDA_RULES: tuple[BordaRule, ...] = get_args(BordaRule)

FRIEDMAN_FROM = 5  # Datasets from which on Friedman's test and Nemenyi's are given.
_CELLS = 20_000_000  # Resampled values that are kept at once; for very many pairs there are fewer draws.
_FEWEST_DRAWS = 1000


@dataclass(frozen=True)
class MacroTests:
    """The tests of macro means: one entry per pair of runs, and an interval per run.

    `differences` are macro means of the first run minus those of the second, `intervals` theirs, each of the pair
    alone; `p` is corrected for all pairs. Where no test is possible, p and intervals are NaN, and `reason` gives the
    reason. `without` has, for every dataset, the same p-values when this dataset is left out.
    """

    pairs: tuple[Pair, ...]
    differences: tuple[float, ...]
    p: tuple[float, ...]
    intervals: tuple[Interval, ...]
    run_intervals: tuple[Interval, ...]
    method: str
    reason: str = ""
    without: tuple[tuple[float, ...], ...] = ()


def these_datasets(
    datasets: Sequence[npt.ArrayLike], draws: int = 10_000, seed: int = 0, level: float = 0.95
) -> MacroTests:
    """'On these datasets': queries are resampled within each dataset, and every dataset weighs the same.

    For every pair, the difference of the macro means is D = mean over datasets of the mean difference m_d, with the
    variance V = sum of s_d^2 / n_d over (number of datasets)^2. A draw resamples the queries of every dataset, for
    all pairs at once, and gives t* = (D* - D) / sqrt(V*). p is the step-down max-T p-value (Westfall and Young 1993)
    of |t| = |D| / sqrt(V): the largest |t*| of the pair and of those with a smaller |t|. The interval of a pair, or
    of a run's macro mean, is D -+ q sqrt(V) with q the `level` quantile of its own |t*|. A dataset needs two queries.

    >>> rng = np.random.default_rng(1)
    >>> easy, hard = rng.normal([[0.7], [0.5]], 0.1, (2, 30)), rng.normal([[0.4], [0.3]], 0.1, (2, 300))
    >>> found = these_datasets([easy, hard])
    >>> round(found.differences[0], 2), found.p[0] < 0.001
    (0.14, True)
    """
    matrices = [arrays.many_series(dataset) for dataset in datasets]
    draws, seed, level = arrays.checked_count(draws, "draws"), whole_number("seed", seed), arrays.checked_level(level)
    if not matrices or len({len(matrix) for matrix in matrices}) != 1:
        raise InputError("Expected one matrix runs x queries per dataset, each with the same runs.")
    if any(np.isnan(matrix).any() for matrix in matrices):
        raise InputError("Expected a value for every run and query; leave out queries without one.")
    runs = len(matrices[0])
    pairs = tuple(itertools.combinations(range(runs), 2))
    gaps = [arrays.row_differences(matrix, pairs) for matrix in matrices]
    differences = tuple(np.mean([gap.mean(axis=1) for gap in gaps], axis=0).tolist()) if pairs else ()
    if any(matrix.shape[1] < 2 for matrix in matrices):
        reason = "a dataset has one query only, so its variance cannot be estimated"
        return _untested(pairs, differences, runs, reason)
    columns = [np.vstack([gap, matrix]) for gap, matrix in zip(gaps, matrices, strict=True)]
    draws = min(draws, max(_FEWEST_DRAWS, _CELLS // (len(columns) * len(columns[0]))))
    parts = [_resampled(column, draws, seed + place) for place, column in enumerate(columns)]
    total = _Resampled.total(parts)
    count = len(pairs)
    ends = total.intervals(level)
    lows = np.min([matrix.min(axis=1) for matrix in matrices], axis=0)
    highs = np.max([matrix.max(axis=1) for matrix in matrices], axis=0)
    without = [
        _step_down(_Resampled.total(parts[:place] + parts[place + 1 :]), gaps[:place] + gaps[place + 1 :])
        for place in range(len(parts) if len(parts) > 1 else 0)
    ]
    run_ends = zip(ends[count:], lows.tolist(), highs.tolist(), strict=True)
    run_intervals = tuple((max(low, least), min(high, most)) for (low, high), least, most in run_ends)
    p = _step_down(total, gaps)
    method = f"studentised bootstrap of queries within datasets, step-down max-T, {draws:,} draws"
    return MacroTests(pairs, differences, p, tuple(ends[:count]), run_intervals, method, without=tuple(without))


class _Resampled(NamedTuple):
    """Means and variances of the mean, observed and resampled (draws x columns, centred), of a dataset or a sum."""

    mean: Array
    variance: Array
    drawn_mean: Array
    drawn_variance: Array

    @staticmethod
    def total(parts: Sequence[_Resampled]) -> _Resampled:
        """The mean over datasets: every dataset weighs the same."""
        n = len(parts)
        means, variances, drawn_means, drawn_variances = (np.asarray(sum(field)) for field in zip(*parts, strict=True))
        return _Resampled(means / n, variances / n**2, drawn_means / n, drawn_variances / n**2)

    def statistics(self, count: int | None = None) -> tuple[Array, Array]:
        """|t| of the first columns, and |t*| of every draw; 0 for a column without any difference."""
        drawn = _ratio(np.abs(self.drawn_mean[:, :count]), self.drawn_variance[:, :count])
        return _ratio(np.abs(self.mean[:count]), self.variance[:count]), drawn

    def intervals(self, level: float) -> list[Interval]:
        """mean -+ q sqrt(variance), q the quantile of |t*|; NaN where |t*| is mostly infinite."""
        quantiles = np.quantile(self.statistics()[1], level, axis=0, method="inverted_cdf")
        reach = np.where(np.isfinite(quantiles), quantiles, np.nan) * np.sqrt(self.variance)
        return list(zip((self.mean - reach).tolist(), (self.mean + reach).tolist(), strict=True))


def _ratio(size: Array, variance: Array) -> Array:
    """size / sqrt(variance), infinite where only the variance is 0."""
    root = np.sqrt(np.maximum(variance, 0.0))
    return np.divide(size, root, out=np.where(size >= arrays.ROUNDING, np.inf, 0.0), where=root > arrays.ROUNDING)


def _resampled(values: Array, draws: int, seed: int) -> _Resampled:
    """The resampled means and variances of rows of values over the queries of one dataset."""
    n = values.shape[1]
    mean = values.mean(axis=1)
    centred = values - mean[:, None]
    drawn, squares = arrays.resampled_moments(centred, draws, seed)
    return _Resampled(mean, (centred**2).sum(axis=1) / (n - 1) / n, drawn, np.maximum(squares, 0.0) / (n - 1) / n)


def _step_down(total: _Resampled, gaps: Sequence[Array]) -> tuple[float, ...]:
    """Step-down max-T p-values of |t|; 1 where two runs are equal. An infinite t has p of the signs of its `gaps`."""
    observed, drawn = total.statistics(len(gaps[0]))
    order = np.argsort(-observed, kind="stable")
    largest = np.maximum.accumulate(drawn[:, order][:, ::-1], axis=1)[:, ::-1]
    reached = np.count_nonzero(largest >= observed[order] * (1.0 - 1e-9), axis=0)
    p = np.empty(len(observed))
    p[order] = np.maximum.accumulate((reached + 1.0) / (len(drawn) + 1.0))
    for pair in np.flatnonzero(np.isinf(observed)):
        p[pair] = max(p[pair], permutation_test(np.concatenate([gap[pair] / gap.shape[1] for gap in gaps])).p)
    return tuple(np.where(observed > 0.0, p, 1.0).tolist())


def datasets_like_these(means: npt.ArrayLike, level: float = 0.95, seed: int = 0) -> MacroTests:
    """'On datasets like these': the datasets are a sample too; a matrix runs x datasets of means.

    The unit is the dataset: its mean difference, which includes the noise of its queries. p is the step-down max-T
    p-value over sign flips of whole datasets (exact up to 16 datasets), so it is never below 2 / 2**datasets. The
    intervals are Student's over the datasets.

    >>> found = datasets_like_these([[0.5, 0.6, 0.4, 0.7, 0.6, 0.5], [0.4, 0.5, 0.35, 0.6, 0.55, 0.45]])
    >>> found.p
    (0.03125,)
    """
    table = arrays.many_series(means)
    runs, count = table.shape
    pairs = tuple(itertools.combinations(range(runs), 2))
    gaps = arrays.row_differences(table, pairs)
    differences = tuple(gaps.mean(axis=1).tolist()) if pairs else ()
    if count < 2:
        return _untested(pairs, differences, runs, "one dataset only")
    run_intervals = tuple(mean_intervals(table, level, method="t"))
    if not pairs:
        return MacroTests((), (), (), (), run_intervals, "none")
    result = max_t(table, seed=seed, pairs=pairs)
    intervals, method = tuple(mean_intervals(gaps, level, method="t")), f"sign flips of datasets, {result.method}"
    return MacroTests(pairs, differences, result.p, intervals, run_intervals, method)


def smallest_dataset_p(datasets: int) -> float:
    """The smallest p-value that `datasets_like_these` can give.

    >>> smallest_dataset_p(3), smallest_dataset_p(8)
    (0.25, 0.0078125)
    """
    return 2.0 ** (1 - datasets)


def _untested(pairs: tuple[Pair, ...], differences: tuple[float, ...], runs: int, reason: str) -> MacroTests:
    nothing, count = (math.nan, math.nan), len(pairs)
    return MacroTests(pairs, differences, (math.nan,) * count, (nothing,) * count, (nothing,) * runs, "none", reason)


# Ranks


def dataset_ranks(values: npt.ArrayLike) -> Array:
    """The rank of every run on every dataset, 1 best, ties (to 1e-12) sharing their mean; NaN where not measured.

    >>> dataset_ranks([[0.5, 0.9], [0.5, float("nan")], [0.4, 0.95]])
    array([[1.5, 2. ],
           [1.5, nan],
           [3. , 1. ]])
    """
    table = arrays.many_series(values)
    ranks = np.full(table.shape, np.nan)
    for place, column in enumerate(table.T):
        measured = ~np.isnan(column)
        ranks[measured, place] = mean_ranks(-column[measured])[0]
    return ranks


def borda(values: npt.ArrayLike, rule: BordaRule = "complete") -> Array:
    """Borda counts of a table runs x datasets: the points of a run, summed over datasets.

    `complete`: a run gets one point for every run that it beats and half a point for every tie; one that was not
    measured on every dataset has no count (NaN). `all`: the same, but a run that was not measured on a dataset gets
    no points there and counts as beaten: the number of all runs minus the mean rank. MTEB's tables are made so
    (`_borda_rank_from_long` in mteb/benchmarks/_create_table.py). `measured`: the number of runs that were measured
    on the dataset, minus the rank, plus 1; of equal runs the one in the earlier row is ranked first. MTEB's page
    counts so where its tasks are filtered, with rows in the order of the models' names (`applyFilters` in
    src/lib/stores/filters.svelte.ts of embeddings-benchmark/leaderboard-frontend). On a complete table without ties
    `measured` gives one point more per dataset, and all rules the same order. MTEB's issue 5208 compares the two:
    they order 282 of 332 models differently.

    >>> borda([[0.5, 0.9], [0.4, float("nan")], [0.3, 0.8]], "all")
    array([4., 1., 1.])
    >>> borda([[0.5, 0.9], [0.4, float("nan")], [0.3, 0.8]], "measured")
    array([5., 2., 2.])
    """
    if rule not in BORDA_RULES:
        raise PolicyError(unknown_name("Borda rule", rule, BORDA_RULES))
    table = arrays.many_series(values)
    measured = ~np.isnan(table)
    if rule == "measured":
        points = np.zeros(table.shape)
        for place, column in enumerate(dataset_ranks(table).T):
            ranked = np.argsort(column, kind="stable")[: measured[:, place].sum()]
            points[ranked, place] = np.arange(len(ranked), 0, -1)
        return np.asarray(points.sum(axis=1))
    counts: Array = np.where(measured, len(table) - dataset_ranks(table), 0.0).sum(axis=1)
    return np.where(measured.all(axis=1), counts, np.nan) if rule == "complete" else counts


@dataclass(frozen=True)
class FriedmanResult:
    """Friedman's test by Iman and Davenport's F, and Nemenyi's p-values of all pairs, from the runs' mean ranks.

    Two runs differ significantly by Nemenyi's test if their mean ranks differ by `critical_difference` or more.
    """

    statistic: float
    p: float
    mean_ranks: tuple[float, ...]
    pairs: tuple[Pair, ...]
    nemenyi: tuple[float, ...]
    critical_difference: float


def friedman(values: npt.ArrayLike, alpha: float = 0.05) -> FriedmanResult:
    """Friedman's and Nemenyi's tests (Demsar 2006) of a complete table runs x datasets.

    Chi-square with the correction for ties, F = (n - 1) chi2 / (n (k - 1) - chi2) with k - 1 and (k - 1)(n - 1)
    degrees of freedom; p is at least the chance of one order on all datasets, k! ** (1 - n) without ties. Nemenyi:
    |difference of mean ranks| / sqrt(k (k + 1) / (6 n)), times sqrt(2), in the studentised range of k groups.

    >>> found = friedman([[0.9, 0.8, 0.9, 0.7, 0.8], [0.5, 0.6, 0.5, 0.6, 0.5], [0.4, 0.3, 0.2, 0.1, 0.3]])
    >>> found.mean_ranks, round(found.critical_difference, 3)
    ((1.0, 2.0, 3.0), 1.482)
    """
    ranks = dataset_ranks(values)
    runs, count = ranks.shape
    means = ranks.mean(axis=1)
    pairs = tuple(itertools.combinations(range(runs), 2))
    middle = (runs + 1) / 2
    spread = float(((ranks - middle) ** 2).sum()) / (runs - 1)
    chi2 = 0.0 if spread == 0.0 else count**2 * float(((means - middle) ** 2).sum()) / spread
    rest = count * (runs - 1) - chi2
    statistic = math.inf if rest <= 1e-9 * chi2 else (count - 1) * chi2 / rest
    p = 0.0 if math.isinf(statistic) else float(special.fdtrc(runs - 1, (runs - 1) * (count - 1), statistic))
    ties = (special.gammaln(np.unique(column, return_counts=True)[1] + 1).sum() for column in ranks.T)
    orders = [float(special.gammaln(runs + 1) - tied) for tied in ties]  # Logarithms; F is infinite if all are one.
    p = max(p, math.exp(max(orders) - sum(orders)))
    unit = math.sqrt(runs * (runs + 1) / (6 * count)) / math.sqrt(2)
    gaps = np.array([abs(means[i] - means[j]) for i, j in pairs]) / unit
    nemenyi = tuple(range_exceeded(gaps, runs).tolist())
    critical = unit * _range_quantile(alpha, runs)
    return FriedmanResult(statistic, p, tuple(means.tolist()), pairs, nemenyi, critical)


def range_exceeded(sizes: Array, groups: int) -> Array:
    """The probability that the range of independent standard normal numbers, as many as groups, exceeds each size.

    1 - k * integral of phi(z) (Phi(z) - Phi(z - q))**(k - 1) dz.

    >>> range_exceeded(np.array([3.633]), 4).round(3)
    array([0.05])
    """
    z = np.linspace(-9.0, 9.0, 4001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    inside = (special.ndtr(z)[None, :] - special.ndtr(z[None, :] - sizes[:, None])) ** (groups - 1)
    chance = 1.0 - groups * (density * inside).sum(axis=1) * (z[1] - z[0])
    return np.asarray(np.clip(chance, 0.0, 1.0))


def _range_quantile(alpha: float, groups: int) -> float:
    """The size that the range exceeds with probability alpha."""
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if range_exceeded(np.array([middle]), groups)[0] > alpha else (low, middle)
    return high
