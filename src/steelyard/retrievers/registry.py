"""Retrievers by name, as in bench.yaml: creation, settings and the list of available retrievers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, cast

from steelyard.checks import unknown_name
from steelyard.ids import kind_of
from steelyard.listing import Listing
from steelyard.retrievers.base import Retriever, RetrieverError
from steelyard.retrievers.settings import check_names, settings_text

Spec: TypeAlias = "str | Mapping[str, Mapping[str, Any] | str | None] | Retriever"

_QUOTED = 200  # The characters of a wrong value that an error quotes.
RUN = "run"  # The name of a finished run in a bench.

_BM25 = {"bm25-okapi": "okapi", "bm25": "okapi"}
_BM25 |= {f"bm25-{variant}": variant for variant in ("plus", "l", "lucene", "robertson", "atire")}
# The names and the classes of each module.
_CLASSES: dict[str, dict[str, str]] = {
    "random": {"random": "Random"},
    "dense": {"dense": "Dense"},
    "combined": {"hybrid": "Hybrid", "rerank": "Rerank"},
    "walks": {"graph-flow": "GraphFlow", "swarm-rerank": "SwarmRerank"},
    "adapters.python": {"python": "Python", "callable": "Python"},
    "adapters.libraries": {
        "langchain": "LangChain",
        "llama-index": "LlamaIndex",
        "haystack": "Haystack",
        "pyterrier": "PyTerrier",
    },
    "adapters.http": {"http": "Http"},
    "adapters.elasticsearch": {"elasticsearch": "Elasticsearch", "opensearch": "Elasticsearch"},
    "adapters.sqlite": {"sqlite-fts": "SqliteFts", "sqlite-vec": "SqliteVec"},
    "adapters.postgres": {"postgres-fts": "PostgresFts", "pgvector": "PgVector"},
    "adapters.lancedb": {"lancedb": "LanceDB"},
    "adapters.chroma": {"chroma": "Chroma"},
    "adapters.milvus": {"milvus": "Milvus"},
    "adapters.qdrant": {"qdrant": "Qdrant"},
    "adapters.faiss": {"faiss": "Faiss"},
    "adapters.lexical": {"tantivy": "Tantivy", "bm25s": "BM25S"},
}
# The module and the class of each name, and the settings that the name implies.
_KNOWN: dict[str, tuple[str, str, dict[str, Any]]] = {
    **{name: ("bm25", "BM25", {"variant": variant}) for name, variant in _BM25.items()},
    **{name: (module, cls, {}) for module, classes in _CLASSES.items() for name, cls in classes.items()},
}


def retriever_names() -> list[str]:
    """The names that `retriever` accepts."""
    return list(_KNOWN)


def adapter_classes() -> dict[str, list[str]]:
    """The classes of each module of `adapters`."""
    adapters = {module.removeprefix("adapters."): classes for module, classes in _CLASSES.items() if "." in module}
    return {module: list(dict.fromkeys(classes.values())) for module, classes in adapters.items()}


_LIBRARIES = {"langchain_core": "langchain", "llama_index": "llama-index", "haystack": "haystack"}
"""The adapter of objects of a library, by the package of one of their classes."""


def is_target(value: Any) -> bool:
    """Whether a value is a target (a callable, an object of a library or with `retrieve`, or a name), not settings."""
    return isinstance(value, str) or callable(value) or hasattr(value, "retrieve") or adapter_of(value) != "python"


def adapter_of(value: Any) -> str:
    """The name of the adapter for an object or a text: of its library, `http` for a URL, otherwise `python`.

    >>> adapter_of(len), adapter_of("http://127.0.0.1:8000/search?q={query}")
    ('python', 'http')
    """
    if isinstance(value, str):
        return "http" if value.startswith(("http://", "https://")) else "python"
    packages = [base.__module__.partition(".")[0] for base in type(value).__mro__]
    otherwise = "haystack" if hasattr(value, "__haystack_input__") else "python"
    return next((_LIBRARIES[package] for package in packages if package in _LIBRARIES), otherwise)


def retriever(name: str, settings: Any = None) -> Retriever:
    """A retriever by name, with the settings of its class; the setting `name` is its label in tables.

    A text, function, class or object in place of the settings is the first setting, as in
    `python: my_package.search:retrieve`.

    >>> retriever("bm25-plus", {"k1": 1.2}).label
    'bm25-plus'
    """
    cls, preset = class_of(name)
    allowed = {key: parameter for key, parameter in inspect.signature(cls).parameters.items() if key not in preset}
    if is_target(settings):
        settings = {next(iter(allowed)): settings}
    if not isinstance(settings, Mapping | None):
        raise RetrieverError(f"{name}: the settings are {kind_of(settings)}; expected {{setting: value}}.")
    chosen = dict(settings or {})
    check_names(name, chosen, allowed)
    for key, parameter in allowed.items():
        if parameter.default is parameter.empty and key not in chosen:
            raise RetrieverError(f"{name}: needs the setting {key}. Its settings are {', '.join(allowed)}.")
    return cast(Retriever, cls(**preset, **chosen))


def retriever_settings(name: str) -> list[str]:
    """The settings of a retriever."""
    cls, preset = class_of(name)
    return [key for key in inspect.signature(cls).parameters if key not in preset]


def from_spec(spec: Spec) -> Retriever:
    """A retriever from its name or from {name: settings}, as in YAML; a retriever object is returned unchanged."""
    if isinstance(spec, str):
        return retriever(spec)
    if isinstance(spec, Mapping):
        if len(spec) != 1:
            raise RetrieverError(f"expected one retriever name with its settings, got {sorted(map(str, spec))}.")
        return retriever(*next(iter(spec.items())))
    return from_object(spec)


def from_object(value: Any) -> Retriever:
    """A retriever object unchanged; a function, a class or another object through its adapter."""
    if isinstance(value, Retriever) and not isinstance(value, type):
        return value
    if is_target(value) or hasattr(value, "index"):
        return retriever(adapter_of(value), {"target": value})
    raise RetrieverError(
        f"{repr(value)[:_QUOTED]} is not a retriever; expected a name, {{name: settings}}, a function, or a class or "
        f"an object with index(corpus) and retrieve(queries, k). The names are {', '.join(_KNOWN)}."
    )


def class_of(name: str) -> tuple[type, dict[str, Any]]:
    """The class of a name, and the settings that the name implies."""
    if name not in _KNOWN:
        if isinstance(name, str) and ":" in name:
            raise RetrieverError(f"{name!r} is not the name of a retriever; write `{adapter_of(name)}: {name}`.")
        raise RetrieverError(unknown_name("retriever", name, _KNOWN))
    module, cls, preset = _KNOWN[name]
    return getattr(import_module(f"steelyard.retrievers.{module}"), cls), preset


@dataclass(frozen=True)
class Entry:
    """A retriever: its description, settings with defaults, the extra that it needs, and its documentation."""

    name: str
    what: str
    settings: tuple[str, ...]
    extra: str
    about: str

    def __str__(self) -> str:
        needs = [f"Needs: pip install 'steelyard[{self.extra}]'", ""] if self.extra else []
        return "\n".join(
            [f"{self.name}: {self.what}", "", f"Settings: {', '.join(self.settings)}", "", *needs, self.about]
        ).rstrip()


def list_retrievers() -> Listing[Entry]:
    """The available retrievers by name; a finished run is last.

    >>> list_retrievers()["random"].settings
    ('seed=0', 'name')
    """

    def shown(parameter: inspect.Parameter) -> str:
        default = parameter.default
        text = f"[{', '.join(map(str, default))}]" if isinstance(default, (list, tuple)) else str(default)
        more = " (needed)" if default is parameter.empty else "" if default is None else f"={text}"
        return f"{parameter.name}{more}"

    entries = {}
    for name in _KNOWN:
        cls, preset = class_of(name)
        first, _, rest = inspect.cleandoc(cls.__doc__ or "").partition("\n")
        implied = ", ".join(f"{key}={value}" for key, value in preset.items())
        settings = tuple(shown(arg) for arg in inspect.signature(cls).parameters.values() if arg.name not in preset)
        what = f"{first} Here {implied}." if implied else first
        about = f"{settings_text(cls)}\n\n{rest.partition('>>>')[0].strip()}".strip()
        entries[name] = Entry(name, what, settings, getattr(cls, "extra", ""), about)
    about = "path: the file, relative to the folder of bench.yaml.\nname: its label in tables."
    what = "A finished run, in any format that can be read."
    entries[RUN] = Entry(RUN, what, ("path (needed)", "name"), "", about)
    columns = ("retriever", "what", "settings", "extra")
    return Listing(entries, columns, lambda entry: (entry.name, entry.what, ", ".join(entry.settings), entry.extra))
