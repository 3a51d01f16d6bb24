"""Targets: the object behind `package.module:attribute`, its label, its source code, and its identity in the cache."""

from __future__ import annotations

import ast
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from uuid import uuid4

from steelyard.errors import did_you_mean
from steelyard.masking import from_environment, remember_settings
from steelyard.retrievers.base import RetrieverError
from steelyard.safe_text import error_text
from steelyard.user_code import UserCodeError, run_user_code

_INSTALLED = ("site-packages", "dist-packages")


def package(module: str, extra: str, label: str) -> Any:
    """The module, or an error that names the extra that installs it."""
    name = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != name:
            problem = f"{label}: the package {name} is installed, but {error.name}, which it needs, is not:"
            raise RetrieverError(f"{problem} pip install --upgrade 'steelyard[{extra}]'") from None
        raise RetrieverError(f"{label} needs the package {name}: pip install 'steelyard[{extra}]'") from None


def load_target(target: Any, label: str, folder: str | Path | None = None) -> Any:
    """The object at `package.module:attribute`; any other object is returned unchanged.

    Modules are also searched in `folder`, the folder of the bench file, or else in the working directory.

    >>> load_target("json:dumps", "python")(1)
    '1'
    """
    if target is None:
        raise RetrieverError(f"{label}: the target is missing; expected `{label}: package.module:attribute`.")
    if not isinstance(target, str):
        return target
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise RetrieverError(
            f"{label}: {target!r} is not `package.module:attribute`; expected the module, a colon, and the name in it."
        )
    value: Any = _module(module_name, label, Path(folder or "."))
    for name in attribute.split("."):
        if not hasattr(value, name):
            members = [member for member in dir(value) if not member.startswith("_")]
            what = f"module {module_name!r}" if isinstance(value, ModuleType) else f"{attribute!r}"
            raise RetrieverError(f"{label}: {what} has no {name!r}.{did_you_mean(name, members)}")
        value = getattr(value, name)
    return value


def instantiated(found: Any, label: str, arguments: Mapping[str, Any] | None = None) -> Any:
    """The object; a class is called with the arguments."""
    return called(found, label, arguments) if isinstance(found, type) else found


def called(found: Any, label: str, arguments: Mapping[str, Any] | None) -> Any:
    """What a class or a function makes of the arguments."""
    given = expanded(arguments, label)
    try:
        return run_user_code(lambda: found(**given))
    except UserCodeError as error:
        hint = list_hint(error.__cause__ or error, arguments)
        raise RetrieverError(
            f"{label}: calling {found.__name__} failed with {error}. "
            f"{hint or 'Its arguments go into `arguments`; the corpus is passed to its method index(corpus).'}"
        ) from error


def expanded(arguments: Mapping[str, Any] | None, label: str) -> dict[str, Any]:
    """The `arguments` of a target, with every ${VARIABLE} replaced from the environment."""
    remember_settings(arguments)
    return {str(name): from_environment(value, label, RetrieverError) for name, value in (arguments or {}).items()}


def list_hint(error: BaseException, arguments: Any) -> str:
    """Advice if a list among the arguments is the likely cause of a TypeError; "" otherwise.

    >>> hint = list_hint(TypeError("'list' object cannot be interpreted as an integer"), {"n": [3, 4]})
    >>> print(*hint.split("; "), sep="\\n")
    Its argument n is a list, [3, 4], and is passed unchanged
    to try one value after the other, write `arguments: [{n: 3}, {n: 4}]`.
    """
    given = arguments.items() if isinstance(arguments, Mapping) else ()
    lists = [(key, value) for key, value in given if isinstance(value, list)]
    if not isinstance(error, TypeError) or "list" not in error_text(error) or not lists:
        return ""
    key, values = lists[0]
    variants = ", ".join(f"{{{key}: {value}}}" for value in values)
    return (
        f"Its argument {key} is a list, {values!r}, and is passed unchanged; "
        f"to try one value after the other, write `arguments: [{variants}]`."
    )


def label_of(target: Any) -> str:
    """The label of a target in tables."""
    if isinstance(target, str):
        return target
    return str(getattr(target, "__qualname__", None) or type(target).__qualname__)


def identity_of(target: Any, version: str | None, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The settings that identify a target and its arguments, for the cache of results.

    An importable target: its name, and a hash of its file and of the user modules that it imports. Any other object:
    its class, and `version`; without a version it is new in every process, since its state cannot be seen.

    >>> sorted(identity_of("json:dumps", None))
    ['code', 'target']
    """
    name = target if isinstance(target, str) else _importable_name(target)
    given = {"arguments": dict(arguments)} if arguments else {}
    if name is None:
        state = version or f"this process ({uuid4().hex[:8]})"
        return {"target": f"{type(target).__module__}.{label_of(target)}", "version": state, **given}
    identity = {"target": name, "code": code_hash(name.partition(":")[0])}
    return identity | ({"version": version} if version else {}) | given


def _module(name: str, label: str, folder: Path) -> ModuleType:
    folder = folder.resolve()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    # After everything else, so that no file of the working directory stands in for a package.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    # Another module of the same name that is already loaded would be used by Python instead.
    top = name.split(".")[0]
    here = [path for path in (folder / f"{top}.py", folder / top / "__init__.py") if path.is_file()]
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if here and loaded and Path(loaded).resolve() not in [path.resolve() for path in here]:
        raise RetrieverError(
            f"{label}: module {top!r} is already loaded from {loaded}, so {here[0]} cannot be loaded; rename one."
        )
    try:
        return run_user_code(lambda: import_module(name))
    except UserCodeError as failure:
        error = failure.__cause__
        if not isinstance(error, ModuleNotFoundError):
            raise RetrieverError(f"{label}: loading module {name!r} failed with {failure}.") from error
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise RetrieverError(f"{label}: module {name!r} needs {error.name!r}, which is not installed.") from None
        problem = f"{label}: there is no module {error.name!r} in {folder}, the working directory or the installed"
        raise RetrieverError(f"{problem} packages.{did_you_mean(error.name, _modules(error.name, folder))}") from None


def _modules(name: str, folder: Path) -> list[str]:
    """The names of the modules in the same package as a missing one."""
    parent, dot, _ = name.rpartition(".")
    spec = find_spec(parent) if parent else None
    folders = [Path(location) for location in (spec.submodule_search_locations or [])] if spec else [folder]
    names = set() if parent else set(sys.modules)
    names |= {path.stem for directory in folders for path in directory.glob("*.py")}
    names |= {path.parent.name for directory in folders for path in directory.glob("*/*.py")}
    return sorted(f"{parent}{dot}{module}" for module in names)


def _importable_name(target: Any) -> str | None:
    """`module:name` of an object that can be imported under that name from a file; None otherwise."""
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    loaded = sys.modules.get(module) if isinstance(module, str) else None
    if loaded is None or not isinstance(name, str) or "<locals>" in name or not getattr(loaded, "__file__", None):
        return None
    return f"{module}:{name}" if getattr(loaded, name, None) is target else None


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
