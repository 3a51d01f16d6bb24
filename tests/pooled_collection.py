"""Four runs, complete qrels, and qrels pooled from some of their first documents."""

from __future__ import annotations

import numpy as np

import steelyard as sy

QUERIES = [f"q{number}" for number in range(40)]


def collection(seed: int = 5) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]], dict[str, sy.Run]]:
    """Complete qrels, those of the first documents of two of four runs, and the runs, by skill: a, b, c, d."""
    rng = np.random.default_rng(seed)
    docs = [f"d{place:02d}" for place in range(60)]
    whole: dict[str, dict[str, float]] = {}
    lists: dict[str, dict[str, dict[str, float]]] = {name: {} for name in "abcd"}
    for query in QUERIES:
        worth = rng.normal(size=len(docs))
        whole[query] = {doc: float(w > 0.9) + float(w > 1.7) for doc, w in zip(docs, worth, strict=True)}
        for name, noise in zip("abcd", (0.5, 1.0, 1.1, 3.0), strict=True):
            scores = worth + noise * rng.normal(size=len(docs))
            lists[name][query] = dict(zip(docs, scores.tolist(), strict=True))
    pool = {
        query: {
            doc
            for name, depth in (("b", 10), ("d", 10), ("c", 2))
            for doc in sorted(lists[name][query], key=lambda doc: -lists[name][query][doc])[:depth]
        }
        for query in QUERIES
    }
    judged = {query: {doc: grade for doc, grade in whole[query].items() if doc in pool[query]} for query in QUERIES}
    return whole, judged, {name: sy.Run(listed, name=name) for name, listed in lists.items()}
