"""How much a composite's order owes to its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.errors import InputError
from steelyard.statistics.arrays import Array, checked_count, checked_seed, many_series, one_series
from steelyard.wording import counted

# With 50, a weight of 0.3 varies by about +-0.064 (one standard deviation), one of 0.05 by +-0.031.
CONCENTRATION = 50.0


@dataclass(frozen=True)
class Flip:
    """The value of one weight (the others as given) at which another run takes the top."""

    measure: int
    weight: float
    flips_at: float
    new_top: int


@dataclass(frozen=True)
class Stability:
    """How a composite's order holds when its weights move.

    `order_changes` and `top_changes` are shares of the draws; `top_shares` says how often each run
    is on top. `flips` holds, nearest first, each single weight that can change the top.
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

    `means` is runs x measures; measures marked in `inverted` (less is better) enter as 1 - value.
    Weights are drawn from a Dirichlet distribution whose mean is the given weights, shared out to sum
    1: a weight w varies with standard deviation sqrt(w (1 - w) / (concentration + 1)). A weight of 0
    stays 0. Runs that tie keep the order given, and a tie is no change.

    >>> result = rank_stability([[0.9, 0.2], [0.3, 0.7]], [0.5, 0.5])
    >>> flip = result.flips[0]
    >>> result.order, flip.measure, round(flip.flips_at, 4), flip.new_top
    ((0, 1), 0, 0.4167, 1)
    """
    values, shares = composite_parts(means, weights, inverted)
    checked_count(draws, "draws")
    if concentration <= 0.0:
        raise InputError(f"The concentration of the weights must be above 0, got {concentration}.")
    order = np.argsort(-(values @ shares), kind="stable")
    positive = shares > 0.0
    generator = np.random.Generator(np.random.PCG64(checked_seed(seed)))
    drawn = generator.dirichlet(concentration * shares[positive], size=draws)
    composites = drawn @ values[:, positive].T
    ordered = composites[:, order]
    # Beyond rounding, a later run must be strictly above an earlier one to change the order.
    overtaken = np.diff(ordered, axis=1) > 1e-12
    beaten = ordered[:, 1:] > ordered[:, :1] + 1e-12
    top_changed = beaten.any(axis=1)
    tops = np.where(top_changed, order[np.argmax(ordered, axis=1)], order[0])
    given = np.asarray(weights, dtype=np.float64)
    return Stability(
        order=tuple(order.tolist()),
        order_changes=float(overtaken.any(axis=1).mean()),
        top_changes=float(top_changed.mean()),
        top_shares=tuple((np.bincount(tops, minlength=len(values)) / draws).tolist()),
        flips=tuple(top_flips(values, given)),
        draws=draws,
    )


def top_flips(values: Array, weights: Array) -> list[Flip]:
    """For every measure the nearest weight at which another run takes the top, nearest first.

    With d the top run's values minus another's, the top leads by sum w d. That is linear in each
    weight, so the lead over that run ends at w = -(sum over the other measures of w d) / d of this
    measure, where this is not negative. Runs level with the top as it stands are not counted.
    """
    composites = values @ weights
    top = int(np.argmax(composites))
    flips = []
    for measure, weight in enumerate(weights):
        nearest: Flip | None = None
        for run in range(len(values)):
            gap = values[top] - values[run]
            lead = float(gap @ weights)
            if lead <= 1e-12 or gap[measure] == 0.0:
                continue
            flips_at = float(weight - lead / gap[measure])
            if flips_at < 0.0 or (flips_at == 0.0 and weight == weights.sum()):
                continue
            if nearest is None or abs(flips_at - weight) < abs(nearest.flips_at - weight):
                nearest = Flip(measure, float(weight), flips_at, run)
        if nearest is not None:
            flips.append(nearest)
    return sorted(flips, key=lambda flip: abs(flip.flips_at - flip.weight))


def composite_parts(
    means: npt.ArrayLike, weights: npt.ArrayLike, inverted: Sequence[bool] | None
) -> tuple[Array, Array]:
    """The values with less-is-better measures turned round, and the weights shared out to sum 1."""
    values, given = many_series(means), one_series(weights)
    runs, measures = values.shape
    if len(given) != measures:
        raise InputError(
            f"Expected one weight per measure: {counted(measures, 'measure')}, {counted(len(given), 'weight')}."
        )
    if runs == 0 or measures == 0:
        raise InputError("Rank stability needs at least one run and one measure, got none.")
    if np.isnan(values).any():
        raise InputError(
            "A run without a mean for every measure has no composite: found NaN among the means."
        )
    if not (given >= 0.0).all() or given.sum() == 0.0:
        raise InputError(
            f"Weights must be at least 0 and not all 0, got {given.tolist()}. "
            "Mark a measure where less is better as inverted instead of weighing it negatively."
        )
    if inverted is not None:
        flags = np.asarray(inverted, dtype=bool)
        if len(flags) != measures:
            raise InputError(
                f"Expected one flag per measure: {counted(measures, 'measure')}, {counted(len(flags), 'flag')}."
            )
        values = np.where(flags, 1.0 - values, values)
    return values, given / given.sum()
