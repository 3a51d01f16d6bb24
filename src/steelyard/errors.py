"""Errors: every mistake of a user is a SteelyardError. Its text says what was wrong, where, what was expected and what
to do; the command line prints it and exits with 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike


class SteelyardError(Exception):
    """A mistake in the input: the message states how to fix it."""


class SteelyardWarning(UserWarning):
    """Notes of `evaluate` or `compare` on numbers that may mislead; `notes` of the result has them as data."""


class InputError(SteelyardError):
    """A file, frame or mapping that cannot be used; `path` is the file, where the input is one.

    >>> print(InputError("line 3: 5 columns; expected 4.", "qrels.txt"))
    qrels.txt: line 3: 5 columns; expected 4.
    """

    def __init__(self, message: str, path: PathLike[str] | str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    @classmethod
    def of_problems(
        cls,
        headline: str,
        problems: Sequence[str],
        advice: str,
        path: PathLike[str] | str | None = None,
        total: int | None = None,
    ) -> InputError:
        """The error for several problems at once: see `problem_report`."""
        return cls(problem_report(headline, problems, advice, total), path)

    @classmethod
    def refuse(
        cls, problems: Sequence[str], one: str, many: str, advice: str, path: PathLike[str] | str | None = None
    ) -> None:
        """Raise the error for these problems, if there are any; the headline is their number with `one` or `many`."""
        if problems:
            from steelyard.wording import counted

            raise cls.of_problems(f"{counted(len(problems), one, many)}:", problems, advice, path)

    def __str__(self) -> str:
        return self.message if self.path is None else f"{self.path}: {self.message}"


class WrongKindError(InputError):
    """A run where qrels are expected, or the other way round."""


class FixedColumnsError(InputError):
    """Columns were named of a file that has none to name: its form is fixed."""


class NoQrelsError(InputError):
    """A dataset without qrels, where qrels are needed."""


class MeasureError(SteelyardError):
    """A measure, dialect or parameter that does not exist or does not fit."""


class PolicyError(SteelyardError):
    """An edge case met under a policy that says `error`, or a policy that does not exist."""


class PackageError(SteelyardError, ImportError):
    """A package that one of the extras brings is not there."""


SHOWN_PROBLEMS = 10


def problem_report(headline: str, problems: Sequence[str], advice: str = "", total: int | None = None) -> str:
    """The headline, the first ten problems, a count of the rest, and what to do.

    >>> print(problem_report("qrels.txt: 2 bad lines", ["line 3: 5 columns", "line 9: no grade"], "Fix them."))
    qrels.txt: 2 bad lines
      line 3: 5 columns
      line 9: no grade
    Fix them.
    """
    rest = (len(problems) if total is None else total) - min(len(problems), SHOWN_PROBLEMS)
    lines = [headline, *(f"  {problem}" for problem in problems[:SHOWN_PROBLEMS])]
    if rest > 0:
        lines.append(f"  ... and {rest:,} more")
    if advice:
        lines.append(advice)
    return "\n".join(lines)


def nearest(word: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> list[str]:
    """The known names closest to a misspelt one, closest first, matched without regard to case.

    `cutoff` is how alike they must be, from 0 to 1. If none is, those that start with the word are taken.

    >>> nearest("ndgc", ["nDCG", "AP", "RR"]), nearest("bm25", ["bm25-okapi", "dense"])
    (['nDCG'], ['bm25-okapi'])
    """
    import difflib

    by_lower: dict[str, str] = {}
    for name in known:
        by_lower.setdefault(name.lower(), name)
    close = difflib.get_close_matches(word.lower(), list(by_lower), n=most, cutoff=cutoff)
    if not close and len(word) > 2:
        close = [name for name in by_lower if name.startswith(word.lower())][:most]
    return [by_lower[name] for name in close]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """' Did you mean A, B or C?', or nothing where no name is close."""
    close = nearest(word, known)
    if not close:
        return ""
    return f" Did you mean {' or '.join([', '.join(close[:-1]), close[-1]] if len(close) > 1 else close)}?"
