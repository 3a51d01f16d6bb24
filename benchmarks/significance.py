"""Randomisation tests and bootstrap intervals compared with scipy and ranx, as ratios.

The task: 5 runs x 5 measures x 6,980 queries, which is 50 paired tests, at 100,000 permutations each;
and bootstrap intervals of the 25 series, 10,000 draws each. The peers take too long for the whole task,
so each does one test and is compared by the time per test and permutation.

Run with `python -m benchmarks.significance`.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from steelyard.statistics import max_t, mean_intervals, permutation_tests, tukey

RUNS, MEASURES, QUERIES = 5, 5, 6980
PERMUTATIONS, DRAWS = 100_000, 10_000
SCIPY_PERMUTATIONS, RANX_PERMUTATIONS, SCIPY_DRAWS = 2_000, 1_000, 1_000


@dataclass(frozen=True)
class Timing:
    """A time, and the number of units (a permutation of a test, a resample of a series)."""

    what: str
    seconds: float
    units: int

    @property
    def per_unit(self) -> float:
        """Seconds for one unit."""
        return self.seconds / self.units


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def reciprocal_rank_like(rng: np.random.Generator) -> np.ndarray:
    """Scores, runs x measures x queries: many zeros, otherwise 1/rank, with runs correlated by query."""
    ease = rng.random(QUERIES)
    ranks = np.ceil(rng.exponential(12.0 * ease, (RUNS, MEASURES, QUERIES)))
    return np.where(ranks > 10, 0.0, 1.0 / np.maximum(ranks, 1.0))


def permutation_timings(scores: np.ndarray) -> tuple[Timing, list[Timing]]:
    """Steelyard on the whole task, the others on one test each."""
    from ranx.statistical_tests import fisher_randomization_test
    from scipy.stats import permutation_test

    rows = scores.reshape(RUNS * MEASURES, QUERIES)
    pairs = [
        (i * MEASURES + measure, j * MEASURES + measure)
        for i, j in itertools.combinations(range(RUNS), 2)
        for measure in range(MEASURES)
    ]
    permutation_tests(rows, 1000, pairs=pairs)
    ours = Timing(
        f"steelyard, {len(pairs)} tests, {PERMUTATIONS:,} permutations",
        best_of(3, lambda: permutation_tests(rows, PERMUTATIONS, pairs=pairs)),
        len(pairs) * PERMUTATIONS,
    )
    a, b = scores[0, 0], scores[1, 0]
    scipy_seconds = best_of(
        1,
        lambda: permutation_test(
            (a - b,),
            lambda x, axis: x.mean(axis=axis),
            permutation_type="samples",
            n_resamples=SCIPY_PERMUTATIONS,
            vectorized=True,
            batch=200,
        ),
    )
    fisher_randomization_test(a, b, 2)  # compiles
    ranx_seconds = best_of(1, lambda: fisher_randomization_test(a, b, RANX_PERMUTATIONS))
    return ours, [
        Timing(f"scipy permutation_test, 1 test, {SCIPY_PERMUTATIONS:,}", scipy_seconds, SCIPY_PERMUTATIONS),
        Timing(f"ranx Fisher test, 1 test, {RANX_PERMUTATIONS:,}", ranx_seconds, RANX_PERMUTATIONS),
    ]


def interval_timings(scores: np.ndarray) -> tuple[Timing, list[Timing]]:
    """Steelyard for all 25 series, the percentile bootstrap of scipy for one; and our default, in closed form."""
    from scipy.stats import bootstrap

    series = scores.reshape(RUNS * MEASURES, QUERIES)
    ours = Timing(
        f"steelyard, {len(series)} series, {DRAWS:,} draws",
        best_of(3, lambda: mean_intervals(series, draws=DRAWS)),
        len(series) * DRAWS,
    )
    scipy_seconds = best_of(
        1, lambda: bootstrap((series[0],), np.mean, n_resamples=SCIPY_DRAWS, method="percentile", batch=200)
    )
    return ours, [Timing(f"scipy bootstrap, 1 series, {SCIPY_DRAWS:,}", scipy_seconds, SCIPY_DRAWS)]


def print_table(title: str, ours: Timing, peers: list[Timing]) -> None:
    """One row per tool: seconds, time per unit, and the ratio to ours."""
    print(f"\n{title}")
    print(f"{'':58}{'seconds':>9}{'us/unit':>12}{'ratio':>10}")
    for timing in [ours, *peers]:
        ratio = timing.per_unit / ours.per_unit
        print(f"{timing.what:58}{timing.seconds:9.2f}{1e6 * timing.per_unit:12.3f}{ratio:9,.0f}x")


def main() -> None:
    """Measure everything once, and print two tables and three single figures."""
    print(f"{RUNS} runs x {MEASURES} measures x {QUERIES:,} queries, {os.cpu_count()} cores")
    scores = reciprocal_rank_like(np.random.default_rng(0))
    print_table("Randomisation test (unit: one permutation of one test)", *permutation_timings(scores))
    print_table("Bootstrap interval (unit: one resample of one series)", *interval_timings(scores))
    one_measure = scores[:, 0]
    for what, work in (
        ("default intervals of 5 series (closed form)", lambda: mean_intervals(one_measure)),
        ("max-T, 5 runs, 10,000 permutations", lambda: max_t(one_measure, 10_000)),
        ("randomised Tukey HSD, 5 runs, 10,000 draws", lambda: tukey(one_measure, 10_000)),
    ):
        print(f"{what:58}{best_of(2, work):9.4f} s")


if __name__ == "__main__":
    main()
