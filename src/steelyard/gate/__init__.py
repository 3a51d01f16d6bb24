"""The gate: rules that a result must satisfy, and a baseline that it is compared with. `steelyard.gate()` checks one.

Names are loaded when first used, because pytest imports the plugin at every start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.lazy import lazy_names, make_callable

if TYPE_CHECKING:
    from steelyard.gate.baseline import save_baseline as save_baseline
    from steelyard.gate.checking import check as check
    from steelyard.gate.result import GateResult as GateResult
    from steelyard.gate.result import Row as Row

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"baseline": ("save_baseline",), "checking": ("check",), "result": ("GateResult", "Row")}
)
make_callable(__name__, "steelyard.gate.checking:check")
