"""Checks of settings: whole numbers, numbers in a range and known names, each rule written once.

Numbers of any library count: `np.int64(3)` is a whole number, `np.float32(0.5)` a number; True is neither.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any

from steelyard.errors import InputError, SteelyardError, did_you_mean
from steelyard.safe_text import has_lone_surrogate


def is_whole(value: Any, low: int | None = None) -> bool:
    """Whether a value is a whole number, `low` or more.

    >>> is_whole(3, 1), is_whole(0, 1), is_whole(-7), is_whole(2.0), is_whole(True)
    (True, False, True, False, False)
    """
    # numpy's own is called bool_ or bool; old versions take it for a number, with a warning.
    if type(value).__name__ in ("bool", "bool_"):
        return False
    try:
        number = operator.index(value)
    except TypeError:
        return False
    return low is None or number >= low


LARGEST = 2**63 - 1  # The largest whole number of a setting: what files, frames and the kernel can hold.


def whole_number(
    name: str, value: Any, low: int = 0, unit: str = "", error: type[SteelyardError] = InputError, high: int = LARGEST
) -> int:
    """The value as an int, or an error if it is not a whole number from `low` to `high`.

    >>> whole_number("depth", 2.5, 1, unit="documents")
    Traceback (most recent call last):
    ...
    steelyard.errors.InputError: depth is 2.5; expected a whole number of documents, 1 or more.
    """
    if not is_whole(value, low) or operator.index(value) > high:
        of = f" of {unit}" if unit else ""
        span = f"{low} or more" if high == LARGEST and not is_whole(value, low) else f"from {low} to {high:,}"
        raise error(f"{name} is {_shown(value)}; expected a whole number{of}, {span}.")
    return operator.index(value)


def _shown(value: Any) -> str:
    """A value in a message: a number of hundreds of digits is cut, which Python would otherwise refuse to print."""
    if is_whole(value) and abs(operator.index(value)) > 10**30:
        return "a number of more than 30 digits"
    return repr(value)


def text_value(name: str, value: Any, error: type[SteelyardError] = InputError) -> str:
    """The value, or an error if it is not a text that a file can hold: empty, or with half of a character.

    >>> text_value("judge", "d\\udc80")
    Traceback (most recent call last):
    ...
    steelyard.errors.InputError: judge is 'd\\udc80'; expected a text in UTF-8.
    """
    if not isinstance(value, str) or not value.strip() or (not value.isascii() and has_lone_surrogate(value)):
        raise error(f"{name} is {value!r}; expected a text in UTF-8.")
    return value


def is_number(value: Any) -> bool:
    """Whether a value is a finite number that a float can hold.

    >>> is_number(3), is_number(float("inf")), is_number("3"), is_number(True), is_number(10**400)
    (True, False, False, False, False)
    """
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def number_between(
    name: str, value: Any, low: float = 0.0, high: float = math.inf, error: type[SteelyardError] = InputError
) -> float:
    """The value as a float, or an error if it is not a finite number from `low` to `high`.

    >>> number_between("b", 1.5, 0, 1)
    Traceback (most recent call last):
    ...
    steelyard.errors.InputError: b is 1.5; expected a number from 0 to 1.
    """
    if not is_number(value):
        raise error(f"{name} is {_shown(value)}; expected a number.")
    if not low <= value <= high:
        span = f"from {low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"
        raise error(f"{name} is {value!r}; expected a number {span}.")
    return float(value)


def unknown_name(what: str, value: Any, known: Iterable[str], also: Iterable[str] = ()) -> str:
    """The message for a name that is not one of the known ones; names in `also` are suggested but not listed.

    >>> unknown_name("graph", "link", ["auto", "links"])
    "unknown graph 'link'; expected one of auto, links. Did you mean links?"
    """
    names = list(known)
    return f"unknown {what} {value!r}; expected one of {', '.join(names)}.{did_you_mean(str(value), [*names, *also])}"
