"""Random: every document at a random rank, the lowest baseline."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from steelyard.retrievers.base import CheckedCorpus, Ranked, best
from steelyard.retrievers.settings import Indexed, setting


class Random(Indexed):
    """Every document at a random rank: scores are uniform from 0 to 1.

    The scores depend only on the seed, the query and the number of documents: the same query gets the same list,
    whatever was retrieved before, and a shorter list is the start of a longer one. With one relevant document
    among N, the expected recall at k is k / N.

    >>> chance = Random(seed=42).index({"d1": "one", "d2": "two", "d3": "three"})
    >>> chance.retrieve(["which?"], k=2) == chance.retrieve(["which?"], k=2)
    True
    """

    retriever = "random"

    seed: int = setting("seed of the random scores", default=0, kw_only=False)

    def _build(self, documents: CheckedCorpus, corpus: Mapping[str, str]) -> None:
        """Nothing: only the ids are used."""

    def _lists(self, documents: CheckedCorpus, queries: list[str], k: int) -> list[Ranked]:
        lists = []
        for query in queries:
            digest = hashlib.sha256(query.encode("utf-8", "surrogatepass")).digest()
            lists.append(best(documents.ids, np.random.default_rng([self.seed, *digest]).random(len(documents)), k))
        return lists

    def size_in_bytes(self) -> int:
        """0: only the ids are kept."""
        return 0
