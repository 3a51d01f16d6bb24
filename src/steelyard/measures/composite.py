"""A weighted sum of measures, itself a value a query, so that every test and interval applies to it."""

from __future__ import annotations

import numpy as np

from steelyard.alignment.alignment import Alignment
from steelyard.alignment.hits import Floats
from steelyard.errors import MeasureError
from steelyard.measures.grammar import parse
from steelyard.measures.registry import Weights, measure


@measure("Composite", cutoff="none", low=-np.inf, high=np.inf, tail=False, empty=np.nan)
def composite(a: Alignment, weights: Weights = ()) -> Floats:
    """Weighted mean of other measures.

    Composite = sum of weight x value / sum of weights; where less is better, 1 - value enters.

    weights: a table of measure and weight, as in {nDCG@10: 0.5, Confusion@3: 0.1}; none below 0, not all 0.
    """
    from steelyard.measures.compute import values

    return weighed(
        [(parse(text).definition.better, values(parse(text), a), weight) for text, weight in weights]
    )


def weighed(parts: list[tuple[str, Floats, float]]) -> Floats:
    """The weighted mean of (better, values, weight) parts."""
    total = sum(weight for _, _, weight in parts)
    if not parts or total <= 0 or any(weight < 0 for _, _, weight in parts):
        raise MeasureError(
            "a composite needs weights of 0 or more that are not all 0, as in {nDCG@10: 0.5, RR@10: 0.5}."
        )
    return (
        sum(
            (weight * (1 - value if better == "less" else value) for better, value, weight in parts),
            np.zeros(1),
        )
        / total
    )
