"""Texts as facts are compared: one form for every way of writing the same characters and spaces."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from steelyard.errors import InputError

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Matching:
    """How a fact is looked for in a text.

    share: 1 asks for the whole fact; less asks for that share of its words, in order, other words
    between them allowed. case: whether upper and lower case differ. spaces: "single" makes every run
    of white space one blank, "removed" takes it all out.
    """

    share: float = 1.0
    case: bool = True
    spaces: Literal["single", "removed"] = "single"

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InputError(
                f"share is {self.share!r}; expected a share of a fact's words above 0 and up to 1."
            )
        if self.spaces not in ("single", "removed"):
            raise InputError(f"spaces is {self.spaces!r}; expected 'single' or 'removed'.")

    def normalised(self, text: str) -> str:
        """The text in the form that is compared.

        >>> Matching().normalised("The ﬁrst\\n  rule ")
        'The first rule'
        >>> Matching(case=False, spaces="removed").normalised("The first rule")
        'thefirstrule'
        """
        return normalised(text, self.case, self.spaces)


def normalised(text: str, case: bool = True, spaces: Literal["single", "removed"] = "single") -> str:
    """A text in Unicode's form NFKC, its white space single or removed, in lower case unless `case`."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if not case:
        text = text.lower()
    return (" " if spaces == "single" else "").join(text.split())


def words_of(text: str) -> list[str]:
    """The words of a text: its runs of letters and digits.

    >>> words_of("Rule 7, as amended.")
    ['Rule', '7', 'as', 'amended']
    """
    return _WORD.findall(text)


def text_hash(text: str, algorithm: Literal["sha256", "sha1", "md5"] = "sha256") -> str:
    """The digest that evidence names a text by: of its normal form, so that white space does not matter.

    >>> text_hash("A  balance.") == text_hash("A balance.")
    True
    """
    return hashlib.new(algorithm, normalised(text).encode(), usedforsecurity=False).hexdigest()
