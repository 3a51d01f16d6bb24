"""Other people's packages: loaded when first used, and where one is missing, the line that installs it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from steelyard.retrievers.adapters.documents import DocIds, read_answer
from steelyard.retrievers.base import Ranked, RetrieverError, checked_queries

if TYPE_CHECKING:
    from typing_extensions import Self


def package(module: str, extra: str, who: str) -> Any:
    """The module, or an error that names the extra that brings it.

    >>> package("json", "langchain", "my retriever").dumps(1)
    '1'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0]:
            raise RetrieverError(
                f"{who}: the package {module.split('.')[0]} is there, but {error.name} that it needs is not: "
                f"pip install --upgrade 'steelyard[{extra}]'"
            ) from None
        raise RetrieverError(
            f"{who} needs the package {module.split('.')[0]}: pip install 'steelyard[{extra}]'"
        ) from None


def with_depth(found: Any, names: Sequence[str], k: int) -> Any:
    """A copy that gives k documents; the object itself where it has none of these settings, or has k there.

    >>> class Retriever:
    ...     similarity_top_k = 2
    >>> mine = Retriever()
    >>> with_depth(mine, ["similarity_top_k"], 100).similarity_top_k, mine.similarity_top_k
    (100, 2)
    """
    for name in names:
        held = getattr(found, name, None)
        if isinstance(held, int) and not isinstance(held, bool):
            if held == k:
                return found
            other = copy.copy(found)
            setattr(other, name, k)
            return other
    return found


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
