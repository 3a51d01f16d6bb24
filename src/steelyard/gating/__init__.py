"""The gate: rules that a result must satisfy, and a baseline that it is compared with. `gate` checks one.

Names are loaded when first used, because pytest imports the plugin at every start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.gating.baseline import save_baseline
    from steelyard.gating.checking import gate
    from steelyard.gating.result import GateResult, Row

__all__ = ["GateResult", "Row", "gate", "save_baseline"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
