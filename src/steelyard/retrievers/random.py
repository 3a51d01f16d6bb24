"""Random: every document at a random rank, the lowest baseline."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.retrievers.base import CheckedCorpus, Ranked, Self, best, checked_corpus, checked_index, checked_queries
from steelyard.retrievers.settings import Declared, setting


class Random(Declared):
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

    def _set_up(self) -> None:
        self._documents: CheckedCorpus | None = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus; only its ids are used."""
        self._documents = checked_corpus(corpus, self.label)
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, k (document id, score) pairs."""
        documents = checked_index(self._documents, self.label)
        lists = []
        for query in checked_queries(queries, k, self.label):
            digest = hashlib.sha256(query.encode("utf-8", "surrogatepass")).digest()
            lists.append(best(documents.ids, np.random.default_rng([self.seed, *digest]).random(len(documents)), k))
        return lists

    def size_in_bytes(self) -> int:
        """0: only the ids are kept."""
        return 0
