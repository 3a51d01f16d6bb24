"""Evidence: relevance by what a chunk contains rather than by its id, so that it survives re-chunking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.evidence.chunks import RollUp as RollUp
    from steelyard.evidence.chunks import roll_up as roll_up
    from steelyard.evidence.evidence import Evidence as Evidence
    from steelyard.evidence.facts import text_hash as text_hash

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"evidence": ("Evidence",), "facts": ("text_hash",), "chunks": ("RollUp", "roll_up")}
)
