"""Near-duplicate documents, found without comparing every pair.

A document is the set of its shingles: sequences of three words (in scripts without spaces, of three characters). Two
documents are near-duplicates if the Jaccard similarity of these sets, |A and B| / |A or B|, reaches the threshold.
Candidates are found by MinHash: 64 minima per document in 16 bands of four, and a pair is a candidate if one of its
bands is equal. The similarity of candidates is then computed exactly, so every group is real. A pair at 0.8 is missed
once in 4,000 times, one at 0.7 once in 80.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from steelyard.alignment.hits import Ints
from steelyard.alignment.ranking import first_of_group
from steelyard.errors import InputError
from steelyard.lazy import polars as pl

Hashes: TypeAlias = npt.NDArray[np.uint64]

_BANDS, _ROWS = 16, 4
# Characters processed at a time: enough to keep polars busy, few enough that the hashes stay in the cache.
_CHUNK = 1 << 20
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORDS = rf"[{_UNSPACED}]|[\w--[{_UNSPACED}]]+"


def near_duplicates(corpus: Mapping[str, str], threshold: float = 0.8) -> list[tuple[str, ...]]:
    """Groups of documents, each a near-duplicate of another of its group, in corpus order.

    >>> text = "the lift at the upper station is closed for repair until the first of may"
    >>> near_duplicates({"a": text, "b": "bicycles travel free", "c": text + " this year"})
    [('a', 'c')]
    """
    if not 0 < threshold <= 1:
        raise InputError(f"the threshold of near-duplicates is {threshold}; expected a number above 0, at most 1.")
    texts = getattr(corpus, "texts", corpus)
    ids = list(corpus)
    places, keys = _band_keys(texts.values())
    pairs = _candidates(places, keys)
    groups = _joined(pairs, _shingles_of(texts, ids, pairs), threshold)
    return [tuple(ids[place] for place in group) for group in groups]


def _band_keys(texts: Iterable[str]) -> tuple[Ints, Hashes]:
    """The documents that have words, and a key for each of their bands."""
    draw = np.random.default_rng(20).integers(0, 2**63, (2, _BANDS * _ROWS), dtype=np.uint64)
    multiply, shift = (draw[0] << np.uint64(1)) | np.uint64(1), draw[1]
    places: list[Ints] = []
    keys: list[Hashes] = []
    first = 0
    for chunk in _chunks(texts):
        hashes, sizes = shingles(chunk)
        filled = np.flatnonzero(sizes)
        starts = np.cumsum(sizes[filled]) - sizes[filled]
        places.append(filled + first)
        bands = np.zeros((len(starts), _BANDS), np.uint64)  # one key per band, from its four minima
        mixed = np.empty_like(hashes)
        for number in range(_BANDS * _ROWS if len(starts) else 0):
            np.bitwise_xor(hashes, shift[number], out=mixed)
            np.multiply(mixed, multiply[number], out=mixed)
            band = number // _ROWS
            bands[:, band] = _mix(bands[:, band] ^ np.minimum.reduceat(mixed, starts))
        keys.append(bands)
        first += len(chunk)
    if not places:
        return np.empty(0, np.int64), np.empty((0, _BANDS), np.uint64)
    return np.concatenate(places), np.concatenate(keys)


def shingles(texts: Sequence[str]) -> tuple[Hashes, Ints]:
    """The hashes of the shingles, text after text, and how many each text has.

    A text of one or two words is one shingle; a text without words has none.
    """
    words = pl.Series(texts, dtype=pl.String).str.to_lowercase().str.extract_all(_WORDS)
    lengths = words.list.len().to_numpy().astype(np.int64)
    hashes = words.explode().drop_nulls().hash(seed=0).to_numpy().astype(np.uint64)
    ends = np.cumsum(lengths)
    sizes = np.where(lengths > 0, np.maximum(lengths - 2, 1), 0)
    starts = ends - lengths
    at = np.repeat(starts, sizes) + np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    last = np.repeat(ends, sizes) - 1
    run = hashes[at]
    for step in (1, 2):
        run = _mix(run ^ np.where(at + step <= last, hashes[np.minimum(at + step, last)], np.uint64(0)))
    return run, sizes


def _mix(values: Hashes) -> Hashes:
    """A bijection that spreads every bit over the word."""
    mixed = (values ^ (values >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    spread: Hashes = mixed ^ (mixed >> np.uint64(29))
    return spread


def _candidates(places: Ints, keys: Hashes) -> Ints:
    """Pairs of documents with an equal band: each with the first that has the same key, and with the one before it."""
    parts: list[Ints] = []
    for band in range(_BANDS):
        order = np.argsort(keys[:, band], kind="stable")
        ordered = keys[order, band]
        heads = first_of_group(ordered)
        equal = np.flatnonzero(heads != np.arange(len(ordered)))
        parts += [np.stack([places[order[other]], places[order[equal]]], axis=1) for other in (heads[equal], equal - 1)]
    pairs: Ints = np.unique(np.concatenate(parts), axis=0)
    return pairs


def _shingles_of(texts: Mapping[str, str], ids: Sequence[str], pairs: Ints) -> dict[int, Hashes]:
    candidates = np.unique(pairs).tolist()
    sets: list[Hashes] = []
    for chunk in _chunks(texts[ids[place]] for place in candidates):
        hashes, sizes = shingles(chunk)
        sets += map(np.unique, np.split(hashes, np.cumsum(sizes)[:-1]))
    return dict(zip(candidates, sets, strict=True))


def _joined(pairs: Ints, sets: Mapping[int, Hashes], threshold: float) -> list[list[int]]:
    """Groups of the pairs that are similar enough; a pair already in one group is not compared again."""
    leader: dict[int, int] = {}

    def head(place: int) -> int:
        while leader.setdefault(place, place) != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    for one, other in pairs.tolist():
        low, high = sorted((head(one), head(other)))
        if low != high:
            shared = len(set(sets[one].tolist()).intersection(sets[other].tolist()))
            if shared / (len(sets[one]) + len(sets[other]) - shared) >= threshold:
                leader[high] = low
    groups: dict[int, list[int]] = {}
    for place in sorted(leader):
        groups.setdefault(head(place), []).append(place)
    return [group for group in groups.values() if len(group) > 1]


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size >= _CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
