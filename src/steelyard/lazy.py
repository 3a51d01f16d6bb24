"""Lazy loading: a package's names are imported when they are first used, and a package may be callable."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from inspect import Signature
    from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]], public: list[str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package whose names are loaded when first used.

    `modules` lists the names of each module of the package; `public` are all public names, if there are others. A
    module of the package that was not imported yet is also found by its name.
    """
    module_of = {name: module for module, names in modules.items() for name in names}
    names_shown = sorted(public or module_of)

    def load(name: str) -> Any:
        if name in module_of:
            value = getattr(import_module(f"{package}.{module_of[name]}"), name)
            setattr(sys.modules[package], name, value)
            return value
        if name.startswith("_") or not _is_module(f"{package}.{name}"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return load, lambda: names_shown, names_shown


def _is_module(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def make_callable(package: str, function: str) -> None:
    """Make a package callable: it calls a function, named as in `steelyard.bench.runner:bench`."""
    module = sys.modules[package]
    module.__class__ = CallableModule
    vars(module)["_function_path"] = function


class CallableModule(ModuleType):
    """A module that calls a function, which is imported when it is first needed.

    `inspect.signature` and `help` show the signature and the docstring of the function.
    """

    _function_path: str

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._function()(*arguments, **keywords)

    @property
    def __signature__(self) -> Signature:
        import inspect

        return inspect.signature(self._function())

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        import inspect

        own, function = vars(self).get("__doc__") or "", self._function()
        parameters = inspect.signature(function).parameters.values()
        bare = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
        call = f"{self.__name__}{inspect.Signature(bare)}"
        about = inspect.cleandoc(function.__doc__ or "").partition(">>>")[0].rstrip()
        return f"{own.rstrip()}\n\n{call}\n\n{about}\n"

    def _function(self) -> Callable[..., Any]:
        module, _, name = self._function_path.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function
