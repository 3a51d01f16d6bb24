"""The reference that every reader is compared with: plain Python over sorted lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from steelyard.alignment.hits import Hits, JudgedDocs, Ordering, Repeats
from steelyard.errors import PolicyError


def judged_docs(judged: dict[str, Sequence[str]]) -> JudgedDocs:
    starts = np.cumsum([0, *map(len, judged.values())], dtype=np.int64)
    return JudgedDocs(list(judged), starts, [doc for docs in judged.values() for doc in docs])


def reference_hits(rows: Sequence[tuple[str, str, float]], judged: JudgedDocs, ordering: Ordering, *tags: str) -> Hits:
    """Hits of (query, document, score) rows in the order of the input."""
    known = set(judged.query_ids)
    run_only = list(dict.fromkeys(query for query, _, _ in rows if query not in known))
    retrieved, answered, top = [], [], []
    hits: list[tuple[int, ...]] = []
    repeats: list[tuple[int, int]] = []
    for number, query in enumerate(judged.query_ids):
        docs = [(doc, _key(score, ordering)) for other, doc, score in rows if other == query]
        if ordering.ties != "stable":
            docs.sort(key=lambda row: row[0], reverse=ordering.ties != "docid-asc")
        docs.sort(key=lambda row: row[1], reverse=True)
        ids = [doc for doc, _ in docs]
        firsts = [i for i, doc in enumerate(ids) if doc not in ids[:i]]
        again = [doc for i, doc in enumerate(ids) if doc in ids[:i]]
        if again and ordering.duplicates == "error":
            raise PolicyError(f"query {query!r}, document {again[0]!r}")
        if ordering.duplicates == "collapse":
            docs = [docs[i] for i in firsts]
            ids = [doc for doc, _ in docs]
            repeats += [(number, rank) for rank in sorted(ids.index(doc) + 1 for doc in again)]
        else:
            repeats += [(number, i + 1) for i in range(len(ids)) if i not in firsts]
        keys = [key for _, key in docs]
        retrieved.append(len(docs))
        answered.append(bool(docs))
        top.append(max((score for other, _, score in rows if other == query), default=np.nan))
        for place in range(*judged.starts[number : number + 2]):
            if judged.doc_ids[place] in ids:
                at = ids.index(judged.doc_ids[place])
                hits.append((number, place, at + 1, keys.index(keys[at]) + 1, keys.count(keys[at])))
    hits.sort(key=lambda hit: (hit[0], hit[2]))
    columns = np.array(hits, dtype=np.int64).reshape(-1, 5).T
    pairs = np.array(repeats, dtype=np.int64).reshape(-1, 2).T
    counts = (np.array(retrieved, dtype=np.int64), np.array(answered, dtype=bool), np.array(top, dtype=np.float64))
    return Hits(*counts, *columns, Repeats(*pairs), len(run_only), tuple(run_only[:3]), tags)


def _key(score: float, ordering: Ordering) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(score)) if ordering.single else score
