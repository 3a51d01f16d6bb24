"""Writes a TREC run and its qrels, to measure readers: `python benchmarks/make_run.py FOLDER`.

The usual shape is 6,980 queries of 1,000 documents (279 MB), sorted by query and score. `--order`
shuffles the lines within each query, or over the whole file; `--digits` is the precision of scores
(17 is what Python's repr gives).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

COLLECTION = 8_841_823


def write_run(folder: Path, queries: int, depth: int, order: str, digits: int, seed: int) -> tuple[Path, Path]:
    """The paths of the run and the qrels: one or two relevant documents per query, and one that is not retrieved."""
    folder.mkdir(parents=True, exist_ok=True)
    run, qrels = folder / f"{order}-{queries}x{depth}.run", folder / f"{order}-{queries}x{depth}.qrels"
    rng = np.random.default_rng(seed)
    held: list[str] = []
    with run.open("w") as lines, qrels.open("w") as judgments:
        for number in range(queries):
            query = 1_000_000 + 13 * number
            docs = rng.permutation(np.unique(rng.integers(0, COLLECTION, depth))).tolist()
            scores = np.sort(rng.random(len(docs)) * 30)[::-1].tolist()
            texts = [repr(score) if digits >= 17 else f"{score:.{digits}f}" for score in scores]
            listed = [
                f"{query} Q0 {doc} {rank} {score} bm25\n"
                for rank, (doc, score) in enumerate(zip(docs, texts, strict=True), start=1)
            ]
            if order == "shuffled":
                listed = [listed[i] for i in rng.permutation(len(listed))]
            if order == "interleaved":
                held += listed
            else:
                lines.writelines(listed)
            relevant = {docs[i] for i in rng.integers(0, len(docs), 1 + number % 2)} | {
                int(rng.integers(0, COLLECTION))
            }
            judgments.writelines(f"{query} 0 {doc} 1\n" for doc in sorted(relevant))
        lines.writelines(held[i] for i in rng.permutation(len(held)))
    return run, qrels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--order", choices=["sorted", "shuffled", "interleaved"], default="sorted")
    parser.add_argument("--digits", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for path in write_run(given.folder, given.queries, given.depth, given.order, given.digits, given.seed):
        print(path)


if __name__ == "__main__":
    main()
