"""Time and memory of a bench whose retrievers return texts, with and without them.

    python benchmarks/returned_texts.py [QUESTIONS]

Every retriever returns ten documents of 500 characters, of 200,000 in all, at once: the times are those of the bench,
and a retriever's own time is to be added to both. Each case is a process of its own, whose peak memory is printed.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOCUMENTS = 200_000
TEXT = "x" * 480


def retriever(number: int, texts: bool):
    def search(query: str, k: int):
        start = (hash(query) * (number + 1)) % DOCUMENTS
        found = [(start + rank * 7919) % DOCUMENTS for rank in range(k)]
        if texts:
            return [
                {"id": f"d{doc}", "text": f"{doc} {TEXT}", "score": 1.0 / (rank + 1)} for rank, doc in enumerate(found)
            ]
        return [{"id": f"d{doc}", "score": 1.0 / (rank + 1)} for rank, doc in enumerate(found)]

    return search


def main() -> None:
    questions = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    if len(sys.argv) < 3:
        for case in ("ids", "texts"):
            subprocess.run([sys.executable, __file__, str(questions), case], check=True)
        return
    import steelyard as sy

    retrievers = {f"r{number}": retriever(number, sys.argv[2] == "texts") for number in range(3)}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        cpu = time.process_time()
        result = sy.bench(
            {"queries": [f"question number {n}?" for n in range(questions)], "retrievers": retrievers, "depth": 10},
            Path(folder) / "result",
        )
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        size = (result.folder / "documents.parquet").stat().st_size / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{sys.argv[2]}: {questions:,} questions x 3 retrievers: {1e3 * seconds / questions / 3:.2f} ms per question "
        f"and retriever ({1e3 * cpu / questions / 3:.2f} ms of the processor), peak {peak:,.0f} MB, "
        f"documents.parquet {size:.0f} MB"
    )


if __name__ == "__main__":
    main()
