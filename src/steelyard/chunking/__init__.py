"""Chunkers: documents into chunks that know where they come from, `text[start:end] == chunk text`."""

from __future__ import annotations

from steelyard.chunking.chunkers import Chunk, Chunker, Fixed, Recursive, Sentence, Whole, chunk_documents
from steelyard.chunking.registry import chunker, chunker_names

__all__ = [
    "Chunk",
    "Chunker",
    "Fixed",
    "Recursive",
    "Sentence",
    "Whole",
    "chunk_documents",
    "chunker",
    "chunker_names",
]
