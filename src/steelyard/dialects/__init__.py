"""Dialects: what other tools' metric names mean, as data. One TOML file a tool, and this reader.

A file holds `name`, `about` and `source`; `[policies]` (missing, no_relevant, ties, duplicates,
single); `[names]`, the tool's own names and the fully spelled measure each stands for; `[defaults]`,
what Steelyard's own names mean there when a parameter is not given; `[renamed]`, the tool's own names
of parameters (`Name.parameter`: of one measure) and Steelyard's; `[wrapped]`, its flags that make another measure of one, `{measure}` being
that; `[sets]`, names for several measures at once; and `measures`, what a comparison shows when none are
named. In a name `{k}` stands for a number, `{points}` for a list of numbers and
`{gains}` for a list of grade=gain.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from steelyard.errors import MeasureError, did_you_mean
from steelyard.lazy import make_callable
from steelyard.listing import Listing
from steelyard.measures.grammar import Measure, build, find, parse, split
from steelyard.measures.registry import definitions, folded

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FOLDER = Path(__file__).parent
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)"
_HOLES = {
    "points": rf"{_NUMBER}(?:,{_NUMBER})*",
    "gains": rf"{_NUMBER}={_NUMBER}(?:,{_NUMBER}={_NUMBER})*",
}
_CUTOFFS = re.compile(rf"(\w+)\.({_NUMBER}(?:,{_NUMBER})+)")


@dataclass(frozen=True)
class Dialect:
    """A tool's metric names, each with the measure it stands for, and the tool's policies."""

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

    def measure(self, text: str | Measure) -> Measure:
        """The measure that a text means in this dialect.

        The tool's own names come first; then Steelyard's, with the dialect's defaults. Another library's
        measure is taken by its text; one of ir_measures' that is not known here means what it means there.
        """
        if isinstance(text, Measure):
            return text
        if type(text).__module__.startswith("ir_measures") and self.name != "ir_measures":
            try:
                return self.measure(str(text))
            except MeasureError:
                return _named("ir_measures").measure(str(text))
        wanted = str(text).strip()
        for pattern, spelled in self.names.items():
            holes = _match(pattern, wanted)
            if holes is not None:
                return parse(filled(spelled, holes))
        name, parameters, cutoff = split(wanted)
        for flag in self.wrapped.keys() & parameters.keys():
            return self._wrapped(flag, name, parameters, cutoff)
        parameters = {
            self.renamed.get(f"{name}.{key}", self.renamed.get(key, key)): value
            for key, value in parameters.items()
        }
        own = {folded(pattern): spelled for pattern, spelled in self.names.items() if "{" not in pattern}
        if folded(name) in own:
            meant = parse(own[folded(name)])
            return build(
                meant.definition,
                {**dict(meant.given), **parameters},
                meant.cutoff if cutoff is None else cutoff,
            )
        try:
            definition, implied, suffix = find(name, wanted)
        except MeasureError:
            if not self.names:
                raise
            raise MeasureError(
                f"there is no measure {wanted!r} in dialect {self.name}."
                f"{did_you_mean(name, [*self.names, *definitions()])} `steelyard explain --dialect {self.name}` lists its names."
            ) from None
        defaults = self.defaults.get(definition.name, {})
        return build(definition, {**defaults, **implied, **parameters}, cutoff if suffix is None else suffix)

    def _wrapped(
        self, flag: str, name: str, parameters: Mapping[str, str], cutoff: int | float | None
    ) -> Measure:
        """A measure with one of the tool's flags: without it, and within what the flag makes of it."""
        if parameters[flag] not in ("True", "False"):
            raise MeasureError(f"{name}({flag}={parameters[flag]}): expected True or False.")
        rest = ", ".join(f"{key}={value}" for key, value in parameters.items() if key != flag)
        at = "" if cutoff is None else f"@{cutoff}"
        inner = self.measure(name + (f"({rest})" if rest else "") + at)
        if parameters[flag] == "False":
            return inner
        return parse(self.wrapped[flag].replace("{measure}", str(inner)))

    def expand(self, wanted: Sequence[str | Measure]) -> list[str | Measure]:
        """The measures asked for, with the names of sets, and lists of cutoffs, replaced by what they hold."""
        listed: list[str | Measure] = []
        for text in wanted:
            if isinstance(text, str):
                listed += self.sets.get(text) or self._at_each_cutoff(text) or [text]
            else:
                listed.append(text)
        return list(dict.fromkeys(listed))

    def reads_texts(self, wanted: Sequence[str | Measure]) -> bool:
        """Whether any of the measures asked for looks at the documents' texts, or at how long they are."""
        from steelyard.measures.compute import reads_texts

        return any(reads_texts(self.measure(text)) for text in self.expand(wanted))

    def _at_each_cutoff(self, text: str) -> list[str]:
        """`P.5,10` as a tool that has both `P.{k}` and `P_{k}` takes it: P_5 and P_10, the lowest first."""
        found = _CUTOFFS.fullmatch(text.strip())
        if found is None or not {f"{found[1]}.{{k}}", f"{found[1]}_{{k}}"} <= self.names.keys():
            return []
        listed = [(self.measure(f"{found[1]}.{cutoff}"), cutoff) for cutoff in found[2].split(",")]
        if any(measure.cutoff is None for measure, _ in listed):
            return []
        ranks = all(measure.definition.cutoff_kind == "rank" for measure, _ in listed)
        ordered = sorted((cutoff for _, cutoff in listed), key=float)
        return [f"{found[1]}_{cutoff if ranks else f'{float(cutoff):.2f}'}" for cutoff in ordered]


def listed_measures(measures: str | Measure | Iterable[str | Measure]) -> list[str | Measure]:
    """The measures one by one, whether one was given or several; another library's measure is one."""
    one = isinstance(measures, (str, Measure)) or not isinstance(measures, Iterable)
    return [measures] if one else list(measures)  # type: ignore[list-item, arg-type]


@cache
def dialects() -> Mapping[str, Dialect]:
    """Every dialect by name, the default first."""
    found = [_named(path.stem) for path in _FOLDER.glob("*.toml")]
    return {d.name: d for d in sorted(found, key=lambda d: (d.name != "steelyard", d.name))}


def dialect(name: str | Dialect) -> Dialect:
    """The dialect of that name."""
    return name if isinstance(name, Dialect) else _named(name)


@cache
def _named(name: str) -> Dialect:
    path = _FOLDER / f"{name}.toml"
    if re.fullmatch(r"[\w.-]+", name) and path.is_file():
        return Dialect(**tomllib.loads(path.read_text("utf-8")))
    raise MeasureError(
        f"there is no dialect {name!r}; there are {', '.join(dialects())}.{did_you_mean(name, dialects())}"
    )


def _match(pattern: str, wanted: str) -> dict[str, str] | None:
    """What fills the holes of a name pattern, or None where the text is not of it; blanks after commas aside."""
    wanted = re.sub(r",\s+", ",", wanted)
    if "{" not in pattern:
        return {} if pattern.lower() == wanted.lower() else None
    parts = re.split(r"\{(\w+)\}", pattern)
    expression = "".join(
        f"(?P<{part}>{_HOLES.get(part, _NUMBER)})" if odd % 2 else re.escape(part)
        for odd, part in enumerate(parts)
    )
    found = re.fullmatch(expression, wanted, re.IGNORECASE)
    return found.groupdict() if found else None


def holes_of(pattern: str) -> list[str]:
    """The holes of a name pattern, or of what it stands for."""
    return re.findall(r"\{(\w+)\}", pattern)


def filled(spelled: str, holes: Mapping[str, str]) -> str:
    """A text with its holes filled."""
    for hole, value in holes.items():
        if hole == "gains":
            value = "{" + value.replace("=", ": ") + "}"
        elif hole == "points":
            value = f"[{value}]"
        spelled = spelled.replace(f"{{{hole}}}", value)
    return spelled


def listing() -> Listing[Dialect]:
    """Every dialect: its name, what it is, the names it knows and where it was read off."""
    return Listing(
        dict(dialects()),
        ("dialect", "what", "names", "source"),
        lambda d: (d.name, d.about, ", ".join(d.names), d.source),
    )


make_callable(__name__, "steelyard.dialects:listing")
