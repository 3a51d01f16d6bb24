"""Ids are text. Whole numbers are read as their digits, so that 7 in a frame matches "7" in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steelyard.checks import is_whole
from steelyard.errors import InputError
from steelyard.safe_text import has_lone_surrogate


def text_ids(ids: Iterable[Any], what: str, where: str, unique: bool = False) -> list[str]:
    """Ids as text; anything that is neither text nor a whole number is an error.

    >>> text_ids(["d1", 7], "document id", "the run")
    ['d1', '7']
    """
    listed = list(ids)
    if set(map(type, listed)) <= {str}:
        refuse_lone_surrogates(listed, what, where)
        return listed
    for value in listed:
        if not isinstance(value, str) and not is_whole(value):
            raise InputError(f"{where}: {what} {value!r} is {kind_of(value)}; expected text (or a whole number).")
    as_text = [str(value) for value in listed]
    refuse_lone_surrogates(as_text, what, where)
    if unique and len(set(as_text)) != len(as_text):
        twice = next(text for text in as_text if as_text.count(text) > 1)
        raise InputError(f"{where}: {what} {twice!r} occurs as text and as a number; keep one of them.")
    return as_text


def refuse_lone_surrogates(ids: list[str], what: str, where: str) -> None:
    """Raise an error for an id that no file can hold."""
    if all(map(str.isascii, ids)):
        return
    broken = next(filter(has_lone_surrogate, ids), None)
    if broken is not None:
        problem = f"{where}: {what} {broken!r} is not valid text: it has half of a character (a lone surrogate)"
        raise InputError(f"{problem}, as a file that was decoded with the wrong encoding has.")


def kind_of(value: object) -> str:
    """The type of a value, for a message.

    >>> kind_of(None), kind_of(3.5)
    ('nothing (None)', 'a float')
    """
    return "nothing (None)" if value is None else f"a {type(value).__name__}"
