"""Texts as tokens: by name, or any callable from a text to a list of tokens."""

from __future__ import annotations

import hashlib
import inspect
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from steelyard.ids import kind_of
from steelyard.retrievers.base import RetrieverError
from steelyard.retrievers.checks import unknown
from steelyard.retrievers.own_code import code_of, is_ours
from steelyard.retrievers.stemming import stem

Tokenizer: TypeAlias = Callable[[str], Sequence[str]]

_STOP_WORDS = """
a an and are as at be but by for from had has have he her his i if in into is it its me my no not of
on or our she so such that the their them then there these they this to was we were what when which
who will with would you your do does did how can could should been being than about also am us
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# Scripts that are written without spaces between words: Chinese, Japanese, Korean (whose words carry endings),
# and Thai, Lao, Khmer and Burmese.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3041-\u30fa\u30fc-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_WORD = re.compile(r"\w+")
_RUN = re.compile(f"([{_UNSPACED}]+)|[^\\W{_UNSPACED}]+")


class _Stems(dict[str, str]):
    """Words to their stems, each worked out once; a stop word has the empty stem."""

    def __missing__(self, word: str) -> str:
        found = "" if word in STOP_WORDS else stem(word)
        if len(self) < 1_000_000:
            self[word] = found
        return found


_STEMS = _Stems()


def whitespace(text: str) -> list[str]:
    """The parts between white space, as they are.

    >>> whitespace("The cat's  bed")
    ['The', "cat's", 'bed']
    """
    return text.split()


def words(text: str) -> list[str]:
    """Letters and digits, in lower case, without English stop words, each cut to its Snowball stem.

    >>> words("The retrievers' rankings were compared in 2024")
    ['retriev', 'rank', 'compar', '2024']
    """
    return [found for word in _WORD.findall(text.lower()) if (found := _STEMS[word])]


def default(text: str) -> list[str]:
    """As `words`; runs of a script that puts no spaces between words (Chinese, Japanese, Thai, ...) as their
    pairs of neighbouring characters, and Korean too, whose words carry their grammar at the end.

    Wide and narrow forms of a character are one (Unicode NFKC).

    >>> default("The wolves of 東京都")
    ['wolv', '東京', '京都']
    """
    text = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).lower()
    tokens: list[str] = []
    for match in _RUN.finditer(text):
        run = match[0]
        if match[1] is None:
            if found := _STEMS[run]:
                tokens.append(found)
        elif len(run) == 1:
            tokens.append(run)
        else:
            tokens.extend(map(str.__add__, run, run[1:]))
    return tokens


@cache
def ngrams(n: int = 2) -> Tokenizer:
    """A tokenizer that gives every n neighbouring characters, in lower case and across single spaces.

    A text shorter than n is one token.

    >>> ngrams(3)("A cat")
    ['a c', ' ca', 'cat']
    """

    def tokenize(text: str) -> list[str]:
        text = " ".join(unicodedata.normalize("NFKC", text).lower().split())
        if len(text) < n:
            return [text] if text else []
        return [text[at : at + n] for at in range(len(text) - n + 1)]

    return tokenize


_NAMED: dict[str, Tokenizer] = {
    "default": default,
    "auto": default,
    "words": words,
    "whitespace": whitespace,
    "ngrams": ngrams(2),
}


def tokenizer_of(tokenizer: str | Tokenizer, who: str) -> Tokenizer:
    """A tokenizer by name (`ngrams:3` sets n), or the callable as it is."""
    if callable(tokenizer):
        return tokenizer
    if not isinstance(tokenizer, str):
        raise RetrieverError(f"{who}: the tokenizer is {kind_of(tokenizer)}; expected a name or a callable.")
    if tokenizer in _NAMED:
        return _NAMED[tokenizer]
    if match := re.fullmatch(r"ngrams:([1-9]\d?)", tokenizer):
        return ngrams(int(match[1]))
    raise unknown(who, "tokenizer", tokenizer, [*_NAMED, "ngrams:N"])


def describe_tokenizer(tokenizer: str | Tokenizer) -> str:
    """Its name; of a callable its name and a mark of its source, so that another function is another name."""
    return describe_callable(tokenizer) if callable(tokenizer) else tokenizer


def describe_callable(function: Callable[..., object]) -> str:
    """Module, name, and the first digits of a hash of the source, and of what its module imports of one's own.

    There is no hash where the source cannot be read.

    >>> describe_callable(str.split)
    'builtins.str.split'
    """
    named = function if hasattr(function, "__qualname__") else type(function)
    name = f"{getattr(named, '__module__', None) or 'builtins'}.{named.__qualname__}"
    try:
        source = inspect.getsource(named)
    except (OSError, TypeError):
        return name
    behind = "" if is_ours(named.__module__) else code_of(named.__module__)
    return f"{name}#{hashlib.sha256(f'{source}{behind}'.encode()).hexdigest()[:12]}"
