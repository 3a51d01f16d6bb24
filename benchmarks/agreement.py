"""Does the verdict of `agreement` say more than the data supports? Draws of few documents from TREC 2019 Deep Learning.

`python -m benchmarks.agreement [FOLDER [DRAWS]]` prints the figures of docs/validation.md. A draw has 30 documents that
people and a model graded, and three runs. The verdict says more than the complete data supports if it calls the two
rankings of runs alike, or if its interval of kappa is above the kappa of all 9,260 documents.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import steelyard as sy
from benchmarks.predictions import FOLDER
from steelyard.judging.agreement import agreement
from steelyard.statistics.agreement import cohen_kappa

DOCUMENTS, RUNS = 30, 3


class Oversold(NamedTuple):
    """Shares of the draws: a claim on rankings, an interval of kappa above the truth, below it, and 'too few'."""

    ranking: float
    above: float
    below: float
    too_few: float


def oversold(draws: int, folder: Path = FOLDER, seed: int = 0) -> Oversold:
    """How often the verdict says more, or less, than the complete data."""
    rng = np.random.default_rng(seed)
    paths = sorted((folder / "judges").glob("*.txt"))
    human, *models = (_grades(path) for path in (folder / "qrels.txt", *paths))
    pairs = sorted(human)
    files = sorted((folder / "runs").glob("*.gz"))
    runs = {path.name: _top(sy.Run.read(path)) for path in files}
    truth = [cohen_kappa([human[pair] for pair in pairs], [model[pair] for pair in pairs]) for model in models]
    found = np.zeros(4)
    for _ in range(draws):
        which = int(rng.integers(len(models)))
        chosen = [pairs[place] for place in rng.choice(len(pairs), DOCUMENTS, replace=False)]
        judges = {
            name: {query: {d: grades[q, d] for q, d in chosen if q == query} for query, _ in chosen}
            for name, grades in (("human", human), ("model", models[which]))
        }
        three = {str(name): runs[str(name)] for name in rng.choice(sorted(runs), RUNS, replace=False)}
        verdict = str(agreement(judges, three, ["nDCG@10"]).verdict)
        stated = re.search(r"kappa -?\d\.\d+ \[(-?\d\.\d+), (-?\d\.\d+)\]", verdict)
        low, high = map(float, stated.groups()) if stated else (-1.0, 1.0)
        found += ["model ranks the runs" in verdict, low > truth[which], high < truth[which], stated is None]
    return Oversold(*(found / draws).tolist())


def _grades(path: Path) -> dict[tuple[str, str], int]:
    rows = sy.Qrels.read(path).frame.select("query_id", "doc_id", "grade").iter_rows()
    return {(query, doc): int(grade) for query, doc, grade in rows}


def _top(run: sy.Run) -> dict[str, list[str]]:
    lists: dict[str, list[str]] = {}
    for query, doc, rank in run.frame.select("query_id", "doc_id", "rank").iter_rows():
        if rank <= 10:
            lists.setdefault(query, []).append(doc)
    return lists


def main(folder: Path = FOLDER, draws: int = 500) -> None:
    """Print the shares."""
    for name, share in oversold(draws, folder)._asdict().items():
        print(f"{name}: {share:.1%}")


if __name__ == "__main__":
    main(*(kind(given) for kind, given in zip((Path, int), sys.argv[1:], strict=False)))
