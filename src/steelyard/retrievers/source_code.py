"""The source code behind a callable: its own modules, a hash of them, and the name under which results are cached."""

from __future__ import annotations

import ast
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.machinery import PathFinder
from importlib.util import resolve_name
from itertools import accumulate
from pathlib import Path
from types import FunctionType, ModuleType

_INSTALLED = ("site-packages", "dist-packages")


def describe_callable(function: Callable[..., object]) -> str:
    """The module and name of a callable, with a hash of its source and of the user modules that it imports.

    There is no hash if the source cannot be read.

    >>> describe_callable(str.split)
    'builtins.str.split'
    """
    named = function if hasattr(function, "__qualname__") else type(function)
    name = f"{getattr(named, '__module__', None) or 'builtins'}.{named.__qualname__}"
    try:
        source = inspect.getsource(named)
    except (OSError, TypeError):
        return name
    imported = "" if named.__module__.partition(".")[0] == "steelyard" else code_hash(named.__module__)
    return f"{name}#{sha256(f'{source}{imported}'.encode()).hexdigest()[:12]}"


def code_hash(module: str) -> str:
    """A hash of the file of a module and of all user modules that it imports; `unknown` if it has no file.

    No code is run: files are read, and loaded modules are inspected.

    >>> len(code_hash("json")), code_hash("sys")
    (16, 'unknown')
    """
    files = user_files(module)
    if not files:
        return "unknown"
    digest = sha256()
    for name, file in sorted(files.items()):
        digest.update(f"{name}\0{sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def user_files(module: str) -> dict[str, Path]:
    """The file of a module and those of the user modules that it imports, directly or indirectly.

    A user module is not in the standard library, not installed (site-packages) and not part of Steelyard.
    Imports in functions count too, and so do the modules of all objects that a loaded module refers to.
    """
    first = _file(module)
    files: dict[str, Path] = {} if first is None else {module: first}
    waiting = list(files)
    while waiting:
        name = waiting.pop()
        for other in {*_imported(name, files[name]), *_referenced(name)}:
            file = None if other in files or other.partition(".")[0] == "steelyard" else _file(other)
            if file is not None and not _is_installed(file):
                files[other] = file
                waiting.append(other)
    return files


def _file(name: str) -> Path | None:
    """The file of a loaded module, or the file that an import would load."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
    else:
        position: list[str] | None = None
        spec = None
        for part in _with_parents(name):
            spec = PathFinder.find_spec(part, position)
            if spec is None:
                return None
            position = list(spec.submodule_search_locations or [])
        file = spec.origin if spec is not None and spec.has_location else None
    return Path(file) if file and Path(file).is_file() else None


def _with_parents(name: str) -> Iterator[str]:
    """The packages of a module, outermost first, and the module itself."""
    return accumulate(name.split("."), "{}.{}".format)


def _imported(name: str, file: Path) -> Iterator[str]:
    """Every module that the imports of a file may refer to."""
    if file.suffix != ".py":
        return
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            try:
                base = resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:
                continue
            yield from _with_parents(base)
            yield from (f"{base}.{alias.name}" for alias in node.names if alias.name != "*")


def _referenced(name: str) -> Iterator[str]:
    """The modules of the objects that a loaded module refers to."""
    loaded = sys.modules.get(name)
    for value in list(vars(loaded).values()) if loaded is not None else ():
        if isinstance(value, ModuleType):
            module = value.__name__
        else:
            module = (value if isinstance(value, (type, FunctionType)) else type(value)).__module__
        if isinstance(module, str) and module:
            yield from _with_parents(module)


def _is_installed(file: Path) -> bool:
    """Whether a file belongs to the standard library or to an installed package."""
    path = file.resolve()
    library = [Path(sysconfig.get_paths()[kind]).resolve() for kind in ("stdlib", "platstdlib")]
    return any(part in _INSTALLED for part in path.parts) or any(folder in path.parents for folder in library)
