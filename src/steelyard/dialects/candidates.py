"""The definitions that `identify` tries: the names of the dialects at common cutoffs, and changed parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from steelyard.dialects.dialect import Dialect, dialects, filled, placeholders
from steelyard.dialects.dialect import dialect as named_dialect
from steelyard.errors import MeasureError
from steelyard.measures.grammar import Measure, parse, with_rel
from steelyard.measures.registry import Definition, definitions

CUTOFFS = (1, 2, 3, 4, 5, 8, 10, 15, 20, 25, 30, 50, 100, 200, 500, 1000)
"""The cutoffs that are tried if a definition has one."""

_COMMON = ("nDCG", "AP", "RR", "R", "P", "Hit", "F", "Rprec", "RBP", "Bpref", "ERR", "DCG")
_COMMON_CUTOFFS = (10, None, 5, 100, 1, 3, 20, 1000, 50)
_TOOLS = (
    *("trec_eval-9", "trec_eval-10", "beir", "mteb", "ranx", "ir_measures", "msmarco", "multihop-rag"),
    *("llama-index", "ragas", "haystack", "mlflow", "autorag", "evidently", "leaderboard"),
)
"""Measures, cutoffs and tools, those that published numbers most often come from first."""


def tool_rank(dialect: str) -> int:
    """How likely a number comes from a tool: 0 is the most likely; Steelyard's own dialect is the last."""
    return _rank(dialect, _TOOLS) + (dialect == "steelyard")


def measure_rank(measure: Measure) -> tuple[int, int]:
    """How likely a number is of a measure, and at its cutoff: 0 is the most likely."""
    inner = parse(measure.parameters["of"]) if "of" in measure.parameters else measure
    return _rank(inner.name, _COMMON), _rank(inner.cutoff, _COMMON_CUTOFFS)


def _rank(value: Any, order: Sequence[Any]) -> int:
    return order.index(value) if value in order else len(order)


_LEVELS = {"recall": np.arange(0, 11) / 10, "multiple": np.arange(1, 11) / 5}
PERSISTENCE = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)  # The usual values of p of RBP.
_NOT_OF_LISTS = ("Composite", "Counted", "Latency", "NumQ")


def measures_of(dialect: Dialect, names: Sequence[str] | None, grades: Sequence[int]) -> Iterator[tuple[str, Measure]]:
    """The measures of a dialect, each with its first name there: those of the given names, or all."""
    seen: set[Measure] = set()
    for name, measure in _every_name(dialect, grades) if names is None else _of_these(dialect, names):
        # The option -l of trec_eval is another lowest grade of relevant documents.
        levels = grades if dialect.name.startswith("trec_eval") else ()
        for pair in ((name, measure), *((f"{name} -l{grade}", with_rel(measure, grade)) for grade in levels)):
            if pair[1] not in seen:
                seen.add(pair[1])
                yield pair


def _of_these(dialect: Dialect, names: Sequence[str]) -> Iterator[tuple[str, Measure]]:
    """The measures of these names that the dialect has; a name without a cutoff is also tried at common cutoffs."""
    for name in names:
        for text in [name] if "@" in name else [name, *(f"{name}@{cutoff}" for cutoff in CUTOFFS)]:
            measure = _measure(dialect, text)
            if measure is not None:
                yield from _with_persistence(text, measure)


def _measure(dialect: Dialect, text: str) -> Measure | None:
    try:
        return dialect.measure(text)
    except MeasureError:
        return None


def check_known(names: Sequence[str]) -> None:
    """Raise an error for a measure that no dialect has, with or without a cutoff."""
    for name in names:
        if not any(_measure(dialect, text) for dialect in dialects().values() for text in (name, f"{name}@10")):
            named_dialect("steelyard").measure(name)


def _every_name(dialect: Dialect, grades: Sequence[int]) -> Iterator[tuple[str, Measure]]:
    """The names of a dialect with values for their placeholders, then the measures that it has defaults for."""
    for pattern, spelled in dialect.names.items():
        names = placeholders(pattern)
        if set(names) == set(placeholders(spelled)):
            for chosen in product(*(_choices(name, spelled, grades) for name in names)):
                values = dict(zip(names, chosen, strict=True))
                yield filled(pattern, values), parse(filled(spelled, values))
    measure_names = dialect.defaults if dialect.names else [name for name in definitions() if name not in _NOT_OF_LISTS]
    for name in measure_names:
        definition = definitions()[name]
        without = [] if definition.cutoff == "required" else [name]
        cutoffs = [] if definition.cutoff == "none" else [f"{name}@{cutoff}" for cutoff in _cutoffs(definition)]
        for text in (*without, *cutoffs):
            yield from _with_persistence(text, dialect.measure(text))


def _with_persistence(text: str, measure: Measure) -> Iterator[tuple[str, Measure]]:
    """A measure, and RBP also with the usual values of p, unless it states one."""
    yield text, measure
    if measure.name == "RBP" and "p" not in dict(measure.given):
        yield from ((str(other), other) for other in (measure(p=p) for p in PERSISTENCE))


def _cutoffs(definition: Definition) -> list[str]:
    if definition.cutoff_kind == "rank":
        return [str(cutoff) for cutoff in CUTOFFS]
    return [f"{level:.2f}" for level in _LEVELS[definition.cutoff_kind]]


def _choices(placeholder: str, spelled: str, grades: Sequence[int]) -> Iterable[str]:
    """The values that are tried for a placeholder; none if only the user can know the value."""
    if placeholder == "rel":
        return [str(grade) for grade in grades]
    if placeholder == "p":
        return [f"{p:g}".removeprefix("0.").ljust(2, "0") for p in PERSISTENCE]
    cut = re.search(rf"(\w+)(?:\([^()]*\))?@\{{{placeholder}\}}", spelled)
    return _cutoffs(definitions()[cut.group(1)]) if cut else ()


def other_parameters(measure: Measure, grades: Sequence[int]) -> Iterator[Measure]:
    """The measure with one parameter changed, for each parameter with a few choices."""
    for parameter in measure.definition.parameters:
        choices: Sequence[Any] = parameter.choices
        if parameter.kind == "flag":
            choices = (True, False)
        elif parameter.name == "rel":
            choices = grades
        for choice in choices:
            if choice != measure.parameters[parameter.name]:
                yield measure(**{parameter.name: choice})
