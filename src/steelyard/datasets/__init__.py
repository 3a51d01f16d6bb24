"""Datasets: documents, queries and qrels, read from the layouts the field uses, checked and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import loader

if TYPE_CHECKING:
    from steelyard.datasets.checks import validate_dataset as validate_dataset
    from steelyard.datasets.corpus import Corpus as Corpus
    from steelyard.datasets.corpus import Queries as Queries
    from steelyard.datasets.dataset import Dataset as Dataset
    from steelyard.datasets.duplicates import near_duplicates as near_duplicates
    from steelyard.datasets.findings import Finding as Finding

_MODULE_OF = {
    "Corpus": "corpus",
    "Dataset": "dataset",
    "Finding": "findings",
    "Queries": "corpus",
    "near_duplicates": "duplicates",
    "validate_dataset": "checks",
}

__all__ = sorted(_MODULE_OF)
__getattr__ = loader(__name__, _MODULE_OF)
