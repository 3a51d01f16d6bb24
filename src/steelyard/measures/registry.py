"""The registry of measures: one entry has the name, parameters, definition, properties, citation and code of a measure.

A measure is a function of an `Alignment` that returns one number per query, with the decorator `measure`. The
grammar, the listing, `explain`, the dialects and the property tests all read the registry.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from importlib import import_module
from inspect import cleandoc, signature
from math import inf
from types import MappingProxyType, SimpleNamespace, UnionType
from typing import Any, Literal, TypeAlias

from steelyard.alignment.hits import Floats

Cutoff: TypeAlias = Literal["optional", "required", "none"]
Better: TypeAlias = Literal["more", "less", "neither"]
Need: TypeAlias = Literal["distractors", "not relevant", "unanswerable"]
Bounded: TypeAlias = (
    Literal["fixed", "additive", "best document", "monotone", "counts", "ranks", "graded ranks", "gain ratio"]
    | Literal["precision sums", "R-precision", "scaled grades", "relevance", "any"]
)
"""How the gradings of unjudged documents with the lowest and the highest value are found: see `bounds`."""
GainTable: TypeAlias = tuple[tuple[float, float], ...]
Weights: TypeAlias = tuple[tuple[Any, float], ...]  # Each measure with its weight.

SHARED_CLAUSES = """
rel: the lowest grade that counts as relevant.
gain=linear: the grade itself; nothing for grades below 0.
gain=exp: 2^grade - 1; nothing for grades below 0.
gain=binary: 1 for every grade above 0.
gain={grade: gain}: as in the table; a grade that is not in it gains itself.
discount=log2: 1 / log2(rank + 1).
discount=reciprocal: 1 / rank.
discount=jk: 1 / max(1, log2(rank)), as Järvelin and Kekäläinen defined it: ranks 1 and 2 are not discounted.
budget: the list is cut after this many tokens of context; a document must fit completely.
alpha: how much a target loses when it is repeated, from 0 (nothing) to 1 (all).
p: the probability of continuing to the next document, from 0 to below 1.
T: the gain the user wants, in documents of the highest grade; above 0.
min_rel: the grade that gains nothing.
max_rel: the grade that gains 1; None: the highest grade in the qrels.
max_grade: the top of the grade scale; None: the highest grade in the qrels. Higher grades count as this one.
"""
"""What parameters mean that many measures have; a line in the docstring of a measure replaces that of its parameter."""
TARGET_CLAUSES = "rel: the lowest grade at which a document satisfies a target."  # The same for measures over targets.

FAMILIES = ("binary", "graded", "diversity", "user_models", "trec", "sets", "spans", "counts")
"""The modules of measures, in the order in which `steelyard list measures` lists them."""


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

    `bounded` is how bounds are found; "any" is true of every measure. `over_targets`: targets are counted, not
    documents. `zeros`: a document graded 0 differs from one without a judgment. `scaled`: grades may be divided by the
    highest one in the qrels. `first_k_only`: no document below the cutoff changes the value.

    `expected` is the mean over all orders of tied documents: "linear" if it is the measure itself with the probability
    that a hit is in the first k in place of 0 or 1, "same" if the order does not matter, a function of the same
    parameters, or None if the mean is not known.
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
    bounded: Bounded = "any"
    over_targets: bool = False
    zeros: bool = False
    scaled: bool = False
    first_k_only: bool = False
    expected: Literal["linear", "same"] | Callable[..., Floats] | None = None
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
        taken = [p for p in signature(self.function).parameters.values() if p.name not in ("a", "k", "r")]
        namespace = SimpleNamespace(__annotations__={p.name: p.annotation for p in taken})
        hints = typing.get_type_hints(namespace, self.function.__globals__)
        return tuple(_parameter(p.name, hints[p.name], p.default) for p in taken)

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name."""
        return next((p for p in self.parameters if p.name == name), None)


_DEFINITIONS: dict[str, Definition] = {}


def measure(
    name: str, *, aliases: Iterable[str] | Mapping[str, Mapping[str, Any]] = (), **about: Any
) -> Callable[[Callable[..., Floats]], Callable[..., Floats]]:
    """Register a function of an Alignment as a measure.

    Its keyword parameters are those of the measure; `k` (or `r`) is the cutoff. `aliases` are other names; a mapping
    gives the parameters that a name implies.
    """

    def register(function: Callable[..., Floats]) -> Callable[..., Floats]:
        named = aliases if isinstance(aliases, Mapping) else {alias: {} for alias in aliases}
        _DEFINITIONS[name] = Definition(
            name=name, function=function, family=function.__module__.rsplit(".", 1)[-1], aliases=named, **about
        )
        names.cache_clear()
        return function

    return register


fixed = partial(measure, needs_relevant=False, bounded="fixed")
"""Registers a measure that no grading of unjudged documents changes and that needs no relevant document."""

summed = partial(measure, cutoff="none", summary="sum", better="neither", high=inf, needs_relevant=False)
"""Registers a count that is summed over queries, and neither good nor bad."""


@cache
def _load_families() -> None:
    for family in FAMILIES:
        import_module(f"steelyard.measures.{family}")


def definitions() -> Mapping[str, Definition]:
    """Every registered measure by its name, family by family."""
    _load_families()
    return MappingProxyType(_DEFINITIONS)


@cache
def names() -> Mapping[str, tuple[Definition, Mapping[str, Any]]]:
    """Every name and alias, normalised, with the measure and the parameters it implies."""
    by_name: dict[str, tuple[Definition, Mapping[str, Any]]] = {}
    for definition in definitions().values():
        for alias, implied in {definition.name: {}, **definition.aliases}.items():
            key = folded(alias)
            if key in by_name and by_name[key][0] is not definition:
                raise AssertionError(f"{alias} names both {by_name[key][0].name} and {definition.name}")
            by_name[key] = (definition, implied)
    return by_name


def folded(name: str) -> str:
    """A name as it is compared: without case, hyphens, underscores and blanks.

    >>> folded("Hit_Rate") == folded("hit-rate") == folded("HitRate")
    True
    """
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    if typing.get_origin(hint) in (typing.Union, UnionType):
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        if GainTable in options:
            choices = next(typing.get_args(option) for option in options if typing.get_origin(option) is Literal)
            return Parameter(name, default, "gain", choices)
        hint = options[0]
    if typing.get_origin(hint) is Literal:
        return Parameter(name, default, "choice", typing.get_args(hint))
    if hint == Weights:
        return Parameter(name, default, "weights")
    kinds: dict[Any, Any] = {bool: "flag", int: "integer", float: "number", str: "text"}
    return Parameter(name, default, kinds[hint])
