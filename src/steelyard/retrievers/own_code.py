"""The code that a target is made of: its module and every module of one's own that it imports."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator
from hashlib import sha256
from importlib.machinery import PathFinder
from importlib.util import resolve_name
from pathlib import Path
from types import FunctionType, ModuleType

_INSTALLED = ("site-packages", "dist-packages")
_OURS = "steelyard"


def code_of(module: str) -> str:
    """A hash of a module's file and of those of all modules of one's own that it imports; `unknown` without a file.

    Nothing is run for it: files are read, and modules that are loaded are looked at.

    >>> len(code_of("json")), code_of("sys")
    (16, 'unknown')
    """
    files = own_files(module)
    if not files:
        return "unknown"
    digest = sha256()
    for name, file in sorted(files.items()):
        digest.update(f"{name}\0{sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def own_files(module: str) -> dict[str, Path]:
    """The file of a module, whatever it is, and those of the modules of one's own it imports, also through others.

    One's own is what is neither of the standard library nor installed (site-packages) nor Steelyard's. An
    import counts wherever it is written, in a function too, and so does a module, class or function that
    a loaded module holds from another, however it came there.
    """
    first = _file(module)
    found: dict[str, Path] = {} if first is None else {module: first}
    waiting = list(found)
    while waiting:
        name = waiting.pop()
        for other in {*_imported(name, found[name]), *_held(name)}:
            file = None if other in found or is_ours(other) else _file(other)
            if file is not None and not _is_installed(file):
                found[other] = file
                waiting.append(other)
    return found


def _file(name: str) -> Path | None:
    """The file of a module: of one that is loaded its own, of another the one that an import would load."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
    else:
        place: list[str] | None = None
        spec = None
        for part in _with_parents(name):
            spec = PathFinder.find_spec(part, place)
            if spec is None:
                return None
            place = list(spec.submodule_search_locations or [])
        file = spec.origin if spec is not None and spec.has_location else None
    return Path(file) if file and Path(file).is_file() else None


def _with_parents(name: str) -> Iterator[str]:
    """A module's packages, the outermost first, and itself."""
    parts = name.split(".")
    return (".".join(parts[: place + 1]) for place in range(len(parts)))


def _imported(name: str, file: Path) -> Iterator[str]:
    """Every module that a file's imports may name."""
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


def _held(name: str) -> Iterator[str]:
    """The modules that a loaded module's names come from."""
    loaded = sys.modules.get(name)
    for value in list(vars(loaded).values()) if loaded is not None else ():
        if isinstance(value, ModuleType):
            home = value.__name__
        elif isinstance(value, (type, FunctionType)):
            home = value.__module__
        else:
            home = type(value).__module__
        if isinstance(home, str) and home:
            yield from _with_parents(home)


def is_ours(name: str) -> bool:
    return name.partition(".")[0] == _OURS


def _is_installed(file: Path) -> bool:
    """Whether a file is of the standard library or of an installed package."""
    whole = file.resolve()
    if any(part in _INSTALLED for part in whole.parts):
        return True
    library = [Path(sysconfig.get_paths()[kind]).resolve() for kind in ("stdlib", "platstdlib")]
    return any(folder in whole.parents for folder in library)
