"""Simulations on TREC 2019 Deep Learning: intervals of few human judgments and many predicted ones.

`python -m benchmarks.predictions [FOLDER [DRAWS]]` prints the table of docs/validation.md. FOLDER has dl2019:
qrels.txt, runs/ and judges/. Queries are resampled, people judge the first n of 43, a model all of them. A draw
compares eight of the 37 runs; the truth is the mean over the 43 queries by people.
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import steelyard as sy
from steelyard.statistics.prediction_powered import (
    PredictionPowered,
    prediction_powered,
    prediction_powered_differences,
    shared_weight,
)

Array = npt.NDArray[np.float64]
FOLDER = Path(__file__).parents[2] / "shared" / "data" / "dl2019"
RUNS = 8


class Found(NamedTuple):
    """Coverage of 95% intervals, and their mean width relative to those of people alone; then with own weights."""

    of_means: float
    width_of_means: float
    of_differences: float
    width_of_differences: float
    own_of_means: float
    own_width_of_means: float
    own_of_differences: float
    own_width_of_differences: float


def values_by_judge(measure: str, folder: Path = FOLDER, every: int = 1) -> dict[str, Array]:
    """The values of a measure, runs x queries, by people (`nist`) and by each model."""
    runs = [sy.Run.read(path) for path in sorted((folder / "runs").glob("*.gz"))[::every]]
    files = {"nist": folder / "qrels.txt", **{path.stem: path for path in sorted((folder / "judges").glob("*.txt"))}}
    found = {}
    for name, path in files.items():
        qrels = sy.Qrels.read(path)
        frames = [sy.evaluate(qrels, run, [measure]).per_query.sort("query_id") for run in runs]
        found[name] = np.array([frame[measure].to_list() for frame in frames])
    return found


def resampled_coverage(human: Array, predicted: Array, n: int, draws: int, seed: int = 0) -> Found:
    """How often intervals hold the mean over all queries, and how wide they are."""
    rng = np.random.default_rng(seed)
    queries, pairs = human.shape[1], list(combinations(range(RUNS), 2))
    held: dict[tuple[str, bool], list[float]] = {(kind, own): [] for kind in ("m", "d") for own in (False, True)}
    width: dict[tuple[str, bool], list[float]] = {key: [] for key in held}
    for _ in range(draws):
        drawn, chosen = rng.integers(0, queries, queries), rng.choice(len(human), RUNS, replace=False)
        y, f = human[chosen][:, drawn], predicted[chosen][:, drawn]
        y[:, n:] = np.nan
        truth = human[chosen].mean(axis=1)
        gaps = np.array([truth[i] - truth[j] for i, j in pairs])
        for own in (False, True):
            weight = None if own else shared_weight(y, f)
            estimates = {
                "m": (prediction_powered(y, f, (0, 1), weight=weight), truth),
                "d": (prediction_powered_differences(y, f, pairs, weight=weight), gaps),
            }
            for kind, (each, true) in estimates.items():
                held[kind, own].append(_held(each, true))
                width[kind, own].append(_width(each))
    return Found(
        *(float(np.mean(part[kind, own])) for own in (False, True) for kind in ("m", "d") for part in (held, width))
    )


def _held(found: list[PredictionPowered], truth: Array) -> float:
    return float(np.mean([each.low <= true <= each.high for each, true in zip(found, truth, strict=True)]))


def _width(found: list[PredictionPowered]) -> float:
    alone = np.mean([each.human_high - each.human_low for each in found])
    return float(np.mean([each.high - each.low for each in found]) / alone)


def main(folder: Path = FOLDER, draws: int = 2_000) -> None:
    """Print the table."""
    values = values_by_judge("nDCG@10", folder)
    print("| judge | n | means: covered, width | with own weights | differences: covered, width | with own weights |")
    print("|:---|---:|---:|---:|---:|---:|")
    for judge in sorted(set(values) - {"nist"}):
        for n in (10, 20, 30):
            found = resampled_coverage(values["nist"], values[judge], n, draws, n)
            cells = [f"{100 * found[at]:.1f} ({found[at + 1]:.2f})" for at in (0, 4, 2, 6)]
            print(f"| {judge if n == 10 else ''} | {n} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(*(kind(given) for kind, given in zip((Path, int), sys.argv[1:], strict=False)))
