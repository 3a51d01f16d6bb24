"""Corrections for several tests: adjusted p-values, and the tests of a whole family of runs (Tukey HSD, max-T)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from steelyard.checks import unknown_name, whole_number
from steelyard.errors import PolicyError
from steelyard.lazy import special
from steelyard.native import kernel
from steelyard.statistics import arrays
from steelyard.statistics.arrays import Array, Counts, Pair, SignVectors, mean_and_deviation, random_positions
from steelyard.statistics.effect import cohens_d

Correction = Literal["none", "bonferroni", "holm", "bh"]
CORRECTIONS: tuple[Correction, ...] = get_args(Correction)


def check_correction(name: str) -> None:
    """Raise an error for an unknown correction."""
    if name not in CORRECTIONS:
        raise PolicyError(unknown_name("correction", name, CORRECTIONS))


def adjust(p_values: npt.ArrayLike, correction: Correction = "holm") -> Array:
    """Adjusted p-values, in the order given; compare each with alpha.

    With m tests, p sorted ascending: `bonferroni` m p; `holm` the running maximum of (m - i) p_(i), i from 0, which
    controls the family-wise error rate as Bonferroni does and is never less powerful; `bh` (Benjamini-Hochberg) the
    running minimum from the largest down of m p_(i) / (i + 1), which controls the false discovery rate. All are capped
    at 1. NaN (no test was possible) stays NaN and is not counted in m.

    >>> adjust([0.01, 0.04, 0.03], "holm")
    array([0.03, 0.06, 0.06])
    """
    check_correction(correction)
    values = arrays.one_series(p_values)
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


def interval_level(adjusted: npt.ArrayLike, correction: Correction, alpha: float = 0.05) -> float:
    """The share of alpha that is left to each of several intervals, by the correction of their tests.

    With m tests: 1 for `none`, 1 / m for `bonferroni` and `holm` (the intervals are simultaneous; those of Holm's
    procedure itself say nothing on the size of a difference), and R / m for `bh` with R significant results (Benjamini
    and Yekutieli 2005: of the intervals of significant differences, a share of alpha misses its difference).

    >>> interval_level([0.01, 0.02, 0.3, 0.4], "bh"), interval_level([0.01, 0.02, 0.3, 0.4], "holm")
    (0.5, 0.25)
    """
    tested = arrays.one_series(adjusted)
    tested = tested[~np.isnan(tested)]
    if correction == "none" or not len(tested):
        return 1.0
    significant = int(np.sum(tested < alpha)) if correction == "bh" else 1
    return max(1, significant) / len(tested)


def student_margin(differences: npt.ArrayLike, alpha: float) -> float:
    """The half-width of Student's interval of a mean difference, at a level of 1 - alpha; NaN for one query."""
    values, _ = arrays.present(differences)
    n = len(values)
    if n < 2:
        return math.nan
    return float(special.stdtrit(n - 1, 1.0 - alpha / 2.0)) * mean_and_deviation(values)[1] / math.sqrt(n)


def margin_level(differences: npt.ArrayLike, margin: float, otherwise: float) -> float:
    """The alpha at which Student's interval has this half-width; `otherwise` where it has none."""
    values, _ = arrays.present(differences)
    n = len(values)
    deviation = mean_and_deviation(values)[1] if n > 1 else 0.0
    if not deviation or not margin > 0.0:
        return otherwise
    return max(float(2.0 * special.stdtr(n - 1, -margin / (deviation / math.sqrt(n)))), 1e-12)


# Up to this many queries all 2**n sign vectors are enumerated instead of drawn.
EXACT_QUERIES = 16
# All orders of up to 6 runs are used; for more runs, each batch of draws has random orders of its own.
TABLED_RUNS = 6
DRAWS_PER_BATCH = 1024
FEWEST_ORDERS = 32
ORDERS_TIMES_QUERIES = 2**13  # Few queries get more orders: orders times queries are about as many.
CELLS_PER_BLOCK = 2**19

Orders = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class FamilyResult:
    """Adjusted two-sided p-values for pairs of runs (row numbers), from one joint test.

    `statistics` are mean differences for `tukey` and t values for `max_t`. `margins` are half-widths of simultaneous
    intervals of the mean differences, from the same draws: that of a pair excludes 0 exactly if the pair differs
    significantly in one step, without the step-down of `max_t`. Every `p` is NaN where no test is possible, and
    `reason` gives the reason.
    """

    pairs: tuple[Pair, ...]
    statistics: tuple[float, ...]
    p: tuple[float, ...]
    margins: tuple[float, ...]
    n: int
    left_out: int
    method: str
    reason: str = ""


def tukey(
    matrix: npt.ArrayLike, draws: int = 10_000, seed: int = 0, pairs: Sequence[Pair] | None = None, alpha: float = 0.05
) -> FamilyResult:
    """Randomised Tukey HSD, blocked by query (Carterette 2012), for a matrix runs x queries.

    If the runs are equally good, the scores of a query may be dealt to the runs in any order. Each
    draw deals every query's scores at random and records the range of the runs' means; p of a pair is
    (b + 1) / (m + 1), b the number of draws whose range is at least the pair's difference. With two
    runs this is the randomisation test. `pairs` are the pairs to report (default: all); all
    runs take part in the draws either way. The margins are the range that a share of alpha of the draws exceeds.

    >>> scores = [[0.9, 0.8, 0.7, 0.9, 0.8, 0.6], [0.1, 0.2, 0.1, 0.3, 0.2, 0.1],
    ...           [0.2, 0.1, 0.2, 0.2, 0.3, 0.1]]
    >>> result = tukey(scores)
    >>> result.pairs, [p < 0.05 for p in result.p]
    (((0, 1), (0, 2), (1, 2)), [True, True, False])
    """
    scores, chosen, left_out = complete_queries(matrix, pairs)
    draws = arrays.checked_count(draws, "draws")
    runs, n = scores.shape
    if (result := untested(chosen, runs, n, left_out)) is not None:
        return result
    whole, shift = arrays.whole_numbers(scores.T, n)
    ranges = np.sort(shuffled_ranges(whole, draws, whole_number("seed", seed)))
    totals = whole.sum(axis=0)
    gaps = np.array([totals[i] - totals[j] for i, j in chosen])
    # Two sums of n rounded values on either side: an equal range may be up to 2n units smaller.
    hits = draws - np.searchsorted(ranges, np.abs(gaps) - 2 * n, side="left")
    differences = np.ldexp(gaps, -shift) / n
    p = (hits + 1.0) / (draws + 1.0)
    margin = float(np.ldexp(critical_value(ranges, most_reaching(alpha, draws)), -shift)) / n
    columns = tuple(differences.tolist()), tuple(p.tolist()), (margin,) * len(chosen)
    return FamilyResult(tuple(chosen), *columns, n, left_out, f"randomised Tukey HSD, {draws:,} draws")


def most_reaching(alpha: float, draws: int) -> int:
    """The largest number of draws that may reach a value for (b + 1) / (m + 1) < alpha; -1 if none may."""
    return max(-1, math.ceil(alpha * (draws + 1.0)) - 2)


def critical_value(ascending: Array, most: int) -> float:
    """The value that more than `most` of the sorted values reach: a larger one is significant; inf for most < 0."""
    return float(ascending[-1 - most]) if 0 <= most < len(ascending) else math.inf


def shuffled_ranges(whole: Array, draws: int, seed: int) -> Array:
    """The range of the runs' sums in every draw, with the scores of each query in a random order.

    That is one of a few orders, shifted by a random number of places, so that each run gets each score equally often.
    """
    whole = np.ascontiguousarray(whole)
    queries, runs = whole.shape
    add = native.add_shuffled if (native := kernel()) is not None else add_shuffled

    def one_batch(start: int) -> Array:
        """The ranges of the draws from `start` on, with random orders of their own."""
        generator = np.random.PCG64(seed).jumped(start // DRAWS_PER_BATCH)
        orders = run_orders(runs, max(FEWEST_ORDERS, ORDERS_TIMES_QUERIES // queries), generator)
        sums = np.zeros((min(DRAWS_PER_BATCH, draws - start), runs))
        block = max(1, CELLS_PER_BLOCK // len(sums))
        for first in range(0, queries, block):
            scores = whole[first : first + block]
            add(scores, orders, random_positions(len(orders) * runs, len(scores), len(sums), generator), sums)
        return np.asarray(np.ptp(sums, axis=1))

    return np.concatenate(arrays.in_threads(one_batch, range(0, draws, DRAWS_PER_BATCH)))


def add_shuffled(scores: Array, orders: Orders, picked: npt.NDArray[np.int64], sums: Array) -> None:
    """Add the scores of each query (a row), in the order picked for each draw, to the runs' sums (draws x runs).

    A row of `orders` has an order twice; picked is the number of an order times the runs, plus a shift.
    """
    runs = scores.shape[1]
    for row, numbers in zip(scores, picked, strict=True):
        starts = numbers + numbers // runs * runs
        sums += row[orders].reshape(-1)[starts[:, None] + np.arange(runs)]


def run_orders(runs: int, count: int, generator: np.random.PCG64) -> Orders:
    """All orders that are not shifts of each other for few runs, else random ones; each written twice in a row."""
    if runs <= TABLED_RUNS:
        once = np.array([(0, *rest) for rest in itertools.permutations(range(1, runs))], dtype=np.uint32)
    else:
        once = np.argsort(random_positions(2**31, count, runs, generator), axis=1, kind="stable").astype(np.uint32)
    return np.tile(once, 2)


def max_t(
    matrix: npt.ArrayLike,
    permutations: int = 10_000,
    seed: int = 0,
    pairs: Sequence[Pair] | None = None,
    alpha: float = 0.05,
) -> FamilyResult:
    """Step-down max-T over sign flips (Westfall and Young 1993), for a matrix runs x queries.

    Each draw flips the signs of whole queries, for all pairs at once, which preserves the correlation
    between pairs. Differences are studentised, so a pair with a large variance does not dominate the
    others. Pairs are taken from the largest |t| down; each is compared with the largest |t| among
    itself and those below it. With few queries (up to 16) all sign vectors are enumerated and p is
    exact. `pairs` is the family: all pairs by default, or for instance every run against one baseline.
    The margins are c s / sqrt(n), with c the |t| that the largest |t| exceeds in a share of alpha of the draws.

    >>> scores = [[0.9, 0.8, 0.7, 0.9, 0.8, 0.6], [0.1, 0.2, 0.1, 0.3, 0.2, 0.1],
    ...           [0.2, 0.1, 0.2, 0.2, 0.3, 0.1]]
    >>> max_t(scores).p
    (0.03125, 0.03125, 1.0)
    """
    scores, chosen, left_out = complete_queries(matrix, pairs)
    permutations = arrays.checked_count(permutations, "permutations")
    runs, n = scores.shape
    if (result := untested(chosen, runs, n, left_out)) is not None:
        return result
    whole, _ = arrays.whole_numbers(scores.T, n, arrays.SIGNED_BITS)
    first, second = (np.array(side, dtype=np.int64) for side in zip(*chosen, strict=True))
    gaps = whole[:, first] - whole[:, second]
    # The sum of squares does not change with the signs, so |sum| / root(squares) orders as |t| does.
    roots = np.sqrt((gaps * gaps).sum(axis=0))
    scale = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0.0)
    ratios = np.abs(gaps.sum(axis=0)) * scale
    order = np.argsort(-ratios, kind="stable")
    # Two rounded scores per query: an equal sum may be up to 2n units smaller.
    reached = (ratios - 2 * n * scale)[order]
    first, second, ordered_scale = first[order], second[order], scale[order]
    exact = n <= EXACT_QUERIES
    vectors = SignVectors(n, 2**n, None) if exact else SignVectors(n, permutations, whole_number("seed", seed))

    maxima: list[Array] = []

    def reaching(sums: Array) -> Counts:
        drawn = np.abs(sums[:, first] - sums[:, second]) * ordered_scale
        largest_from_here = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
        maxima.append(largest_from_here[:, 0])
        return np.asarray(np.count_nonzero(largest_from_here >= reached, axis=0))

    hits = arrays.tally_signed_sums(whole, vectors, reaching)
    shares = hits / 2.0**n if exact else (hits + 1.0) / (permutations + 1.0)
    p = np.empty(len(chosen))
    p[order] = np.maximum.accumulate(shares)
    method = "step-down max-T, exact" if exact else f"step-down max-T, {permutations:,} permutations"
    statistics = tuple(cohens_d(scores[i] - scores[j]) * math.sqrt(n) for i, j in chosen)
    most = math.ceil(alpha * 2.0**n) - 1 if exact else most_reaching(alpha, permutations)
    # Of all sign vectors two always reach the observed value: fewer cannot be significant.
    most = -1 if exact and most < 2 else most
    ratio = critical_value(np.sort(np.concatenate(maxima)), most)
    # |sum| / root(squares) is r for t = r root((n - 1) / (n - r^2)).
    t = ratio * math.sqrt((n - 1) / (n - ratio**2)) if ratio**2 < n else math.inf
    deviations = [mean_and_deviation(scores[i] - scores[j])[1] for i, j in chosen]
    margins = tuple(t * deviation / math.sqrt(n) if deviation else 0.0 for deviation in deviations)
    return FamilyResult(tuple(chosen), statistics, tuple(p.tolist()), margins, n, left_out, method)


def best_of_p(p: float, gaps: npt.ArrayLike, permutations: int = 10_000, seed: int = 0) -> float:
    """A one-sided p-value of a loss against the best of several, corrected for having chosen the best.

    gaps: candidates x queries, each of the candidates minus what is tested; p: that of the chosen candidate. The best
    of several is above its true value by chance, so p alone is too small. Each draw flips the signs of whole queries,
    for all candidates at once, as in `max_t`; the corrected p is (b + 1) / (m + 1), b the number of draws in which the
    largest t of any candidate is at least the t that belongs to p. With one candidate it is p.

    >>> best_of_p(0.01, [[0.3, 0.1, 0.2, -0.1, 0.2, 0.1]])
    0.01
    """
    rows = arrays.many_series(gaps)
    rows = np.unique(rows[:, ~np.isnan(rows).any(axis=0)], axis=0)
    rows = rows[rows.any(axis=1)]
    n = rows.shape[1]
    if len(rows) < 2 or n < 2 or not 0.0 < p < 0.5:
        return p
    permutations = arrays.checked_count(permutations, "permutations")
    whole, _ = arrays.whole_numbers(np.ascontiguousarray(rows.T), n, arrays.SIGNED_BITS)
    roots = np.sqrt((whole * whole).sum(axis=0))
    scale = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0.0)
    t = float(special.stdtrit(n - 1, 1.0 - p))
    reached = math.sqrt(n * t**2 / (n - 1 + t**2)) - 2 * n * float(scale.max())

    def reaching(sums: Array) -> Counts:
        return np.asarray(np.count_nonzero((sums * scale).max(axis=1, keepdims=True) >= reached, axis=0))

    vectors = SignVectors(n, permutations, whole_number("seed", seed))
    hits = int(arrays.tally_signed_sums(whole, vectors, reaching)[0])
    return max(p, (hits + 1.0) / (permutations + 1.0))


def complete_queries(matrix: npt.ArrayLike, pairs: Sequence[Pair] | None) -> tuple[Array, list[Pair], int]:
    """The scores of the queries that every run has, the pairs, and the number of queries left out."""
    scores = arrays.many_series(matrix)
    runs = len(scores)
    chosen = list(itertools.combinations(range(runs), 2)) if pairs is None else arrays.checked_pairs(pairs, runs)
    holes = np.isnan(scores).any(axis=0)
    return scores[:, ~holes], chosen, int(holes.sum())


def untested(pairs: list[Pair], runs: int, n: int, left_out: int) -> FamilyResult | None:
    """The result where no test is possible; None if one is."""
    if runs > 1 and n > 1:
        return None
    nothing = (math.nan,) * len(pairs)
    reason = "fewer than two queries have a value in every run" if runs > 1 else "one run only: nothing to compare with"
    return FamilyResult(tuple(pairs), nothing, nothing, nothing, n, left_out, "none", reason)
