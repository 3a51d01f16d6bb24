"""The measures: values such as `nDCG @ 10` and `P(rel=2) @ 5`, looked up in the registry by name."""

from __future__ import annotations

from steelyard.measures.grammar import Measure, parse
from steelyard.measures.registry import definitions

__all__ = ["Measure", "definitions", "parse"]


def __getattr__(name: str) -> Measure:
    found = definitions().get(name)
    if found is None:
        raise AttributeError(f"there is no measure {name!r}; steelyard.measures() lists them all.")
    return Measure(found)


def __dir__() -> list[str]:
    return sorted([*__all__, *definitions()])
