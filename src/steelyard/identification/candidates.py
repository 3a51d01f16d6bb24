"""The measures looked at: every name that a dialect has, at the common cutoffs, and what is one parameter away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from steelyard.dialects import Dialect, dialects, filled, holes_of
from steelyard.dialects import dialect as dialect_of
from steelyard.errors import MeasureError
from steelyard.measures.grammar import Measure, parse
from steelyard.measures.registry import Definition, definitions

CUTOFFS = (1, 2, 3, 4, 5, 8, 10, 15, 20, 25, 30, 50, 100, 200, 500, 1000)
"""The cutoffs looked at, wherever a definition takes one."""

_LEVELS = {"recall": np.arange(0, 11) / 10, "multiple": np.arange(1, 11) / 5}
_PERSISTENCE = ("50", "80", "90", "95")
_NOT_OF_LISTS = ("Composite", "Counted", "Latency", "NumQ")


def dialects_named(names: Sequence[str | Dialect] | None) -> list[Dialect]:
    """The dialects of these names; all where none is named."""
    return list(dialects().values()) if names is None else [dialect_of(name) for name in names]


def measures_named(
    spoken: Dialect, wanted: Sequence[str] | None, grades: Sequence[int]
) -> Iterator[tuple[str, Measure]]:
    """A dialect's measures, each under the first name that it has there: those wanted, or all."""
    seen: set[Measure] = set()
    for name, meant in _every_name(spoken, grades) if wanted is None else _of_these(spoken, wanted):
        if meant not in seen:
            seen.add(meant)
            yield name, meant


def _of_these(spoken: Dialect, wanted: Sequence[str]) -> Iterator[tuple[str, Measure]]:
    """The measures wanted, as far as the dialect has them; one without a cutoff is tried at the common ones too."""
    for name in wanted:
        for text in [name] if "@" in name else [name, *(f"{name}@{cutoff}" for cutoff in CUTOFFS)]:
            meant = _meant(spoken, text)
            if meant is not None:
                yield text, meant


def _meant(spoken: Dialect, text: str) -> Measure | None:
    try:
        return spoken.measure(text)
    except MeasureError:
        return None


def check_known(wanted: Sequence[str]) -> None:
    """Refuse a measure that no dialect has, with or without a cutoff."""
    for name in wanted:
        texts = (name, f"{name}@10")
        if not any(_meant(spoken, text) for spoken in dialects().values() for text in texts):
            dialect_of("steelyard").measure(name)


def _every_name(spoken: Dialect, grades: Sequence[int]) -> Iterator[tuple[str, Measure]]:
    """A dialect's own names with their holes filled, then the measures that it has defaults for."""
    for pattern, spelled in spoken.names.items():
        holes = holes_of(pattern)
        if set(holes) == set(holes_of(spelled)):
            for chosen in product(*(_fillings(hole, spelled, grades) for hole in holes)):
                filling = dict(zip(holes, chosen, strict=True))
                yield filled(pattern, filling), parse(filled(spelled, filling))
    known = definitions()
    own = spoken.defaults if spoken.names else [name for name in known if name not in _NOT_OF_LISTS]
    for name in own:
        yield from ((text, spoken.measure(text)) for text in _cut(known[name]))


def _cut(definition: Definition) -> Iterator[str]:
    """A measure's name without a cutoff and with the common ones, as far as it takes them."""
    if definition.cutoff != "required":
        yield definition.name
    if definition.cutoff != "none":
        yield from (f"{definition.name}@{cutoff}" for cutoff in _cutoffs(definition))


def _cutoffs(definition: Definition) -> list[str]:
    if definition.cutoff_kind == "rank":
        return [str(cutoff) for cutoff in CUTOFFS]
    return [f"{level:.2f}" for level in _LEVELS[definition.cutoff_kind]]


def _fillings(hole: str, spelled: str, grades: Sequence[int]) -> Iterable[str]:
    """What is tried in a hole of a name; nothing where only its user knows what stands there."""
    if hole == "rel":
        return [str(grade) for grade in grades]
    if hole == "p":
        return _PERSISTENCE
    cut = re.search(rf"(\w+)(?:\([^()]*\))?@\{{{hole}\}}", spelled)
    return _cutoffs(definitions()[cut.group(1)]) if cut else ()


def other_parameters(meant: Measure, grades: Sequence[int]) -> Iterator[Measure]:
    """The measure with one parameter changed, for each that has a few choices."""
    for parameter in meant.definition.parameters:
        choices: Sequence[Any] = parameter.choices
        if parameter.kind == "flag":
            choices = (True, False)
        elif parameter.name == "rel":
            choices = grades
        for choice in choices:
            if choice != meant.parameters[parameter.name]:
                yield meant(**{parameter.name: choice})
