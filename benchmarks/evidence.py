"""Evidence on a large chunking: 10,000 facts in 1,000,000 chunks of 100 tokens, 100,000 spans on 1,000,000 chunks.

Prints seconds by the clock and of the processor, the most memory taken above the input's, and what was found against
what was planted.

Run with `python -m benchmarks.evidence [facts|spans]`; `--small` takes a tenth of everything.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
import polars as pl

from steelyard.benchmark.retrieval import PeakMemory
from steelyard.evidence import Evidence

WORDS = 50_000


def fact_task(facts: int, chunks: int, seed: int = 0) -> tuple[Evidence, pl.DataFrame]:
    """Facts of 20 to 30 words, half of them placed in chunks of 100 words, with the word frequencies of a text."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(97, 123, (WORDS, 9), dtype=np.uint8)
    words = [bytes(row[: 2 + place % 8]).decode() for place, row in enumerate(letters)]
    share = 1 / np.arange(1, WORDS + 1)
    share /= share.sum()
    drawn = rng.choice(WORDS, size=(chunks, 100), p=share)
    vocabulary = np.array(words, dtype=object)
    texts = [" ".join(vocabulary[row]) for row in drawn]
    planted = rng.choice(chunks, size=facts // 2, replace=False)
    known = [" ".join(vocabulary[drawn[row, 10 : 30 + row % 11]]) for row in planted]
    unknown = [" ".join(vocabulary[rng.choice(WORDS, size=25, p=share)]) for _ in range(facts - len(known))]
    key = Evidence({f"q{place}": [{"fact": fact}] for place, fact in enumerate([*known, *unknown])})
    return key, pl.DataFrame({"chunk_id": [f"c{place}" for place in range(chunks)], "text": texts})


def span_task(spans: int, chunks: int, seed: int = 0) -> tuple[Evidence, pl.DataFrame]:
    """Chunks of 400 characters in documents of a thousand, a fifth of them shared with the next; spans of 20 to 300."""
    rng = np.random.default_rng(seed)
    doc, place = np.divmod(np.arange(chunks), 1000)
    start = place * 320
    frame = pl.DataFrame(
        {
            "chunk_id": [f"c{at}" for at in range(chunks)],
            "doc_id": [f"d{at}" for at in doc],
            "start": start,
            "end": start + 400,
        }
    )
    first = rng.integers(0, 320_000, spans)
    rows = zip(
        rng.integers(0, max(1, chunks // 1000), spans).tolist(),
        first.tolist(),
        (first + rng.integers(20, 300, spans)).tolist(),
        strict=True,
    )
    return Evidence({f"q{at}": [{"doc_id": f"d{d}", "start": a, "end": b}] for at, (d, a, b) in enumerate(rows)}), frame


def report(what: str, key: Evidence, chunks: pl.DataFrame) -> None:
    """Seconds to make the qrels, and the peak memory above that of the input."""
    start, worked = time.perf_counter(), time.process_time()
    with PeakMemory() as memory:
        found = key.project(chunks)
    taken, worked = time.perf_counter() - start, time.process_time() - worked
    held = len(key) - found.unfound.height
    print(
        f"{what}: {len(key):,} targets on {chunks.height:,} chunks in {taken:.1f} s "
        f"({worked:.1f} s of processor time), "
        f"{held:,} satisfied, {len(found.qrels):,} judgments, "
        f"{(memory.bytes or 0) / 2**20:,.0f} MB of memory above that of the input"
    )


def main(named: Sequence[str] = ("spans", "facts"), scale: int = 1) -> None:
    """Run the named tasks, or both, at full size or a part of it."""
    if "spans" in named:
        report("spans", *span_task(100_000 // scale, 1_000_000 // scale))
    if "facts" in named:
        report("facts", *fact_task(10_000 // scale, 1_000_000 // scale))


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    main(words or ("spans", "facts"), 10 if "--small" in sys.argv else 1)
