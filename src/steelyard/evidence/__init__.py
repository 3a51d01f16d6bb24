"""Evidence: ground truth that survives re-chunking. Judge a chunk by what it contains, not by its id."""

from __future__ import annotations

from steelyard.evidence.evidence import Evidence
from steelyard.evidence.normalise import text_hash

__all__ = ["Evidence", "text_hash"]
