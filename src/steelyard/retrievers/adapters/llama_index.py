"""llama-index: a LlamaIndex retriever, through its `retrieve`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from steelyard.retrievers.adapters.base import Wrapped, with_depth
from steelyard.retrievers.adapters.calling import ask_each
from steelyard.retrievers.adapters.documents import DocIds
from steelyard.retrievers.adapters.python import label_of, library_object, seen_settings
from steelyard.retrievers.base import whole

_K_NAMES = ("similarity_top_k", "_similarity_top_k", "top_k")


class LlamaIndex(Wrapped):
    """A LlamaIndex retriever, or an index, which is asked for its retriever.

    target: the retriever or index, or `package.module:attribute`; a class or a function without parameters
        is called.
    id: `id` is the id of the node; `document` that of the document the node was cut from; or `metadata.KEY`,
        or `hash`.
    own_k: true leaves the number of nodes to the retriever; by default `similarity_top_k` is as many as the
        bench asks of all.
    concurrency: how many queries are out at once when several are asked.
    arguments, folder, version, name: as for `python`.

    Several nodes of one document, with `id: document`, give its id as often: the measures' rule for
    repeated documents decides.
    """

    extra: ClassVar[str] = "llama-index"
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
        found = library_object(
            target, self.extra, "llama_index.core", ["retrieve", "as_retriever"], folder, arguments
        )
        if not hasattr(found, "retrieve"):
            found = found.as_retriever()
        label = name or label_of(target)
        self._retriever = found
        self._own_k = own_k
        self._concurrency = whole(label, "`concurrency`", concurrency, 1)
        path = {"id": "node_id", "document": "node.ref_doc_id"}.get(id, id)
        seen = seen_settings("llama-index", target, version, arguments, own_k=own_k)
        super().__init__(label, DocIds(path, label), seen)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        found = self._retriever if self._own_k else with_depth(self._retriever, _K_NAMES, k)
        return ask_each(found.retrieve, queries, self._concurrency)
