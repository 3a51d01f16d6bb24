"""identify(): the definitions that give a number which some tool printed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from steelyard.alignment.alignment import Aligned, Alignment, align
from steelyard.alignment.hits import Ordering, Remembers
from steelyard.coverage import Levels, coverage_of, level_of, refuse_unmatched, tie_sensitive, without_relevant
from steelyard.dialects.dialect import Dialect, filled, placeholders
from steelyard.dialects.dialect import dialect as dialect_of
from steelyard.dialects.dialect import dialects as all_dialects
from steelyard.dialects.reconcile import SAME, Reading, one_clause_changed
from steelyard.errors import InputError, MeasureError, PolicyError
from steelyard.lazy import polars as pl
from steelyard.measures.compute import summary, values
from steelyard.measures.gradings import reads_zeros
from steelyard.measures.grammar import Measure, as_text, build, parse, with_rel
from steelyard.measures.registry import Definition, definitions
from steelyard.options import Options, resolve
from steelyard.qrels import Qrels
from steelyard.run import Run, readable_again
from steelyard.wording import counted

Item = TypeVar("Item")

CUTOFFS = (1, 2, 3, 4, 5, 8, 10, 15, 20, 25, 30, 50, 100, 200, 500, 1000)
"""The cutoffs that are tried if a definition has one."""

_COMMON = ("nDCG", "AP", "RR", "R", "P", "Hit", "F", "Rprec", "RBP", "Bpref", "ERR", "DCG")
_COMMON_CUTOFFS = (10, None, 5, 100, 1, 3, 20, 1000, 50)
_TOOLS = (
    *("trec_eval-9", "trec_eval-10", "beir", "mteb", "ranx", "ir_measures", "msmarco", "multihop-rag"),
    *("llama-index", "ragas", "haystack", "mlflow", "autorag", "evidently", "leaderboard"),
)
"""Measures, cutoffs and tools, those that published numbers most often come from first."""

_LEVELS = {"recall": np.arange(0, 11) / 10, "multiple": np.arange(1, 11) / 5}
PERSISTENCE = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)  # The usual values of p of RBP.
_NOT_OF_LISTS = ("Composite", "Counted", "Latency", "NumQ")


class Printed(NamedTuple):
    """A number, and half of the last digit it was printed with."""

    value: float
    half: float


def printed_as(value: str | float) -> list[Printed]:
    """The numbers that a printed number can mean: itself, and a share if it is or may be a percentage."""
    text = str(value if isinstance(value, str) else float(value)).strip()
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
    if text.endswith("%"):
        return [share]
    return [plain, share] if 1 < number <= 100 else [plain]


class Means(Remembers):
    """The mean of the run under any reading. The run is joined with the qrels once per ordering that can matter.

    `grades` are the grades above 1 in the qrels: possible values of `rel`. `refusals` has why the run cannot be
    measured under some policies.
    """

    def __init__(self, qrels: Qrels, run: Run | str | Path) -> None:
        self._qrels, self._run = qrels, run
        self._aligned: dict[Ordering, Aligned | None] = {}
        self._lists: dict[tuple[Ordering, str, bool], Alignment] = {}
        self.refusals: dict[str, None] = {}
        first = align(qrels, run, Ordering(single=True))
        a = self._first = first.alignment
        coverage = coverage_of(first, a, Options(), Levels(), np.inf)
        refuse_unmatched({first.name: coverage})
        self.name = first.name
        self._answered, self._barren = a.answered, without_relevant(a, None)
        self._unjudged = coverage.unjudged > 0
        self._tied, self._repeated = bool(np.any(a.tie_size > 1)), coverage.repeated > 0
        self.grades = [int(grade) for grade in np.unique(a.judged.grade) if 1 < grade <= 10 and grade == int(grade)]
        if not self._tied:
            self._aligned[self._ordering(Options())] = first

    def mean(self, reading: Reading) -> float | None:
        """The value of a reading over all queries; None if it cannot be computed."""
        options = reading.options
        key = (self._ordering(options), options.unjudged if self._unjudged else "keep", reading.measure)
        means = self.once(("means", *key), lambda: self._under_each_policy(*key))
        value = means.get(("zero" if options.missing == "error" else options.missing, options.no_relevant))
        return value if value is not None and np.isfinite(value) else None

    def other_policies(self, reading: Reading) -> Iterator[tuple[Reading, str]]:
        """The reading with one policy changed, for each that can matter to this run, and the changed policy."""
        choices: dict[str, tuple[bool, tuple[Any, ...]]] = {
            "missing": (not self._answered.all(), ("zero", "skip")),
            "no_relevant": (bool(self._barren.any()), ("zero", "skip")),
            "ties": (self._tied, ("docid-desc", "docid-asc", "stable", "expected")),
            "duplicates": (self._repeated, ("hold", "collapse")),
            "unjudged": (self._unjudged, ("keep", "remove")),
        }
        for policy, (matters, others) in choices.items():
            for value in others:
                if matters and value != getattr(reading.options, policy):
                    yield replace(reading, options=replace(reading.options, **{policy: value})), f"{policy}={value}"

    def most_by_ties(self, reading: Reading) -> float:
        """The most that another order of equal scores can change the mean: by the queries where it can matter."""
        measure, definition = reading.measure, reading.measure.definition
        skips = "skip" in (reading.options.missing, reading.options.no_relevant)
        if skips or definition.summary != "mean" or measure.name in ("Counted", "Composite") or reads_zeros(measure):
            return np.inf
        deepest = measure.cutoff if definition.cutoff_kind == "rank" and measure.cutoff else np.inf
        share = self.once(("ties", deepest), lambda: tie_sensitive(self._first, deepest) / max(1, self._first.size))
        return share * (measure.range[1] - measure.range[0])

    def _ordering(self, options: Options) -> Ordering:
        """The ordering, with policies that do not matter to this run at their defaults."""
        return Ordering(
            options.ties if self._tied else "docid-desc",
            options.duplicates if self._repeated else "hold",
            options.single and self._tied,
        )

    def _under_each_policy(self, ordering: Ordering, unjudged: str, measure: Measure) -> dict[tuple[str, str], float]:
        """The mean of a measure by the policies for missing queries and for queries without a relevant document."""
        a = self._measured(ordering, unjudged, reads_zeros(measure))
        if a is None:
            return {}
        try:
            row = values(measure, a, expected=ordering.ties == "expected")
        except MeasureError:
            return {}
        skipping = row
        if measure.definition.needs_relevant:
            level = level_of(measure)
            without = self.once(("without", ordering, unjudged, level), lambda: without_relevant(a, level))
            skipping = np.where(without, np.nan, row)
        return {
            ("zero", "zero"): summary(measure, row),
            ("zero", "skip"): summary(measure, skipping),
            ("skip", "zero"): summary(measure, row[self._answered]),
            ("skip", "skip"): summary(measure, skipping[self._answered]),
        }

    def _measured(self, ordering: Ordering, unjudged: str, zeros: bool) -> Alignment | None:
        """The lists; without documents of grade 0 if a measure does not need them, which saves most of the time."""
        if ordering not in self._aligned:
            try:
                self._aligned[ordering] = align(self._qrels, self._run, ordering)
            except PolicyError as error:
                self.refusals[f"duplicates={ordering.duplicates} was left out: {error}"] = None
                self._aligned[ordering] = None
        aligned = self._aligned[ordering]
        if aligned is not None and (ordering, unjudged, zeros) not in self._lists:
            lists = resolve({"duplicates": ordering.duplicates, "unjudged": unjudged}, {}).lists(aligned.alignment)
            self._lists[ordering, unjudged, zeros] = lists if zeros else lists.without_zeros()
        return self._lists.get((ordering, unjudged, zeros))


SHOWN = 10  # How many matches the text shows; the frame has all of them.
LIKELY = 0.05  # A definition is called the most likely one if at most this share of random numbers fits as well.


class Name(NamedTuple):
    """The name of a definition in a dialect, and the measure it means."""

    dialect: str
    name: str
    means: str


class Instead(NamedTuple):
    """A clause that matters: with `other` instead of `value`, the mean is the different number `gives`."""

    clause: str
    value: str
    other: str
    gives: float


@dataclass(frozen=True)
class Match:
    """One definition and its value: its names in the dialects, and the clauses that matter.

    `names` includes other cutoffs with the same value; `but` is the one policy that differs from the dialect's, or
    empty. `chance` is that of a random number with the same digits to be given by this definition or one before it.
    """

    value: float
    names: tuple[Name, ...]
    but: str
    clauses: tuple[Instead, ...]
    chance: float = 1.0

    @property
    def means(self) -> tuple[str, ...]:
        """The measure; several if other cutoffs give the same value."""
        return tuple(dict.fromkeys(name.means for name in self.names))


@dataclass(frozen=True)
class Identification:
    """The definitions that give a number at its printed digits; if there are none, the nearest ones.

    `chance` is that of a random number with the same digits to be given by some definition.
    """

    run: str
    value: str
    tried: int
    chance: float
    matches: tuple[Match, ...]
    nearest: tuple[Match, ...]
    refused: tuple[str, ...]

    @property
    def frame(self) -> pl.DataFrame:
        """One row per definition and dialect, the matches first."""
        texts = dict.fromkeys(("dialect", "name", "means", "but", "clauses"), pl.String)
        rows = [
            (match in self.matches, match.value, *name, match.but, "; ".join(map(_instead, match.clauses)))
            for match in (*self.matches, *self.nearest)
            for name in match.names
        ]
        return pl.DataFrame(rows, schema={"match": pl.Boolean, "value": pl.Float64, **texts}, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the command line writes them to JSON."""
        return {
            "run": self.run,
            "value": self.value,
            "definitions_tried": self.tried,
            "chance": self.chance,
            "matches": [_plain(match) for match in self.matches],
            "nearest": [_plain(match) for match in self.nearest],
            "refused": list(self.refused),
        }

    def __str__(self) -> str:
        number = f"{self.value} of run {self.run!r}"
        tried = f"of {self.tried:,} tried"
        if self.matches:
            give = counted(len(self.matches), "definition gives it", "definitions give it")
            first = self.matches[0]
            but = f", but {first.but}" if first.but else ""
            likeliest = f"most likely {first.names[0].name} of {first.names[0].dialect}{but}"
            if first.chance > LIKELY:
                likeliest = "it fits by chance, and no definition is more likely than another"
            lines = [
                f"{number}: {likeliest}. {give[:1].upper()}{give[1:]}, {tried}.",
                f"A random number with these digits fits as well in {_percent(first.chance)} of cases; some "
                f"definition gives it in {_percent(self.chance)}.",
            ]
        else:
            lines = [f"{number}: no definition gives it, {tried}. The nearest:"]
        for match in (self.matches or self.nearest)[:SHOWN]:
            lines += ["", *_lines(match)]
        if len(self.matches) > SHOWN:
            lines += [
                "",
                f"... and {len(self.matches) - SHOWN:,} more. More digits narrow it down; so do measures "
                "(-m MAP@10) and dialects (--dialects beir,mteb).",
            ]
        return "\n".join([*lines, *([""] if self.refused else []), *self.refused])

    __repr__ = __str__


def _percent(chance: float) -> str:
    return f"{100 * chance:.{0 if chance >= 0.1 else 1 if chance >= 0.01 else 2}f}%"


def _lines(match: Match) -> list[str]:
    but = f", but {match.but}" if match.but else ""
    by_dialect: dict[str, list[str]] = {}
    for dialect, name, _ in match.names:
        by_dialect.setdefault(dialect, []).append(name)
    lines = [f"  {match.value:.6f}  {_few(match.means)}{but}"]
    lines += [f"    in {dialect}: {_few(names)}" for dialect, names in by_dialect.items()]
    lines += [f"    {_instead(clause)}" for clause in match.clauses]
    return lines


def _few(texts: Sequence[str]) -> str:
    """The texts; of more than three, the first two and a count."""
    return ", ".join(texts) if len(texts) < 4 else f"{', '.join(texts[:2])} and {len(texts) - 2} more"


def _instead(clause: Instead) -> str:
    return f"{clause.clause}={clause.value} matters: {clause.other} gives {clause.gives:.6f}"


def _plain(match: Match) -> dict[str, Any]:
    names, clauses = ([row._asdict() for row in listed] for listed in (match.names, match.clauses))
    return {**vars(match), "names": names, "clauses": clauses}


def identify(
    qrels: Any,
    run: Any,
    value: str | float,
    measures: str | Sequence[str] | None = None,
    dialects: Sequence[str | Dialect] | None = None,
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> Identification:
    """The definitions under which a run has a value that some tool printed.

    The names of every dialect are tried at common cutoffs, with the policies of the dialect and with one policy
    changed; Steelyard's own measures also with one parameter changed. A value fits if it rounds to the number at its
    digits: pass "0.410" as text if a last 0 was printed. A number above 1, or with a %, is also tried as a percentage.
    `measures` and `dialects` narrow the search. `progress` gets the step, how much of it is done, and its total.

    >>> found = identify({"q1": ["a", "b", "c"]}, {"q1": ["a", "x", "b"]}, "0.83", ["AP@3"])
    >>> found.matches[0].means
    ('AP(denominator=found)@3',)
    >>> found.matches[0].clauses[0]
    Instead(clause='denominator', value='found', other='relevant', gives=0.5555555555555555)
    """
    printed = printed_as(value)
    run = readable_again(run)
    means = Means(Qrels.of(qrels), run if isinstance(run, (str, Path)) else Run.of(run))
    names = [measures] if isinstance(measures, str) else measures
    check_known(names or ())
    search = _Search(means, printed)

    def watched(step: str, items: Iterable[Item]) -> Iterator[Item]:
        listed = list(items)
        for number, item in enumerate(listed):
            if progress is not None:
                progress(step, number, len(listed))
            yield item

    for dialect in all_dialects().values() if dialects is None else map(dialect_of, dialects):
        for name, measure in watched(f"names of {dialect.name}", measures_of(dialect, names, means.grades)):
            search.add(Reading.of(dialect, measure), name)
    for reading, name in watched("other policies", search.readings):
        for changed, but in means.other_policies(reading):
            if changed.options.ties == reading.options.ties or search.within(reading, means.most_by_ties(reading)):
                search.add(changed, name, but, parent=reading)
            else:
                search.left_out += 1
    own_readings = [reading for reading, _ in search.readings if reading.dialect == "steelyard"]
    for reading in watched("other parameters", own_readings):
        for measure in other_parameters(reading.measure, means.grades):
            search.add(replace(reading, measure=measure), str(measure), parent=reading)
    matches = search.matches()
    nearest = () if matches else search.nearest()
    refused = tuple(means.refusals)
    return Identification(means.name, str(value), search.tried, search.chance(), matches, nearest, refused)


class _Group(NamedTuple):
    """Readings that are one definition for this run: they differ only in a cutoff that changes nothing."""

    value: float
    readings: list[tuple[Reading, str]]
    but: str


class _Search:
    """Every definition that was tried, by its measure and value."""

    def __init__(self, means: Means, printed: list[Printed]) -> None:
        self.means, self.printed = means, printed
        self.readings: list[tuple[Reading, str]] = []
        self.tried = self.left_out = 0
        self._groups: dict[tuple[str, float, str], _Group] = {}

    def add(self, reading: Reading, name: str, but: str = "", parent: Reading | None = None) -> None:
        """Try a reading; one derived from a parent counts only if the parent has another value and does not fit."""
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
        what, gives = re.sub(r"@[\d.]+", "", str(reading.measure)), round(value, 12)
        if not but or (what, gives, "") not in self._groups:
            self._groups.setdefault((what, gives, but), _Group(value, [], but)).readings.append((reading, name))

    def matches(self) -> tuple[Match, ...]:
        """The definitions that give the number, the likeliest first: unchanged policies, common measures and tools."""
        fitting = [group for group in self._groups.values() if self._fits(group.value)]
        return tuple(self._match(group) for group in sorted(fitting, key=_unlikeliness))

    def chance(self, last: tuple[Any, ...] | None = None) -> float:
        """The share of the numbers with these digits that some definition gives, from 0 to 1 or the highest value.

        last: only definitions that are at least as likely as this key. Those that were left out, since another order of
        ties cannot give this number, could each give another one.
        """
        values = [group.value for group in self._groups.values() if last is None or _unlikeliness(group) <= last]
        left_out = self.left_out if last is None or last[0] else 0
        total = 0.0
        for value, half in self.printed:
            highest = max([value, 1.0, *values]) if value > 1 else 1.0
            given = {round(computed / (2 * half)) for computed in values if 0 <= computed <= highest}
            total += (len(given) + left_out) / (highest / (2 * half) + 1)
        return min(1.0, total)

    def nearest(self) -> tuple[Match, ...]:
        """The five definitions with the values nearest to the number."""

        def gap(group: _Group) -> float:
            return min(abs(group.value - printed.value) for printed in self.printed)

        return tuple(self._match(group) for group in sorted(self._groups.values(), key=gap)[:5])

    def within(self, reading: Reading, change: float) -> bool:
        """Whether a reading fits if its value changes by at most so much."""
        value = self.means.mean(reading)
        return value is not None and any(abs(value - given) <= half + change + SAME for given, half in self.printed)

    def _fits(self, value: float) -> bool:
        return any(abs(value - printed) <= max(half * (1 + 1e-9), SAME) for printed, half in self.printed)

    def _match(self, group: _Group) -> Match:
        likeliest_first = sorted(group.readings, key=lambda one: _unlikely_reading(one[0]))
        names = dict.fromkeys(Name(reading.dialect, name, str(reading.measure)) for reading, name in likeliest_first)
        lowest = min((reading for reading, _ in group.readings), key=lambda reading: reading.measure.cutoff or np.inf)
        clauses = tuple(self._clauses(lowest, group.value))
        return Match(group.value, tuple(names), group.but, clauses, self.chance(_unlikeliness(group)))

    def _clauses(self, reading: Reading, value: float) -> Iterator[Instead]:
        """The clauses without which, one at a time, the value would be different."""
        # Compared with the measure at the same cutoff and with Steelyard's defaults.
        inner = reading.measure.inner
        default = Reading("steelyard", Measure(inner.definition, (), inner.cutoff), Options())
        changes = one_clause_changed(reading, default)
        cutoff = reading.measure.cutoff
        if cutoff is not None and reading.measure.definition.cutoff == "optional":
            whole = build(reading.measure.definition, dict(reading.measure.given), None)
            changes.append(("cutoff", (as_text(cutoff), "none"), replace(reading, measure=whole)))
        for clause, (ours, other), changed in changes:
            gives = self.means.mean(changed)
            if gives is not None and (not self._fits(gives) if self._fits(value) else gives != value):
                yield Instead(clause, ours, other, gives)


def _unlikeliness(group: _Group) -> tuple[Any, ...]:
    """The key that sorts the likeliest definition first."""
    tool, measure, cutoff = min(_unlikely_reading(reading) for reading, _ in group.readings)
    dialects = {reading.dialect for reading, _ in group.readings}
    return bool(group.but), measure, dialects == {"steelyard"}, cutoff, -len(dialects), tool


def _unlikely_reading(reading: Reading) -> tuple[int, int, int]:
    """The places of the tool, the measure and its cutoff, 0 for the likeliest; Steelyard's own dialect is the last."""
    inner = reading.measure.inner
    tool = _rank(reading.dialect, _TOOLS) + (reading.dialect == "steelyard")
    return tool, _rank(inner.name, _COMMON), _rank(inner.cutoff, _COMMON_CUTOFFS)


def _rank(value: Any, order: Sequence[Any]) -> int:
    return order.index(value) if value in order else len(order)


# The definitions that are tried: the names of the dialects at common cutoffs, and changed parameters


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
        if not any(_measure(dialect, text) for dialect in all_dialects().values() for text in (name, f"{name}@10")):
            dialect_of("steelyard").measure(name)


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
