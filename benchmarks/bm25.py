"""BM25 compared with rank_bm25, bm25s and tantivy, as ratios of one run.

The task: 100,000 documents of 60 tokens drawn by Zipf's law, 1,000 queries of 4 to 8 tokens drawn alike, the best 10
and the best 1,000 documents. rank_bm25 takes a third of a second per query, so it answers a few of them. Times are
processor time, of all threads, which a busy machine disturbs less, and the best of several rounds in which the
engines take turns. Indexing is timed from texts, so a peer that wants tokens is timed with the splitting; the best of
two. Scores are compared in the same run. Then queries of rare terms on 400,000 documents, and indexing with the
default tokenizer, which stems, compared with tantivy's tokenizer that stems.

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

DOCUMENTS, LENGTH, VOCABULARY, QUERIES, KS = 100_000, 60, 100_000, 1_000, (10, 1000)
MANY, RARE = 400_000, 20_000
ROUNDS, RANK_BM25_QUERIES = 3, 5


@dataclass
class Engine:
    """An engine: seconds to index, and the lowest seconds per query over the rounds, by k."""

    name: str
    search: Callable[[int], Any]
    queries: int
    index_seconds: float
    per_query: dict[int, float] = field(default_factory=dict)

    def time(self, k: int) -> Any:
        """One round."""
        seconds, found = timed(lambda: self.search(k))
        self.per_query[k] = min(self.per_query.get(k, float("inf")), seconds / self.queries)
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


def task(documents: int = DOCUMENTS, seed: int = 0) -> tuple[dict[str, str], list[str], list[str]]:
    """The corpus, the queries, and queries of five rare terms each."""
    draw = np.random.default_rng(seed)
    weights = 1 / (np.arange(VOCABULARY) + 2.7)
    chances = weights / weights.sum()
    words = np.array([f"w{number}" for number in range(VOCABULARY)], dtype=object)
    drawn = draw.choice(VOCABULARY, size=(documents, LENGTH), p=chances)
    corpus = {f"d{place}": " ".join(words[row]) for place, row in enumerate(drawn)}
    lengths = draw.integers(4, 9, QUERIES)
    queries = [" ".join(words[draw.choice(VOCABULARY, size=n, p=chances)]) for n in lengths]
    rare = [" ".join(words[draw.integers(RARE, VOCABULARY, 5)]) for _ in range(QUERIES)]
    return corpus, queries, rare


def ours(name: str, native: bool, corpus: dict[str, str], queries: list[str], fill: bool = True) -> Engine:
    """One of our two implementations, from texts."""
    os.environ["STEELYARD_NATIVE"] = "1" if native else "0"
    seconds, bm25 = indexed(lambda: BM25("okapi", tokenizer="whitespace", fill=fill).index(corpus))

    def search(k: int) -> Any:
        os.environ["STEELYARD_NATIVE"] = "1" if native else "0"
        return bm25.retrieve(queries, k)

    return Engine(name, search, len(queries), seconds)


def peers(corpus: dict[str, str], queries: list[str], backends: tuple[str, ...]) -> list[Engine]:
    """The other engines that are installed."""
    asked = [query.split() for query in queries]
    found = []
    if find_spec("bm25s"):
        found += [bm25s_engine(each, corpus, asked) for each in backends if each == "numpy" or find_spec(each)]
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
    for k in KS:
        engine.retrieve(asked[:2], k=k, show_progress=False)  # numba compiles here, before the measurement
    return Engine(f"bm25s, {backend}", lambda k: engine.retrieve(asked, k=k, show_progress=False), len(asked), seconds)


def tantivy_index(corpus: dict[str, str], tokenizer: str) -> Any:
    """An index of tantivy, in memory, with one writer thread."""
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("body", tokenizer_name=tokenizer).build()
    index = tantivy.Index(schema)
    writer = index.writer(heap_size=512_000_000, num_threads=1)
    for text in corpus.values():
        writer.add_document(tantivy.Document(body=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


def tantivy_engine(corpus: dict[str, str], asked: list[list[str]]) -> Engine:
    """tantivy, without stemming."""
    seconds, index = indexed(lambda: tantivy_index(corpus, "whitespace"))
    searcher = index.searcher()
    parsed = [index.parse_query(" ".join(query), ["body"]) for query in asked]
    return Engine("tantivy", lambda k: [searcher.search(query, k).hits for query in parsed], len(asked), seconds)


def rank_bm25_engine(corpus: dict[str, str], queries: list[str]) -> tuple[Engine, Callable[[str], Any]]:
    """rank_bm25, on some of the queries, and its scores."""
    from rank_bm25 import BM25Okapi

    seconds, built = indexed(lambda: BM25Okapi([text.split() for text in corpus.values()]))
    few = [query.split() for query in queries[:RANK_BM25_QUERIES]]

    def search(k: int) -> Any:
        return [np.argsort(built.get_scores(query))[::-1][:k] for query in few]

    return Engine("rank_bm25", search, len(few), seconds), lambda query: built.get_scores(query.split())


def main() -> None:
    """Print the tables."""
    corpus, queries, _ = task()
    native, portable = (
        ours("steelyard, native", True, corpus, queries),
        ours("steelyard, portable", False, corpus, queries),
    )
    baseline, scores_of = rank_bm25_engine(corpus, queries)
    engines = [native, portable, *peers(corpus, queries, ("numpy", "numba")), baseline]
    answers = take_turns(engines)
    print("| engine | index s | bm25s index / this | queries/s, k=10 | x rank_bm25 | queries/s, k=1000 |")
    print("|---|---:|---:|---:|---:|---:|")
    bm25s_index = min((e.index_seconds for e in engines if e.name.startswith("bm25s")), default=float("nan"))
    for engine in engines:
        ten, thousand = (1 / engine.per_query[k] for k in KS)
        print(
            f"| {engine.name} | {engine.index_seconds:.2f} | {bm25s_index / engine.index_seconds:.1f} | {ten:,.1f} "
            f"| {ten * baseline.per_query[10]:,.0f} | {thousand:,.1f} |"
        )
    print_ratios(native, engines)
    same = answers[native.name] == answers[portable.name]
    equal = True
    for query, found in zip(queries[:RANK_BM25_QUERIES], answers[native.name], strict=False):
        expected = scores_of(query)
        order = np.argsort(-expected, kind="stable")[: KS[-1]]
        equal &= found == [(f"d{place}", expected[place]) for place in order]
    print(f"native and portable results are {'the same' if same else 'DIFFERENT'};", end=" ")
    print(f"scores are {'bit for bit' if equal else 'NOT'} those of rank_bm25.", flush=True)
    print_default_tokenizer(corpus)
    print_rare_terms()


def take_turns(engines: list[Engine]) -> dict[str, Any]:
    """Time all engines; their answers for the larger k."""
    answers: dict[str, Any] = {}
    for k in KS:
        for _ in range(ROUNDS):
            for engine in engines:
                answers[engine.name] = engine.time(k)
    return answers


def print_ratios(native: Engine, engines: list[Engine]) -> None:
    """Print how many times as fast the native implementation is."""
    print()
    for k in KS:
        ratios = [
            f"{engine.name} {engine.per_query[k] / native.per_query[k]:.2f}"
            for engine in engines
            if engine.name in ("bm25s, numba", "tantivy")
        ]
        print(f"k={k}: time of a peer / time of the native implementation: {'; '.join(ratios)}")


def print_default_tokenizer(corpus: dict[str, str]) -> None:
    """Print the times of indexing with tokenizers that stem."""
    os.environ["STEELYARD_NATIVE"] = "1"
    found = {"steelyard, tokenizer default": indexed(lambda: BM25().index(corpus))[0]}
    if find_spec("tantivy"):
        found["tantivy, tokenizer en_stem"] = indexed(lambda: tantivy_index(corpus, "en_stem"))[0]
    print("\n| indexing 100,000 documents | s |\n|---|---:|")
    for name, seconds in found.items():
        print(f"| {name} | {seconds:.2f} |", flush=True)


def print_rare_terms() -> None:
    """Print the times of queries of rare terms on more documents.

    tantivy returns only documents that match, as `fill=False` does; bm25s always returns k.
    """
    corpus, _, rare = task(MANY)
    native = ours("steelyard, native", True, corpus, rare)
    matching = ours("steelyard, native, fill=False", True, corpus, rare, fill=False)
    engines = [native, matching, *peers(corpus, rare, ("numba",))]
    take_turns(engines)
    print(f"\n| rare terms, {MANY:,} documents | index s | us/query, k=10 | us/query, k=1000 |\n|---|---:|---:|---:|")
    for engine in engines:
        times = " | ".join(f"{engine.per_query[k] * 1e6:,.1f}" for k in KS)
        print(f"| {engine.name} | {engine.index_seconds:.2f} | {times} |")


if __name__ == "__main__":
    main()
