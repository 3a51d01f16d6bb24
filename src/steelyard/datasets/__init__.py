"""Datasets: documents, queries and judgments, read from the layouts the field uses, checked and written."""

from __future__ import annotations

from steelyard.datasets.corpus import Corpus
from steelyard.datasets.dataset import Dataset
from steelyard.datasets.findings import Finding
from steelyard.datasets.near_duplicates import near_duplicates
from steelyard.datasets.queries import Queries
from steelyard.datasets.validation import validate_dataset

__all__ = ["Corpus", "Dataset", "Finding", "Queries", "near_duplicates", "validate_dataset"]
