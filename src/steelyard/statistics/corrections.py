"""Corrections for many tests at once: each turns p-values into adjusted p-values."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from steelyard.errors import PolicyError, did_you_mean
from steelyard.statistics.arrays import Array, one_series

Correction = Literal["none", "bonferroni", "holm", "bh"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)


def check_correction(name: str) -> None:
    """Refuse a correction that there is none of."""
    if name not in CORRECTIONS:
        raise PolicyError(
            f"there is no correction {name!r}; expected {', '.join(CORRECTIONS)}."
            f"{did_you_mean(str(name), CORRECTIONS)}"
        )


def adjust(p_values: npt.ArrayLike, correction: Correction = "holm") -> Array:
    """Adjusted p-values, in the order given; compare each with alpha.

    With m tests, p sorted ascending: `bonferroni` m p; `holm` the running maximum of (m - i) p_(i),
    i from 0, which controls the chance of any false alarm as Bonferroni does and always finds at
    least as much; `bh` (Benjamini-Hochberg) the running minimum from the largest down of
    m p_(i) / (i + 1), which controls the share of false alarms among the findings. All are cut at 1.
    NaN (no test was possible) stays NaN and does not count in m.

    >>> adjust([0.01, 0.04, 0.03], "holm")
    array([0.03, 0.06, 0.06])
    """
    check_correction(correction)
    values = one_series(p_values)
    adjusted: Array = values.copy()
    tested = ~np.isnan(values)
    p = values[tested]
    m = len(p)
    if m == 0 or correction == "none":
        return adjusted
    order = np.argsort(p, kind="stable")
    rank = np.arange(m)
    if correction == "bonferroni":
        ascending = p[order] * m
    elif correction == "holm":
        ascending = np.maximum.accumulate(p[order] * (m - rank))
    else:
        ascending = np.minimum.accumulate((p[order] * m / (rank + 1))[::-1])[::-1]
    adjusted[np.flatnonzero(tested)[order]] = np.minimum(ascending, 1.0)
    return adjusted
