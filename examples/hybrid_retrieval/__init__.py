"""The hybrid-retrieval experiment: GraphFlow and SwarmRerank on a generated knowledge base.

Run it with `python -m examples.hybrid_retrieval` in the root of the repository, or in Python:

>>> from examples.hybrid_retrieval import hybrid_retrieval
>>> result = hybrid_retrieval(seeds=range(5))            # doctest: +SKIP
>>> print(result.to_markdown())                          # doctest: +SKIP
"""

from examples.hybrid_retrieval.experiment import HybridRetrieval, hybrid_retrieval
from examples.hybrid_retrieval.knowledge_base import KnowledgeBase, Shape, knowledge_base
from examples.hybrid_retrieval.variants import VARIANTS

__all__ = ["VARIANTS", "HybridRetrieval", "KnowledgeBase", "Shape", "hybrid_retrieval", "knowledge_base"]
