"""Facts in texts: all facts looked for at once, by an automaton, in batches of bounded size.

Exact facts: an Aho-Corasick automaton (the one polars has) walks each text once, whatever the number
of facts. Of a long fact the automaton holds a piece from its middle; where that is found the whole fact
is compared. Facts of which a share suffices: where m of n words must be there, any n - m + 1 of them
include one that is, and any n - m + r of them r; the rarest of them name the candidates, and the
longest common subsequence decides.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from steelyard.alignment.hits import Ints
from steelyard.evidence.normalise import Matching, words_of

if TYPE_CHECKING:
    import polars as pl

PIECE = 32
"""Characters of a fact that the automaton holds."""
BATCH = 48_000_000
"""Characters of text that are looked through at once."""
THREADS = 2
RARE = 4
"""Rare words of a fact that a text must hold to be looked at, where a share of the fact is enough."""

Pairs = tuple[Ints, Ints]


def find_facts(facts: Sequence[str], shares: Sequence[float], texts: pl.Series, matching: Matching) -> Pairs:
    """Which fact is in which text, as (fact, text), by fact and then text.

    `facts` are as they were written; `shares` says of each how much of it must be there.

    >>> import polars as pl
    >>> texts = pl.Series(["Paris is the capital of France.", "The capital is Paris."])
    >>> pairs = find_facts(["the  capital", "is Paris"], [1.0, 1.0], texts, Matching())
    >>> [part.tolist() for part in pairs]
    [[0, 1], [0, 1]]
    """
    exact = [place for place, share in enumerate(shares) if share == 1]
    partial = [place for place, share in enumerate(shares) if share < 1]
    found: list[Pairs] = []
    if exact:
        automaton = _Exact([matching.normalised(facts[place]) for place in exact], exact)
        found += _in_batches(automaton, texts, matching)
    if partial:
        wanted = [words_of(Matching(case=matching.case).normalised(facts[place])) for place in partial]
        some = _Partial(wanted, [shares[place] for place in partial], partial)
        found += _in_batches(some, texts, Matching(case=matching.case))
    empty = np.zeros(0, dtype=np.int64)
    fact, text = (
        np.concatenate([empty, *parts]) for parts in (zip(*found, strict=True) if found else ((), ()))
    )
    order = np.lexsort((text, fact))
    return fact[order], text[order]


def _in_batches(finder: _Exact | _Partial, texts: pl.Series, matching: Matching) -> list[Pairs]:
    """The finder over all texts, two batches at a time: the automaton's walk runs beside Python."""

    def batch(first: int, last: int) -> Pairs:
        listed = [
            matching.normalised(text) if text else "" for text in texts.slice(first, last - first).to_list()
        ]
        fact, place = finder.find(listed)
        return fact, place + first

    bounds = list(_batches(texts))
    if len(bounds) < 2:
        return [batch(first, last) for first, last in bounds]
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda bound: batch(*bound), bounds))


def _batches(texts: pl.Series) -> Iterator[tuple[int, int]]:
    """First and last rows of batches that hold BATCH characters at most, or one text."""
    through = np.cumsum(texts.str.len_bytes().fill_null(0).to_numpy().astype(np.int64))
    first = 0
    while first < len(through):
        done = int(through[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(through, done + BATCH, side="right")))
        yield first, last
        first = last


class _Exact:
    """Facts that must be there as a whole, found by an automaton of a piece of each."""

    def __init__(self, facts: Sequence[str], places: Sequence[int]) -> None:
        self._whole: dict[str, list[int]] = defaultdict(list)
        for fact, place in zip(facts, places, strict=True):
            self._whole[fact].append(place)
        self._by_piece: dict[str, list[str]] = defaultdict(list)
        for fact in self._whole:
            self._by_piece[_piece(fact)].append(fact)
        self._pieces = list(self._by_piece)

    def find(self, texts: Sequence[str]) -> Pairs:
        import polars as pl

        series = pl.Series("text", texts, dtype=pl.String)
        matches = series.str.extract_many(self._pieces, overlapping=True)
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


def _piece(fact: str) -> str:
    """The middle of a fact: beginnings are more often alike."""
    middle = max(0, (len(fact) - PIECE) // 2)
    return fact[middle : middle + PIECE]


class _Partial:
    """Facts of which a share of the words, in order, is enough."""

    def __init__(
        self, facts: Sequence[Sequence[str]], shares: Sequence[float], places: Sequence[int]
    ) -> None:
        self._facts = facts
        self._needed = [needed_words(len(words), share) for words, share in zip(facts, shares, strict=True)]
        self._places = places
        self._known = {word for words in facts for word in words}

    def find(self, texts: Sequence[str]) -> Pairs:
        words = [[word for word in words_of(text) if word in self._known] for text in texts]
        listed: dict[str, list[int]] = defaultdict(list)
        for place, there in enumerate(words):
            for word in dict.fromkeys(there):
                listed[word].append(place)
        holders = {word: np.array(held, dtype=np.int64) for word, held in listed.items()}
        found: list[tuple[int, int]] = []
        for fact, needed, place in zip(self._facts, self._needed, self._places, strict=True):
            found += [
                (place, text)
                for text in self._candidates(fact, needed, holders)
                if common_words(fact, words[text]) >= needed
            ]
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _candidates(self, fact: Sequence[str], needed: int, holders: dict[str, Ints]) -> list[int]:
        """The texts that hold so many of the rarest words that the fact may be there."""
        if not needed:
            return []
        asked = min(needed, RARE)
        rarest = sorted((holders[word] for word in fact if word in holders), key=len)
        absent = len(fact) - len(rarest)
        chosen = rarest[: max(0, len(fact) - needed + asked - absent)]
        if not chosen:
            return []
        texts, counts = np.unique(np.concatenate(chosen), return_counts=True)
        candidates: list[int] = texts[counts >= asked].tolist()
        return candidates


def needed_words(count: int, share: float) -> int:
    """How many of a fact's words a share of them is, at least one.

    >>> needed_words(10, 0.75), needed_words(10, 0.7)
    (8, 7)
    """
    return max(1, ceil(round(count * share, 9))) if count else 0


def common_words(fact: Sequence[str], text: Sequence[str]) -> int:
    """The length of the longest common subsequence of words: how many of the fact's stand there in order.

    One bit a word of the fact, all of them in one step for each word of the text.

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
