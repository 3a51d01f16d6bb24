"""Identification: the definitions that give a number, as a table, as plain values and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from steelyard.wording import counted

if TYPE_CHECKING:
    import polars as pl

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
