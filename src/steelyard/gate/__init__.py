"""The gate: may this be merged? Rules a result must keep, and a baseline it is held against. Called, it checks one.

Names are loaded when first used: the pytest plugin is imported at every start of pytest.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from steelyard.callable_module import CallableModule

if TYPE_CHECKING:
    from steelyard.gate.baseline import save_baseline as save_baseline
    from steelyard.gate.check import check as check
    from steelyard.gate.result import GateResult as GateResult
    from steelyard.gate.result import Row as Row

__all__ = ["GateResult", "Row", "check", "save_baseline"]

_HOMES = {"check": "check", "save_baseline": "baseline", "GateResult": "result", "Row": "result"}


def called(*arguments: Any, **named: Any) -> GateResult:
    """Hold a result against rules and a baseline; see `steelyard.gate.check`."""
    from steelyard.gate.check import check

    return check(*arguments, **named)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'steelyard.gate' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"steelyard.gate.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


sys.modules[__name__].__class__ = CallableModule
