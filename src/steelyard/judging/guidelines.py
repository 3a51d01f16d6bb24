"""Guidelines: the grades that a judge can give, with keys, labels and descriptions.

A small YAML file sets them:

    title: Relevance
    text: Judge what the document says, not how well it is written.
    relevant_from: 1
    grades:
      0: Not relevant
      1: {label: Relevant, description: Answers the query., key: y}

`relevant_from` is the lowest grade that answers the query; precision, recall and the like count from there. A grade is
a number with its label, or with label, description and key. Its key is its digit unless another is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.checks import is_number
from steelyard.errors import InputError, did_you_mean, problem_report
from steelyard.io.files import read_bytes, reading
from steelyard.io.unpacking import load_yaml
from steelyard.wording import counted, listed

RESERVED_KEYS = {
    "c": "cannot tell",
    "s": "skip",
    "u": "undo",
    "n": "note",
    "m": "mark",
    "j": "next sentence",
    "k": "previous sentence",
    "?": "help",
}
"""Keys of the page that no grade can have."""
FIELDS = ("title", "text", "relevant_from", "grades")
GRADE_FIELDS = ("label", "description", "key")


@dataclass(frozen=True)
class Grade:
    """One grade of a scale: its value, the key that gives it, and what it means."""

    grade: float
    key: str
    label: str
    description: str = ""


@dataclass(frozen=True)
class Guidelines:
    """What judges are asked: a title, a text and the grades, lowest first.

    >>> [grade.label for grade in DEFAULT.grades]
    ['Not relevant', 'Related', 'Partly relevant', 'Relevant']
    """

    title: str
    text: str
    grades: tuple[Grade, ...]
    relevant_from: float | None = None

    @property
    def values(self) -> frozenset[float]:
        """The values that a judgment can have."""
        return frozenset(grade.grade for grade in self.grades)

    @classmethod
    def read(cls, path: str | Path) -> Guidelines:
        """Read a YAML file; see the module's text for its form."""
        import yaml

        try:
            with reading(Path(path)):
                given = load_yaml(read_bytes(Path(path)))
        except InputError as error:
            cause = error.__cause__
            if not isinstance(cause, (yaml.YAMLError, UnicodeDecodeError)):
                raise
            mark = getattr(cause, "problem_mark", None)
            where = f", line {mark.line + 1}" if mark is not None else ""
            problem = getattr(cause, "problem", None) or "it is not UTF-8"
            raise InputError(f"{path}{where}: not YAML ({problem}).") from None
        return cls.of(given, str(path))

    @classmethod
    def of(cls, source: Any, where: str = "guidelines") -> Guidelines:
        """Guidelines as they are; None for the default ones; a path read; a mapping checked.

        >>> Guidelines.of({"grades": {0: "No", 1: "Yes"}}).grades[1]
        Grade(grade=1, key='1', label='Yes', description='')
        """
        if isinstance(source, Guidelines):
            return source
        if source is None and where == "guidelines":
            return DEFAULT
        if isinstance(source, (str, Path)) and where == "guidelines":
            return cls.read(source)
        if not isinstance(source, Mapping):
            raise InputError(f"{where}: expected a mapping with {listed(FIELDS)}; only grades is required.")
        problems: list[str] = []
        _check_fields(source, FIELDS, "", problems)
        title, text = (_text(source.get(name), name, problems) for name in ("title", "text"))
        grades = _grades(source.get("grades"), problems)
        lowest = source.get("relevant_from")
        if lowest is not None and lowest not in [grade.grade for grade in grades]:
            problems.append(f"relevant_from is {lowest!r}; expected one of the grades")
        if problems:
            raise InputError(problem_report(f"{where}: {counted(len(problems), 'problem')}", problems))
        return cls(title or DEFAULT.title, text, grades, lowest)


def _grades(given: Any, problems: list[str]) -> tuple[Grade, ...]:
    """The grades, lowest first; what is wrong with them goes into `problems`."""
    if not isinstance(given, Mapping) or len(given) < 2:
        problems.append("grades: expected at least two, as in {0: Not relevant, 1: Relevant}")
        return ()
    grades = [grade for value, what in given.items() if (grade := _grade(value, what, problems)) is not None]
    taken: dict[str, Grade] = {}
    for grade in grades:
        if grade.key in taken:
            problems.append(f"grades {taken[grade.key].grade} and {grade.grade} have the same key {grade.key!r}")
        taken[grade.key] = grade
    return tuple(sorted(grades, key=lambda grade: grade.grade))


def _grade(value: Any, what: Any, problems: list[str]) -> Grade | None:
    where = f"grade {value!r}"
    if not is_number(value):
        problems.append(f"{where}: expected a number")
        return None
    what = {"label": what} if isinstance(what, str) else what
    if not isinstance(what, Mapping):
        problems.append(f"{where}: expected a label, or {listed(GRADE_FIELDS)}")
        return None
    _check_fields(what, GRADE_FIELDS, f"{where}: ", problems)
    label, description = (_text(what.get(name), f"{where}: {name}", problems) for name in ("label", "description"))
    if not label:
        problems.append(f"{where}: no label")
    key = str(value if what.get("key") is None else what["key"]).lower()
    if len(key) != 1 or not key.isprintable() or key.isspace():
        problems.append(f"{where}: key {key!r}; expected one character, as in key: x")
    elif key in RESERVED_KEYS:
        problems.append(f"{where}: the key {key!r} is for {RESERVED_KEYS[key]}; choose another one")
    return Grade(value, key, label, description)


def _text(value: Any, where: str, problems: list[str]) -> str:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value).strip()
    problems += [] if value is None else [f"{where}: expected text"]
    return ""


def _check_fields(given: Mapping[Any, Any], allowed: tuple[str, ...], where: str, problems: list[str]) -> None:
    wrong = [name for name in given if name not in allowed]
    problems += [f"{where}there is no field {name!r}.{did_you_mean(str(name), allowed)}" for name in wrong]


DEFAULT = Guidelines(
    "Relevance",
    "How well does the document answer the query? Judge what it says, not how well it is written, and judge "
    "every document on its own: an answer that another document gave before still counts.",
    (
        Grade(0, "0", "Not relevant", "Says nothing that helps."),
        Grade(1, "1", "Related", "On the topic, but no answer."),
        Grade(2, "2", "Partly relevant", "Part of the answer, or hard to find."),
        Grade(3, "3", "Relevant", "A clear and complete answer."),
    ),
    relevant_from=2,
)
"""The guidelines where none are given."""
