"""A number as some tool printed it: what it can stand for, and which values round to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steelyard.alignment.alignment import Aligned, Alignment, align
from steelyard.alignment.hits import Ordering
from steelyard.coverage import Levels, coverage_of, level_of, refuse_unmatched, without_relevant
from steelyard.dialects import Dialect, dialects, filled, holes_of
from steelyard.dialects import dialect as dialect_of
from steelyard.dialects.reconcile import SAME, Reading, one_clause_changed
from steelyard.errors import InputError, MeasureError, PolicyError
from steelyard.measures.compute import summary, values
from steelyard.measures.grammar import Measure, as_text, build, parse
from steelyard.measures.registry import Definition, definitions
from steelyard.options import Options, resolve
from steelyard.qrels import Qrels
from steelyard.run import Run
from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl


class Printed(NamedTuple):
    """A number, and half of the last digit it was printed with."""

    value: float
    half: float

    def fits(self, value: float) -> bool:
        """Whether a value rounds to the number."""
        return abs(value - self.value) <= max(self.half * (1 + 1e-9), SAME)


def printed_as(value: str | float) -> list[Printed]:
    """What a printed number can stand for: itself, and a share if it is or may be a percentage."""
    text = str(value if isinstance(value, str) else float(value)).strip()
    percent = text.endswith("%")
    try:
        number = Decimal(text.rstrip("% "))
        digits = int(number.as_tuple().exponent)
    except (InvalidOperation, ValueError):
        raise InputError(
            f"the value is {value!r}; expected a number as it was printed, as in 0.4123 or 41.23%."
        ) from None
    half = Decimal(5).scaleb(digits - 1)
    plain = Printed(float(number), float(half))
    share = Printed(float(number.scaleb(-2)), float(half.scaleb(-2)))
    if percent:
        return [share]
    return [plain, share] if 1 < number <= 100 else [plain]


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


class Means:
    """The run's mean under any reading. It is joined with the judgments once per ordering that can matter.

    `grades` are the levels above 1 that the judgments have: those at which relevance may begin.
    """

    def __init__(self, qrels: Qrels, run: Run | str | Path) -> None:
        self._qrels, self._run = qrels, run
        self._aligned: dict[Ordering, Aligned | None] = {}
        self._lists: dict[tuple[Ordering, str], Alignment] = {}
        self._means: dict[tuple[Ordering, str, Measure], dict[tuple[str, str], float]] = {}
        self._refusals: dict[str, None] = {}
        first = align(qrels, run, Ordering(single=True))
        a = first.alignment
        coverage = coverage_of(first, a, Options(), Levels(), np.inf)
        refuse_unmatched({first.name: coverage})
        self.name = first.name
        self._answered, self._barren = a.answered, without_relevant(a, None)
        self._unjudged = coverage.unjudged > 0
        self._tied, self._repeated = bool(np.any(a.tie_size > 1)), coverage.repeated > 0
        grades = np.unique(a.judged.grade)
        self.grades = [int(grade) for grade in grades if 1 < grade <= 10 and grade == int(grade)]
        if not self._tied:
            self._aligned[self._ordering(Options())] = first

    @property
    def refused(self) -> tuple[str, ...]:
        """Why the run cannot be measured under some policies."""
        return tuple(self._refusals)

    def mean(self, reading: Reading) -> float | None:
        """The reading's value over all queries; None where it cannot be had."""
        rules = reading.rules
        key = (self._ordering(rules), rules.unjudged if self._unjudged else "keep", reading.measure)
        if key not in self._means:
            self._means[key] = self._under_each_policy(*key)
        missing = "zero" if rules.missing == "error" else rules.missing
        found = self._means[key].get((missing, rules.no_relevant))
        return found if found is not None and np.isfinite(found) else None

    def other_policies(self, reading: Reading) -> Iterator[tuple[Reading, str]]:
        """The reading with one policy changed, for each that can matter to this run, and what it is."""
        choices: dict[str, tuple[Any, ...]] = {}
        if not self._answered.all():
            choices["missing"] = ("zero", "skip")
        if self._barren.any():
            choices["no_relevant"] = ("zero", "skip")
        if self._tied:
            choices["ties"] = ("docid-desc", "docid-asc", "stable", "expected")
        if self._repeated:
            choices["duplicates"] = ("hold", "collapse")
        if self._unjudged:
            choices["unjudged"] = ("keep", "remove")
        for policy, others in choices.items():
            for value in others:
                if value != getattr(reading.rules, policy):
                    rules = replace(reading.rules, **{policy: value})
                    yield replace(reading, rules=rules), f"{policy}={value}"

    def _ordering(self, rules: Options) -> Ordering:
        """The ordering under the rules, as far as this run has ties and repeats."""
        asked = rules.ordering
        return Ordering(
            asked.ties if self._tied else "docid-desc",
            asked.duplicates if self._repeated else "hold",
            asked.single and self._tied,
        )

    def _under_each_policy(
        self, ordering: Ordering, unjudged: str, measure: Measure
    ) -> dict[tuple[str, str], float]:
        """A measure's mean by what becomes of missing queries and of those without a relevant document."""
        aligned = self._joined(ordering)
        if aligned is None:
            return {}
        if (ordering, unjudged) not in self._lists:
            rules = resolve({"duplicates": ordering.duplicates, "unjudged": unjudged}, {})
            self._lists[ordering, unjudged] = rules.lists(aligned.alignment)
        a = self._lists[ordering, unjudged]
        try:
            row = values(measure, a, expected=ordering.ties == "expected")
        except MeasureError:
            return {}
        barren = without_relevant(a, level_of(measure))
        sparing = np.where(barren, np.nan, row) if measure.definition.needs_relevant else row
        return {
            ("zero", "zero"): summary(measure, row),
            ("zero", "skip"): summary(measure, sparing),
            ("skip", "zero"): summary(measure, row[self._answered]),
            ("skip", "skip"): summary(measure, sparing[self._answered]),
        }

    def _joined(self, ordering: Ordering) -> Aligned | None:
        if ordering not in self._aligned:
            try:
                self._aligned[ordering] = align(self._qrels, self._run, ordering)
            except PolicyError as error:
                self._refusals[f"duplicates={ordering.duplicates} was left out: {error}"] = None
                self._aligned[ordering] = None
        return self._aligned[ordering]


SHOWN = 10
"""How many matches the text shows; the frame has all."""


class Name(NamedTuple):
    """A definition's name in a dialect, and what it means in Steelyard's words."""

    dialect: str
    name: str
    means: str


class Instead(NamedTuple):
    """A clause that matters: with `other` in place of `value` the mean is `gives`, another number."""

    clause: str
    value: str
    other: str
    gives: float


@dataclass(frozen=True)
class Match:
    """One definition and its value: under whose names, and the clauses that matter.

    `names` also holds other cutoffs that give the same; `but` is the one policy that is not the
    dialect's own, or nothing.
    """

    value: float
    names: tuple[Name, ...]
    but: str
    clauses: tuple[Instead, ...]

    @property
    def means(self) -> tuple[str, ...]:
        """The measure in Steelyard's words; several where other cutoffs give the same."""
        return tuple(dict.fromkeys(name.means for name in self.names))


@dataclass(frozen=True)
class Identification:
    """The definitions that give a number at its printed digits; where none does, the nearest ones."""

    run: str
    wanted: str
    tried: int
    matches: tuple[Match, ...]
    nearest: tuple[Match, ...]
    refused: tuple[str, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """One row a definition and dialect, the matches first."""
        import polars as pl

        columns = {"match": pl.Boolean, "value": pl.Float64}
        texts = dict.fromkeys(("dialect", "name", "means", "but", "clauses"), pl.String)
        return pl.DataFrame(
            [
                (found in self.matches, found.value, *name, found.but, _joined(found))
                for found in (*self.matches, *self.nearest)
                for name in found.names
            ],
            schema={**columns, **texts},
            orient="row",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the command line writes them to JSON."""
        return {
            "run": self.run,
            "value": self.wanted,
            "definitions_tried": self.tried,
            "matches": [_plain(match) for match in self.matches],
            "nearest": [_plain(match) for match in self.nearest],
            "refused": list(self.refused),
        }

    def __str__(self) -> str:
        number = f"{self.wanted} of run {self.run!r}"
        tried = f"of {self.tried:,} looked at"
        if self.matches:
            count = len(self.matches)
            give = counted(count, "definition gives it", "definitions give it")
            lines = [f"{number}: {give}, {tried}."]
        else:
            lines = [f"{number}: no definition gives it, {tried}. The nearest:"]
        for match in (self.matches or self.nearest)[:SHOWN]:
            lines += ["", *_told(match)]
        if len(self.matches) > SHOWN:
            lines += [
                "",
                f"... and {len(self.matches) - SHOWN:,} more. More digits narrow it down; so do measures "
                "(-m MAP@10) and dialects (--dialects beir,mteb).",
            ]
        return "\n".join([*lines, *([""] if self.refused else []), *self.refused])

    __repr__ = __str__


def _told(match: Match) -> list[str]:
    but = f", but {match.but}" if match.but else ""
    by_dialect: dict[str, list[str]] = {}
    for dialect, name, _ in match.names:
        by_dialect.setdefault(dialect, []).append(name)
    lines = [f"  {match.value:.6f}  {_few(match.means)}{but}"]
    lines += [f"    in {dialect}: {_few(names)}" for dialect, names in by_dialect.items()]
    lines += [f"    {_instead(clause)}" for clause in match.clauses]
    return lines


def _few(texts: Sequence[str]) -> str:
    """A few texts; of many the first two and a count."""
    return ", ".join(texts) if len(texts) < 4 else f"{', '.join(texts[:2])} and {len(texts) - 2} more alike"


def _instead(clause: Instead) -> str:
    return f"{clause.clause}={clause.value} matters: {clause.other} gives {clause.gives:.6f}"


def _joined(match: Match) -> str:
    return "; ".join(map(_instead, match.clauses))


def _plain(match: Match) -> dict[str, Any]:
    return {
        "value": match.value,
        "names": [name._asdict() for name in match.names],
        "but": match.but,
        "clauses": [clause._asdict() for clause in match.clauses],
    }


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
        rules = resolve(dialect.policies, {})
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
    return Reading("steelyard", Measure(inner.definition, (), inner.cutoff), Options())


def _without_cutoff(meant: Measure) -> str:
    return re.sub(r"@[\d.]+", "", str(meant))
