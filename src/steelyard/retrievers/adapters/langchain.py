"""langchain: a LangChain retriever, through its `invoke`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from steelyard.retrievers.adapters.base import Wrapped, with_depth
from steelyard.retrievers.adapters.calling import ask_each
from steelyard.retrievers.adapters.documents import DocIds
from steelyard.retrievers.adapters.python import label_of, library_object, seen_settings
from steelyard.retrievers.base import whole


class LangChain(Wrapped):
    """A LangChain `BaseRetriever`, or any runnable from a text to documents.

    target: the retriever, or `package.module:attribute`; a class or a function without parameters is called.
    id: `id`, `metadata.KEY`, or `hash`. Documents have an id only where the store gave them one.
    own_k: true leaves the number of documents to the retriever; by default it is asked for as many as the
        bench asks of all: a vector store through its search arguments, another through its field `k`.
    concurrency: how many queries are out at once when several are asked.
    arguments, folder, version, name: as for `python`.

    LangChain's documents carry no scores: they get 1/rank.
    """

    extra: ClassVar[str] = "langchain"
    """The extra that brings its package."""

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
        found = library_object(target, self.extra, "langchain_core", ["invoke"], folder, arguments)
        label = name or label_of(target)
        self._retriever = found
        self._own_k = own_k
        self._concurrency = whole(label, "`concurrency`", concurrency, 1)
        self._passes_k = _passes_k(found)
        seen = seen_settings("langchain", target, version, arguments, own_k=own_k)
        super().__init__(label, DocIds(id, label), seen)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        found = self._retriever if self._own_k or self._passes_k else with_depth(self._retriever, ["k"], k)
        extra = {"k": k} if self._passes_k and not self._own_k else {}
        return ask_each(lambda query: found.invoke(query, **extra), queries, self._concurrency)


def _passes_k(found: Any) -> bool:
    """Whether `invoke` hands k on to the search: a vector store's does, and one that names k."""
    inner = getattr(found, "_get_relevant_documents", None)
    if inner is None:
        return False
    parameters = inspect.signature(inner).parameters
    open_ended = any(each.kind == inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    return "k" in parameters or (open_ended and hasattr(found, "search_kwargs"))
