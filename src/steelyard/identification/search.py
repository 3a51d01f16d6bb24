"""identify(): which definition gives a number that some tool printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard.dialects import Dialect
from steelyard.identification.candidates import check_known, dialects_named, measures_named, other_parameters
from steelyard.identification.means import Means
from steelyard.identification.printed import Printed, printed_as
from steelyard.identification.result import Identification, Instead, Match, Name
from steelyard.judgments import Qrels
from steelyard.measures.grammar import Measure, as_text, build, parse
from steelyard.policies import Policies, policies
from steelyard.reconciliation import Reading, one_clause_changed
from steelyard.runs import Run


def identify(
    qrels: Any,
    run: Any,
    value: str | float,
    measures: str | Sequence[str] | None = None,
    dialects: Sequence[str | Dialect] | None = None,
) -> Identification:
    """The definitions under which a run has a value, as some tool printed it.

    Every dialect's names are looked at, at common cutoffs, under the dialect's own policies and with
    one policy changed; and Steelyard's own measures with one parameter changed. A value fits if it
    rounds to the number at its digits: write "0.410" as text where a last 0 was printed. A number
    above 1, and one with a %, is looked for as a percentage too. `measures` and `dialects` narrow the search.

    >>> found = identify({"q1": ["a", "b", "c"]}, {"q1": ["a", "x", "b"]}, "0.83", ["AP@3"])
    >>> found.matches[0].means, found.matches[0].clauses[0]
    (('AP(denominator=found)@3',), Instead(clause='denominator', value='found', other='relevant', gives=0.5555555555555555))
    """
    printed = printed_as(value)
    means = Means(Qrels.of(qrels), run if isinstance(run, (str, Path)) else Run.of(run))
    spoken = dialects_named(dialects)
    wanted = [measures] if isinstance(measures, str) else measures
    check_known(wanted or ())
    found = _Found(means, printed)
    for dialect in spoken:
        rules = policies(dialect.policies)
        for name, meant in measures_named(dialect, wanted, means.grades):
            found.add(Reading(dialect.name, meant, rules), name)
    for reading, name in list(found.readings):
        for changed, but in means.other_policies(reading):
            found.add(changed, name, but, parent=reading)
    for reading in [reading for reading, _ in found.readings if reading.dialect == "steelyard"]:
        for meant in other_parameters(reading.measure, means.grades):
            found.add(replace(reading, measure=meant), str(meant), parent=reading)
    matches = found.matches()
    return Identification(
        run=means.name,
        wanted=str(value),
        tried=found.tried,
        matches=matches,
        nearest=() if matches else found.nearest(),
        refused=means.refused,
    )


class _Group(NamedTuple):
    """Readings that are one definition here: the same but for a cutoff that changes nothing."""

    value: float
    readings: list[tuple[Reading, str]]
    but: str


class _Found:
    """Every definition looked at, by what it is and what it gives."""

    def __init__(self, means: Means, printed: list[Printed]) -> None:
        self.means, self.printed = means, printed
        self.readings: list[tuple[Reading, str]] = []
        self.tried = 0
        self._groups: dict[tuple[str, float, str], _Group] = {}

    def add(self, reading: Reading, name: str, but: str = "", parent: Reading | None = None) -> None:
        """Look at a reading; one made from a parent counts only if it says what the parent does not."""
        value = self.means.mean(reading)
        if value is None:
            return
        if parent is None:
            self.readings.append((reading, name))
        else:
            before = self.means.mean(parent)
            if before is None or before == value or self._fits(before):
                return
        self.tried += 1
        what, gives = _without_cutoff(reading.measure), round(value, 12)
        if not but or (what, gives, "") not in self._groups:
            group = self._groups.setdefault((what, gives, but), _Group(value, [], but))
            group.readings.append((reading, name))

    def matches(self) -> tuple[Match, ...]:
        """The definitions that give the number: those of a tool as it stands first, then by how many speak so."""
        fitting = [group for group in self._groups.values() if self._fits(group.value)]
        fitting.sort(key=lambda group: (bool(group.but), -len({r.dialect for r, _ in group.readings})))
        return tuple(self._match(group) for group in fitting)

    def nearest(self, most: int = 5) -> tuple[Match, ...]:
        """The definitions whose values are nearest to the number."""
        by_gap = sorted(self._groups.values(), key=lambda group: self._gap(group.value))
        return tuple(self._match(group) for group in by_gap[:most])

    def _fits(self, value: float) -> bool:
        return any(printed.fits(value) for printed in self.printed)

    def _gap(self, value: float) -> float:
        return min(abs(value - printed.value) for printed in self.printed)

    def _match(self, group: _Group) -> Match:
        reading = min((r for r, _ in group.readings), key=lambda r: r.measure.cutoff or np.inf)
        return Match(
            value=group.value,
            names=tuple(
                dict.fromkeys(Name(each.dialect, name, str(each.measure)) for each, name in group.readings)
            ),
            but=group.but,
            clauses=tuple(self._that_matter(reading, group.value)),
        )

    def _that_matter(self, reading: Reading, value: float) -> Iterator[Instead]:
        """The clauses without which, one at a time, the number would be another."""
        changes = one_clause_changed(reading, _plain_reading(reading))
        cutoff = reading.measure.cutoff
        if cutoff is not None and reading.measure.definition.cutoff == "optional":
            whole = build(reading.measure.definition, dict(reading.measure.given), None)
            changes.append(("cutoff", (as_text(cutoff), "none"), replace(reading, measure=whole)))
        for clause, (ours, other), changed in changes:
            gives = self.means.mean(changed)
            if gives is not None and (not self._fits(gives) if self._fits(value) else gives != value):
                yield Instead(clause, ours, other, gives)


def _plain_reading(reading: Reading) -> Reading:
    """What Steelyard takes the measure to be when nothing but the cutoff is said."""
    inner = parse(reading.measure.parameters["of"]) if "of" in reading.measure.parameters else reading.measure
    return Reading("steelyard", Measure(inner.definition, (), inner.cutoff), Policies())


def _without_cutoff(meant: Measure) -> str:
    return re.sub(r"@[\d.]+", "", str(meant))
