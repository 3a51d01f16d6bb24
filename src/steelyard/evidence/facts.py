"""Facts in texts: normalised, so that Unicode forms and white space do not matter, and found in many texts at once."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np

from steelyard.alignment.hits import Ints
from steelyard.checks import is_number
from steelyard.errors import InputError
from steelyard.lazy import polars as pl

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Matching:
    """How a fact is searched in a text.

    share: 1 requires the whole fact; less requires that share of its words, in order, with other words
    allowed between them. case: whether upper and lower case differ. spaces: "single" replaces white
    space by one space, "removed" removes it.
    """

    share: float = 1.0
    case: bool = True
    spaces: Literal["single", "removed"] = "single"

    def __post_init__(self) -> None:
        if not is_number(self.share) or not 0 < self.share <= 1:
            raise InputError(f"share is {self.share!r}; expected a share of a fact's words above 0 and up to 1.")
        if self.spaces not in ("single", "removed"):
            raise InputError(f"spaces is {self.spaces!r}; expected 'single' or 'removed'.")

    def normalised(self, text: str) -> str:
        """A text in Unicode's form NFKC, its white space single or removed, in lower case unless `case`.

        >>> Matching().normalised("The ﬁrst\\n  rule ")
        'The first rule'
        >>> Matching(case=False, spaces="removed").normalised("The first rule")
        'thefirstrule'
        """
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text)
        if not self.case:
            text = text.lower()
        return (" " if self.spaces == "single" else "").join(text.split())


normalised = Matching().normalised  # The form of texts that are not searched but compared.


def words_of(text: str) -> list[str]:
    """The words of a text: its runs of letters and digits.

    >>> words_of("Rule 7, as amended.")
    ['Rule', '7', 'as', 'amended']
    """
    return _WORD.findall(text)


def text_hash(text: str, algorithm: Literal["sha256", "sha1", "md5"] = "sha256") -> str:
    """The digest of a text in its normalised form, so that white space does not matter.

    >>> text_hash("A  balance.") == text_hash("A balance.")
    True
    """
    return hashlib.new(algorithm, normalised(text).encode(), usedforsecurity=False).hexdigest()


PIECE = 32  # Characters of a fact in the automaton.
BATCH = 48_000_000  # Characters of text that are searched at once.
THREADS = 2
RARE = 4  # Rare words of a fact that a text must contain to be a candidate, where a share of the fact is enough.

Pairs = tuple[Ints, Ints]


def find_facts(facts: Sequence[str], shares: Sequence[float], texts: pl.Series, matching: Matching) -> Pairs:
    """Which fact is in which text, as (fact, text), by fact and then text.

    `facts` are not normalised; `shares` has the share of each that must be there.

    >>> import polars as pl
    >>> texts = pl.Series(["Paris is the capital of France.", "The capital is Paris."])
    >>> pairs = find_facts(["the  capital", "is Paris"], [1.0, 1.0], texts, Matching())
    >>> [part.tolist() for part in pairs]
    [[0, 1], [0, 1]]
    """
    exact = [place for place, share in enumerate(shares) if share == 1]
    partial = [place for place, share in enumerate(shares) if share < 1]
    empty = np.zeros(0, dtype=np.int64)
    batches: list[Pairs] = [(empty, empty)]
    if exact:
        batches += _in_batches(_Exact([matching.normalised(facts[place]) for place in exact], exact), texts, matching)
    if partial:
        words = [words_of(Matching(case=matching.case).normalised(facts[place])) for place in partial]
        some = _Partial(words, [shares[place] for place in partial], partial)
        batches += _in_batches(some, texts, Matching(case=matching.case))
    fact, text = map(np.concatenate, zip(*batches, strict=True))
    order = np.lexsort((text, fact))
    return fact[order], text[order]


def _in_batches(finder: _Exact | _Partial, texts: pl.Series, matching: Matching) -> list[Pairs]:
    """The finder over all texts, two batches at a time: the automaton runs in parallel to Python."""

    def batch(first: int, last: int) -> Pairs:
        listed = [matching.normalised(text) if text else "" for text in texts.slice(first, last - first).to_list()]
        fact, place = finder.find(listed)
        return fact, place + first

    bounds = list(blocks(texts.str.len_bytes().fill_null(0).to_numpy().astype(np.int64), BATCH))
    if len(bounds) < 2:
        return [batch(first, last) for first, last in bounds]
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda bound: batch(*bound), bounds))


def blocks(sizes: Ints, most: int) -> Iterator[tuple[int, int]]:
    """First and last rows of blocks whose sizes add up to `most` at most, or of one row."""
    through = np.cumsum(sizes)
    first = 0
    while first < len(through):
        done = int(through[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(through, done + most, side="right")))
        yield first, last
        first = last


class _Exact:
    """Facts that must be there completely, found by an automaton with a piece of each."""

    def __init__(self, facts: Sequence[str], places: Sequence[int]) -> None:
        self._whole: dict[str, list[int]] = defaultdict(list)
        for fact, place in zip(facts, places, strict=True):
            self._whole[fact].append(place)
        self._by_piece: dict[str, list[str]] = defaultdict(list)
        for fact in self._whole:
            middle = max(0, (len(fact) - PIECE) // 2)  # The starts of facts are more often equal.
            self._by_piece[fact[middle : middle + PIECE]].append(fact)
        self._pieces = list(self._by_piece)

    def find(self, texts: Sequence[str]) -> Pairs:
        matches = pl.Series("text", texts, dtype=pl.String).str.extract_many(self._pieces, overlapping=True)
        hit = np.flatnonzero((matches.list.len() > 0).to_numpy())
        fact: list[int] = []
        text: list[int] = []
        for row, pieces in zip(hit.tolist(), matches.gather(hit).to_list(), strict=True):
            for piece in set(pieces):
                for whole in self._by_piece[piece]:
                    if whole in texts[row]:
                        fact += self._whole[whole]
                        text += [row] * len(self._whole[whole])
        return np.array(fact, dtype=np.int64), np.array(text, dtype=np.int64)


class _Partial:
    """Facts of which a share of the words, in order, is enough."""

    def __init__(self, facts: Sequence[Sequence[str]], shares: Sequence[float], places: Sequence[int]) -> None:
        self._facts = facts
        self._needed = [needed_words(len(words), share) for words, share in zip(facts, shares, strict=True)]
        self._places = places
        self._known = {word for words in facts for word in words}

    def find(self, texts: Sequence[str]) -> Pairs:
        words = [[word for word in words_of(text) if word in self._known] for text in texts]
        listed: dict[str, list[int]] = defaultdict(list)
        for place, found_words in enumerate(words):
            for word in dict.fromkeys(found_words):
                listed[word].append(place)
        holders = {word: np.array(places, dtype=np.int64) for word, places in listed.items()}
        matches: list[tuple[int, int]] = []
        for fact, needed, place in zip(self._facts, self._needed, self._places, strict=True):
            matches += [
                (place, text)
                for text in self._candidates(fact, needed, holders)
                if common_words(fact, words[text]) >= needed
            ]
        pairs = np.array(matches, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _candidates(self, fact: Sequence[str], needed: int, holders: dict[str, Ints]) -> list[int]:
        """The texts with so many of the rarest words that they may contain the fact."""
        least = min(needed, RARE)
        rarest = sorted((holders[word] for word in fact if word in holders), key=len)
        chosen = rarest[: max(0, len(rarest) - needed + least)]
        if not needed or not chosen:
            return []
        texts, counts = np.unique(np.concatenate(chosen), return_counts=True)
        candidates: list[int] = texts[counts >= least].tolist()
        return candidates


def needed_words(count: int, share: float) -> int:
    """How many of a fact's words a share of them is, at least one.

    >>> needed_words(10, 0.75), needed_words(10, 0.7)
    (8, 7)
    """
    return max(1, ceil(round(count * share, 9))) if count else 0


def common_words(fact: Sequence[str], text: Sequence[str]) -> int:
    """The length of the longest common subsequence: how many of the fact's words are in the text, in order.

    One bit per word of the fact, all of them in one step for each word of the text.

    >>> common_words(["a", "b", "c"], ["a", "x", "c", "b"])
    2
    """
    bits: dict[str, int] = defaultdict(int)
    for place, word in enumerate(fact):
        bits[word] |= 1 << place
    full = (1 << len(fact)) - 1
    row = full
    for word in text:
        matched = row & bits.get(word, 0)
        row = ((row + matched) | (row - matched)) & full
    return len(fact) - row.bit_count()
