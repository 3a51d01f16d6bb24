"""LangChain: a LangChain retriever, through its `invoke`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steelyard.retrievers.adapters.base import LibraryRetriever, with_depth


class LangChain(LibraryRetriever):
    """A LangChain `BaseRetriever`, or any runnable from a text to documents.

    target: the retriever, or `package.module:attribute`; a class or a function is called to create it.
    id: `id`, `metadata.KEY`, or `hash`. Documents have an id only if the store sets one.
    own_k: true leaves the number of documents to the retriever; by default it is set to k: for a vector store
        through its search arguments, for another retriever through its field `k`.
    concurrency: the number of queries at the same time.
    arguments, folder, version, name: as for `python`.

    LangChain's documents have no scores: they get 1/rank.
    """

    extra = "langchain"
    module = "langchain_core"
    methods = ("invoke",)

    def __init__(
        self,
        target: Any = None,
        id: str = "id",
        own_k: bool = False,
        concurrency: int = 1,
        arguments: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(target, id, concurrency, arguments, folder, version, name, own_k=own_k)
        self._own_k = own_k
        self._takes_k = _takes_k(self._object)

    def _search(self, k: int) -> Callable[[str], Any]:
        if self._own_k:
            return lambda query: self._object.invoke(query)
        if self._takes_k:
            return lambda query: self._object.invoke(query, k=k)
        retriever = with_depth(self._object, ["k"], k)
        return lambda query: retriever.invoke(query)


def _takes_k(retriever: Any) -> bool:
    """Whether `invoke` passes k on to the search, as for a vector store or a retriever with a parameter k."""
    inner = getattr(retriever, "_get_relevant_documents", None)
    if inner is None:
        return False
    parameters = inspect.signature(inner).parameters
    open_ended = any(each.kind == inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    return "k" in parameters or (open_ended and hasattr(retriever, "search_kwargs"))
