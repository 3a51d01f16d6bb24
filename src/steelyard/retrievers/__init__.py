"""Retrievers: they index a corpus and return ranked documents for queries.

>>> from steelyard.retrievers import BM25
>>> bm25 = BM25(tokenizer="whitespace").index({"d1": "red fox", "d2": "grey wolf", "d3": "red deer"})
>>> [doc for doc, score in bm25.retrieve(["grey fox"], k=2)[0]]
['d1', 'd2']

Names are loaded when first used. `steelyard.retrievers()` lists the available retrievers.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from steelyard.lazy import CallableModule, loader

if TYPE_CHECKING:
    from steelyard.retrievers.base import Ranked as Ranked
    from steelyard.retrievers.base import Retriever as Retriever
    from steelyard.retrievers.base import RetrieverError as RetrieverError
    from steelyard.retrievers.bm25 import BM25 as BM25
    from steelyard.retrievers.dense import Dense as Dense
    from steelyard.retrievers.graph import GraphFlow as GraphFlow
    from steelyard.retrievers.hybrid import Hybrid as Hybrid
    from steelyard.retrievers.random import Random as Random
    from steelyard.retrievers.registry import retriever as retriever
    from steelyard.retrievers.registry import retriever_names as retriever_names
    from steelyard.retrievers.rerank import Rerank as Rerank
    from steelyard.retrievers.swarm import SwarmRerank as SwarmRerank

_MODULE_OF = {
    "BM25": "bm25",
    "Dense": "dense",
    "GraphFlow": "graph",
    "Hybrid": "hybrid",
    "Random": "random",
    "Ranked": "base",
    "Rerank": "rerank",
    "Retriever": "base",
    "RetrieverError": "base",
    "SwarmRerank": "swarm",
    "retriever": "registry",
    "retriever_names": "registry",
}

__all__ = list(_MODULE_OF)
__getattr__ = loader(__name__, _MODULE_OF)


def __dir__() -> list[str]:
    return sorted(__all__)


called = "steelyard.retrievers.registry:listing"
sys.modules[__name__].__class__ = CallableModule
