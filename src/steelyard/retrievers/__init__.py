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
    from steelyard.retrievers.base import Ranked as Ranked
    from steelyard.retrievers.base import Retriever as Retriever
    from steelyard.retrievers.base import RetrieverError as RetrieverError
    from steelyard.retrievers.bm25 import BM25 as BM25
    from steelyard.retrievers.combined import Hybrid as Hybrid
    from steelyard.retrievers.combined import Rerank as Rerank
    from steelyard.retrievers.dense import Dense as Dense
    from steelyard.retrievers.random import Random as Random
    from steelyard.retrievers.registry import list_retrievers as list_retrievers
    from steelyard.retrievers.registry import retriever as retriever
    from steelyard.retrievers.registry import retriever_names as retriever_names
    from steelyard.retrievers.walks import GraphFlow as GraphFlow
    from steelyard.retrievers.walks import SwarmRerank as SwarmRerank

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "base": ("Ranked", "Retriever", "RetrieverError"),
        "bm25": ("BM25",),
        "combined": ("Hybrid", "Rerank"),
        "dense": ("Dense",),
        "random": ("Random",),
        "registry": ("list_retrievers", "retriever", "retriever_names"),
        "walks": ("GraphFlow", "SwarmRerank"),
    },
)
