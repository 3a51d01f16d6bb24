"""LangChain: a LangChain retriever, through its `invoke`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from steelyard.retrievers.adapters.base import LibraryRetriever, in_stages, with_depth
from steelyard.retrievers.settings import setting


class LangChain(LibraryRetriever):
    """A LangChain `BaseRetriever`, or any runnable from a text to documents.

    LangChain's documents have no scores: they get 1/rank. A ContextualCompressionRetriever has stages: `retrieve`, and
    one per compressor.
    """

    retriever = extra = "langchain"
    module = "langchain_core"
    methods = ("invoke",)

    own_k: bool = setting(
        "true leaves the number of documents to the retriever; by default it is set to k: for a vector store through "
        "its search arguments, for another retriever through its field `k`",
        default=False,
    )

    def _set_up(self) -> None:
        super()._set_up()
        self._takes_k = _takes_k(self._object)

    def _search(self, k: int) -> Callable[[str], Any]:
        if _compresses(self._object):
            base, compressor = self._object.base_retriever, self._object.base_compressor
            steps = getattr(compressor, "transformers", None) or [compressor]
            return in_stages(lambda query: base.invoke(query), [(step, _call_of(step)) for step in steps])
        if self.own_k:
            return lambda query: self._object.invoke(query)
        if self._takes_k:
            return lambda query: self._object.invoke(query, k=k)
        retriever = with_depth(self._object, ["k"], k)
        return lambda query: retriever.invoke(query)


def _compresses(retriever: Any) -> bool:
    """Whether a retriever is LangChain's ContextualCompressionRetriever, and searches as that class does."""
    own = next((kind for kind in type(retriever).__mro__ if "_get_relevant_documents" in vars(kind)), None)
    return own is not None and own.__name__ == "ContextualCompressionRetriever"


def _call_of(step: Any) -> Callable[[list[Any], str], Any]:
    """The call of a compressor, or of a transformer of documents, which does not see the query."""
    if hasattr(step, "compress_documents"):
        return lambda found, query: step.compress_documents(found, query)
    return lambda found, query: step.transform_documents(found)


def _takes_k(retriever: Any) -> bool:
    """Whether `invoke` passes k on to the search, as for a vector store or a retriever with a parameter k."""
    inner = getattr(retriever, "_get_relevant_documents", None)
    if inner is None:
        return False
    parameters = inspect.signature(inner).parameters
    open_ended = any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    return "k" in parameters or (open_ended and hasattr(retriever, "search_kwargs"))
