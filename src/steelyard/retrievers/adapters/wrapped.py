"""What all adapters to something that is indexed already have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.retrievers.adapters.answers import read_answer
from steelyard.retrievers.adapters.doc_ids import DocIds
from steelyard.retrievers.base import Ranked, checked_queries

if TYPE_CHECKING:
    from typing_extensions import Self


class Wrapped:
    """A retriever that somebody else indexed. A subclass says how to ask it, in `_ask`."""

    def __init__(self, label: str, ids: DocIds, settings: Mapping[str, Any], score: str = "score") -> None:
        self.label = label
        self._ids = ids
        self._score = score
        self._settings = dict(settings)

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Indexes nothing; where ids are found by their texts, those of the corpus are learned."""
        self._ids.learn(corpus)
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the first k (document id, score) pairs of its answer, in its order."""
        listed = checked_queries(queries, k, self.label)
        if not listed:
            return []
        return [
            read_answer(answer, self._ids, self.label, query, k, self._score)
            for query, answer in zip(listed, self._ask(listed, k), strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        """Everything that decides its answers, as far as it can be seen from here."""
        return {**self._settings, "id": self._ids.setting}

    def size_in_bytes(self) -> int:
        """What is held here; the index itself is elsewhere."""
        return self._ids.size_in_bytes()

    def ids_elsewhere(self, corpus: Mapping[str, str]) -> str | None:
        """Another `id` by which the documents that came would be in the corpus, where one can be seen."""
        return self._ids.elsewhere(corpus)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        """One answer per query, in any shape that `read_answer` knows."""
        raise NotImplementedError
