"""Tokenizers, and the English stemmer that they use.

The stemmer is Porter's second algorithm as defined by Snowball 3,
https://snowballstem.org/algorithms/english/stemmer.html. It is not a dependency because it is short and does not
change, and every distinct word is stemmed once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import chain, starmap
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from steelyard.ids import kind_of
from steelyard.retrievers.base import RetrieverError, unknown
from steelyard.retrievers.targets import describe_callable

_VOWELS = frozenset("aeiouy")
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_BEFORE = {"ogi": "l", "li": "cdeghkmnrt"}
"""The letters that an ending of step 2 must follow, if not any."""
_FIXED = {
    "skis": "ski", "skies": "sky", "idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli",
    "only": "onli", "singly": "singl",
    **{word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")},
}  # fmt: skip
_REGION_PREFIXES = ("gener", "commun", "arsen", "past", "univers", "later", "emerg", "organ", "inter")
_KEPT_BEFORE_EED = ("succ", "proc", "exc")
_KEPT_BEFORE_ING = ("even", "cann", "inn", "earr", "herr", "out")
# A y that is a consonant, at the start or after a vowel; it becomes a capital.
_CONSONANT_Y = re.compile("(^|[aeiouy])y")
# A short last syllable: consonant, vowel, consonant (not w, x or y); or only vowel, consonant.
_SHORT_END = re.compile(r"\A[aeiouy][^aeiouy]\Z|past\Z|[^aeiouy][aeiouy][^aeiouywxY]\Z")

_STEP_2 = {
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent", "izer": "ize",
    "ization": "ize", "ational": "ate", "ation": "ate", "ator": "ate", "alism": "al", "aliti": "al",
    "alli": "al", "fulness": "ful", "ousli": "ous", "ousness": "ous", "iveness": "ive", "iviti": "ive",
    "biliti": "ble", "bli": "ble", "ogist": "og", "ogi": "og", "fulli": "ful", "lessli": "less", "li": "",
}  # fmt: skip
_STEP_3 = {
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic", "ical": "ic", "ful": "",
    "ness": "", "ative": "",
}  # fmt: skip
_STEP_4 = dict.fromkeys(
    ("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous",
     "ive", "ize", "ion"), "",
)  # fmt: skip


def stem(word: str) -> str:
    """The stem of a lower-case English word; words of one or two letters are unchanged.

    >>> [stem(word) for word in ("retrieval", "retrieving", "generously", "skies", "2024")]
    ['retriev', 'retriev', 'generous', 'sky', '2024']
    """
    if word in _FIXED:
        return _FIXED[word]
    if len(word) < 3:
        return word
    word = _CONSONANT_Y.sub(r"\1Y", word.removeprefix("'"))
    prefix = next((prefix for prefix in _REGION_PREFIXES if word.startswith(prefix)), None)
    # The starts of the regions R1 and R2: each after the first consonant that follows a vowel.
    r1 = len(prefix) if prefix else _after_vowel_and_consonant(word, 0)
    r2 = _after_vowel_and_consonant(word, r1)
    word = _plural(word)
    word = _past_or_progressive(word, r1)
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2, r1, lambda ending, before: before[-1:] in _BEFORE.get(ending, before[-1:]))
    word = _replaced(word, _STEP_3, r1, lambda ending, before: ending != "ative" or len(before) >= r2)
    word = _replaced(word, _STEP_4, r2, lambda ending, before: ending != "ion" or before.endswith(("s", "t")))
    before = word[:-1]
    in_r2 = word.endswith(("e", "ll")) and len(before) >= r2
    after_long = word.endswith("e") and len(before) >= r1 and not _SHORT_END.search(before)
    return (before if in_r2 or after_long else word).replace("Y", "y")


def _after_vowel_and_consonant(word: str, at: int) -> int:
    ends = range(at + 2, len(word) + 1)
    return next((end for end in ends if word[end - 1] not in _VOWELS and word[end - 2] in _VOWELS), len(word))


def _longest(word: str, endings: tuple[str, ...] | dict[str, str]) -> str | None:
    return max((ending for ending in endings if word.endswith(ending)), key=len, default=None)


def _plural(word: str) -> str:
    if ending := _longest(word, ("'s'", "'s", "'")):
        word = word[: -len(ending)]
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("ss", "us")) and not _VOWELS.isdisjoint(word[:-2]):
        return word[:-1]
    return word


def _past_or_progressive(word: str, r1: int) -> str:
    ending = _longest(word, ("eed", "eedly", "ed", "edly", "ing", "ingly"))
    if ending is None:
        return word
    before = word[: -len(ending)]
    if ending in ("eed", "eedly"):
        return before + "ee" if len(before) >= r1 and before not in _KEPT_BEFORE_EED else word
    if ending == "ing":
        if len(before) == 2 and before[1] == "y" and before[0] not in _VOWELS:
            return before[0] + "ie"
        if before in _KEPT_BEFORE_ING:
            return word
    if _VOWELS.isdisjoint(before):
        return word
    if before.endswith(("at", "bl", "iz")):
        return before + "e"
    if before.endswith(_DOUBLES):
        return before if len(before) == 3 and before[0] in "aeo" else before[:-1]
    return before + "e" if len(before) == r1 and _SHORT_END.search(before) else before


def _replaced(word: str, endings: dict[str, str], start: int, fits: Callable[[str, str], bool]) -> str:
    """The word with its longest ending replaced, if that is in the region from `start`, and fits what is before it."""
    ending = _longest(word, endings)
    before = word.removesuffix(ending or "")
    if ending is None or len(before) < start or not fits(ending, before):
        return word
    return before + endings[ending]


Tokenizer: TypeAlias = Callable[[str], Sequence[str]]

_STOP_WORDS = """
a an and are as at be but by for from had has have he her his i if in into is it its me my no not of
on or our she so such that the their them then there these they this to was we were what when which
who will with would you your do does did how can could should been being than about also am us
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# Scripts without spaces between words: Chinese, Japanese, Thai, Lao, Khmer and Burmese; and Korean, whose words
# have endings.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3041-\u30fa\u30fc-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_WORD = re.compile(r"\w+")
_RUN = re.compile(f"([{_UNSPACED}]+)|[^\\W{_UNSPACED}]+")


@lru_cache(1_000_000)
def _stem_of(word: str) -> str:
    """The stem of a word, computed once; that of a stop word is empty."""
    return "" if word in STOP_WORDS else stem(word)


def whitespace(text: str) -> list[str]:
    """The parts between white space, unchanged.

    >>> whitespace("The cat's  bed")
    ['The', "cat's", 'bed']
    """
    return text.split()


def words(text: str) -> list[str]:
    """Words of letters and digits, in lower case, without English stop words, stemmed by Snowball.

    >>> words("The retrievers' rankings were compared in 2024")
    ['retriev', 'rank', 'compar', '2024']
    """
    return [token for word in _WORD.findall(text.lower()) if (token := _stem_of(word))]


def default(text: str) -> list[str]:
    """As `words`; in Korean and scripts without spaces (Chinese, Japanese, Thai, ...), pairs of adjacent characters.

    Wide and narrow forms of a character are the same (Unicode NFKC).

    >>> default("The wolves of 東京都")
    ['wolv', '東京', '京都']
    """
    text = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).lower()
    tokens: list[str] = []
    for match in _RUN.finditer(text):
        run = match[0]
        if match[1] is None:
            if token := _stem_of(run):
                tokens.append(token)
        elif len(run) == 1:
            tokens.append(run)
        else:
            tokens.extend(map(str.__add__, run, run[1:]))
    return tokens


@cache
def ngrams(n: int = 2) -> Tokenizer:
    """A tokenizer into sequences of n characters, in lower case, with white space as one space.

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


_NAMED: dict[str, Tokenizer] = {"default": default, "auto": default, "words": words, "whitespace": whitespace}
_NAMED["ngrams"] = ngrams(2)


def tokenizer_of(tokenizer: str | Tokenizer, label: str) -> Tokenizer:
    """A tokenizer by name (`ngrams:3` sets n); a callable is returned unchanged."""
    if callable(tokenizer):
        return tokenizer
    if not isinstance(tokenizer, str):
        raise RetrieverError(f"{label}: the tokenizer is {kind_of(tokenizer)}; expected a name or a callable.")
    if tokenizer in _NAMED:
        return _NAMED[tokenizer]
    if match := re.fullmatch(r"ngrams:([1-9]\d?)", tokenizer):
        return ngrams(int(match[1]))
    raise unknown(label, "tokenizer", tokenizer, [*_NAMED, "ngrams:N"])


def describe_tokenizer(tokenizer: str | Tokenizer) -> str:
    """The name of a tokenizer; for a callable, its name and a hash of its source."""
    return describe_callable(tokenizer) if callable(tokenizer) else tokenizer


# Character classes for the kernel, so that it finds the same tokens

_NOT_PLAIN, _SEPARATOR, _LETTER, _UNSPACED_KIND = range(4)
_KIND_BITS = 2
_CHARACTERS = 1 << 16
# Characters that never combine with the one before them, unless they are combining characters by their class: Latin,
# Greek and Cyrillic, punctuation and symbols, kana, wide and narrow forms.
_ALONE = (
    *((0x0000, 0x0530), (0x1E00, 0x2070), (0x20A0, 0x20C1), (0x2100, 0x2150), (0x2190, 0x2400)),
    *((0x2500, 0x2670), (0x3000, 0x3100), (0xFF00, 0xFFF0)),
)
# Ideographs and syllables, which have one form.
_WHOLE = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xAC00, 0xD7A4))


class PlainCharacters(NamedTuple):
    """A tokenizer for the kernel. characters: for each code point, its form and its kind; 0 if it is not plain.

    A text of plain characters has the tokens that its forms have one by one.
    """

    characters: npt.NDArray[np.uint32]
    stems: bool
    stop_words: list[str]


def plain_characters(tokenize: Tokenizer) -> PlainCharacters | None:
    """A tokenizer for the kernel; None for one that the kernel does not have."""
    return _plain_characters(tokenize) if any(tokenize is builtin for builtin in (default, words, whitespace)) else None


@cache
def _plain_characters(tokenize: Tokenizer) -> PlainCharacters:
    table = np.zeros(_CHARACTERS, np.uint32)
    if tokenize is whitespace:
        table[:] = np.arange(_CHARACTERS, dtype=np.uint32) << _KIND_BITS | _LETTER
        table[[point for point in range(_CHARACTERS) if chr(point).isspace()]] = _SEPARATOR
        table[0xD800:0xE000] = _NOT_PLAIN
        return PlainCharacters(table, False, [])
    if tokenize is default:
        for first, last in _WHOLE:
            table[first:last] = np.arange(first, last, dtype=np.uint32) << _KIND_BITS | _UNSPACED_KIND
    pattern = _WORD if tokenize is words else _RUN
    # Code points whose lower-case forms do not depend on neighbours and have one character.
    for point in chain.from_iterable(starmap(range, _ALONE)):
        character = chr(point)
        form = unicodedata.normalize("NFKC", character) if tokenize is default else character
        if len(form) != 1 or not any(first <= ord(form) < last for first, last in _ALONE):
            continue
        lower = form.lower()
        # The capital sigma at the end of a word has another form.
        if unicodedata.combining(character) or unicodedata.combining(form) or form == "\u03a3" or len(lower) != 1:
            continue
        match = pattern.fullmatch(lower)
        # Only _RUN has a group, of characters without spaces between words.
        kind = _SEPARATOR if match is None else _UNSPACED_KIND if any(match.groups()) else _LETTER
        table[point] = ord(lower) << _KIND_BITS | kind
    return PlainCharacters(table, True, sorted(STOP_WORDS))
