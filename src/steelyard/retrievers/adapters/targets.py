"""`package.module:attribute` in a setting: loading what it names, and telling when its code changed."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any
from uuid import uuid4

from steelyard.errors import did_you_mean
from steelyard.ids import kind_of
from steelyard.retrievers.adapters.packages import package
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.own_code import code_of


def load_target(target: Any, who: str, folder: str | Path | None = None) -> Any:
    """What `package.module:attribute` names, or the object as it is.

    Modules are also looked for in `folder`, the bench file's own, and else in the working directory.

    >>> load_target("json:dumps", "python")(1)
    '1'
    """
    if target is None:
        raise RetrieverError(f"{who}: name what to ask, as in `{who}: package.module:attribute`.")
    return _attribute(target, who, Path(folder or ".")) if isinstance(target, str) else target


def made(found: Any, who: str, arguments: Mapping[str, Any] | None = None) -> Any:
    """The object; a class is made into one, with the arguments.

    >>> made(dict, "python", {"d1": 2.5})
    {'d1': 2.5}
    """
    return _called(found, who, arguments) if isinstance(found, type) else found


def library_object(
    target: Any,
    library: str,
    module: str,
    methods: Sequence[str],
    folder: str | Path | None,
    arguments: Mapping[str, Any] | None,
) -> Any:
    """An object of somebody's library that has one of the methods; a class or a function is called to make it.

    library: the retriever's name, which is also the name of the extra that brings the library's `module`.
    """
    package(module, library, library)
    found = load_target(target, library, folder)
    if isinstance(found, (type, FunctionType)):
        found = _called(found, library, arguments)
    if not any(hasattr(found, method) for method in methods):
        raise RetrieverError(
            f"{library}: {target!r} is {kind_of(found)} without {' or '.join(methods)}, so it is none of that library's; "
            "`python` takes any other callable."
        )
    return found


def _called(found: Any, who: str, arguments: Mapping[str, Any] | None) -> Any:
    try:
        return found(**dict(arguments or {}))
    except Exception as error:
        hint = list_hint(error, arguments)
        raise RetrieverError(
            f"{who}: calling {found.__name__} failed with {type(error).__name__}: {error}. "
            f"{hint or 'What it is made with goes into `arguments`; a corpus is handed to its method index(corpus).'}"
        ) from error


def list_hint(error: BaseException, arguments: Any) -> str:
    """What to do where a list among the arguments is the likely cause of a TypeError; "" where it is not.

    >>> list_hint(TypeError("'list' object cannot be interpreted as an integer"), {"n": [3, 4]})
    'Its argument n is a list, [3, 4], and is handed over as it is; to try one value after the other, write `arguments: [{n: 3}, {n: 4}]`.'
    """
    lists = (
        {key: value for key, value in arguments.items() if isinstance(value, list)}
        if isinstance(arguments, Mapping)
        else {}
    )
    if not isinstance(error, TypeError) or "list" not in str(error) or not lists:
        return ""
    key, values = next(iter(lists.items()))
    each = ", ".join(f"{{{key}: {value}}}" for value in values)
    return (
        f"Its argument {key} is a list, {values!r}, and is handed over as it is; "
        f"to try one value after the other, write `arguments: [{each}]`."
    )


def label_of(target: Any) -> str:
    """What to call a target in a table.

    >>> label_of("my_package.search:retrieve"), label_of(len)
    ('my_package.search:retrieve', 'len')
    """
    if isinstance(target, str):
        return target
    return str(getattr(target, "__qualname__", None) or type(target).__qualname__)


def identity_of(target: Any, version: str | None) -> dict[str, str]:
    """What tells one target from another, so that answers are kept under it and no other.

    A name from a file: the name, and a hash of the file and of the modules of one's own that it imports. An
    object that came from Python: its kind, and `version`; without a version it counts as new in every process,
    since nobody can see what it holds.

    >>> sorted(identity_of("json:dumps", None))
    ['code', 'target']
    """
    name = target if isinstance(target, str) else _importable_name(target)
    if name is None:
        held = version or f"this process ({uuid4().hex[:8]})"
        return {"target": f"{type(target).__module__}.{label_of(target)}", "version": held}
    return {"target": name, "code": code_of(name.partition(":")[0])} | (
        {"version": version} if version else {}
    )


def seen_settings(
    retriever: str, target: Any, version: str | None, arguments: Mapping[str, Any] | None, **more: Any
) -> dict[str, Any]:
    """What decides the answers of a target, as far as it can be seen from here.

    >>> seen_settings("python", "json:dumps", "2", {"indent": 1}, batch=False)["arguments"]
    {'indent': 1}
    """
    given = {"arguments": dict(arguments)} if arguments else {}
    return {"retriever": retriever, **identity_of(target, version), **more, **given}


def _attribute(target: str, who: str, folder: Path) -> Any:
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise RetrieverError(
            f"{who}: {target!r} is no `package.module:attribute`; write the module, a colon, and the name in it."
        )
    value: Any = _module(module_name, who, folder)
    for name in attribute.split("."):
        if not hasattr(value, name):
            known = [known for known in dir(value) if not known.startswith("_")]
            what = f"module {module_name!r}" if isinstance(value, ModuleType) else f"{attribute!r}"
            raise RetrieverError(f"{who}: {what} has no {name!r}.{did_you_mean(name, known)}")
        value = getattr(value, name)
    return value


def _module(name: str, who: str, folder: Path) -> ModuleType:
    home = str(folder.resolve())
    if home not in sys.path:
        sys.path.insert(0, home)
    top = name.split(".")[0]
    _refuse_namesake(top, who, Path(home))
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise RetrieverError(
                f"{who}: module {name!r} needs {error.name!r}, which is not installed."
            ) from None
        raise RetrieverError(
            f"{who}: there is no module {error.name!r}.{did_you_mean(error.name, _modules(error.name, Path(home)))} "
            f"It was looked for in {home} and among the installed packages."
        ) from None
    except Exception as error:
        raise RetrieverError(
            f"{who}: loading module {name!r} failed with {type(error).__name__}: {error}."
        ) from error


def _refuse_namesake(top: str, who: str, home: Path) -> None:
    """Python keeps one module of a name: another that was loaded before must not stand in for this one."""
    here = [path for path in (home / f"{top}.py", home / top / "__init__.py") if path.is_file()]
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if here and loaded and Path(loaded).resolve() not in [path.resolve() for path in here]:
        raise RetrieverError(
            f"{who}: module {top!r} was loaded from {loaded} before, so {here[0]} cannot be; rename one."
        )


def _modules(name: str, home: Path) -> list[str]:
    """Module names that could have been meant: those beside the one that is missing."""
    parent, _, _ = name.rpartition(".")
    spec = find_spec(parent) if parent else None
    folders = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else [home]
    prefix = f"{parent}." if parent else ""
    names = {path.stem for folder in folders for path in folder.glob("*.py")}
    names |= {path.parent.name for folder in folders for path in folder.glob("*/*.py")}
    return sorted(f"{prefix}{name}" for name in names | (set(sys.modules) if not parent else set()))


def _importable_name(target: Any) -> str | None:
    """`module:name` of a function that its module has under that name, in a file."""
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    loaded = sys.modules.get(module) if isinstance(module, str) else None
    if loaded is None or not isinstance(name, str) or "<locals>" in name:
        return None
    if not getattr(loaded, "__file__", None) or getattr(loaded, name, None) is not target:
        return None
    return f"{module}:{name}"
