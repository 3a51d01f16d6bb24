"""BM25 compared with rank_bm25, bm25s and tantivy, as ratios of one run.

The task: 100,000 documents of 60 tokens drawn by Zipf's law, 1,000 queries of 4 to 8 tokens drawn alike, the best
10 documents, one thread. rank_bm25 takes a third of a second per query, so it answers a few of them. Times are
processor time, which a busy machine disturbs less, and the best of several rounds in which the engines take turns.
Indexing is timed from texts, so a peer that wants tokens is timed with the splitting; the best of two. Scores are
compared in the same run.

Run with `python -m benchmarks.bm25`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from steelyard.retrievers import BM25

DOCUMENTS, LENGTH, VOCABULARY, QUERIES, K = 100_000, 60, 100_000, 1_000, 10
ROUNDS, RANK_BM25_QUERIES = 3, 5


@dataclass
class Engine:
    """An engine: seconds to index, and the lowest seconds per query over the rounds."""

    name: str
    search: Callable[[], Any]
    queries: int
    index_seconds: float
    per_query: float = field(default=float("inf"))

    def time(self) -> Any:
        """One round."""
        seconds, found = timed(self.search)
        self.per_query = min(self.per_query, seconds / self.queries)
        return found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a call, and its result."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def indexed(build: Callable[[], Any]) -> tuple[float, Any]:
    """The lower time of two builds, and the second build."""
    first, _ = timed(build)
    second, built = timed(build)
    return min(first, second), built


def task(seed: int = 0) -> tuple[dict[str, str], list[str]]:
    """The corpus and the queries."""
    draw = np.random.default_rng(seed)
    weights = 1 / (np.arange(VOCABULARY) + 2.7)
    chances = weights / weights.sum()
    words = np.array([f"w{number}" for number in range(VOCABULARY)], dtype=object)
    drawn = draw.choice(VOCABULARY, size=(DOCUMENTS, LENGTH), p=chances)
    corpus = {f"d{place}": " ".join(words[row]) for place, row in enumerate(drawn)}
    lengths = draw.integers(4, 9, QUERIES)
    return corpus, [" ".join(words[draw.choice(VOCABULARY, size=n, p=chances)]) for n in lengths]


def ours(name: str, native: bool, corpus: dict[str, str], queries: list[str]) -> Engine:
    """One of our two implementations, from texts."""
    os.environ["STEELYARD_NATIVE"] = "1" if native else "0"
    seconds, bm25 = indexed(lambda: BM25("okapi", tokenizer="whitespace").index(corpus))

    def search() -> Any:
        os.environ["STEELYARD_NATIVE"] = "1" if native else "0"
        return bm25.retrieve(queries, K)

    return Engine(name, search, len(queries), seconds)


def peers(corpus: dict[str, str], queries: list[str]) -> list[Engine]:
    """The other engines that are installed."""
    asked = [query.split() for query in queries]
    found = []
    if find_spec("bm25s"):
        for backend in ("numpy", "numba") if find_spec("numba") else ("numpy",):
            found.append(bm25s_engine(backend, corpus, asked))
    if find_spec("tantivy"):
        found.append(tantivy_engine(corpus, asked))
    return found


def bm25s_engine(backend: str, corpus: dict[str, str], asked: list[list[str]]) -> Engine:
    """bm25s, in the variant whose formula is closest to okapi."""
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    import bm25s

    def build() -> Any:
        engine = bm25s.BM25(method="atire", backend=backend)
        engine.index([text.split() for text in corpus.values()], show_progress=False)
        return engine

    seconds, engine = indexed(build)
    engine.retrieve(asked[:2], k=K, show_progress=False)  # numba compiles here, before the measurement
    return Engine(
        f"bm25s, {backend}", lambda: engine.retrieve(asked, k=K, show_progress=False), len(asked), seconds
    )


def tantivy_engine(corpus: dict[str, str], asked: list[list[str]]) -> Engine:
    """tantivy, in memory, with one writer thread."""
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("body", tokenizer_name="whitespace").build()

    def build() -> Any:
        index = tantivy.Index(schema)
        writer = index.writer(heap_size=512_000_000, num_threads=1)
        for text in corpus.values():
            writer.add_document(tantivy.Document(body=text))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        return index

    seconds, index = indexed(build)
    searcher = index.searcher()
    parsed = [index.parse_query(" ".join(query), ["body"]) for query in asked]
    return Engine(
        "tantivy", lambda: [searcher.search(query, K).hits for query in parsed], len(asked), seconds
    )


def rank_bm25_engine(corpus: dict[str, str], queries: list[str]) -> tuple[Engine, Callable[[str], Any]]:
    """rank_bm25, on some of the queries, and its scores."""
    from rank_bm25 import BM25Okapi

    seconds, built = indexed(lambda: BM25Okapi([text.split() for text in corpus.values()]))
    few = [query.split() for query in queries[:RANK_BM25_QUERIES]]

    def search() -> Any:
        return [np.argsort(built.get_scores(query))[::-1][:K] for query in few]

    return Engine("rank_bm25", search, len(few), seconds), lambda query: built.get_scores(query.split())


def main() -> None:
    """Print the table."""
    corpus, queries = task()
    native, portable = (
        ours("steelyard, native", True, corpus, queries),
        ours("steelyard, portable", False, corpus, queries),
    )
    baseline, scores_of = rank_bm25_engine(corpus, queries)
    engines = [native, portable, *peers(corpus, queries), baseline]
    answers: dict[str, Any] = {}
    for _ in range(ROUNDS):
        for engine in engines:
            answers[engine.name] = engine.time()

    bm25s_index = min((e.index_seconds for e in engines if e.name.startswith("bm25s")), default=float("nan"))
    print("| engine | index s | bm25s index / this | queries/s | x rank_bm25 |")
    print("|---|---|---|---|---|")
    for engine in engines:
        speed, ratio = 1 / engine.per_query, baseline.per_query / engine.per_query
        against = bm25s_index / engine.index_seconds
        print(f"| {engine.name} | {engine.index_seconds:.2f} | {against:.1f} | {speed:,.1f} | {ratio:,.0f} |")
    numba = next((engine for engine in engines if engine.name == "bm25s, numba"), None)
    if numba is not None:
        print(
            f"\nnative compared with bm25s and numba: {numba.per_query / native.per_query:.2f} times as fast"
        )

    same = answers[native.name] == answers[portable.name]
    equal = True
    for query, found in zip(queries[:RANK_BM25_QUERIES], answers[native.name], strict=False):
        expected = scores_of(query)
        order = np.argsort(-expected, kind="stable")[:K]
        equal &= found == [(f"d{place}", expected[place]) for place in order]
    print(f"native and portable results are {'the same' if same else 'DIFFERENT'};", end=" ")
    print(f"scores are {'bit for bit' if equal else 'NOT'} those of rank_bm25.")


if __name__ == "__main__":
    main()
