"""Notes: what a result reports beside its numbers. A note is data until it is printed.

A note has a code, which names what was noticed, and values. Its severity and its text follow from the code:
this module is the only place that words them. Code that has to decide something looks at the code and the
values of a note, never at its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from steelyard.wording import worded

Severity: TypeAlias = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""From the most to the least serious. `error`: the numbers mean nothing. `warning`: they may mislead."""


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
        return _WORDINGS[self.code][0]

    def __getitem__(self, name: str) -> Any:
        return dict(self.values)[name]

    def __str__(self) -> str:
        return _WORDINGS[self.code][1](**dict(self.values))

    def __repr__(self) -> str:
        return f"Note({self.code!r}: {self})"

    def to_dict(self) -> dict[str, Any]:
        """As in JSON: the code, the severity, the text and the values."""
        return {
            "code": self.code,
            "severity": self.severity,
            "text": str(self),
            "values": {
                name: list(value) if isinstance(value, tuple) else value for name, value in self.values
            },
        }


def note(code: str, **values: Any) -> Note:
    """A note. Lists are kept as tuples, so that equal notes are equal keys."""
    if code not in _WORDINGS:
        raise KeyError(f"no wording for the note {code!r}; add one to steelyard/notes.py")
    return Note(code, tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in values.items()))


def note_from_dict(made: Mapping[str, Any]) -> Note:
    """The note that `to_dict` wrote; one with a code that this version does not know keeps its text."""
    if made.get("code") in _WORDINGS:
        return note(str(made["code"]), **made.get("values", {}))
    return note("text", text=str(made.get("text", "")))


def sentence(said: Note) -> str:
    """A note as a sentence: a capital letter first, a full stop last."""
    text = str(said)
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def by_severity(notes: Iterable[Note]) -> list[Note]:
    """The notes, the most serious first; those of equal severity in the order given."""
    return sorted(notes, key=lambda each: SEVERITIES.index(each.severity))


_WORDINGS: dict[str, tuple[Severity, Callable[..., str]]] = {}


def _wording(code: str, severity: Severity) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Register the text of a note."""

    def register(text: Callable[..., str]) -> Callable[..., str]:
        if code in _WORDINGS:
            raise AssertionError(f"two wordings for the note {code!r}")
        _WORDINGS[code] = severity, text
        return text

    return register


@_wording("text", "info")
def _text(text: str) -> str:
    return text


# Qrels and runs


@_wording("judgments-merged", "info")
def _judgments_merged(count: int) -> str:
    given = worded(
        count,
        "judgment given twice with the same grade was",
        "judgments given twice with the same grade were",
    )
    return f"{count:,} {given} merged"
