"""Postings and their search, in two forms that agree to the last bit: the native kernel and numpy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from steelyard.alignment.native import kernel
from steelyard.retrievers.topk import top_k

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Answer = tuple[npt.NDArray[np.int32], Floats]


@dataclass(frozen=True)
class Postings:
    """Which documents hold a term, and how often. Term t has docs[starts[t] : starts[t + 1]], in document order."""

    vocabulary: dict[str, int]
    starts: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int64]


@dataclass(frozen=True)
class SparseIndex:
    """Postings with a weight each; `bases` is what a term gives to the documents that lack it."""

    vocabulary: dict[str, int]
    starts: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    weights: Floats
    bases: Floats
    documents: int


def postings(documents: Iterable[Sequence[str]]) -> Postings:
    """Documents' tokens as postings; terms are numbered as they are first met.

    >>> found = postings([["red", "fox", "red"], ["grey", "fox"]])
    >>> found.vocabulary, found.starts.tolist(), found.docs.tolist(), found.counts.tolist()
    ({'red': 0, 'fox': 1, 'grey': 2}, [0, 1, 3, 4], [0, 0, 1, 1], [2, 1, 1, 1])
    """
    native = kernel()
    if native is None:
        return _portable_postings(documents)
    vocabulary, starts, docs, counts, lengths = native.bm25_postings(documents)
    return Postings(
        dict(zip(vocabulary, range(len(vocabulary)), strict=True)),
        np.frombuffer(starts, np.int64),
        np.frombuffer(docs, np.int32),
        np.frombuffer(counts, np.int32),
        np.frombuffer(lengths, np.int64),
    )


def _portable_postings(documents: Iterable[Sequence[str]]) -> Postings:
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    lengths: list[int] = []

    def terms_of(tokens: Sequence[str]) -> Iterable[int]:
        if not isinstance(tokens, (list, tuple)):
            raise TypeError("a tokenizer must give a list of tokens")
        lengths.append(len(tokens))
        return map(numbers.__getitem__, tokens)

    terms = np.fromiter(chain.from_iterable(map(terms_of, documents)), np.int64)
    if not set(map(type, numbers)) <= {str}:
        raise TypeError("a token must be text")
    sizes = np.array(lengths, np.int64)
    # One sort brings equal (term, document) pairs together, terms first.
    pairs = np.sort(terms * len(sizes) + np.repeat(np.arange(len(sizes)), sizes))
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    term, doc = np.divmod(pairs[first], len(sizes))
    starts = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(np.bincount(term, minlength=len(numbers)), out=starts[1:])
    counts = np.diff(first, append=len(pairs)).astype(np.int32)
    return Postings(dict(numbers), starts, doc.astype(np.int32), counts, sizes)


def search(index: SparseIndex, queries: Sequence[Sequence[str]], k: int, matching: bool) -> list[Answer]:
    """Per query, the best k documents and their scores: by score, then in document order.

    A document's score is the sum of its weights, the query's terms taken in order and as often as they stand
    there. `matching` leaves out the documents that have none of the terms.
    """
    find = index.vocabulary.get
    terms = [[term for token in query if (term := find(token)) is not None] for query in queries]
    k = min(int(k), index.documents)
    native = kernel()
    if native is None:
        return [_portable_search(index, query, k, matching) for query in terms]
    starts = np.zeros(len(terms) + 1, np.int64)
    np.cumsum([len(query) for query in terms], out=starts[1:])
    flat = np.fromiter(chain.from_iterable(terms), np.int64, starts[-1])
    sizes, docs, scores = native.bm25_search(
        index.starts, index.docs, index.weights, index.bases, index.documents, starts, flat, k, matching
    )
    ends = np.cumsum(np.frombuffer(sizes, np.int64)).tolist()
    found, values = np.frombuffer(docs, np.int32), np.frombuffer(scores, np.float64)
    return [(found[a:b], values[a:b]) for a, b in pairwise([0, *ends])]


def _portable_search(index: SparseIndex, terms: list[int], k: int, matching: bool) -> Answer:
    spans = [slice(index.starts[term], index.starts[term + 1]) for term in terms]
    holders = [index.docs[span] for span in spans]
    met = np.concatenate(holders, dtype=np.intp) if holders else np.empty(0, np.intp)
    scores = _portable_scores(index, terms, spans, met)
    if matching:
        places = np.flatnonzero(np.bincount(met, minlength=index.documents))
        best = places[top_k(scores[places], k)]
    else:
        best = top_k(scores, k)
    return best.astype(np.int32), scores[best]


def _portable_scores(index: SparseIndex, terms: list[int], spans: list[slice], met: Places) -> Floats:
    if not index.bases.any():
        # bincount adds the weights one by one, as they stand.
        weights = np.concatenate([index.weights[span] for span in spans]) if spans else np.empty(0)
        return np.bincount(met, weights, minlength=index.documents).astype(np.float64, copy=False)
    scores = np.zeros(index.documents)
    for term, span in zip(terms, spans, strict=True):
        holders = index.docs[span]
        with_term = scores[holders] + index.weights[span]
        scores += index.bases[term]
        scores[holders] = with_term
    return scores
