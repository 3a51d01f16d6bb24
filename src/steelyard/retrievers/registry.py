"""Retrievers by name, as bench.yaml writes them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias, cast

from steelyard.errors import did_you_mean
from steelyard.ids import kind_of
from steelyard.listing import Listing
from steelyard.retrievers.base import Retriever, RetrieverError

Spec: TypeAlias = "str | Mapping[str, Mapping[str, Any] | str | None] | Retriever"

RUN = "run"
"""The name under which a finished run joins a bench."""

# name: where its class is (module of this package, class), and the settings that the name stands for.
_KNOWN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bm25-okapi": ("bm25", "BM25", {"variant": "okapi"}),
    "bm25": ("bm25", "BM25", {"variant": "okapi"}),
    "bm25-plus": ("bm25", "BM25", {"variant": "plus"}),
    "bm25-l": ("bm25", "BM25", {"variant": "l"}),
    "bm25-lucene": ("bm25", "BM25", {"variant": "lucene"}),
    "bm25-robertson": ("bm25", "BM25", {"variant": "robertson"}),
    "bm25-atire": ("bm25", "BM25", {"variant": "atire"}),
    "random": ("random", "Random", {}),
    "dense": ("dense", "Dense", {}),
    "hybrid": ("hybrid", "Hybrid", {}),
    "rerank": ("rerank", "Rerank", {}),
    "graph-flow": ("graph", "GraphFlow", {}),
    "swarm-rerank": ("swarm", "SwarmRerank", {}),
    "python": ("adapters.python", "Python", {}),
    "callable": ("adapters.python", "Python", {}),
    "langchain": ("adapters.langchain", "LangChain", {}),
    "llama-index": ("adapters.llama_index", "LlamaIndex", {}),
    "haystack": ("adapters.haystack", "Haystack", {}),
    "http": ("adapters.http", "Http", {}),
    "elasticsearch": ("adapters.elasticsearch", "Elasticsearch", {}),
    "opensearch": ("adapters.elasticsearch", "Elasticsearch", {}),
    "qdrant": ("adapters.qdrant", "Qdrant", {}),
    "tantivy": ("adapters.tantivy", "Tantivy", {}),
    "bm25s": ("adapters.bm25s", "BM25S", {}),
    "pyterrier": ("adapters.pyterrier", "PyTerrier", {}),
}


def retriever_names() -> list[str]:
    """The names that `retriever` knows."""
    return list(_KNOWN)


def is_target(given: Any) -> bool:
    """Whether it is something to ask, or the name of it, and no table of settings."""
    return isinstance(given, str) or callable(given) or hasattr(given, "retrieve")


def retriever(name: str, settings: Any = None) -> Retriever:
    """A retriever by its name, with settings of its class; a setting `name` is the label of its row.

    A text (or a function, a class, an object to ask) in place of the settings is the first of them, as in
    `python: my_package.search:retrieve`.

    >>> retriever("bm25-plus", {"k1": 1.2}).label
    'bm25-plus'
    """
    cls, preset = class_of(name)
    allowed = {
        key: parameter for key, parameter in inspect.signature(cls).parameters.items() if key not in preset
    }
    if is_target(settings):
        settings = {next(iter(allowed)): settings}
    if not isinstance(settings, Mapping | None):
        raise RetrieverError(f"{name}: the settings are {kind_of(settings)}; expected {{setting: value}}.")
    given = dict(settings or {})
    for key in given:
        if key not in allowed:
            hint = did_you_mean(str(key), allowed)
            raise RetrieverError(f"{name}: no setting {key!r}.{hint} It has: {', '.join(allowed)}.")
    for key, parameter in allowed.items():
        if parameter.default is parameter.empty and key not in given:
            raise RetrieverError(f"{name}: needs the setting {key}. It has: {', '.join(allowed)}.")
    return cast(Retriever, cls(**preset, **given))


def retriever_settings(name: str) -> list[str]:
    """The settings that a name takes.

    >>> retriever_settings("random")
    ['seed', 'name']
    """
    cls, preset = class_of(name)
    return [key for key in inspect.signature(cls).parameters if key not in preset]


def from_spec(spec: Spec) -> Retriever:
    """A retriever from its name, from {name: settings} as YAML has it, or as it is.

    >>> from_spec({"bm25-okapi": {"k1": 1.2}}).settings()["k1"]
    1.2
    """
    if isinstance(spec, str):
        return retriever(spec)
    if isinstance(spec, Mapping):
        if len(spec) != 1:
            raise RetrieverError(f"a retriever is one name with its settings; got {sorted(map(str, spec))}.")
        name, settings = next(iter(spec.items()))
        return retriever(name, settings)
    return from_object(spec)


def from_object(given: Any) -> Retriever:
    """A retriever as it is; a function, a class, or an object with `retrieve` as the adapter `python` takes it."""
    if isinstance(given, Retriever) and not isinstance(given, type):
        return given
    if is_target(given) or hasattr(given, "index"):
        return retriever("python", {"target": given})
    raise RetrieverError(
        f"{given!r} is not a retriever; expected a name, {{name: settings}}, a function, or a class or an object with "
        f"index(corpus) and retrieve(queries, k). The names are {', '.join(_KNOWN)}."
    )


def class_of(name: str) -> tuple[type, dict[str, Any]]:
    """The class that a name stands for, and the settings that the name fixes."""
    if name not in _KNOWN:
        hint = did_you_mean(str(name), _KNOWN)
        raise RetrieverError(f"no retriever {name!r}.{hint} Known: {', '.join(_KNOWN)}.")
    module, cls, preset = _KNOWN[name]
    return getattr(import_module(f"steelyard.retrievers.{module}"), cls), preset


@dataclass(frozen=True)
class Entry:
    """One name: what it is, its settings with their defaults, the extra it needs, and all that is said of it."""

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


def listing() -> Listing[Entry]:
    """Every retriever by name, a finished run last.

    >>> listing()["random"].settings
    ('seed=0', 'name')
    """
    entries = {name: _entry(name) for name in retriever_names()}
    entries[RUN] = Entry(
        name=RUN,
        what="A finished run, in any format that is read, joins the table.",
        settings=("path (needed)", "name"),
        extra="",
        about="path: the file, from the folder of bench.yaml.\nname: the label of its row in a table.",
    )
    return Listing(
        entries,
        ("retriever", "what", "settings", "extra"),
        lambda entry: (entry.name, entry.what, ", ".join(entry.settings), entry.extra),
    )


def _entry(name: str) -> Entry:
    cls, preset = class_of(name)
    first, _, rest = inspect.cleandoc(cls.__doc__ or "").partition("\n")
    fixed = ", ".join(f"{key}={value}" for key, value in preset.items())
    taken = [p for p in inspect.signature(cls).parameters.values() if p.name not in preset]
    return Entry(
        name=name,
        what=f"{first} Here {fixed}." if fixed else first,
        settings=tuple(map(_setting, taken)),
        extra=getattr(cls, "extra", ""),
        about=rest.partition(">>>")[0].strip(),
    )


def _setting(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return f"{parameter.name} (needed)"
    return parameter.name if parameter.default is None else f"{parameter.name}={_shown(parameter.default)}"


def _shown(default: Any) -> str:
    return f"[{', '.join(map(str, default))}]" if isinstance(default, (list, tuple)) else str(default)
