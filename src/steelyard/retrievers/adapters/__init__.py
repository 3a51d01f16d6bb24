"""Other people's retrievers: each adapter is a small file, loaded when it is first used.

>>> from steelyard.retrievers.adapters import Python
>>> Python(lambda query: ["d1", "d2"], name="mine").retrieve(["a question"], k=1)
[[('d1', 1.0)]]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.retrievers.adapters.bm25s import BM25S as BM25S
    from steelyard.retrievers.adapters.elasticsearch import Elasticsearch as Elasticsearch
    from steelyard.retrievers.adapters.endpoint import Http as Http
    from steelyard.retrievers.adapters.function import Python as Python
    from steelyard.retrievers.adapters.haystack import Haystack as Haystack
    from steelyard.retrievers.adapters.langchain import LangChain as LangChain
    from steelyard.retrievers.adapters.llama_index import LlamaIndex as LlamaIndex
    from steelyard.retrievers.adapters.pyterrier import PyTerrier as PyTerrier
    from steelyard.retrievers.adapters.qdrant import Qdrant as Qdrant
    from steelyard.retrievers.adapters.tantivy import Tantivy as Tantivy

_HOMES = {
    "BM25S": "bm25s",
    "Elasticsearch": "elasticsearch",
    "Haystack": "haystack",
    "Http": "endpoint",
    "LangChain": "langchain",
    "LlamaIndex": "llama_index",
    "PyTerrier": "pyterrier",
    "Python": "function",
    "Qdrant": "qdrant",
    "Tantivy": "tantivy",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'steelyard.retrievers.adapters' has no attribute {name!r}")
    value = getattr(import_module(f"steelyard.retrievers.adapters.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
