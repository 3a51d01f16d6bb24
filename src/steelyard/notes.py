"""Notes: what a result reports beside its numbers. A note is data until it is printed.

A note has a code, which names what was noticed, and values. Its severity and its text follow from the code: a table
in the package that raises the note declares them. Code that has to decide something looks at the code and the values
of a note, never at its text.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from steelyard.errors import SteelyardWarning
from steelyard.wording import SHOWN_NAMES, listed

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the most to the least serious. `error`: the numbers mean nothing. `warning`: they may mislead."""

Text: TypeAlias = str | Callable[..., str]
"""A template (see `fill`), or a function of the values of a note if a template cannot express its text."""

Texts: TypeAlias = Mapping[str, Text]  # The texts of notes by their codes.

TABLES = (
    *(f"steelyard.{name}" for name in ("io.notes", "datasets.findings", "evidence.notes", "measures.compute")),
    *(f"steelyard.{name}.notes" for name in ("fusion", "comparison", "judging", "benchmark", "gating")),
    *(f"steelyard.{name}" for name in ("judgments", "coverage", "evaluation", "predicted")),
)
"""The modules that declare notes, low layers first: code that raises a note loads no table of a higher layer."""

_RUNS = ("run", "other", "leader", "baseline")  # Values of notes that are names of runs.


@dataclass(frozen=True, repr=False)
class Note:
    """A code, and the values that its text needs, as (name, value) pairs.

    >>> merged = note("judgments-merged", count=2)
    >>> merged.severity, str(merged)
    ('info', '2 judgments given twice with the same grade were merged')
    """

    code: str
    values: tuple[tuple[str, Any], ...] = ()

    @property
    def severity(self) -> Severity:
        """How serious it is."""
        return _wording(self.code).severity

    def __getitem__(self, name: str) -> Any:
        return dict(self.values)[name]

    def __str__(self) -> str:
        return _written(_wording(self.code).text, dict(self.values))

    def __repr__(self) -> str:
        return f"Note({self.code!r}: {self})"

    def renamed(self, names: Mapping[str, str]) -> Note:
        """The note with other names for runs."""
        pairs = ((k, names.get(v, v) if k in _RUNS and isinstance(v, str) else v) for k, v in self.values)
        return Note(self.code, tuple(pairs))

    def to_dict(self) -> dict[str, Any]:
        """As in JSON: the code, the severity, the text and the values."""
        values = {name: _as_list(value) for name, value in self.values}
        return {"code": self.code, "severity": self.severity, "text": str(self), "values": values}


def note(code: str, **values: Any) -> Note:
    """A note. Lists are kept as tuples, so that equal notes are equal keys."""
    _wording(code)
    return Note(code, tuple((name, _as_tuple(value)) for name, value in values.items()))


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, (list, tuple)) else value


def _as_list(value: Any) -> Any:
    return list(map(_as_list, value)) if isinstance(value, tuple) else value


def note_from_dict(stored: Mapping[str, Any] | str) -> Note:
    """The note that `to_dict` wrote. A text, or a code that this version does not know, becomes a note with that text.

    >>> str(note_from_dict("written by an old version"))
    'written by an old version'
    """
    if isinstance(stored, str):
        return note("text", text=stored)
    if stored.get("code") in wordings():
        return note(str(stored["code"]), **stored.get("values", {}))
    return note("text", text=str(stored.get("text", "")))


def sentence(noted: Note) -> str:
    """A note as a sentence: a capital letter first, unless it starts with a name, and a full stop last.

    >>> sentence(note("text", text="nDCG@10 is 0")), sentence(note("text", text="no value"))
    ('nDCG@10 is 0.', 'No value.')
    """
    text = str(noted)
    first = text.split(maxsplit=1)[0] if text else ""
    if first.isalpha() and first.islower():
        text = f"{text[:1].upper()}{text[1:]}"
    return f"{text.rstrip('.')}."


def in_short(noted: Note) -> str:
    """A note for one line of a screen: its shorter text if it has one."""
    wording = _wording(noted.code)
    return _written(wording.short or wording.text, dict(noted.values))


def by_severity(notes: Iterable[Note]) -> list[Note]:
    """The notes, the most serious first; those of equal severity in the order given."""
    return sorted(notes, key=lambda noted: SEVERITIES.index(noted.severity))


_silent: ContextVar[bool] = ContextVar("_silent", default=False)


@contextmanager
def shown_otherwise() -> Iterator[None]:
    """In this context no note becomes a Python warning: the caller shows the notes, or does not need them."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def warn_of(notes: Mapping[str, Iterable[Note]]) -> None:
    """One Python warning with the notes of every run that are not mere information, for the caller's caller."""
    if _silent.get():
        return
    lines = []
    for name, every in notes.items():
        if shown := " ".join(sentence(noted) for noted in by_severity(every) if noted.severity != "info"):
            lines.append(f"{name}: {shown}" if name else shown)
    if lines:
        warnings.warn("\n".join(lines), SteelyardWarning, stacklevel=3)


class Wording(NamedTuple):
    """How a note is shown: its severity, its text and, for a long text, a shorter one for one line of a screen."""

    severity: Severity
    text: Text
    short: Text | None = None


_WORDINGS = {"text": Wording("info", "{text}")}
_NONE: Texts = MappingProxyType({})


def declare(*, error: Texts = _NONE, warning: Texts = _NONE, info: Texts = _NONE, short: Texts = _NONE) -> None:
    """Declare notes by severity: the text of every code, and a shorter text of some."""
    for severity, texts in zip(SEVERITIES, (error, warning, info), strict=True):
        for code, text in texts.items():
            if code in _WORDINGS:
                raise AssertionError(f"the note {code!r} is declared twice")
            _WORDINGS[code] = Wording(severity, text, short.get(code))


def wordings() -> Mapping[str, Wording]:
    """Every note that the package declares, by its code, whatever has been imported so far."""
    for table in TABLES:
        import_module(table)
    return _WORDINGS


def _wording(code: str) -> Wording:
    tables = iter(TABLES)
    while code not in _WORDINGS:
        table = next(tables, None)
        if table is None:
            raise KeyError(f"the note {code!r} is not declared; declare it in the package that raises it")
        import_module(table)
    return _WORDINGS[code]


def _written(text: Text, values: Mapping[str, Any]) -> str:
    return fill(text, values) if isinstance(text, str) else text(**values)


_LISTS: dict[str, Callable[[list[str], Mapping[str, Any]], str]] = {
    "listed": lambda texts, _: listed(texts, SHOWN_NAMES),
    "listed 2": lambda texts, _: listed(texts, 2),
    "all": lambda texts, _: listed(texts),
    "count": lambda texts, _: str(len(texts)),
    "joined": lambda texts, _: ", ".join(texts),
    "semicolons": lambda texts, _: "; ".join(texts),
    "examples": lambda texts, values: examples(values["count"], texts),
    "two": lambda texts, _: ", ".join(dict.fromkeys(texts[:2])) or "none",
}
"""How a template can show a list."""


def examples(count: int, texts: Sequence[str]) -> str:
    """The first three examples of a count."""
    return ", ".join(texts[:3]) + (", ..." if count > 3 else "")


def fill(template: str, values: Mapping[str, Any]) -> str:
    """A template with its values. A field is one of Python's, such as `{name!r}` or `{share:.0%}`, or:

    - `{count:query is|queries are}`: the first text for 1 or a list of one, otherwise the second
    - `{flag:?one text|another}`, `{policy:skip?one text|another}`: the first text if the value is true, or is `skip`
    - `{names:listed}`: a list, in one of the forms of `_LISTS`; `!r` quotes its entries

    The texts of a choice are templates too.

    >>> fill("{count:,} {count:query has|queries have} no {what:?{what}|value}", {"count": 2000, "what": ""})
    '2,000 queries have no value'
    >>> fill("{runs!r:listed} {runs:is|are} tied", {"runs": ("bm25", "dense")})
    "'bm25' and 'dense' are tied"
    """
    parts = []
    for literal, field, spec, conversion in _FORMATTER.parse(template):
        parts.append(literal)
        if field is None:
            continue
        value, _ = _FORMATTER.get_field(field, (), values)
        if "|" in (spec or ""):
            parts.append(fill(_chosen(value, spec or ""), values))
        elif isinstance(value, tuple):
            parts.append(_LISTS[spec or ""]([repr(v) if conversion == "r" else str(v) for v in value], values))
        else:
            parts.append(format(_FORMATTER.convert_field(value, conversion), spec or ""))
    return "".join(parts)


_FORMATTER = Formatter()
_CONDITION = re.compile(r"([\w ]*)\?")


def _chosen(value: Any, spec: str) -> str:
    """The text of a choice that applies to a value."""
    condition = _CONDITION.match(spec)
    if condition is None:
        applies = (len(value) if isinstance(value, tuple) else value) == 1
    else:
        spec = spec[condition.end() :]
        applies = value == condition[1] if condition[1] else bool(value)
    depth = 0  # of braces: a bar inside them belongs to a choice within this one
    for place, character in enumerate(spec):
        depth += (character == "{") - (character == "}")
        if character == "|" and depth == 0:
            return spec[:place] if applies else spec[place + 1 :]
    raise ValueError(f"a choice without two texts: {spec!r}")
