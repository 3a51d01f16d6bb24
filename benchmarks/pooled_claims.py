"""All pairs of the dl2019 runs with qrels from the first ten of three runs: claims, checked by the complete qrels.

`python -m benchmarks.pooled_claims [FOLDER]` prints the claims of seven measures and the time.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import polars as pl

import steelyard as sy
from benchmarks.predictions import FOLDER

MEASURES = ["nDCG@10", "AP", "P@10", "RR@10", "R@100", "nDCG", "RBP"]
POOLED, DEPTH = 3, 10


def main() -> None:
    """Compare with the qrels of three runs, and then with all qrels."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    qrels = sy.Qrels.read(folder / "qrels.txt")
    runs = [sy.Run.read(path) for path in sorted((folder / "runs").glob("*.gz"))]
    first = pl.concat([run.frame.filter(pl.col("rank") <= DEPTH) for run in runs[:POOLED]])
    pool = sy.Qrels(qrels.frame.join(first, on=["query_id", "doc_id"], how="semi"))
    started = time.perf_counter(), time.process_time()
    found = sy.compare(pool, runs, MEASURES)
    wall, processor = time.perf_counter() - started[0], time.process_time() - started[1]
    known = sy.compare(qrels, runs, MEASURES, correction="none").tested_pairs
    truth = {(pair.measure, pair.run, pair.baseline): (pair.difference, pair.p) for pair in known}
    truth |= {(measure, two, one): (-gap, p) for (measure, one, two), (gap, p) in truth.items()}
    significant = [pair for pair in found.tested_pairs if pair.p_adjusted < 0.05]
    claims = [pair for pair in significant if pair.verdict in ("better", "worse")]
    checked = [truth[pair.measure, pair.run, pair.baseline] for pair in claims]
    opposite = [gap * pair.difference <= 0 for pair, (gap, _) in zip(claims, checked, strict=True)]
    unsupported = [wrong or p >= 0.05 for wrong, (_, p) in zip(opposite, checked, strict=True)]
    print(
        f"{len(found.tested_pairs):,} differences, {len(significant):,} significant, {len(claims):,} claims: "
        f"{sum(opposite)} opposite, {sum(unsupported)} unsupported"
    )
    print(f"{wall:.1f} s, {processor:.1f} s of processor time")


if __name__ == "__main__":
    main()
