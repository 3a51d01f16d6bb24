"""Datasets: documents, queries and qrels, read from the layouts the field uses, checked and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.datasets.checks import validate_dataset as validate_dataset
    from steelyard.datasets.corpus import Corpus as Corpus
    from steelyard.datasets.corpus import Queries as Queries
    from steelyard.datasets.dataset import Dataset as Dataset
    from steelyard.datasets.duplicates import near_duplicates as near_duplicates
    from steelyard.datasets.findings import Finding as Finding

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "checks": ("validate_dataset",),
        "corpus": ("Corpus", "Queries"),
        "dataset": ("Dataset",),
        "duplicates": ("near_duplicates",),
        "findings": ("Finding",),
    },
)
