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
from steelyard.statistics.prediction_powered import prediction_powered, shared_weight

Array = npt.NDArray[np.float64]
FOLDER = Path(__file__).parents[2] / "shared" / "data" / "dl2019"
Parts = tuple[Array, Array, Array, Array]
RUNS = 8
BATCH = 500
"""Draws estimated together."""


class Found(NamedTuple):
    """Coverage of 95% intervals, its standard error, and the mean width relative to that of people alone."""

    covered: float
    error: float
    width: float


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


def resampled_coverage(
    human: Array, predicted: Array, n: int, draws: int, seed: int = 0, *, own: bool = False
) -> tuple[Found, Found]:
    """How often intervals of means and of differences hold the value over all queries, and how wide they are.

    One weight for all runs of a draw, as in `compare`; own: every mean and every difference has its own.
    """
    rng = np.random.default_rng(seed)
    queries, pairs = human.shape[1], list(combinations(range(RUNS), 2))
    first, second = (list(part) for part in zip(*pairs, strict=True))
    kinds: tuple[list[Parts], list[Parts]] = ([], [])
    for _ in range(draws):
        drawn, chosen = rng.integers(0, queries, queries), rng.choice(len(human), RUNS, replace=False)
        y, f, truth = human[chosen][:, drawn], predicted[chosen][:, drawn], human[chosen].mean(axis=1)
        y[:, n:] = np.nan
        weight = shared_weight(y, f)
        kinds[0].append((y, f, truth, np.tile(weight, (len(y), 1))))
        kinds[1].append(
            (y[first] - y[second], f[first] - f[second], truth[first] - truth[second], np.tile(weight, (len(pairs), 1)))
        )
    means, differences = kinds
    return _found(means, (0, 1), own), _found(differences, None, own)


def _found(draws: list[Parts], bounds: tuple[float, float] | None, own: bool) -> Found:
    """All draws of one kind, many together, since rows do not depend on each other; a batch is one block."""
    held, widths, alone = [], [], []
    for start in range(0, len(draws), BATCH):
        y, f, truth, weight = (np.concatenate(part) for part in zip(*draws[start : start + BATCH], strict=True))
        found = prediction_powered(y, f, bounds, weight=None if own else weight)
        held += [each.low <= true <= each.high for each, true in zip(found, truth, strict=True)]
        widths += [each.high - each.low for each in found]
        alone += [each.human_high - each.human_low for each in found]
    by_draw = np.reshape(held, (len(draws), -1)).mean(axis=1)
    error = by_draw.std(ddof=1) / np.sqrt(len(draws))
    return Found(float(by_draw.mean()), float(error), float(np.sum(widths) / np.sum(alone)))


def main(folder: Path = FOLDER, draws: int = 2_000) -> None:
    """Print the table."""
    values = values_by_judge("nDCG@10", folder)
    print("| judge | n | means: covered, width | with own weights | differences: covered, width | with own weights |")
    print("|:---|---:|---:|---:|---:|---:|")
    worst = 0.0
    for judge in sorted(set(values) - {"nist"}):
        for n in (10, 20, 30):
            shared, own = (
                resampled_coverage(values["nist"], values[judge], n, draws, n, own=each) for each in (False, True)
            )
            found = [part[kind] for kind in (0, 1) for part in (shared, own)]
            cells = [f"{100 * each.covered:.1f} ({each.width:.2f})" for each in found]
            worst = max(worst, *(each.error for each in found))
            print(f"| {judge if n == 10 else ''} | {n} | {' | '.join(cells)} |", flush=True)
    print(f"\nThe standard error of a coverage is at most {100 * worst:.2f} points.")


if __name__ == "__main__":
    main(*(kind(given) for kind, given in zip((Path, int), sys.argv[1:], strict=False)))
