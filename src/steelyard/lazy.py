"""Packages whose names are loaded when they are first used: importing one costs next to nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature
    from typing import Any


def loader(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__`. `homes` names the module of the package that each name lives in."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


class CallableModule(ModuleType):
    """A package that does what its `called` names, as in `steelyard.bench.runner:bench`, when it is called.

    The function is loaded when it is first needed; `inspect.signature` and `help` show its own.
    """

    called: str

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function()(*arguments, **named)

    @property
    def __signature__(self) -> Signature:
        import inspect

        return inspect.signature(self._function())

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        import inspect

        own, function = vars(self).get("__doc__") or "", self._function()
        whole = inspect.signature(function)
        bare = [each.replace(annotation=each.empty) for each in whole.parameters.values()]
        call = f"{self.__name__}{inspect.Signature(bare)}"
        told = inspect.cleandoc(function.__doc__ or "").partition(">>>")[0].rstrip()
        return f"{own.rstrip()}\n\n{call}\n\n{told}\n"

    def _function(self) -> Callable[..., Any]:
        module, _, name = self.called.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found
