"""Time and memory of a bench whose retrievers return texts, and of the same bench with ids alone.

Three retrievers return ten documents of 500 characters, of 200,000 in all, at once: the times are those of the bench,
and a retriever's own time is to be added to both. Each bench is a process of its own. `ratio` is that of the processor
time with and without texts; the goal is 1.2 at most. The goal for memory is that what texts add to it does not grow
with the number of questions: they are on disk.

Run with `python -m benchmarks.returned_texts [QUESTIONS ...]`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUESTIONS = (5_000, 10_000, 20_000)
DOCUMENTS = 200_000
TEXT = "a word or two of a passage, " * 17


def retriever(number: int, texts: bool) -> Callable[[str, int], list[dict[str, Any]]]:
    """A function that knows its answers."""

    def search(query: str, k: int) -> list[dict[str, Any]]:
        start = zlib.crc32(query.encode()) * (number + 1)
        found = [(rank, (start + rank * 7919) % DOCUMENTS) for rank in range(k)]
        if texts:
            return [{"id": f"d{doc}", "text": f"{doc} {TEXT}", "score": 1 / (rank + 1)} for rank, doc in found]
        return [{"id": f"d{doc}", "score": 1 / (rank + 1)} for rank, doc in found]

    return search


def measure(questions: int, texts: bool) -> None:
    """Run a bench, and print its seconds, its processor time and its peak memory."""
    import steelyard as sy

    retrievers = {f"r{number}": retriever(number, texts) for number in range(3)}
    asked = [f"question number {number}?" for number in range(questions)]
    with tempfile.TemporaryDirectory() as folder:
        start, processor = time.perf_counter(), time.process_time()
        result = sy.bench({"queries": asked, "retrievers": retrievers, "depth": 10}, Path(folder) / "result")
        taken = {
            "seconds": time.perf_counter() - start,
            "processor": time.process_time() - processor,
            "documents": result.documents.height,
        }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({**taken, "peak": peak}))


def main(sizes: list[int]) -> None:
    """Print the table."""
    print("| questions | ids | with texts | ratio | peak memory, ids | with texts | texts |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for size in sizes or QUESTIONS:
        ids, texts = (
            json.loads(
                subprocess.run(
                    [sys.executable, "-m", "benchmarks.returned_texts", str(size), case],
                    check=True,
                    stdout=subprocess.PIPE,
                ).stdout
            )
            for case in ("ids", "texts")
        )
        each = [f"{1e6 * taken['processor'] / size / 3:.0f} µs" for taken in (ids, texts)]
        peaks = [f"{taken['peak'] / 1e6:,.0f} MB" for taken in (ids, texts)]
        ratio = texts["processor"] / ids["processor"]
        row = [f"{size:,}", *each, f"{ratio:.2f}", *peaks, f"{texts['documents']:,}"]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[-1] in ("ids", "texts"):
        measure(int(sys.argv[1]), sys.argv[2] == "texts")
    else:
        main([int(text) for text in sys.argv[1:]])
