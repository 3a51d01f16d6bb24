"""LlamaIndex: a LlamaIndex retriever, through its `retrieve`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steelyard.retrievers.adapters.base import LibraryRetriever, with_depth
from steelyard.retrievers.adapters.documents import PARENT

_K_NAMES = ("similarity_top_k", "_similarity_top_k", "top_k")


class LlamaIndex(LibraryRetriever):
    """A LlamaIndex retriever, or an index, through its retriever.

    target: the retriever or index, or `package.module:attribute`; a class or a function is called to create it.
    id: `id` is the id of the node; `document` is the id of the document that the node was cut from; or
        `metadata.KEY`, or `hash`.
    own_k: true leaves the number of nodes to the retriever; by default `similarity_top_k` is set to k.
    concurrency: the number of queries at the same time.
    arguments, folder, version, name: as for `python`.

    With `id: document`, several nodes of a document repeat its id; the policy `duplicates` applies.
    """

    extra = "llama-index"
    module = "llama_index.core"
    methods = ("retrieve", "as_retriever")

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
        path = {"id": "node_id", "document": PARENT}.get(id, id)
        super().__init__(target, path, concurrency, arguments, folder, version, name, own_k=own_k)
        if not hasattr(self._object, "retrieve"):
            self._object = self._object.as_retriever()
        self._own_k = own_k

    def _search(self, k: int) -> Callable[[str], Any]:
        retriever = self._object if self._own_k else with_depth(self._object, _K_NAMES, k)
        search: Callable[[str], Any] = retriever.retrieve
        return search
