"""Means over all queries, computed on the cluster: sums are exact, so that they do not depend on the partitions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from steelyard.alignment.hits import Floats
from steelyard.measures.compute import geometric, how_summarised, logarithms
from steelyard.measures.grammar import Measure
from steelyard.spark.frames import collect, map_in_arrow

LOWEST = 1074
"""Every finite float is a whole number of units of 2 ** -LOWEST."""


def exact_sum(values: Floats) -> int:
    """The sum of finite floats in units of 2 ** -LOWEST, without rounding.

    >>> import numpy as np
    >>> exact_sum(np.array([1e300, 1.0, -1e300])) == 2**LOWEST
    True
    """
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    order = np.argsort(exponent, kind="stable")
    whole, exponent = whole[order], exponent[order]
    starts = np.flatnonzero(np.concatenate([[True], exponent[1:] != exponent[:-1]])[: len(exponent)])
    if not len(starts):
        return 0
    high, low = np.add.reduceat(whole >> 26, starts), np.add.reduceat(whole & ((1 << 26) - 1), starts)
    parts = zip(high.tolist(), low.tolist(), exponent[starts].tolist(), strict=True)
    total = 0
    for above, below, power in parts:
        units, shift = (above << 26) + below, power - 53 + LOWEST
        # The mantissa of a subnormal number ends in zeros.
        total += units << shift if shift >= 0 else units >> -shift
    return total


@dataclass(frozen=True)
class Sums:
    """The function that Spark calls on every worker: per partition, the count, exact sum and maximum by column."""

    logarithms: tuple[bool, ...]
    schema = "sums string"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per partition."""
        counts, sums = [0] * len(self.logarithms), [0] * len(self.logarithms)
        highest = [-math.inf] * len(self.logarithms)
        for batch in batches:
            for place, in_logarithms in enumerate(self.logarithms):
                values = batch.column(place).drop_null().to_numpy()
                if len(values):
                    counts[place] += len(values)
                    sums[place] += exact_sum(logarithms(values) if in_logarithms else values)
                    highest[place] = max(highest[place], float(values.max()))
        text = json.dumps([counts, list(map(str, sums)), highest])
        yield pa.RecordBatch.from_pydict({"sums": pa.array([text], pa.string())})


def cluster_means(values: Any, measures: Mapping[str, Measure]) -> dict[str, float]:
    """Each measure over all queries, from a Spark frame with one column per measure."""
    task = Sums(tuple(geometric(measure) for measure in measures.values()))
    parts = [json.loads(row["sums"]) for row in collect(map_in_arrow(values, task, task.schema))]
    means = {}
    for place, (key, measure) in enumerate(measures.items()):
        count = sum(part[0][place] for part in parts)
        units = sum(int(part[1][place]) for part in parts)
        means[key] = _summary(measure, count, units, max(part[2][place] for part in parts))
    return means


def _summary(measure: Measure, count: int, units: int, highest: float) -> float:
    """What `summary` gives, from the count, the sum and the maximum."""
    how = how_summarised(measure)
    if how == "sum":
        return float(Fraction(units, 1 << LOWEST))
    if not count:
        return math.nan
    if how == "max":
        return highest
    mean = float(Fraction(units, count << LOWEST))
    return math.exp(mean) if how == "geometric" else mean
