"""The registry of measures: one entry has the name, parameters, definition, properties, citation and code of a measure.

A measure is a function of an `Alignment` that returns one number per query, with the decorator `measure`. The
grammar, the listing, `explain`, the dialects and the property tests all read the registry.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from inspect import cleandoc, signature
from types import SimpleNamespace, UnionType
from typing import Any, Literal, TypeAlias

from steelyard.alignment.hits import Floats

Cutoff: TypeAlias = Literal["optional", "required", "none"]
Better: TypeAlias = Literal["more", "less", "neither"]
Need: TypeAlias = Literal["distractors", "not relevant", "unanswerable"]
GainTable: TypeAlias = tuple[tuple[float, float], ...]
Weights: TypeAlias = tuple[tuple[str, float], ...]

FAMILIES = ("binary", "graded", "diversity", "user_models", "trec", "sets", "counts")
"""The modules of measures, in the order in which `steelyard measures` lists them."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a measure: its kind, its choices and its default."""

    name: str
    default: Any
    kind: Literal["number", "integer", "flag", "choice", "gain", "weights", "text"]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Definition:
    """A measure as registered. `low`, `high`, `ideal`, `empty` and `tail` are properties that tests check.

    `ideal` is the value of a perfect list (None if there is no such number), `empty` that of an empty list, `tail`
    whether unjudged documents below all hits leave the value unchanged. `summary` is how queries are aggregated: mean,
    sum, geometric, or the name of a parameter that states it. `needs` is what the qrels must have, besides relevant
    documents, for the value to be informative.
    """

    name: str
    function: Callable[..., Floats]
    family: str
    cutoff: Cutoff = "optional"
    cutoff_kind: Literal["rank", "recall", "multiple"] = "rank"
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    summary: str = "mean"
    better: Better = "more"
    low: float = 0.0
    high: float = 1.0
    ideal: float | None = None
    empty: float = 0.0
    tail: bool = True
    needs_relevant: bool = True
    needs: Need | None = None
    companion: str | None = None
    cites: str = ""

    @property
    def doc(self) -> str:
        """The definition in words: the docstring of the function."""
        return cleandoc(self.function.__doc__ or "")

    @property
    def headline(self) -> str:
        """The first line of the definition."""
        return self.doc.splitlines()[0] if self.doc else ""

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters, read from the signature of the function."""
        return _parameters(self.function)

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name."""
        return next((p for p in self.parameters if p.name == name), None)


_DEFINITIONS: dict[str, Definition] = {}
_EXPECTED: dict[str, Callable[..., Floats]] = {}


def measure(
    name: str,
    *,
    aliases: Iterable[str] | Mapping[str, Mapping[str, Any]] = (),
    **about: Any,
) -> Callable[[Callable[..., Floats]], Callable[..., Floats]]:
    """Register a function of an Alignment as a measure.

    Its keyword parameters are those of the measure; `k` (or `r`) is the cutoff. `aliases` are other names; a mapping
    gives the parameters that a name implies.
    """

    def register(function: Callable[..., Floats]) -> Callable[..., Floats]:
        named = aliases if isinstance(aliases, Mapping) else {alias: {} for alias in aliases}
        _DEFINITIONS[name] = Definition(
            name=name,
            function=function,
            family=function.__module__.rsplit(".", 1)[-1],
            aliases=named,
            **about,
        )
        return function

    return register


def expected(name: str) -> Callable[[Callable[..., Floats]], Callable[..., Floats]]:
    """Register the mean of a measure over all orders of tied documents."""

    def register(function: Callable[..., Floats]) -> Callable[..., Floats]:
        _EXPECTED[name] = function
        return function

    return register


@cache
def definitions() -> Mapping[str, Definition]:
    """Every registered measure by its name, family by family."""
    for family in FAMILIES:
        import_module(f"steelyard.measures.{family}")
    return dict(_DEFINITIONS)


@cache
def expectations() -> Mapping[str, Callable[..., Floats]]:
    """The measures that can be averaged over the orders of tied documents."""
    import_module("steelyard.measures.expected")
    return dict(_EXPECTED)


@cache
def names() -> Mapping[str, tuple[Definition, Mapping[str, Any]]]:
    """Every name and alias, normalised, with the measure and the parameters it implies."""
    found: dict[str, tuple[Definition, Mapping[str, Any]]] = {}
    for definition in definitions().values():
        for alias, implied in {definition.name: {}, **definition.aliases}.items():
            key = folded(alias)
            if key in found and found[key][0] is not definition:
                raise AssertionError(f"{alias} names both {found[key][0].name} and {definition.name}")
            found[key] = (definition, implied)
    return found


def folded(name: str) -> str:
    """A name as it is compared: without case, hyphens, underscores and blanks.

    >>> folded("Hit_Rate") == folded("hit-rate") == folded("HitRate")
    True
    """
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def _parameters(function: Callable[..., Floats]) -> tuple[Parameter, ...]:
    taken = [p for p in signature(function).parameters.values() if p.name not in ("a", "k", "r")]
    own = SimpleNamespace(__annotations__={p.name: p.annotation for p in taken})
    hints = typing.get_type_hints(own, function.__globals__)
    return tuple(_parameter(p.name, hints[p.name], p.default) for p in taken)


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    if typing.get_origin(hint) in (typing.Union, UnionType):
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        if GainTable in options:
            choices = next(
                typing.get_args(option) for option in options if typing.get_origin(option) is Literal
            )
            return Parameter(name, default, "gain", choices)
        hint = options[0]
    if typing.get_origin(hint) is Literal:
        return Parameter(name, default, "choice", typing.get_args(hint))
    if hint == Weights:
        return Parameter(name, default, "weights")
    kinds: dict[Any, Literal["flag", "integer", "number", "text"]] = {
        bool: "flag",
        int: "integer",
        float: "number",
        str: "text",
    }
    return Parameter(name, default, kinds[hint])
