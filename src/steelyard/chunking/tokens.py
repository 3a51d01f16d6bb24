"""Tokens and where they stand in a text: white space, a callable, or tiktoken where it is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.alignment.hits import Ints
from steelyard.errors import InputError
from steelyard.ids import kind_of

Tokenizer = Callable[[str], Sequence[Any]]
"""From a text to its tokens: texts, or numbers that are only counted."""

_WORD = re.compile(r"\S+")


def tokenizer_of(tokenizer: str | Tokenizer) -> Tokenizer:
    """'whitespace', 'tiktoken' (or 'tiktoken:' and an encoding), or the callable as it is.

    >>> list(tokenizer_of("whitespace")("two words"))
    ['two', 'words']
    """
    if callable(tokenizer):
        return tokenizer
    if tokenizer == "whitespace":
        return str.split
    name, _, encoding = str(tokenizer).partition(":")
    if name != "tiktoken":
        raise InputError(
            f"there is no tokenizer {tokenizer!r}; expected 'whitespace', 'tiktoken', 'tiktoken:ENCODING' or a callable."
        )
    try:
        import tiktoken
    except ImportError:
        raise InputError("tokenizer 'tiktoken' needs the package tiktoken: pip install tiktoken.") from None
    try:
        known = tiktoken.get_encoding(encoding or "cl100k_base")
    except (OSError, ValueError) as error:
        raise InputError(
            f"tokenizer {tokenizer!r}: the encoding cannot be loaded ({str(error).splitlines()[0]:.80})."
        ) from None

    def tokenize(text: str) -> list[str]:
        return [known.decode([token]) for token in known.encode_ordinary(text)]

    return tokenize


def token_counts(texts: Mapping[str, str], tokenizer: str | Tokenizer = "whitespace") -> dict[str, int]:
    """How many tokens every text has, as `Run(..., tokens=...)` takes it for measures with a budget.

    >>> token_counts({"c1": "two words"})
    {'c1': 2}
    """
    tokenize = tokenizer_of(tokenizer)
    return {doc: len(tokenize(text)) for doc, text in texts.items()}


def token_starts(text: str, tokenizer: str | Tokenizer = "whitespace") -> Ints:
    """Where every token begins. A callable's tokens must be pieces of the text, in its order.

    >>> token_starts("two  words").tolist()
    [0, 5]
    """
    if tokenizer == "whitespace":
        return np.array([match.start() for match in _WORD.finditer(text)], dtype=np.int64)
    starts: list[int] = []
    place = 0
    for token in tokenizer_of(tokenizer)(text):
        if not isinstance(token, str):
            raise InputError(
                f"the tokenizer gives {kind_of(token)}; expected pieces of the text, to know where they stand."
            )
        found = text.find(token, place)
        if found < 0:
            # A tokenizer that cuts inside a character gives a piece that is no text: it stands where the last one ended.
            starts.append(min(place, max(0, len(text) - 1)))
            continue
        starts.append(found)
        place = found + len(token)
    return np.array(starts, dtype=np.int64)
