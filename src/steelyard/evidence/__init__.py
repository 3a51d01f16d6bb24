"""Evidence: ground truth that survives re-chunking. Judge a chunk by what it contains, not by its id."""

from __future__ import annotations

from steelyard.evidence.chunks import RollUp, roll_up
from steelyard.evidence.evidence import Evidence
from steelyard.evidence.facts import text_hash
from steelyard.evidence.files import read_chunks
from steelyard.evidence.span_scores import SpanScores, span_scores

__all__ = ["Evidence", "RollUp", "SpanScores", "read_chunks", "roll_up", "span_scores", "text_hash"]
