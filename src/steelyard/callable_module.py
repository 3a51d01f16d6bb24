"""Packages that can be called: `sy.measures()` lists what `from steelyard.measures import nDCG` takes from."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A package that does what its `called` does when it is called."""

    called: Callable[..., Any]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.called(*arguments, **named)
