"""Adapters: retrievers of other libraries, engines and services. Each is loaded when first used.

>>> from steelyard.retrievers.adapters import Python
>>> Python(lambda query: ["d1", "d2"], name="mine").retrieve(["a question"], k=1)
[[('d1', 1.0)]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names
from steelyard.retrievers.registry import adapter_classes

if TYPE_CHECKING:
    from steelyard.retrievers.adapters.chroma import Chroma as Chroma
    from steelyard.retrievers.adapters.elasticsearch import Elasticsearch as Elasticsearch
    from steelyard.retrievers.adapters.faiss import Faiss as Faiss
    from steelyard.retrievers.adapters.http import Http as Http
    from steelyard.retrievers.adapters.lancedb import LanceDB as LanceDB
    from steelyard.retrievers.adapters.lexical import BM25S as BM25S
    from steelyard.retrievers.adapters.lexical import Tantivy as Tantivy
    from steelyard.retrievers.adapters.libraries import Haystack as Haystack
    from steelyard.retrievers.adapters.libraries import LangChain as LangChain
    from steelyard.retrievers.adapters.libraries import LlamaIndex as LlamaIndex
    from steelyard.retrievers.adapters.libraries import PyTerrier as PyTerrier
    from steelyard.retrievers.adapters.milvus import Milvus as Milvus
    from steelyard.retrievers.adapters.postgres import PgVector as PgVector
    from steelyard.retrievers.adapters.postgres import PostgresFts as PostgresFts
    from steelyard.retrievers.adapters.python import Python as Python
    from steelyard.retrievers.adapters.qdrant import Qdrant as Qdrant
    from steelyard.retrievers.adapters.sqlite import SqliteFts as SqliteFts
    from steelyard.retrievers.adapters.sqlite import SqliteVec as SqliteVec

# The registry has every adapter; the imports above only show their types to type checkers.
__getattr__, __dir__, __all__ = lazy_names(__name__, adapter_classes())
