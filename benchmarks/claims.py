"""Simulations of claims: intervals, power under corrections, the best of a history, Tukey's test, missing judgments.

`python -m benchmarks.claims [DRAWS [TABLE ...]]` prints the tables of docs/validation.md; 2,000 draws by default.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

import steelyard as sy
from steelyard.statistics import (
    adjust,
    best_of_p,
    fall_tests,
    max_t,
    mean_interval,
    paired_tests,
    power_analysis,
    tukey,
)
from steelyard.statistics.corrections import interval_level, student_margin

Array = npt.NDArray[np.float64]
RESAMPLES = 1_000


def scores(rng: np.random.Generator, shifts: Array, queries: int, spread: Array | float = 0.15) -> Array:
    """Values of runs, runs x queries: the difficulty of the query, the run's shift, and noise."""
    noise = np.broadcast_to(np.asarray(spread, dtype=np.float64), len(shifts))[:, None]
    values = rng.beta(2, 3, queries) + shifts[:, None] + noise * rng.normal(size=(len(shifts), queries))
    return np.asarray(values)


def coverage(method: str, shifts: Array, queries: int, draws: int, spread: Array | float = 0.15) -> float:
    """The share of draws in which the intervals of all pairs hold their true differences."""
    rng = np.random.default_rng(7)
    pairs = list(itertools.combinations(range(len(shifts)), 2))
    truth = np.array([shifts[i] - shifts[j] for i, j in pairs])
    held = 0
    for draw in range(draws):
        values = scores(rng, shifts, queries, spread)
        gaps = np.array([values[i] - values[j] for i, j in pairs])
        if method in ("tukey", "max-t"):
            margins = np.array((tukey if method == "tukey" else max_t)(values, RESAMPLES, draw).margins)
        else:
            p = adjust([result.p for result in paired_tests(gaps)], method)  # type: ignore[arg-type]
            level = 0.05 * interval_level(p, method)  # type: ignore[arg-type]
            margins = np.array([student_margin(gap, level) for gap in gaps])
        held += bool(np.all(np.abs(gaps.mean(axis=1) - truth) <= margins))
    return held / draws


def false_coverage(shifts: Array, queries: int, draws: int) -> float:
    """The mean share of wrong intervals among those of significant differences, with the correction bh."""
    rng = np.random.default_rng(8)
    pairs = list(itertools.combinations(range(len(shifts)), 2))
    truth = np.array([shifts[i] - shifts[j] for i, j in pairs])
    total = 0.0
    for _ in range(draws):
        values = scores(rng, shifts, queries)
        gaps = np.array([values[i] - values[j] for i, j in pairs])
        p = adjust([result.p for result in paired_tests(gaps)], "bh")
        level = 0.05 * interval_level(p, "bh")
        wrong = np.abs(gaps.mean(axis=1) - truth) > [student_margin(gap, level) for gap in gaps]
        total += float((wrong & (p < 0.05)).sum()) / max(1, int((p < 0.05).sum()))
    return total / draws


def reached_power(runs: int, effect: float, draws: int, corrected: bool) -> tuple[int, float]:
    """The queries needed for a true effect, and how often the pair is significant with so many, by Holm's correction.

    One run leads, and the others are equal.
    """
    rng = np.random.default_rng(9)
    pairs = list(itertools.combinations(range(runs), 2))
    # A pilot that has exactly the true effect (Cohen's d of the differences).
    noise = rng.normal(size=400)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    alpha = 0.05 / len(pairs) if corrected else 0.05
    needed = power_analysis(effect + noise, alpha=alpha).needed or 0
    lead = np.zeros((runs, 1))
    lead[0] = effect * math.sqrt(2)
    found = 0
    for _ in range(draws):
        values = rng.normal(size=(runs, needed)) + lead
        gaps = np.array([values[i] - values[j] for i, j in pairs])
        mean, deviation = gaps.mean(axis=1), gaps.std(axis=1, ddof=1)
        p = two_sided(mean / (deviation / math.sqrt(needed)), needed)
        found += bool(adjust(p, "holm")[0] < 0.05)
    return needed, found / draws


def two_sided(t: Array, queries: int) -> Array:
    """The p-values of Student's t."""
    from scipy.special import stdtr

    return np.asarray(2.0 * stdtr(queries - 1, -np.abs(t)))


def below_best(points: int, queries: int, drop: float, draws: int) -> tuple[float, float]:
    """How often the last of several points is called below the best: without and with the correction."""
    rng = np.random.default_rng(10)
    plain = corrected = 0
    for draw in range(draws):
        values = rng.beta(2, 2, queries) + rng.normal(0, 0.1, (points, queries))
        values[-1] -= drop
        best = int(values.mean(axis=1).argmax())
        if best == points - 1:
            continue
        gaps = values[:-1] - values[-1]
        p = fall_tests(-gaps[best][None, :])[0].p
        plain += bool(p < 0.05)
        corrected += bool(best_of_p(p, gaps, RESAMPLES, draw) < 0.05)
    return plain / draws, corrected / draws


def false_claims(test: str, spread: Array, queries: int, draws: int) -> float:
    """How often a test of all pairs of equal runs with these spreads finds any difference."""
    rng = np.random.default_rng(11)
    joint = tukey if test == "tukey" else max_t
    found = 0
    for draw in range(draws):
        found += min(joint(scores(rng, np.zeros(len(spread)), queries, spread), RESAMPLES, draw).p) < 0.05
    return found / draws


def reciprocal_ranks(rng: np.random.Generator, queries: int, changed: float) -> Array:
    """Differences of reciprocal ranks: most queries tied, the others moved, up more often than down."""
    ranks = np.array([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 10, 0])
    before = rng.choice(ranks, queries, p=[0.5, 0.15, 0.1, 0.08, 0.07, 0.05, 0.05])
    after = rng.choice(ranks, queries, p=[0.7, 0.12, 0.06, 0.04, 0.03, 0.03, 0.02])
    moved = rng.random(queries) < changed
    return np.asarray(np.where(moved, after - before, 0.0))


def tied_coverage(queries: int, changed: float, draws: int) -> dict[str, float]:
    """The coverage of 95% intervals of a mean difference of reciprocal ranks."""
    rng = np.random.default_rng(12)
    truth = float(reciprocal_ranks(rng, 4_000_000, changed).mean())
    held = {"percentile": 0, "t": 0, "bca": 0}
    for draw in range(draws):
        gap = reciprocal_ranks(rng, queries, changed)
        for method in held:
            low, high = mean_interval(gap, draws=RESAMPLES, seed=draw, method=method)  # type: ignore[arg-type]
            held[method] += bool(low <= truth <= high)
    return {method: count / draws for method, count in held.items()}


def one_missing(test: str, claims: int) -> tuple[int, int]:
    """Claims of six runs with complete judgments, and how many one missing judgment at rank 10 leaves undecided.

    Claims with p below 0.03, so that the judgment itself does not decide.
    """
    rng = np.random.default_rng(13)
    clear = undecided = 0
    while clear < claims:
        qrels: dict[str, dict[str, int]] = {}
        runs: dict[str, dict[str, list[str]]] = {f"run{number}": {} for number in range(6)}
        for query in (f"q{number}" for number in range(30)):
            grades = rng.choice([0, 1, 2], 40, p=[0.7, 0.2, 0.1])
            for place, lists in enumerate(runs.values()):
                order = np.argsort(-((2.5 - 0.3 * place) * grades + rng.standard_normal(40)))[:12]
                lists[query] = [f"d{doc}" for doc in order]
            found = {doc for lists in runs.values() for doc in lists[query]}
            qrels[query] = {doc: int(grades[int(doc[1:])]) for doc in sorted(found)}
        known = sy.compare(qrels, runs, ["nDCG@10"], test=test, permutations=RESAMPLES).tested_pairs
        sure = {pair.names for pair in known if pair.p_adjusted < 0.03}
        del qrels["q0"][runs[f"run{rng.integers(6)}"]["q0"][9]]
        again = sy.compare(qrels, runs, ["nDCG@10"], test=test, permutations=RESAMPLES).tested_pairs
        clear += len(sure)
        undecided += sum(pair.verdict == "undecided" for pair in again if pair.names in sure)
    return clear, undecided


def interval_table(draws: int) -> Iterator[str]:
    """Simultaneous coverage of the intervals of 10 pairs of 5 runs; the false coverage rate."""
    equal, apart = np.zeros(5), np.array([0.0, 0.0, 0.05, 0.1, 0.3])
    for (name, shifts), queries in itertools.product((("equal runs", equal), ("unequal runs", apart)), (20, 50, 100)):
        row = [f"{coverage(method, shifts, queries, draws):.1%}" for method in ("none", "holm", "tukey", "max-t")]
        yield f"| {name}, n = {queries} | " + " | ".join(row) + " |"
    yield f"false coverage rate with bh: {false_coverage(apart, 50, draws):.1%}"


def power_table(draws: int) -> Iterator[str]:
    """Queries needed, and the power that they have under Holm's correction."""
    for runs, corrected in itertools.product((2, 10), (False, True)):
        needed, power = reached_power(runs, 0.12, draws, corrected)
        yield f"| {runs} runs, {'corrected' if corrected else 'uncorrected'} level | {needed:,} | {power:.1%} |"


def history_table(draws: int) -> Iterator[str]:
    """The last of a history against the best: without and with the correction."""
    for points, drop in itertools.product((5, 10, 30), (0.0, 0.04)):
        plain, corrected = below_best(points, 100, drop, draws)
        yield f"| {points} points, a drop of {drop} | {plain:.1%} | {corrected:.1%} |"


def spread_table(draws: int) -> Iterator[str]:
    """False claims of 5 equal runs whose values vary unequally, n = 50."""
    for name, spread in (("equal", [0.15] * 5), ("one x 2", [0.3, *[0.15] * 4]), ("one x 4", [0.6, *[0.15] * 4])):
        row = [f"{false_claims(test, np.array(spread), 50, draws):.1%}" for test in ("tukey", "max-t")]
        yield f"| {name} | " + " | ".join(row) + " |"


def tied_table(draws: int) -> Iterator[str]:
    """Coverage of 95% intervals of differences of reciprocal ranks, most queries tied: percentile, t, BCa."""
    for queries, changed in itertools.product((50, 100), (0.05, 0.1, 0.2, 0.5)):
        held = tied_coverage(queries, changed, draws)
        yield f"| n = {queries}, {1 - changed:.0%} tied | " + " | ".join(f"{each:.1%}" for each in held.values()) + " |"


def missing_table(draws: int) -> Iterator[str]:
    """Claims that one missing judgment leaves undecided, for as many claims as there are draws."""
    for test in ("t", "wilcoxon", "max-t"):
        clear, undecided = one_missing(test, draws)
        yield f"| {test} | {undecided} of {clear:,} |"


TABLES: dict[str, Callable[[int], Iterator[str]]] = {
    "intervals": interval_table,
    "power": power_table,
    "history": history_table,
    "spread": spread_table,
    "tied": tied_table,
    "missing": missing_table,
}


def main() -> None:
    """Print the tables."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    for name in sys.argv[2:] or TABLES:
        print(f"{TABLES[name].__doc__} {draws:,} draws.")
        for line in TABLES[name](draws):
            print(line, flush=True)


if __name__ == "__main__":
    main()
