"""Settings of retrievers: each is declared once, in the class of its retriever.

    class Mine(Engine):
        retriever = "mine"
        m: int = setting("links per document", default=16, low=1)

The declaration gives the constructor with its checks, the attribute `self.m`, the settings that results are cached by,
and what `steelyard list retrievers mine`, the errors of bench.yaml and the documentation show.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from steelyard.checks import is_number, number_between, unknown_name, whole_number
from steelyard.ids import kind_of
from steelyard.retrievers import base
from steelyard.retrievers.base import CheckedCorpus, Ranked, RetrieverError, Self, unknown

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Tells type checkers that the annotated attributes of a class are the parameters of its constructor."""
        return lambda cls: cls


Scope = Literal["corpus", "target"]
TEXT_WIDTH = 100

USUAL_HELP = {
    "api_key": "the key of a server; ${VARIABLE} is read from the environment",
    "collection": "the name of the collection",
    "concurrency": "the number of queries at the same time",
    "ef_construction": "candidates while the index is built",
    "ef_search": "candidates while it is searched",
    "headers": "headers of every request; ${VARIABLE} in a header, in the body or in the URL is read from the "
    "environment",
    "id": "the column with the document id; `hash` identifies documents by their texts",
    "lists": "the number of lists",
    "m": "links per document",
    "name": "its label in tables",
    "probes": "the number of lists that are searched",
    "retries": "number of retries after a timeout, a connection error, or a status of 408, 429, 500, 502, 503 or 504, "
    "with a pause that doubles from 0.2 s",
    "text": "path to the text of a document; by default text, page_content, content, contents or body, also in the "
    "metadata",
    "timeout": "seconds for one request, from the connection to the end of the response",
}
"""The help of settings that several retrievers have, by name; a declaration replaces it."""

_WITHOUT_KEY = (
    *("name", "target", "folder", "version", "id", "text", "of", "model", "vectors", "filter", "arguments"),
    *("api_key", "concurrency", "headers", "retries", "timeout"),
)
"""Settings that results do not depend on, or that `settings()` has in another form, unless they declare a key."""


@dataclass(frozen=True)
class Setting:
    """One setting: its default, its help, and where it applies.

    help: by default that of USUAL_HELP for its name.
    low, high: the lowest and the highest value of a number.
    kinds: the kinds of index that it is a parameter of; the others refuse it.
    only: `corpus` or `target`, if it applies to one of them; the other refuses it.
    needed: a target needs it.
    key: its key in `settings()`, by default its name, or None for _WITHOUT_KEY; None if results do not depend on it, or
        if `settings()` has it in another form.
    alias: its name, if the attribute cannot have that name.
    """

    default: Any
    help: str
    low: float = 0
    high: float = inf
    kinds: tuple[str, ...] = ()
    only: Scope | None = None
    needed: bool = False
    key: str | None = ""
    alias: str | None = None
    attribute: str = ""
    types: tuple[Any, ...] = ()
    optional: bool = False

    @property
    def name(self) -> str:
        """The name that a user writes."""
        return self.alias or self.attribute

    @property
    def choices(self) -> list[Any]:
        """The texts that it may be."""
        return [choice for kind in self.types if get_origin(kind) is Literal for choice in get_args(kind)]

    @property
    def meaning(self) -> str:
        """The help, with where the setting applies and its choices."""
        where = f"of {' and '.join(self.kinds)}; " if self.kinds else ""
        where += {"target": "for a target; ", "corpus": "for the corpus; ", None: ""}[self.only]
        choices = f": {', '.join(f'`{choice}`' for choice in self.choices)}" if self.choices else ""
        return f"{where}{self.help}{choices}."

    def checked(self, value: Any, label: str) -> Any:
        """The value after a check of its type; an error otherwise."""
        plain_types = (bool, int, float, str, Path)  # A class checks objects and functions itself.
        plain = all(kind in plain_types or get_origin(kind) in (Literal, Mapping) for kind in self.types)
        if (value is None and self.optional) or not plain or value in self.choices:
            return value
        mapping = any(get_origin(kind) is Mapping for kind in self.types)
        if (isinstance(value, bool) and bool in self.types) or (isinstance(value, Mapping) and mapping):
            return value
        if int in self.types:
            return whole_number(f"{label}: `{self.name}`", value, int(self.low), error=RetrieverError)
        if float in self.types:
            return number_between(f"{label}: `{self.name}`", value, self.low, self.high, error=RetrieverError)
        if (isinstance(value, str | Path) or is_number(value)) and str in self.types:
            return value
        if self.choices and bool not in self.types:
            raise unknown(label, self.name, value, self.choices)
        texts = ["true", "false"] if bool in self.types else ["`name: value` pairs"] if mapping else []
        texts += map(str, self.choices) if self.choices else ["text"] if str in self.types else []
        expected = " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))
        shown = repr(value) if self.choices else kind_of(value)
        raise RetrieverError(f"{label}: `{self.name}` is {shown}; expected {expected}.")


def setting(help: str = "", *, default: Any, kw_only: bool = True, **more: Any) -> Any:
    """Declare a Setting in the body of a class; its type is the annotation.

    default is a keyword, as type checkers find it by this name. kw_only is for type checkers: the target may be given
    by position.
    """
    return Setting(default, help, **more)


def _declared_settings(cls: type) -> dict[str, Setting]:
    """The settings of a class by name: its own in their order, then those of its bases.

    A plain attribute of a class, as in `concurrency = 1`, takes the place of a setting of its base.
    """
    hints = get_type_hints(cls)
    attributes: dict[str, Any] = {}
    for parent in cls.__mro__:
        attributes = {**attributes, **{name: value for name, value in vars(parent).items() if name not in attributes}}
    settings = []
    for attribute, value in attributes.items():
        if isinstance(value, Setting):
            hint, help = hints[attribute], value.help or USUAL_HELP[value.alias or attribute]
            members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
            types = tuple(member for member in members if member is not type(None))
            optional = type(None) in get_args(hint)
            key = None if value.key == "" and attribute in _WITHOUT_KEY else value.key
            settings.append(replace(value, help=help, key=key, attribute=attribute, types=types, optional=optional))
    # The target is the first, so that it can be given by position and as `name: target` in bench.yaml.
    return {declared.name: declared for declared in sorted(settings, key=lambda declared: declared.name != "target")}


def check_names(name: str, chosen: Iterable[str], allowed: Iterable[str]) -> None:
    """Raise for a setting that a retriever does not have."""
    for key in chosen:
        if key not in allowed:
            raise RetrieverError(f"{name}: {unknown_name('setting', key, allowed)}")


@dataclass_transform(kw_only_default=True, field_specifiers=(setting,))
class _Fields:
    """A base of its own: type checkers do not count the attributes of the class that has the decorator."""


class Declared(_Fields):
    """A retriever with declared settings. A subclass does the rest of its construction in `_set_up`."""

    retriever: ClassVar[str]
    """Its name in bench.yaml."""
    declared: ClassVar[dict[str, Setting]]
    """Its settings by name."""
    extra: ClassVar[str] = ""
    """The extra that installs its package."""
    labelled_by: ClassVar[tuple[str, ...]] = ("name",)
    """The settings that can be its label in tables; otherwise it is the name of the retriever."""
    existing_by: ClassVar[str] = "target"
    """The setting with which an existing collection is searched, and the corpus is not indexed."""
    kind = ""
    """The kind of its index, of a retriever that has several."""

    name: str | None = setting(default=None)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.declared = _declared_settings(cls)
        keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, keyword, default=entry.default) for name, entry in cls.declared.items()]
        cls.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]

    def __init__(self, *positional: Any, **chosen: Any) -> None:
        declared = self.declared
        if len(positional) > len(declared):
            raise RetrieverError(f"{self.retriever}: {len(positional)} settings; expected at most {len(declared)}.")
        chosen = {**dict(zip(declared, positional, strict=False)), **chosen}
        check_names(self.retriever, chosen, declared)
        given = {name: value for name, value in chosen.items() if value is not None or declared[name].optional}
        for name, entry in declared.items():
            setattr(self, entry.attribute, given.get(name, entry.default))
        self.label = self._label()
        for entry in declared.values():
            setattr(self, entry.attribute, entry.checked(getattr(self, entry.attribute), self.label))
        self._check_scope({name for name, value in given.items() if value is not None})
        self._set_up()

    def _label(self) -> str:
        labels = [getattr(self, name) for name in self.labelled_by]
        return next((str(label) for label in labels if label is not None), self.retriever)

    def _set_up(self) -> None:
        """The rest of the construction: checks of settings together, packages, connections."""

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on."""
        return {"retriever": self.retriever, **self._declared_values()}

    @property
    def _existing(self) -> bool:
        return getattr(self, self.existing_by, None) is not None

    @property
    def _parameters(self) -> dict[str, Any]:
        """The parameters of the chosen kind of index, with their values."""
        entries = self.declared.values()
        return {entry.name: getattr(self, entry.attribute) for entry in entries if self.kind in entry.kinds}

    def _check_scope(self, given: set[str]) -> None:
        """Raise for a setting of another kind of index, of the corpus or of a target, and for a missing one."""
        for name, entry in self.declared.items():
            if entry.needed and self._existing and name not in given:
                raise self._error(f"a target needs `{name}`: {entry.help}.")
            if name not in given:
                continue
            if entry.kinds and self.kind not in entry.kinds:
                problem = f"an index of kind {self.kind} has no `{name}`;"
                raise self._error(f"{problem} that is a parameter of {' and '.join(entry.kinds)}.")
            if entry.only == "corpus" and self._existing:
                instead = "; use `where`" if name == "filter" else ""
                problem = f"`{name}` applies to the corpus, and `{self.existing_by}`"
                raise self._error(f"{problem} is an existing collection{instead}.")
            if entry.only == "target" and not self._existing:
                raise self._error(f"`{name}` applies to an existing collection, which needs `{self.existing_by}`.")

    def _error(self, text: str) -> RetrieverError:
        """An error that starts with the label."""
        return RetrieverError(f"{self.label}: {text}")

    def _declared_values(self) -> dict[str, Any]:
        """The values that results depend on, of the settings that apply."""
        mode = "target" if self._existing else "corpus"
        return {
            entry.key or entry.name: str(value) if isinstance(value, Path) else value
            for entry in self.declared.values()
            for value in [getattr(self, entry.attribute)]
            if entry.key is not None and entry.only in (None, mode) and (not entry.kinds or self.kind in entry.kinds)
        }


class Indexed(Declared):
    """A retriever of a corpus in memory. A subclass has `_build`, which indexes it, and `_lists`, which searches it."""

    _documents: CheckedCorpus | None = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus; a second call replaces the first index."""
        documents = base.checked_corpus(corpus, self.label)
        self._build(documents, corpus)
        self._documents = documents
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, score) pairs."""
        documents = base.checked_index(self._documents, self.label)
        return self._lists(documents, base.checked_queries(queries, k, self.label), int(k))

    def _build(self, documents: CheckedCorpus, corpus: Mapping[str, str]) -> None:
        raise NotImplementedError

    def _lists(self, documents: CheckedCorpus, queries: list[str], k: int) -> list[Ranked]:
        raise NotImplementedError


def settings_text(cls: type) -> str:
    """The settings of a class with their meaning, one paragraph each; nothing if they are not declared."""
    if not issubclass(cls, Declared):
        return ""
    lines = [f"{name}: {entry.meaning}" for name, entry in cls.declared.items()]
    return "\n".join(textwrap.fill(line, TEXT_WIDTH, subsequent_indent="    ") for line in lines)
