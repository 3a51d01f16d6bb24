"""The gate: may this be merged? Rules a result must keep, and a baseline it is held against. Called, it checks one.

Names are loaded when first used: the pytest plugin is imported at every start of pytest.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from steelyard.lazy import CallableModule, loader

if TYPE_CHECKING:
    from steelyard.gate.baseline import save_baseline as save_baseline
    from steelyard.gate.check import check as check
    from steelyard.gate.result import GateResult as GateResult
    from steelyard.gate.result import Row as Row

_HOMES = {"GateResult": "result", "Row": "result", "check": "check", "save_baseline": "baseline"}

__all__ = list(_HOMES)
__getattr__ = loader(__name__, _HOMES)

called = "steelyard.gate.check:check"
sys.modules[__name__].__class__ = CallableModule
