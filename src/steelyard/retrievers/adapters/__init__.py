"""Adapters: retrievers of other libraries, engines and services. Each is loaded when first used.

>>> from steelyard.retrievers.adapters import Python
>>> Python(lambda query: ["d1", "d2"], name="mine").retrieve(["a question"], k=1)
[[('d1', 1.0)]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.retrievers.adapters.chroma import Chroma
    from steelyard.retrievers.adapters.elasticsearch import Elasticsearch
    from steelyard.retrievers.adapters.faiss import Faiss
    from steelyard.retrievers.adapters.http import Http
    from steelyard.retrievers.adapters.lancedb import LanceDB
    from steelyard.retrievers.adapters.lexical import BM25S, Tantivy
    from steelyard.retrievers.adapters.libraries import Haystack, LangChain, LlamaIndex, PyTerrier
    from steelyard.retrievers.adapters.milvus import Milvus
    from steelyard.retrievers.adapters.postgres import PgVector, PostgresFts
    from steelyard.retrievers.adapters.python import Python
    from steelyard.retrievers.adapters.qdrant import Qdrant
    from steelyard.retrievers.adapters.sqlite import SqliteFts, SqliteVec

__all__ = ["BM25S", "Chroma", "Elasticsearch", "Faiss", "Haystack", "Http", "LanceDB", "LangChain", "LlamaIndex"]
__all__ += ["Milvus", "PgVector", "PostgresFts", "PyTerrier", "Python", "Qdrant", "SqliteFts", "SqliteVec", "Tantivy"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
