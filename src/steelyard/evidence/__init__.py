"""Evidence: relevance by what a chunk contains rather than by its id, so that it survives re-chunking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.evidence.chunks import RollUp, roll_up
    from steelyard.evidence.evidence import Evidence
    from steelyard.evidence.facts import text_hash

__all__ = ["Evidence", "RollUp", "roll_up", "text_hash"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
