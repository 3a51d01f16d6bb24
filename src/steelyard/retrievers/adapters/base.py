"""The common parts of adapters: retrievers that were indexed elsewhere, and retriever objects of a library."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from steelyard.checks import is_whole
from steelyard.retrievers.adapters.calling import ask_each
from steelyard.retrievers.adapters.documents import DocIds, read_answer
from steelyard.retrievers.adapters.targets import label_of, library_object, target_settings
from steelyard.retrievers.base import Ranked, checked_queries, whole

if TYPE_CHECKING:
    from typing_extensions import Self


class Wrapped:
    """A retriever that was indexed elsewhere. A subclass has the query in `_ask`."""

    def __init__(self, label: str, ids: DocIds, settings: Mapping[str, Any], score: str = "score") -> None:
        self.label = label
        self._ids = ids
        self._score = score
        self._settings = dict(settings)

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index nothing; if ids are found by text, keep the texts of the corpus."""
        self._ids.learn(corpus)
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the first k (document id, score) pairs of its result, in its order."""
        listed = checked_queries(queries, k, self.label)
        return self.read(listed, self.ask(listed, int(k)), k) if listed else []

    def ask(self, queries: list[str], k: int) -> list[Any]:
        """Per query, its result as it was returned: the part of `retrieve` that is not ours, for measuring its time."""
        found = self._ask(queries, k)
        return [list(islice(answer, k)) if isinstance(answer, Iterator) else answer for answer in found]

    def read(self, queries: Sequence[str], answers: Sequence[Any], k: int) -> list[Ranked]:
        """The results of `ask` as (document id, score) pairs."""
        return [
            read_answer(answer, self._ids, self.label, query, k, self._score)
            for query, answer in zip(queries, answers, strict=True)
        ]

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on, as far as it is known."""
        return {**self._settings, "id": self._ids.setting}

    def size_in_bytes(self) -> int:
        """The memory used here; the index itself is elsewhere."""
        return self._ids.size_in_bytes()

    def ids_elsewhere(self, corpus: Mapping[str, str]) -> str | None:
        """Another value of `id` with which the documents found so far are in the corpus, if there is one."""
        return self._ids.elsewhere(corpus)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        """One result per query, in any form that `read_answer` accepts."""
        raise NotImplementedError


class LibraryRetriever(Wrapped):
    """A retriever object of a library, called for one query at a time. A subclass has the call in `_search`."""

    extra: ClassVar[str]
    """The extra that installs the library."""
    module: ClassVar[str]
    """The module of the library."""
    methods: ClassVar[tuple[str, ...]]
    """The target has one of these methods."""

    def __init__(
        self,
        target: Any,
        id: str,
        concurrency: int,
        arguments: Mapping[str, Any] | None,
        folder: str | Path | None,
        version: str | None,
        name: str | None,
        **settings: Any,
    ) -> None:
        self._object = library_object(target, self.extra, self.module, self.methods, folder, arguments)
        label = name or label_of(target)
        self._concurrency = whole(label, "`concurrency`", concurrency, 1)
        known = target_settings(self.extra, target, version, arguments, **settings)
        super().__init__(label, DocIds(id, label), known)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        return ask_each(self._search(k), queries, self._concurrency)

    def _search(self, k: int) -> Callable[[str], Any]:
        """A function from a query to its result."""
        raise NotImplementedError


def with_depth(retriever: Any, names: Sequence[str], k: int) -> Any:
    """A copy that returns k documents; the object itself if it has none of these attributes, or k already.

    >>> class Retriever:
    ...     similarity_top_k = 2
    >>> mine = Retriever()
    >>> with_depth(mine, ["similarity_top_k"], 100).similarity_top_k, mine.similarity_top_k
    (100, 2)
    """
    for name in names:
        depth = getattr(retriever, name, None)
        if is_whole(depth, 0):
            if depth == k:
                return retriever
            other = copy.copy(retriever)
            setattr(other, name, k)
            return other
    return retriever
