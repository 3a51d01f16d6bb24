"""Six chunkers and two retrievers on real spans: which verdicts depend on how much of a passage a chunk must contain.

`python -m benchmarks.chunkers [FOLDER]` prints the figures of docs/validation.md. FOLDER has chunk-spans: corpora/*.md
and questions_df.csv, 472 questions with 790 gold spans in five long texts.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import steelyard as sy

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "chunk-spans"
CHUNKERS: list[Any] = [
    {"fixed": {"tokens": 80}},
    {"fixed": {"tokens": 150}},
    {"fixed": {"tokens": 150, "overlap": 30}},
    {"fixed": {"tokens": 300}},
    {"sentence": {"tokens": 100}},
    {"recursive": {"tokens": 200}},
]
RETRIEVERS = ["bm25-okapi", "dense"]
MEASURES = ["SpanR(budget=600)", "SpanP(budget=600)", "SpanIoU(budget=600)", "R(per=target, budget=600)"]


def dataset(folder: Path = FOLDER) -> tuple[sy.Dataset, sy.Evidence]:
    """The texts with the questions, and the evidence."""
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        questions = {str(number): row["question"] for number, row in enumerate(csv.DictReader(file))}
    texts = {path.stem: path.read_bytes().decode() for path in sorted((folder / "corpora").glob("*.md"))}
    evidence = sy.Evidence.read(folder / "questions_df.csv")
    return sy.Dataset.of(texts, questions, {}, name="chunk-spans"), evidence


def compared(
    folder: Path = FOLDER, chunkers: Sequence[Any] = CHUNKERS, retrievers: Sequence[str] = RETRIEVERS
) -> sy.Comparison:
    """The comparison of every retriever on every chunking."""
    texts, evidence = dataset(folder)
    bench = {
        "dataset": texts,
        "evidence": evidence,
        "chunkers": list(chunkers),
        "retrievers": list(retrievers),
        "measures": MEASURES,
        "depth": 30,
        "warmup": 0,
    }
    with tempfile.TemporaryDirectory() as output:
        return sy.bench(bench, output=Path(output) / "out").comparison


def main(folder: Path = FOLDER) -> None:
    """Print the values of every row, and the pairs of chunkers whose verdict depends on the rule."""
    result = compared(folder)
    print(f"| run | {' | '.join(MEASURES)} |\n|:---|{'---:|' * len(MEASURES)}")
    for row in result.leaderboard_rows:
        print(f"| {row.run} | {' | '.join(f'{row.means[key]:.4f}' for key in MEASURES)} |")
    print("\n| measure | pairs | significant | undecided: depends on the rule |\n|:---|---:|---:|---:|")
    for measure in MEASURES:
        pairs = [pair for pair in result.tested_pairs if pair.measure == measure]
        counts = [sum(pair.verdict in kinds for pair in pairs) for kinds in (("better", "worse"), ("undecided",))]
        print(f"| {measure} | {len(pairs)} | {counts[0]} | {counts[1]} |")
    print()
    for pair in result.tested_pairs:
        if pair.verdict == "undecided":
            print(f"- {pair.run} vs {pair.baseline}: {pair.reason}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
