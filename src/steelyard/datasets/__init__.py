"""Datasets: documents, queries and qrels, read from the layouts the field uses, checked and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.datasets.checks import validate_dataset
    from steelyard.datasets.corpus import Corpus, Queries
    from steelyard.datasets.dataset import Dataset
    from steelyard.datasets.duplicates import near_duplicates
    from steelyard.datasets.findings import Finding

__all__ = ["Corpus", "Dataset", "Finding", "Queries", "near_duplicates", "validate_dataset"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
