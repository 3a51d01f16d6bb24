"""The measures: values such as `nDCG @ 10` and `P(rel=2) @ 5`, looked up in the registry by name or alias.

`list_measures` lists them.
"""

from __future__ import annotations

from steelyard.listing import Listing
from steelyard.measures.grammar import Measure, as_text, parse
from steelyard.measures.registry import Definition, Parameter, definitions

__all__ = ["Measure", "definitions", "list_measures", "parse"]


def __getattr__(name: str) -> Measure:
    for definition in definitions().values():
        implied = {definition.name: {}, **definition.aliases}.get(name)
        if implied is not None:
            return Measure(definition, tuple(implied.items()), stated=frozenset(implied))
    raise AttributeError(f"unknown measure {name!r}; steelyard.list_measures() lists all measures.")


def __dir__() -> list[str]:
    return sorted([*__all__, *definitions()])


def list_measures() -> Listing[Definition]:
    """Every measure: its name, definition, parameters, aliases and source."""
    return Listing(dict(definitions()), ("measure", "what", "parameters", "aliases", "source"), _row)


def _row(definition: Definition) -> tuple[str, str, str, str, str]:
    cutoff = {"optional": "[@k]", "required": "@k", "none": ""}[definition.cutoff]
    if definition.cutoff_kind != "rank":
        cutoff = cutoff.replace("k", "r")
    return (
        definition.name + cutoff,
        definition.headline,
        ", ".join(map(_spelled, definition.parameters)),
        ", ".join(definition.aliases),
        definition.cites,
    )


def _spelled(parameter: Parameter) -> str:
    """A parameter with its default and its other choices, if any."""
    default = as_text(parameter.default)
    others = [choice for choice in parameter.choices if choice != default]
    return f"{parameter.name}={default}" + (f" (or {', '.join(others)})" if others else "")
