"""LlamaIndex: a LlamaIndex retriever, through its `retrieve`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steelyard.retrievers.adapters.base import LibraryRetriever, in_stages, with_depth
from steelyard.retrievers.adapters.documents import PARENT, DocIds
from steelyard.retrievers.settings import setting

_K_NAMES = ("similarity_top_k", "_similarity_top_k", "top_k")


class LlamaIndex(LibraryRetriever):
    """A LlamaIndex retriever, or an index or a query engine through its retriever.

    The postprocessors of a query engine are stages. With `id: document`, several nodes of a document repeat its id; the
    policy `duplicates` applies.
    """

    retriever = extra = "llama-index"
    module = "llama_index.core"
    methods = ("retrieve", "as_retriever")

    id: str = setting(
        "`id` is the id of the node; `document` is the id of the document that the node was cut from; or "
        "`metadata.KEY`, or `hash`",
        default="id",
        key=None,
    )
    own_k: bool = setting(
        "true leaves the number of nodes to the retriever; by default `similarity_top_k` is set to k", default=False
    )

    def _set_up(self) -> None:
        super()._set_up()
        self._ids = DocIds({"id": "node_id", "document": PARENT}.get(self.id, self.id), self.label, self.text)
        if not hasattr(self._object, "retrieve"):
            self._object = self._object.as_retriever()

    def _search(self, k: int) -> Callable[[str], Any]:
        engine = getattr(self._object, "_retriever", None) if hasattr(self._object, "_node_postprocessors") else None
        inner = self._object if engine is None else engine
        retriever = inner if self.own_k else with_depth(inner, _K_NAMES, k)
        search: Callable[[str], Any] = retriever.retrieve
        if engine is None:
            return search
        return in_stages(search, [(step, _call_of(step)) for step in self._object._node_postprocessors])


def _call_of(step: Any) -> Callable[[list[Any], str], Any]:
    """The call of a postprocessor."""
    from llama_index.core.schema import QueryBundle

    return lambda nodes, query: step.postprocess_nodes(nodes, query_bundle=QueryBundle(query))
