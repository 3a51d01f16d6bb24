"""Dialect: the metric names of a tool, each with the measure it means, read from one TOML file per tool.

A file has `name`, `about` and `source`; `[policies]` (missing, no_relevant, ties, duplicates, single); `[names]`, the
names of the tool and the measure that each means, with its parameters; `[defaults]`, parameters of Steelyard's own
names in this dialect; `[renamed]`, the tool's names of parameters (`Name.parameter`: of one measure) and Steelyard's;
`[wrapped]`, flags of the tool that turn a measure into another one, written with `{measure}`; `[sets]`, names for
several measures; `[[orders]]`, measures for which the tool orders equal scores in another way (`RR@`: with a
cutoff), with `ties` and `single`; `measures`, the default measures of a comparison; and `borda`, the rules of Borda
counts over datasets, the default first. In a name, `{k}` is a number, `{points}` a list
of numbers and `{gains}` a list of grade=gain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.checks import unknown_name
from steelyard.errors import MeasureError, did_you_mean
from steelyard.listing import Listing
from steelyard.measures.compute import reads_texts
from steelyard.measures.grammar import Measure, build, find, parse, split
from steelyard.measures.registry import definitions, folded
from steelyard.options import Options, resolve

if TYPE_CHECKING:
    from steelyard.statistics.datasets import BordaRule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)"
_PLACEHOLDERS = {"points": rf"{_NUMBER}(?:,{_NUMBER})*", "gains": rf"{_NUMBER}={_NUMBER}(?:,{_NUMBER}={_NUMBER})*"}
_CUTOFFS = re.compile(rf"(\w+)\.({_NUMBER}(?:,{_NUMBER})+)")


@dataclass(frozen=True)
class Dialect:
    """The metric names of a tool, each with the measure it means, and the policies of the tool."""

    name: str
    about: str
    source: str = ""
    policies: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    wrapped: Mapping[str, str] = field(default_factory=dict)
    sets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    measures: Sequence[str] = ()
    orders: Sequence[Mapping[str, Any]] = ()
    borda: Sequence[BordaRule] = ("complete",)

    def own_options(self, measures: Mapping[str, Measure], options: Options) -> dict[str, Options]:
        """The options of measures for which the tool orders equal scores in another way than `[policies]` states.

        If the user chose an order of ties, it holds for all measures.
        """
        if options.ties != self.policies.get("ties", Options.ties):
            return {}
        by_measure = {}
        for key, measure in measures.items():
            inner = measure.inner
            with_gain = f"{inner.name}(gain={inner.parameters.get('gain')})"
            names = {inner.name, f"{inner.name}@" if inner.cutoff else "", with_gain}
            order = next((order for order in self.orders if names & set(order["measures"])), None)
            if order is not None:
                by_measure[key] = replace(options, ties=order["ties"], single=order["single"])
        return by_measure

    def options_of(self, measure: Measure) -> Options:
        """The options that the tool has for a measure."""
        options = resolve(self.policies, {})
        return self.own_options({"": measure}, options).get("", options)

    def measure(self, text: str | Measure) -> Measure:
        """The measure that a text means in this dialect.

        The names of the tool come first, then Steelyard's names with the defaults of the dialect. A measure object of
        another library is read by its text; one of ir_measures that is not in this dialect is read in ir_measures.
        """
        if isinstance(text, Measure):
            return text
        if type(text).__module__.startswith("ir_measures") and self.name != "ir_measures":
            try:
                return self.measure(str(text))
            except MeasureError:
                return _named("ir_measures").measure(str(text))
        name_text = str(text).strip()
        for pattern, spelled in self.names.items():
            values = _match(pattern, name_text)
            if values is not None:
                return parse(filled(spelled, values))
        name, parameters, cutoff = split(name_text)
        for flag in self.wrapped.keys() & parameters.keys():
            return self._wrapped(flag, name, parameters, cutoff)
        parameters = {
            self.renamed.get(f"{name}.{key}", self.renamed.get(key, key)): value for key, value in parameters.items()
        }
        fixed_names = {folded(pattern): spelled for pattern, spelled in self.names.items() if "{" not in pattern}
        if folded(name) in fixed_names:
            measure = parse(fixed_names[folded(name)])
            cutoff = measure.cutoff if cutoff is None else cutoff
            return build(measure.definition, {**dict(measure.given), **parameters}, cutoff)
        try:
            definition, implied, suffix = find(name, name_text)
        except MeasureError:
            if not self.names:
                raise
            raise MeasureError(
                f"unknown measure {name_text!r} in dialect {self.name}."
                f"{did_you_mean(name, [*self.names, *definitions()])} `steelyard explain --dialect {self.name}` lists "
                "its names."
            ) from None
        defaults = self.defaults.get(definition.name, {})
        return build(definition, {**defaults, **implied, **parameters}, cutoff if suffix is None else suffix)

    def _wrapped(self, flag: str, name: str, parameters: Mapping[str, str], cutoff: int | float | None) -> Measure:
        """A measure with a flag of the tool: the measure without the flag, inside the one that the flag makes of it."""
        if parameters[flag] not in ("True", "False"):
            raise MeasureError(f"{name}({flag}={parameters[flag]}): expected True or False.")
        rest = ", ".join(f"{key}={value}" for key, value in parameters.items() if key != flag)
        at = "" if cutoff is None else f"@{cutoff}"
        inner = self.measure(name + (f"({rest})" if rest else "") + at)
        if parameters[flag] == "False":
            return inner
        return parse(self.wrapped[flag].replace("{measure}", str(inner)))

    def expand(self, measures: Sequence[str | Measure]) -> list[str | Measure]:
        """The measures, with names of sets and lists of cutoffs replaced by their members."""
        listed: list[str | Measure] = []
        for text in measures:
            listed += ((self.sets.get(text) or self._at_each_cutoff(text)) if isinstance(text, str) else []) or [text]
        return list(dict.fromkeys(listed))

    def reads_texts(self, measures: Sequence[str | Measure]) -> bool:
        """Whether any of the measures reads the texts of documents or their lengths."""
        return any(reads_texts(self.measure(text)) for text in self.expand(measures))

    def _at_each_cutoff(self, text: str) -> list[str]:
        """`P.5,10` in a dialect that has both `P.{k}` and `P_{k}`: P_5 and P_10, the lowest first."""
        match = _CUTOFFS.fullmatch(text.strip())
        if match is None or not {f"{match[1]}.{{k}}", f"{match[1]}_{{k}}"} <= self.names.keys():
            return []
        listed = [(self.measure(f"{match[1]}.{cutoff}"), cutoff) for cutoff in match[2].split(",")]
        if any(measure.cutoff is None for measure, _ in listed):
            return []
        ranks = all(measure.definition.cutoff_kind == "rank" for measure, _ in listed)
        ordered = sorted((cutoff for _, cutoff in listed), key=float)
        return [f"{match[1]}_{cutoff if ranks else f'{float(cutoff):.2f}'}" for cutoff in ordered]


def listed_measures(measures: str | Measure | Iterable[str | Measure]) -> list[str | Measure]:
    """The measures as a list, from one measure or several; a measure object of another library is one."""
    one = isinstance(measures, (str, Measure)) or not isinstance(measures, Iterable)
    return [measures] if one else list(measures)  # type: ignore[list-item, arg-type]


@cache
def dialects() -> Mapping[str, Dialect]:
    """Every dialect by name, the default first."""
    loaded = [_named(path.stem) for path in _FOLDER.glob("*.toml")]
    return {d.name: d for d in sorted(loaded, key=lambda d: (d.name != "steelyard", d.name))}


def dialect(name: str | Dialect) -> Dialect:
    """The dialect of that name."""
    return name if isinstance(name, Dialect) else _named(name)


@cache
def _named(name: str) -> Dialect:
    path = _FOLDER / f"{name}.toml"
    if re.fullmatch(r"[\w.-]{1,64}", name) and path.is_file():
        return Dialect(**tomllib.loads(path.read_text("utf-8")))
    raise MeasureError(unknown_name("dialect", name, dialects()))


def _match(pattern: str, text: str) -> dict[str, str] | None:
    """The placeholders' values in a text of a name pattern, ignoring blanks after commas; None if it does not match."""
    text = re.sub(r",\s+", ",", text)
    if "{" not in pattern:
        return {} if pattern.lower() == text.lower() else None
    expression = "".join(
        f"(?P<{part}>{_PLACEHOLDERS.get(part, _NUMBER)})" if odd % 2 else re.escape(part)
        for odd, part in enumerate(re.split(r"\{(\w+)\}", pattern))
    )
    match = re.fullmatch(expression, text, re.IGNORECASE)
    return match.groupdict() if match else None


def placeholders(pattern: str) -> list[str]:
    """The names of the placeholders in a name pattern, or in the measure it means."""
    return re.findall(r"\{(\w+)\}", pattern)


def filled(pattern: str, values: Mapping[str, str]) -> str:
    """A pattern with values for its placeholders."""
    for name, value in values.items():
        if name == "gains":
            value = "{" + value.replace("=", ": ") + "}"
        elif name == "points":
            value = f"[{value}]"
        pattern = pattern.replace(f"{{{name}}}", value)
    return pattern


def list_dialects() -> Listing[Dialect]:
    """Every dialect: its name, description, metric names and source."""
    columns = ("dialect", "what", "names", "source")
    return Listing(dict(dialects()), columns, lambda d: (d.name, d.about, ", ".join(d.names), d.source))
