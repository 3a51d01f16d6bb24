"""The formulas of BM25's variants: what a term weighs, in a document that has it and in one that has not.

Notation: N documents, df of them with the term; tf its count in the document; `length` the document's length
over the mean length. `okapi`, `plus` and `l` are rank_bm25's (0.2.2), operation by operation, so that the
float64 scores agree to the last bit; `lucene`, `robertson` and `atire` are those of Kamphuis et al. (2020),
as bm25s has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Constants:
    """k1: how slowly repeats of a term saturate; b: how much length counts; delta and epsilon: see the variants."""

    k1: float
    b: float
    delta: float
    epsilon: float

    def norm(self, length: Floats) -> Floats:
        """1 - b + b x length."""
        return 1 - self.b + length


@dataclass(frozen=True)
class Variant:
    """A formula: a term's IDF from (df, N), and its weight from (tf, b x length, IDF)."""

    idf: Callable[[int, int], float]
    weight: Callable[[Integers, Floats, Floats, Constants], Floats]
    delta: float = 0.0
    floored: bool = False
    everywhere: bool = False


def _okapi_idf(df: int, n: int) -> float:
    return math.log(n - df + 0.5) - math.log(df + 0.5)


def _saturated(tf: Integers, length: Floats, idf: Floats, c: Constants) -> Floats:
    return idf * (tf * (c.k1 + 1) / (tf + c.k1 * c.norm(length)))


def _unscaled(tf: Integers, length: Floats, idf: Floats, c: Constants) -> Floats:
    return idf * (tf / (c.k1 * c.norm(length) + tf))


def _plus(tf: Integers, length: Floats, idf: Floats, c: Constants) -> Floats:
    return idf * (c.delta + (tf * (c.k1 + 1)) / (c.k1 * c.norm(length) + tf))


def _l(tf: Integers, length: Floats, idf: Floats, c: Constants) -> Floats:
    normed = tf / c.norm(length)
    return idf * tf * (c.k1 + 1) * (normed + c.delta) / (c.k1 + normed + c.delta)


VARIANTS: dict[str, Variant] = {
    "okapi": Variant(_okapi_idf, _saturated, floored=True),
    "plus": Variant(lambda df, n: math.log((n + 1) / df), _plus, delta=1.0, everywhere=True),
    "l": Variant(lambda df, n: math.log(n + 1) - math.log(df + 0.5), _l, delta=0.5),
    "lucene": Variant(lambda df, n: math.log(1 + (n - df + 0.5) / (df + 0.5)), _unscaled),
    "robertson": Variant(lambda df, n: math.log(max(1.0, (n - df + 0.5) / (df + 0.5))), _unscaled),
    "atire": Variant(lambda df, n: math.log(n / df), _saturated),
}


def idfs(variant: Variant, frequencies: npt.NDArray[np.int64], documents: int, epsilon: float) -> Floats:
    """Every term's IDF, in the order in which the terms were first met.

    Okapi's IDF is negative for a term in more than half of the documents; it is then epsilon times the mean
    IDF, and the mean is taken over all terms as they were, negative ones included.
    """
    distinct, place = np.unique(frequencies, return_inverse=True)
    by_frequency = np.array([variant.idf(int(df), documents) for df in distinct], dtype=np.float64)
    values: Floats = by_frequency[place]
    if variant.floored and len(values):
        # accumulate adds one by one, as rank_bm25 does; sum would add in pairs and round otherwise.
        mean = float(np.add.accumulate(values)[-1]) / len(values)
        values[values < 0] = epsilon * mean
    return values
