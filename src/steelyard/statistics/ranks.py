"""Ranks: rank intervals, groups of runs that do not differ significantly, and the stability of a composite's order."""

from __future__ import annotations

import itertools
import string
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.checks import whole_number
from steelyard.errors import InputError
from steelyard.statistics import arrays
from steelyard.statistics.arrays import Array
from steelyard.statistics.corrections import Correction, adjust
from steelyard.statistics.paired import PairedTest, paired_tests
from steelyard.wording import counted


def rank_intervals(
    matrix: npt.ArrayLike, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> list[tuple[int, int]]:
    """(best, worst) rank of every run, 1 best, for a matrix runs x queries where higher is better.

    The queries are resampled and the runs ranked by their mean each time; the interval contains the middle `level` of
    the ranks. Where means tie in a draw, a run's best rank counts the runs above it, and its worst rank also those tied
    with it. A missing value (NaN) is left out of its run's mean. With one query every rank is possible.

    >>> rank_intervals([[0.9, 0.8, 0.9, 0.7], [0.1, 0.2, 0.1, 0.1], [0.1, 0.2, 0.1, 0.1]])
    [(1, 1), (2, 3), (2, 3)]
    """
    scores = arrays.many_series(matrix)
    arrays.checked_level(level)
    draws = arrays.checked_count(draws, "draws")
    runs, n = scores.shape
    if n < 2:
        return [(1, runs)] * runs
    means = resampled_means(scores, draws, whole_number("seed", seed))
    best = np.reshape([1 + np.count_nonzero(means > run[:, None], axis=1) for run in means.T], (runs, draws)).T
    worst = np.reshape([np.count_nonzero(means >= run[:, None], axis=1) for run in means.T], (runs, draws)).T
    tail = (1.0 - level) / 2.0
    low = np.quantile(best, tail, axis=0, method="inverted_cdf")
    high = np.quantile(worst, 1.0 - tail, axis=0, method="inverted_cdf")
    return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]


def resampled_means(scores: Array, draws: int, seed: int) -> Array:
    """Means of every run (draws x runs) over shared resamples of the queries.

    A run without a value on any of the drawn queries has no mean and ranks last in that draw.
    """
    runs, n = scores.shape
    there = ~np.isnan(scores)
    whole, _ = arrays.whole_numbers(np.where(there, scores, 0.0).T, n)
    sums = arrays.resampled_sums(np.hstack([whole, there.T.astype(np.float64)]), draws, seed)
    counts = sums[:, runs:]
    return np.asarray(np.divide(sums[:, :runs], counts, out=np.full((draws, runs), -np.inf), where=counts > 0))


def tie_groups(
    matrix: npt.ArrayLike, alpha: float = 0.05, test: PairedTest = "t", correction: Correction = "holm", seed: int = 0
) -> list[str]:
    """The letters of every run, `a` for the best, for a matrix runs x queries where higher is better.

    All pairs are tested and corrected; `groups_of` turns the p-values into letters.

    >>> tie_groups([[0.9, 0.8, 0.9, 0.7], [0.1, 0.2, 0.1, 0.2], [0.2, 0.1, 0.1, 0.2]])
    ['a', 'b', 'b']
    """
    scores = arrays.many_series(matrix)
    runs = len(scores)
    p_values = np.ones((runs, runs))
    pairs = list(itertools.combinations(range(runs), 2))
    if pairs:
        results = paired_tests(scores, test, seed=seed, pairs=pairs)
        adjusted = adjust([result.p for result in results], correction)
        for (i, j), p in zip(pairs, adjusted, strict=True):
            p_values[i, j] = p_values[j, i] = p
    counts, sums = (~np.isnan(scores)).sum(axis=1), np.nansum(scores, axis=1)
    means = np.divide(sums, counts, out=np.full(runs, -np.inf), where=counts > 0)
    return groups_of(means, p_values, alpha)


def groups_of(means: npt.ArrayLike, p_values: npt.ArrayLike, alpha: float = 0.05) -> list[str]:
    """Letters from the runs' means (higher is better) and the adjusted p-values of all pairs (runs x runs).

    Two runs share a letter if and only if they do not differ significantly: a compact letter display. Letters are in
    the order of the best run that has them. Runs without a test (a p of NaN) or with the same mean do not differ.

    >>> groups_of([0.9, 0.8, 0.1], [[1, 0.3, 0.001], [0.3, 1, 0.2], [0.001, 0.2, 1]])
    ['a', 'ab', 'b']
    """
    mean = np.asarray(means, dtype=np.float64)
    p = arrays.many_series(p_values)
    runs = len(mean)
    if p.shape != (runs, runs):
        raise InputError(f"Expected p-values of all pairs of {runs} runs, {runs} x {runs}; got {p.shape}.")
    order = np.argsort(-mean, kind="stable")
    tied = ~((p < alpha) & (mean[:, None] != mean[None, :]))[np.ix_(order, order)]
    np.fill_diagonal(tied, True)
    letters = [""] * runs
    shared = np.zeros_like(tied)
    numbers = (f"[{number}]" for number in itertools.count(len(string.ascii_letters) + 1))
    names = itertools.chain(string.ascii_letters, numbers)
    for pair in itertools.combinations_with_replacement(range(runs), 2):
        if tied[pair] and not shared[pair]:
            group = sorted(set(pair))
            for run in range(runs):
                if run not in group and tied[run, group].all():
                    group.append(run)
            shared[np.ix_(group, group)] = True
            name = next(names)
            for run in group:
                letters[order[run]] += name
    return letters


# With 50, a weight of 0.3 varies by about +-0.064 (one standard deviation), one of 0.05 by +-0.031.
CONCENTRATION = 50.0


@dataclass(frozen=True)
class Flip:
    """The value of one weight, the others unchanged, at which another run becomes the best."""

    measure: int
    weight: float
    flips_at: float
    new_top: int


@dataclass(frozen=True)
class Stability:
    """How stable a composite's order is when its weights change.

    `order_changes` and `top_changes` are shares of the draws; `top_shares` is the share of draws in which
    each run is the best. `flips` has each single weight that can change the best run, smallest change first.
    """

    order: tuple[int, ...]
    order_changes: float
    top_changes: float
    top_shares: tuple[float, ...]
    flips: tuple[Flip, ...]
    draws: int


def rank_stability(
    means: npt.ArrayLike,
    weights: npt.ArrayLike,
    inverted: Sequence[bool] | None = None,
    draws: int = 10_000,
    concentration: float = CONCENTRATION,
    seed: int = 0,
) -> Stability:
    """How often the order of the runs changes when the weights are drawn around the given ones.

    `means` is runs x measures; measures marked in `inverted` (lower is better) are used as 1 - value.
    Weights are drawn from a Dirichlet distribution whose mean is the given weights, scaled to sum to 1: a
    weight w varies with standard deviation sqrt(w (1 - w) / (concentration + 1)). A weight of 0 stays 0.
    Tied runs keep the given order, and a tie is not a change.

    >>> result = rank_stability([[0.9, 0.2], [0.3, 0.7]], [0.5, 0.5])
    >>> flip = result.flips[0]
    >>> result.order, flip.measure, round(flip.flips_at, 4), flip.new_top
    ((0, 1), 0, 0.4167, 1)
    """
    values, shares = composite_parts(means, weights, inverted)
    draws = arrays.checked_count(draws, "draws")
    if concentration <= 0.0:
        raise InputError(f"The concentration of the weights must be above 0, got {concentration}.")
    order = np.argsort(-(values @ shares), kind="stable")
    positive = shares > 0.0
    generator = np.random.Generator(np.random.PCG64(whole_number("seed", seed)))
    drawn = generator.dirichlet(concentration * shares[positive], size=draws)
    composites = drawn @ values[:, positive].T
    ordered = composites[:, order]
    # A later run changes the order only if it is above an earlier one by more than rounding.
    overtaken = np.diff(ordered, axis=1) > 1e-12
    beaten = ordered[:, 1:] > ordered[:, :1] + 1e-12
    top_changed = beaten.any(axis=1)
    tops = np.where(top_changed, order[np.argmax(ordered, axis=1)], order[0])
    return Stability(
        order=tuple(order.tolist()),
        order_changes=float(overtaken.any(axis=1).mean()),
        top_changes=float(top_changed.mean()),
        top_shares=tuple((np.bincount(tops, minlength=len(values)) / draws).tolist()),
        flips=tuple(top_flips(values, np.asarray(weights, dtype=np.float64))),
        draws=draws,
    )


def top_flips(values: Array, weights: Array) -> list[Flip]:
    """For every measure the nearest weight at which another run becomes the best, smallest change first.

    With d the best run's values minus another's, the best run leads by sum w d: linear in each weight, so the lead ends
    at w = -(sum over the other measures of w d) / d of this measure, if this is not negative. Ties are not counted.
    """

    def change(flip: Flip) -> float:
        return abs(flip.flips_at - flip.weight)

    top = int(np.argmax(values @ weights))
    flips: list[Flip] = []
    for measure, weight in enumerate(weights):
        possible = []
        for run, gap in enumerate(values[top] - values):
            lead = float(gap @ weights)
            if lead > 1e-12 and gap[measure] != 0.0:
                flips_at = float(weight - lead / gap[measure])
                if flips_at > 0.0 or (flips_at == 0.0 and weight != weights.sum()):
                    possible.append(Flip(measure, float(weight), flips_at, run))
        if possible:
            flips.append(min(possible, key=change))
    return sorted(flips, key=change)


def composite_parts(
    means: npt.ArrayLike, weights: npt.ArrayLike, inverted: Sequence[bool] | None
) -> tuple[Array, Array]:
    """The values with lower-is-better measures inverted, and the weights scaled to sum to 1."""
    values, given = arrays.many_series(means), arrays.one_series(weights)
    runs, measures = values.shape
    if len(given) != measures:
        raise InputError(
            f"Expected one weight per measure: {counted(measures, 'measure')}, {counted(len(given), 'weight')}."
        )
    if runs == 0 or measures == 0:
        raise InputError("Rank stability needs at least one run and one measure, got none.")
    if np.isnan(values).any():
        raise InputError("A run without a mean for every measure has no composite: found NaN among the means.")
    if not (given >= 0.0).all() or given.sum() == 0.0:
        problem = f"Weights must be at least 0 and not all 0, got {given.tolist()}. Mark a measure where"
        raise InputError(f"{problem} lower is better as inverted instead of giving it a negative weight.")
    if inverted is not None:
        flags = np.asarray(inverted, dtype=bool)
        if len(flags) != measures:
            raise InputError(
                f"Expected one flag per measure: {counted(measures, 'measure')}, {counted(len(flags), 'flag')}."
            )
        values = np.where(flags, 1.0 - values, values)
    return values, given / given.sum()
