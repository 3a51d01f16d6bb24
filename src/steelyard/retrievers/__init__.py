"""Retrievers: they index a corpus and return ranked documents for queries.

>>> from steelyard.retrievers import BM25
>>> bm25 = BM25(tokenizer="whitespace").index({"d1": "red fox", "d2": "grey wolf", "d3": "red deer"})
>>> [doc for doc, score in bm25.retrieve(["grey fox"], k=2)[0]]
['d1', 'd2']

Names are loaded when first used. `list_retrievers` lists the available retrievers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.retrievers.base import Ranked, Retriever, RetrieverError
    from steelyard.retrievers.bm25 import BM25
    from steelyard.retrievers.combined import Hybrid, Rerank
    from steelyard.retrievers.dense import Dense
    from steelyard.retrievers.graph import GraphFlow
    from steelyard.retrievers.random import Random
    from steelyard.retrievers.registry import list_retrievers, retriever, retriever_names
    from steelyard.retrievers.swarm import SwarmRerank

__all__ = ["BM25", "Dense", "GraphFlow", "Hybrid", "Random", "Ranked", "Rerank", "Retriever", "RetrieverError"]
__all__ += ["SwarmRerank", "list_retrievers", "retriever", "retriever_names"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
