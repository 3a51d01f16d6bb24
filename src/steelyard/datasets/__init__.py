"""Datasets: documents, queries and judgments, read from the layouts the field uses, checked and written."""

from __future__ import annotations

from steelyard.datasets.checks import near_duplicates, validate_dataset
from steelyard.datasets.corpus import Corpus
from steelyard.datasets.dataset import Dataset
from steelyard.datasets.fields import Finding
from steelyard.datasets.queries import Queries

__all__ = ["Corpus", "Dataset", "Finding", "Queries", "near_duplicates", "validate_dataset"]
