"""Normalisations: the scores of each list of each query are brought to a common scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard.alignment.hits import Floats
from steelyard.checks import unknown_name
from steelyard.errors import InputError
from steelyard.fusion.candidates import CandidatePool
from steelyard.wording import counted


@dataclass(frozen=True)
class Norm:
    """A normalisation: its name, its formula, whether it uses scores, and the function."""

    name: str
    about: str
    reads_scores: bool
    function: Callable[[CandidatePool], Floats]


def normalise(pool: CandidatePool, norm: str) -> CandidatePool:
    """The pool with normalised values. Every list of every query is normalised separately.

    >>> from steelyard.fusion.candidates import pool_of_lists
    >>> _, pool = pool_of_lists([[("c", 9.0), ("b", 6.0), ("a", 5.0)]])
    >>> normalise(pool, "min-max").value.tolist(), normalise(pool, "max").value.round(2).tolist()
    ([[1.0, 0.25, 0.0]], [[1.0, 0.67, 0.56]])
    """
    return replace(pool, value=norm_named(norm).function(pool))


def norm_named(name: str) -> Norm:
    """The normalisation of that name; an unknown name is an error."""
    plain = str(name).lower().replace("_", "-")
    found = NORMS.get(_ALIASES.get(plain, plain))
    if found is None:
        raise InputError(unknown_name("normalisation", name, NORMS, _ALIASES))
    return found


def none(pool: CandidatePool) -> Floats:
    """The scores unchanged."""
    return pool.value


def min_max(pool: CandidatePool) -> Floats:
    """(s - lowest) / (highest - lowest): 1 for the best, 0 for the last. If all are equal: 1."""
    low, high = _lowest(pool), _highest(pool)
    width = _spread(pool, high - low)
    return np.where(width > 0, _divided(pool.value - _spread(pool, low), width), pool.value * 0 + 1)


def highest(pool: CandidatePool) -> Floats:
    """s / highest. The highest must be positive; if all scores are 0, they stay 0."""
    high = _highest(pool)
    negative = np.fmin(_lowest(pool), 0) < 0
    bad = (high < 0) | ((high == 0) & negative)
    if bad.any():
        column, query = np.argwhere(bad)[0]
        raise InputError(
            f"norm=max divides by the best score of a list, which is {high[column, query]:g} in a list of run "
            f"{column + 1} ({counted(int(bad.sum()), 'such list')}); it must be positive. Use min-max, z or rank."
        )
    return _divided(pool.value, _spread(pool, np.where(high == 0, 1.0, high)))


def total(pool: CandidatePool) -> Floats:
    """(s - lowest) / sum of (s - lowest): the list sums to 1. If all are equal: 1/n."""
    above = pool.value - _spread(pool, _lowest(pool))
    sums = _spread(pool, _sums(pool, above))
    return np.where(sums > 0, _divided(above, sums), pool.value * 0 + 1 / _spread(pool, np.maximum(pool.lengths, 1)))


def z_score(pool: CandidatePool) -> Floats:
    """(s - mean) / standard deviation (dividing by n, not n - 1). If all are equal: 0."""
    count = np.maximum(pool.lengths, 1)
    centred = pool.value - _spread(pool, _sums(pool, pool.value) / count)
    deviation = np.sqrt(_sums(pool, centred**2) / count)
    flat = _spread(pool, _highest(pool) == _lowest(pool))
    return np.where(flat, pool.value * 0, _divided(centred, _spread(pool, deviation)))


def by_rank(pool: CandidatePool) -> Floats:
    """1 - (rank - 1) / n: 1 for the first of n, 1/n for the last. Scores are not used."""
    share = (pool.rank - 1) / _spread(pool, np.maximum(pool.lengths, 1))
    return np.where(pool.found, 1 - share, np.nan)


NORMS = {
    norm.name: norm
    for norm in (
        Norm("min-max", "(s - lowest) / (highest - lowest); all equal: 1", True, min_max),
        Norm("max", "s / highest, which must be positive", True, highest),
        Norm("sum", "(s - lowest) / sum of (s - lowest); all equal: 1/n", True, total),
        Norm("z", "(s - mean) / standard deviation; all equal: 0", True, z_score),
        Norm("rank", "1 - (rank - 1) / n; scores are not used", False, by_rank),
        Norm("none", "the scores unchanged", True, none),
    )
}

_ALIASES = {"minmax": "min-max", "zmuv": "z", "z-score": "z", "zscore": "z"}


def _lowest(pool: CandidatePool) -> Floats:
    return np.fmin.reduceat(pool.value, pool.starts, axis=1)


def _highest(pool: CandidatePool) -> Floats:
    return np.fmax.reduceat(pool.value, pool.starts, axis=1)


def _sums(pool: CandidatePool, values: Floats) -> Floats:
    return np.add.reduceat(np.where(pool.found, values, 0.0), pool.starts, axis=1)


def _spread(pool: CandidatePool, per_query: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A number per query, repeated for each of its candidates."""
    return np.repeat(per_query, pool.candidates, axis=1)


def _divided(above: Floats, below: Floats) -> Floats:
    """above / below; NaN where below is not positive."""
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0))
