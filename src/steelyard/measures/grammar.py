"""Measures as text and as values: `nDCG(gain=exp)@10` in, the same out.

    Name(parameter=value, ...)@cutoff

Case is ignored in names, and the spellings of other tools are known: ndcg_cut_10, P_10, recall_100,
iprec_at_recall_0.20, hit_rate@10, ndcg_at_10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from numbers import Real
from typing import Any

from steelyard.errors import MeasureError, did_you_mean
from steelyard.measures.registry import Definition, Parameter, definitions, folded, names

_FORM = re.compile(r"\s*([^\s(@][^(@]*?)\s*(\(.*\))?\s*(?:@\s*(\S+?))?\s*", re.DOTALL)
_OTHER_TOOLS = {
    "judged_only": " Condensed lists are a policy in Steelyard: unjudged=remove (--set unjudged=remove). "
    "The dialect ir_measures accepts judged_only."
}
"""Parameters of a measure in other tools that are no parameters here, with what to use instead."""
_SUFFIX = re.compile(r"(.+?)(?:_cut|_at)?[_.]([-+]?\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Measure:
    """A measure with its parameters: hashable, and its text parses back to itself.

    `given` are the parameters that differ from their defaults; `stated` are those that were written, with any value.

    >>> from steelyard.measures import nDCG
    >>> nDCG(gain="exp") @ 10
    nDCG(gain=exp)@10
    """

    definition: Definition
    given: tuple[tuple[str, Any], ...] = ()
    cutoff: int | float | None = None
    stated: frozenset[str] = field(default=frozenset(), compare=False)

    def __call__(self, **parameters: Any) -> Measure:
        """The same measure with parameters set."""
        return build(self.definition, {**self._written, **parameters}, self.cutoff)

    def __matmul__(self, cutoff: int | float) -> Measure:
        """The same measure at a cutoff."""
        return build(self.definition, self._written, cutoff)

    @property
    def _written(self) -> dict[str, Any]:
        return {name: value for name, value in self.parameters.items() if name in self.stated}

    @property
    def name(self) -> str:
        """The measure's own name, without parameters."""
        return self.definition.name

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter with its value or default."""
        given = dict(self.given)
        return {p.name: given.get(p.name, p.default) for p in self.definition.parameters}

    @property
    def parts(self) -> tuple[tuple[Measure, float], ...]:
        """The measures of a composite with their weights; for any other measure, itself."""
        return tuple(self.parameters.get("weights", ((self, 1.0),)))

    @property
    def inner(self) -> Measure:
        """The measure that a Counted measure is of; for any other measure, itself."""
        return parse(self.parameters.get("of", self))

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value; grades as gains have no highest, gains and weights below 0 no limits."""
        given = self.parameters
        if "of" in given:
            low, high = self.inner.range
            return min(low, 0.0), max(high, 1.0)
        if "weights" in given:
            return range_of_composite((part.definition.better, part.range, weight) for part, weight in self.parts)
        gain = given.get("gain")
        if (isinstance(gain, tuple) and any(worth < 0 for _, worth in gain)) or (given.get("weight") or 0) < 0:
            return -inf, inf
        return self.definition.low, inf if gain == "grade" else self.definition.high

    @property
    def spelled(self) -> str:
        """The measure with every parameter written out."""
        return _text(self.name, tuple(self.parameters.items()), self.cutoff)

    def __str__(self) -> str:
        return _text(self.name, self.given, self.cutoff)

    __repr__ = __str__


def range_of_composite(parts: Iterable[tuple[str, tuple[float, float], float]]) -> tuple[float, float]:
    """The range of the weighted mean of (better, range, weight) parts: of 1 - value where less is better."""
    low, high, total = 0.0, 0.0, 0.0
    for better, ends, weight in parts:
        if weight > 0:
            least, most = (1 - ends[1], 1 - ends[0]) if better == "less" else ends
            low, high, total = low + weight * least, high + weight * most, total + weight
    return (low / total, high / total) if total else (-inf, inf)


LARGEST = 1e15  # The largest cutoff and parameter: larger ones are not exact, and their squares overflow.


def build(definition: Definition, parameters: Mapping[str, Any], cutoff: int | float | None) -> Measure:
    """A measure with checked parameters; those with their default value are left out."""
    allowed = {p.name: p for p in definition.parameters}
    checked: dict[str, Any] = {}
    for name, value in parameters.items():
        if name not in allowed:
            takes = f"it has {', '.join(allowed)}" if allowed else "it has none"
            advice = _OTHER_TOOLS.get(name) or did_you_mean(name, allowed)
            raise MeasureError(f"{definition.name} has no parameter {name!r}; {takes}.{advice}")
        checked[name] = _value(definition.name, allowed[name], value)
    set_to = ((p.name, p.default, checked.get(p.name, p.default)) for p in definition.parameters)
    given = tuple((name, value) for name, default, value in set_to if value != default)
    return Measure(definition, given, _cutoff(definition, cutoff), frozenset(checked))


def parse(text: str | Measure) -> Measure:
    """The measure that a text names.

    >>> parse("ndcg_cut_10"), parse("MAP"), parse("P(rel=2)@5"), parse("hit_rate@3")
    (nDCG@10, AP, P(rel=2)@5, Hit@3)
    """
    if isinstance(text, Measure):
        return text
    name, parameters, cutoff = split(str(text))
    definition, implied, suffix = find(name, text)
    if suffix is not None and cutoff is not None:
        raise MeasureError(f"{text!r} has two cutoffs, {suffix} and {cutoff}; keep one.")
    return build(definition, {**implied, **parameters}, cutoff if suffix is None else suffix)


def split(text: str) -> tuple[str, dict[str, str], int | float | None]:
    """The three parts of the text of a measure: name, parameters (as text), cutoff."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise MeasureError(
            f"{text!r} is not a measure; expected Name(parameter=value, ...)@cutoff, as in nDCG(gain=exp)@10."
        )
    name, inside, cutoff = form.groups()
    parameters: dict[str, str] = {}
    for part in _parts(inside[1:-1], ",") if inside else []:
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise MeasureError(f"{text!r}: {part.strip()!r} is not a parameter; expected parameter=value, as in rel=2.")
        if key.strip() in parameters:
            raise MeasureError(f"{text!r} has the parameter {key.strip()!r} twice; keep one.")
        parameters[key.strip()] = value.strip()
    return name, parameters, None if cutoff is None else _number(cutoff, f"the cutoff of {text!r}")


def find(name: str, text: str) -> tuple[Definition, Mapping[str, Any], int | float | None]:
    """The definition that a name refers to, the parameters it implies, and the cutoff it ends in, if any."""
    by_name = names()
    if folded(name) in by_name:
        return *by_name[folded(name)], None
    ending = _SUFFIX.fullmatch(name)
    if ending and folded(ending.group(1)) in by_name:
        return *by_name[folded(ending.group(1))], _number(ending.group(2), f"the cutoff of {text!r}")
    unmarked = re.fullmatch(r"(.*[^\W\d_])(\d+)", name)
    if unmarked and folded(unmarked.group(1)) in by_name:
        raise MeasureError(f"unknown measure {name!r}. Did you mean {unmarked.group(1)}@{unmarked.group(2)}?")
    everything = [alias for d in definitions().values() for alias in (d.name, *d.aliases)]
    stem = ending.group(1) if ending else name
    raise MeasureError(
        f"unknown measure {name!r}.{did_you_mean(stem, everything)} `steelyard list measures` lists all measures."
    )


def as_text(value: Any) -> str:
    """A parameter's value as the grammar writes it."""
    if isinstance(value, tuple):
        return "{" + ", ".join(f"{as_text(key)}: {as_text(item)}" for key, item in value) + "}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _text(name: str, parameters: tuple[tuple[str, Any], ...], cutoff: int | float | None) -> str:
    inside = ", ".join(f"{key}={as_text(value)}" for key, value in parameters)
    return name + (f"({inside})" if inside else "") + ("" if cutoff is None else f"@{as_text(cutoff)}")


def _parts(text: str, separator: str) -> list[str]:
    """The text split at a separator outside brackets."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "({[") - (character in ")}]")
        if character == separator and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [part for part in parts if part.strip()]


def _number(text: str, what: str) -> int | float:
    try:
        value = float(text)
    except ValueError:
        several = " Pass several measures as -m AP -m RR@10, or as a list." if "," in text else ""
        raise MeasureError(f"{what} is {text!r}; expected a number.{several}") from None
    if not abs(value) <= LARGEST:
        raise MeasureError(f"{what} is {value:g}; expected a number up to {LARGEST:g}.")
    return int(value) if value.is_integer() else value


def _cutoff(definition: Definition, cutoff: int | float | None) -> int | float | None:
    name = definition.name
    if cutoff is None:
        if definition.cutoff == "required":
            raise MeasureError(
                f"{name} needs a cutoff, as in {name}@{'0.2' if definition.cutoff_kind == 'recall' else '10'}."
            )
        return None
    if definition.cutoff == "none":
        raise MeasureError(f"{name} takes no cutoff; write {name}.")
    if isinstance(cutoff, bool) or not isinstance(cutoff, Real):
        raise MeasureError(f"the cutoff of {name} is {cutoff!r}; expected a number, as in {name}@10.")
    if definition.cutoff_kind == "recall":
        if not 0 <= cutoff <= 1:
            raise MeasureError(f"the cutoff of {name} is {cutoff}; expected a recall level from 0 to 1.")
        return float(cutoff)
    if definition.cutoff_kind == "multiple":
        if cutoff <= 0:
            raise MeasureError(f"the cutoff of {name} is {cutoff}; expected a multiple of R above 0.")
        return float(cutoff)
    if cutoff > LARGEST:
        raise MeasureError(f"the cutoff of {name} is too large; expected a number up to {LARGEST:g}.")
    if not cutoff >= 1 or cutoff != int(cutoff):
        raise MeasureError(f"the cutoff of {name} is {as_text(cutoff)}; expected a whole number, 1 or more.")
    return int(cutoff)


def _value(name: str, parameter: Parameter, value: Any) -> Any:
    """The value of a parameter, from text or a Python value, checked and hashable."""
    where = f"{name}({parameter.name}={as_text(value) if not isinstance(value, Mapping) else value})"
    if value is None or value == "None":
        if parameter.default is None:
            return None
    elif parameter.kind in ("choice", "gain") and isinstance(value, str) and not value.startswith("{"):
        word = value[1:-1] if value[:1] in ("'", '"') and value[-1:] == value[:1] else value  # as ir_measures writes it
        if word in parameter.choices:
            return word
        raise MeasureError(f"{where}: expected {_expected(parameter)}.{did_you_mean(word, parameter.choices)}")
    elif parameter.kind == "weights":
        return tuple((parse(key), _as_number(item, where)) for key, item in _mapping(value, where))
    elif parameter.kind == "gain":
        pairs = ((_as_number(key, where), _as_number(item, where)) for key, item in _mapping(value, where))
        return tuple(sorted(pairs))
    elif parameter.kind == "flag":
        if isinstance(value, bool) or str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
    elif parameter.kind == "text":
        return str(value)
    elif parameter.kind in ("number", "integer") and not isinstance(value, Mapping):
        number = _as_number(value, where)
        if parameter.kind == "number" or number == int(number):
            return int(number) if float(number).is_integer() else number
    raise MeasureError(f"{where}: expected {_expected(parameter)}.")


def _expected(parameter: Parameter) -> str:
    kinds = {"number": "a number", "integer": "a whole number", "flag": "True or False"}
    if parameter.kind == "gain":
        return f"{', '.join(parameter.choices)}, or a table of gains as in {{1: 1, 2: 3}}"
    if parameter.kind == "weights":
        return "a table of weights as in {nDCG@10: 0.5, RR@10: 0.5}"
    return " or ".join(parameter.choices) if parameter.choices else kinds.get(parameter.kind, "text")


def _mapping(value: Any, where: str) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple):
        return list(value)
    text = str(value).strip()
    inside = text[1:-1] if text.startswith("{") and text.endswith("}") else ""
    pairs = [_parts(part, ":") for part in _parts(inside, ",")]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise MeasureError(f"{where}: expected a table as in {{1: 1, 2: 3}}.")
    return [(key.strip(), item.strip()) for key, item in pairs]


def _as_number(value: Any, where: str) -> int | float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number):
        raise MeasureError(f"{where}: {value!r} is not a finite number.")
    if abs(number) > LARGEST:
        raise MeasureError(f"{where}: expected a number up to {LARGEST:g}.")
    return int(number) if number.is_integer() else number


def with_rel(measure: Measure, rel: float | None) -> Measure:
    """The measure, or each part of a composite, at another relevance level, where it has one and does not state it."""
    if rel is not None and "weights" in measure.parameters:
        return measure(weights=tuple((with_rel(part, rel), weight) for part, weight in measure.parts))
    parameter = measure.definition.parameter("rel")
    if rel is None or parameter is None or parameter.default is None or "rel" in measure.stated:
        return measure
    return measure(rel=rel)
