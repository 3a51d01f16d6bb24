"""Experiments that anyone can run again.

>>> from steelyard.experiments import hybrid_retrieval
>>> result = hybrid_retrieval(seeds=range(5))            # doctest: +SKIP
>>> print(result.to_markdown())                          # doctest: +SKIP
"""

from steelyard.experiments.hybrid import HybridRetrieval, hybrid_retrieval
from steelyard.experiments.knowledge_base import KnowledgeBase, Shape, knowledge_base
from steelyard.experiments.variants import VARIANTS

__all__ = ["VARIANTS", "HybridRetrieval", "KnowledgeBase", "Shape", "hybrid_retrieval", "knowledge_base"]
