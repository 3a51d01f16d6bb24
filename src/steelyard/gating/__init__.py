"""The gate: rules for a result, and a baseline. Names are loaded when used, as pytest imports the plugin every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names

if TYPE_CHECKING:
    from steelyard.gating.baseline import save_baseline as save_baseline
    from steelyard.gating.checking import gate as gate
    from steelyard.gating.result import GateResult as GateResult
    from steelyard.gating.result import Row as Row

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"baseline": ("save_baseline",), "checking": ("gate",), "result": ("GateResult", "Row")}
)
