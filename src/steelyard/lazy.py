"""Lazy loading: slow modules and a package's names when they are first used, functions of higher layers by name."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json as json
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    import polars as polars
    from scipy import special as special


class LazyModule:
    """A module that is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, name)


if not TYPE_CHECKING:
    # To import polars or scipy takes longer than most commands that do not need them; every command starts faster
    # without json.
    json, polars, special = LazyModule("json"), LazyModule("polars"), LazyModule("scipy.special")


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
        module = f"{package}.{name}"
        if not name.startswith("_"):
            try:
                return import_module(module)
            except ModuleNotFoundError as error:
                if error.name != module:
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: names_shown, names_shown


def looked_up(name: str) -> Any:
    """A function of a higher layer, as 'steelyard.io.reading:read_run', imported when it is called.

    `Qrels.read` and `Comparison.to_html` are names on the surface for functions of io and report, which import Qrels
    and read a comparison's data. An import of them here, even inside a method, would be a circle: none of the modules
    in it could be read, tested or changed alone. So this is the only way up; `tests/test_layers.py` checks the names.
    """
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)
