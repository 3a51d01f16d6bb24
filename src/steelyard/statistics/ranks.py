"""Honest ranks: how far a run's place may move, and which runs the data cannot tell apart."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from steelyard.errors import InputError
from steelyard.statistics.arrays import Array, checked_count, checked_level, checked_seed, many_series
from steelyard.statistics.corrections import Correction, adjust
from steelyard.statistics.exact import whole_numbers
from steelyard.statistics.resampling import resampled_sums
from steelyard.statistics.tests import PairedTest, paired_tests


def rank_intervals(
    matrix: npt.ArrayLike, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> list[tuple[int, int]]:
    """(best, worst) rank of every run, 1 best, for a matrix runs x queries where higher is better.

    The queries are resampled and the runs ranked by their mean each time; the interval holds the
    middle `level` of the ranks. Runs whose means tie in a draw could stand in any order, so a run's best
    rank counts only the runs above it and its worst rank those beside it too. A value that is missing
    (NaN) is left out of its run's mean. With one query nothing can be resampled: every place is open.

    >>> rank_intervals([[0.9, 0.8, 0.9, 0.7], [0.1, 0.2, 0.1, 0.1], [0.1, 0.2, 0.1, 0.1]])
    [(1, 1), (2, 3), (2, 3)]
    """
    scores = many_series(matrix)
    checked_level(level)
    checked_count(draws, "draws")
    runs, n = scores.shape
    if n < 2:
        return [(1, runs)] * runs
    means = resampled_means(scores, draws, checked_seed(seed))
    best = np.empty((draws, runs), dtype=np.int64)
    worst = np.empty((draws, runs), dtype=np.int64)
    for run in range(runs):
        own = means[:, run : run + 1]
        best[:, run] = 1 + np.count_nonzero(means > own, axis=1)
        worst[:, run] = np.count_nonzero(means >= own, axis=1)
    tail = (1.0 - level) / 2.0
    low = np.quantile(best, tail, axis=0, method="inverted_cdf")
    high = np.quantile(worst, 1.0 - tail, axis=0, method="inverted_cdf")
    return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]


def resampled_means(scores: Array, draws: int, seed: int) -> Array:
    """Means of every run (draws x runs) over shared resamples of the queries.

    A run without a value on any query drawn has no mean and ranks last in that draw.
    """
    runs, n = scores.shape
    there = ~np.isnan(scores)
    whole, _ = whole_numbers(np.where(there, scores, 0.0).T, n)
    sums = resampled_sums(np.hstack([whole, there.T.astype(np.float64)]), draws, seed)
    counts = sums[:, runs:]
    means: Array = np.divide(sums[:, :runs], counts, out=np.full((draws, runs), -np.inf), where=counts > 0)
    return means


def tie_groups(
    matrix: npt.ArrayLike,
    alpha: float = 0.05,
    test: PairedTest = "t",
    correction: Correction = "holm",
    seed: int = 0,
) -> list[str]:
    """The letters of every run, `a` for the best, for a matrix runs x queries where higher is better.

    All pairs are tested and corrected; see `groups_of` for how p-values become letters.

    >>> tie_groups([[0.9, 0.8, 0.9, 0.7], [0.1, 0.2, 0.1, 0.2], [0.2, 0.1, 0.1, 0.2]])
    ['a', 'b', 'b']
    """
    scores = many_series(matrix)
    runs = len(scores)
    p_values = np.ones((runs, runs))
    pairs = list(itertools.combinations(range(runs), 2))
    if pairs:
        results = paired_tests(scores, test, seed=seed, pairs=pairs)
        adjusted = adjust([result.p for result in results], correction)
        for (i, j), p in zip(pairs, adjusted, strict=True):
            p_values[i, j] = p_values[j, i] = p
    there = ~np.isnan(scores)
    counts = there.sum(axis=1)
    sums = np.where(there, scores, 0.0).sum(axis=1)
    means = np.divide(sums, counts, out=np.full(runs, -np.inf), where=counts > 0)
    return groups_of(means, p_values, alpha)


def groups_of(means: npt.ArrayLike, p_values: npt.ArrayLike, alpha: float = 0.05) -> list[str]:
    """Letters from the runs' means (higher is better) and the adjusted p-values of all pairs (runs x runs).

    Two runs share a letter exactly where the data cannot tell them apart: a compact letter display.
    Letters come in the order of the best run that has them. A p of NaN (no test) separates nothing, and
    runs with the same mean are alike.

    >>> groups_of([0.9, 0.8, 0.1], [[1, 0.3, 0.001], [0.3, 1, 0.2], [0.001, 0.2, 1]])
    ['a', 'ab', 'b']
    """
    mean = np.asarray(means, dtype=np.float64)
    p = many_series(p_values)
    runs = len(mean)
    if p.shape != (runs, runs):
        raise InputError(f"Expected p-values of all pairs of {runs} runs, {runs} x {runs}; got {p.shape}.")
    order = np.argsort(-mean, kind="stable")
    alike = ~((p < alpha) & (mean[:, None] != mean[None, :]))[np.ix_(order, order)]
    np.fill_diagonal(alike, True)
    letters = [""] * runs
    shared = np.zeros_like(alike)
    names = _letters()
    for one, other in itertools.combinations_with_replacement(range(runs), 2):
        if not alike[one, other] or shared[one, other]:
            continue
        group = [one] if one == other else [one, other]
        for run in range(runs):
            if run not in group and alike[run, group].all():
                group.append(run)
        shared[np.ix_(group, group)] = True
        name = next(names)
        for run in sorted(group):
            letters[order[run]] += name
    return letters


def _letters() -> Iterator[str]:
    """a to z, A to Z, and numbers in brackets after that."""
    yield from string.ascii_letters
    yield from (f"[{number}]" for number in itertools.count(len(string.ascii_letters) + 1))
