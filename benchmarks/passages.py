"""BM25 from a file of passages, at one, two and four times a size: indexed, saved, opened again and searched.

The passages have 55 words, drawn by Zipf's law from a million made-up ones, about as many as the 8.8 million passages
of MS MARCO have; so do the queries, of 4 to 8 words. The file is written to a temporary folder first, and is removed
afterwards. Indexing and searching are processes of their own, with the default tokenizer. `growth` is that of the
processor time of indexing when the size doubles. Queries are passed one by one, and all at once, which uses all
cores.

Run with `python -m benchmarks.passages [--size 275000] [--steps 1 2 4]`; `--size 8841823 --steps 1` needs
10 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.load import measured_process

VOCABULARY, LENGTH, QUERIES, BLOCK = 1_000_000, 55, 200, 20_000
CONSONANTS, VOWELS = "tnshrdlcmfwpvbgk", "eaoiu"


class Words:
    """Words by their rank, and ranks by Zipf's law."""

    def __init__(self) -> None:
        weights = 1 / (np.arange(VOCABULARY) + 2.7)
        self._until = np.cumsum(weights / weights.sum())
        self._words = np.array([_word(rank) for rank in range(VOCABULARY)], dtype=object)

    def draw(self, random: np.random.Generator, size: int) -> npt.NDArray[np.object_]:
        """Words of a text."""
        ranks = np.searchsorted(self._until, random.random(size))
        found: npt.NDArray[np.object_] = self._words[np.minimum(ranks, VOCABULARY - 1)]
        return found


def _word(rank: int) -> str:
    """A pronounceable word; frequent ones are shorter."""
    letters = ""
    while True:
        rank, consonant = divmod(rank, len(CONSONANTS))
        rank, vowel = divmod(rank, len(VOWELS))
        letters += CONSONANTS[consonant] + VOWELS[vowel]
        if not rank:
            return letters


def write_passages(path: Path, size: int) -> None:
    """A corpus.jsonl of so many passages."""
    words, random = Words(), np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, size, BLOCK):
            count = min(BLOCK, size - first)
            texts = words.draw(random, count * LENGTH).reshape(count, LENGTH)
            file.writelines(f'{{"_id": "{first + n}", "text": "{" ".join(texts[n])}"}}\n' for n in range(count))


def index(folder: Path) -> None:
    """In a process of its own: index the file and save the index."""
    from steelyard.retrievers import BM25

    BM25().index(folder / "corpus.jsonl").save(folder / "index.bm25")


def search(folder: Path) -> None:
    """In a process of its own: open the index and search; the figures are written to a file."""
    from steelyard.retrievers import BM25

    start = time.perf_counter()
    bm25 = BM25.load(folder / "index.bm25")
    found = {"open": time.perf_counter() - start}
    words, random = Words(), np.random.default_rng(5)
    queries = [" ".join(words.draw(random, random.integers(4, 9))) for _ in range(QUERIES)]
    for k in (10, 1000):
        bm25.retrieve(queries, k)
        times = []
        for query in queries:
            start = time.process_time()
            bm25.retrieve([query], k)
            times.append(time.process_time() - start)
        found[f"mean {k}"], found[f"p95 {k}"] = float(np.mean(times)), float(np.percentile(times, 95))
        start = time.perf_counter()
        bm25.retrieve(queries, k)
        found[f"batch {k}"] = (time.perf_counter() - start) / len(queries)
    (folder / "found.json").write_text(json.dumps(found))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=275_000, help="passages at one time")
    parser.add_argument("--steps", type=int, nargs="+", default=[1, 2, 4])
    given, _ = parser.parse_known_args()
    print(
        "| passages | indexed and saved | processor time | growth | peak memory | file | opened "
        "| k=10: mean, p95, at once "
        "| k=1000: mean, p95, at once | peak memory |"
    )
    print("|---:" * 10 + "|")
    before = None
    for step in given.steps:
        with tempfile.TemporaryDirectory() as name:
            before = show(Path(name), step * given.size, before)


def show(folder: Path, size: int, before: float | None) -> float:
    """Print a row; the processor time of indexing."""
    write_passages(folder / "corpus.jsonl", size)
    seconds, worked, peak = measured_process(folder, _called("index", folder))
    os.unlink(folder / "corpus.jsonl")
    _, _, searching = measured_process(folder, _called("search", folder))
    found = json.loads((folder / "found.json").read_text())
    growth = "" if before is None else f"{worked / before:.2f}"
    times = [
        ", ".join(f"{found[f'{what} {k}'] * 1e3:.2f}" for what in ("mean", "p95", "batch")) + " ms" for k in (10, 1000)
    ]
    file = (folder / "index.bm25").stat().st_size
    print(
        f"| {size:,} | {seconds:.1f} s | {worked:.1f} s | {growth} | {peak / 1e6:,.0f} MB | {file / 1e6:,.0f} MB "
        f"| {found['open']:.1f} s | {times[0]} | {times[1]} | {searching / 1e6:,.0f} MB |",
        flush=True,
    )
    return worked


def _called(function: str, folder: Path) -> list[str]:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).resolve().parents[1])!r}); "
    return [
        "-c",
        code
        + f"from pathlib import Path; from benchmarks.passages import {function}; {function}(Path({str(folder)!r}))",
    ]


if __name__ == "__main__":
    sys.exit(main())
