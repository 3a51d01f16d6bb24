"""The code that a target is made of: its module and every module of one's own that it imports."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from steelyard.errors import did_you_mean
from steelyard.ids import kind_of
from steelyard.retrievers.adapters.base import Wrapped, package
from steelyard.retrievers.adapters.calling import Batch, Caller, corpus_taker, method_of
from steelyard.retrievers.adapters.documents import DocIds
from steelyard.retrievers.base import Retriever, RetrieverError

if TYPE_CHECKING:
    from typing_extensions import Self


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


class Python(Wrapped):
    """A function, or an object with `retrieve`, `search` or `invoke` (and `index`), as a retriever.

    target: the callable, or `package.module:attribute`. A class is made, with `arguments`.
    batch: true if it takes a list of queries, false if it takes one; auto looks at its first parameter.
    id: where the id of a document is, if it gives documents: `id`, `metadata.KEY`, another path, or `hash`.
    score: where its score is.
    concurrency: how many queries are out at once when several are asked.
    arguments: keyword arguments of the class, or of every call.
    folder: where modules are also looked for; the working directory by default.
    version: of what the callable holds. Answers are kept from bench to bench for as long as its version and
        its code stay: its module and the modules of your own that it imports, directly or through others.
    timeout: seconds that a query may take; one that takes longer is given up and counts as failed. The thread it
        runs in cannot be ended, and what it goes on doing may slow the others. By default there is no limit.
    name: the label of its row in a table; the target by default.

    It may give ids, (id, score) pairs, documents or records, {id: score}, or None for nothing, at once or as an
    awaitable. Its order is kept, and so are documents that it gives twice. Without scores, they are 1/rank.
    An object (or class) with `index(corpus)` is handed the corpus, a mapping of document id to text, before it is asked.

    >>> def search(query, k):
    ...     return [("d1", 2.5), ("d2", 0.5)][:k]
    >>> Python(search).retrieve(["a question"], k=1)
    [[('d1', 2.5)]]
    """

    def __init__(
        self,
        target: Any = None,
        batch: Batch = "auto",
        id: str = "id",
        score: str = "score",
        concurrency: int = 1,
        arguments: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        version: str | None = None,
        timeout: float | None = None,
        name: str | None = None,
    ) -> None:
        loaded = load_target(target, "python", folder)
        label = name or label_of(target)
        found = made(loaded, label, arguments)
        self._inner = found if isinstance(found, Retriever) else None
        self._take = corpus_taker(found, label)
        per_call = None if isinstance(loaded, type) else arguments
        self._call = Caller(method_of(found, label), label, batch, concurrency, per_call, timeout)
        seen = seen_settings("python", target, version, arguments, batch=self._call.batch)
        if self._inner is not None:
            seen["of"] = self._inner.settings()
        super().__init__(label, DocIds(id, label), {**seen, "score": score}, score)

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Hands the corpus on, to a target that has `index`."""
        take = self._take
        if take is not None:
            self._call.once(lambda: take(corpus))
        return super().index(corpus)

    def size_in_bytes(self) -> int:
        """What the target says, if it is a retriever of this package's kind."""
        return super().size_in_bytes() + (self._inner.size_in_bytes() if self._inner is not None else 0)

    def _ask(self, queries: list[str], k: int) -> list[Any]:
        return self._call(queries, k)
