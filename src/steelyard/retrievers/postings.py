"""Postings of tokenized documents, and the best documents for a query's terms: natively, or with numpy.

A posting has a document and a code: the number of its (count, length) pair, where the count is that of the term in the
document and the length that of the document in tokens. There are few such pairs, so a posting takes six bytes, and what
a formula makes of count and length is computed once per pair.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from steelyard.datasets.packed import PackedIds, PackedTexts, TextPacker
from steelyard.io.beir import read_documents
from steelyard.native import kernel
from steelyard.retrievers.base import Ranked, ranked, top_k
from steelyard.retrievers.tokenizers import Tokenizer, plain_characters

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.unsignedinteger[Any]]
Positions = npt.NDArray[np.intp]
_SHORT = 2**16 - 1  # with up to this many pairs, a code has 16 bits
_STEP = 1 << 24  # postings that are handled at a time


@dataclass(frozen=True)
class Postings:
    """The documents of each term, in document order: term t has docs[starts[t] : starts[t + 1]], and the same codes.

    Code c stands for the count pair_counts[c] and the length pair_lengths[c]; the pairs are sorted.
    """

    vocabulary: dict[str, int]
    starts: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    codes: Codes
    pair_counts: npt.NDArray[np.int32]
    pair_lengths: npt.NDArray[np.int64]
    documents: int
    tokens: int

    @property
    def counts(self) -> npt.NDArray[np.int32]:
        """The count of each posting."""
        return self.pair_counts[self.codes]


@dataclass(frozen=True)
class SparseIndex:
    """Postings with weights. The weight of a posting is IDF x factors[code]; with four factors per code, IDF x the
    first x the second x the third / the fourth. Codes of 16 bits have factors for each of their values: the kernel
    does not check the codes of a file.

    `bases` is the score of each term for documents without it, `most` the largest weight of each term (up to rounding),
    and `largest` that for an IDF of 1.
    """

    postings: Postings
    factors: Floats
    idf: Floats
    bases: Floats
    most: Floats
    largest: Floats

    @classmethod
    def of(
        cls, found: Postings, factors: Floats, idf: Floats, bases: Floats, known: Floats | None = None
    ) -> SparseIndex:
        """Postings with the factors of their codes; `known` is the largest product of factors of each term."""
        if known is None:
            known = largest(found, weights_of(factors, 1.0))
        rows = _SHORT + 1 if found.codes.dtype == np.uint16 else max(1, len(factors))
        padded = np.zeros((rows, factors.shape[1]))
        padded[: len(factors)] = factors
        return cls(found, padded, idf, bases, np.maximum(idf, 0.0) * known, known)

    @property
    def nbytes(self) -> int:
        """The memory of the arrays."""
        postings = self.postings
        used = self.factors[: len(postings.pair_counts)]
        arrays = (postings.starts, postings.docs, postings.codes, used, self.idf, self.bases, self.most, self.largest)
        return sum(array.nbytes for array in arrays)

    def weights(self, term: int) -> Floats:
        """The weights of a term, in document order."""
        span = slice(self.postings.starts[term], self.postings.starts[term + 1])
        return weights_of(self.factors[self.postings.codes[span]], self.idf[term])


def weights_of(factors: Floats, idf: float) -> Floats:
    """The weights of postings with these factors, one row each."""
    weights: Floats = idf * factors[:, 0]
    return weights if factors.shape[1] == 1 else weights * factors[:, 1] * factors[:, 2] / factors[:, 3]


def text_postings(texts: Iterable[str], tokenize: Tokenizer) -> Postings:
    """The postings of texts; terms are numbered in order of first occurrence.

    >>> found = text_postings(["red fox red", "grey fox"], str.split)
    >>> found.vocabulary, found.starts.tolist(), found.docs.tolist(), found.counts.tolist()
    ({'red': 0, 'fox': 1, 'grey': 2}, [0, 1, 3, 4], [0, 0, 1, 1], [2, 1, 1, 1])
    """
    indexer = text_indexer(tokenize)
    if indexer is None:
        return _portable_postings(map(tokenize, texts))
    indexer.add_texts(texts)
    return finished(indexer)


def text_indexer(tokenize: Tokenizer) -> Any | None:
    """The kernel's indexer of texts by a tokenizer; None without the kernel.

    It passes texts to `tokenize` that it cannot tokenize in the same way: all, for tokenizers that it lacks.
    """
    native, characters = kernel(), plain_characters(tokenize) or (np.empty(0, np.uint32), False, [])
    return None if native is None else native.Indexer(*characters, tokenize)


def file_postings(path: Path, tokenize: Tokenizer) -> tuple[Postings, PackedIds]:
    """The postings and the ids of the documents of a corpus.jsonl, of which few texts are in memory at a time."""
    indexer = text_indexer(tokenize)
    ids = TextPacker()
    tokens: list[Sequence[str]] = []
    index_text = (lambda text: tokens.append(tokenize(text))) if indexer is None else indexer.add_text

    def add(doc_id: str, text: str) -> None:
        index_text(text)
        ids.add(doc_id.encode())

    read_documents(path, add)
    postings = _portable_postings(tokens) if indexer is None else finished(indexer)
    return postings, PackedIds(*ids.arrays())


def finished(indexer: Any) -> Postings:
    """The postings of the kernel's indexer."""
    vocabulary, *rest = indexer.finish()
    return Postings(dict(zip(vocabulary, range(len(vocabulary)), strict=True)), *rest)


def _portable_postings(documents: Iterable[Sequence[str]]) -> Postings:
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    lengths: list[int] = []

    def terms_of(tokens: Sequence[str]) -> Iterable[int]:
        if not isinstance(tokens, (list, tuple)):
            raise TypeError("a tokenizer must return a list of tokens")
        lengths.append(len(tokens))
        try:
            return [numbers[token] for token in tokens]
        except TypeError:
            raise TypeError("a token must be text") from None

    terms = np.fromiter(chain.from_iterable(map(terms_of, documents)), np.int64)
    if not all(issubclass(kind, str) for kind in set(map(type, numbers))):
        raise TypeError("a token must be text")
    sizes = np.array(lengths, np.int64)
    # One sort groups equal (term, document) pairs, by term first.
    pairs = np.sort(terms * len(sizes) + np.repeat(np.arange(len(sizes)), sizes))
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    term, doc = np.divmod(pairs[first], max(1, len(sizes)))
    starts = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(np.bincount(term, minlength=len(numbers)), out=starts[1:])
    longest = int(sizes.max(initial=0)) + 1
    keys, codes = np.unique(np.diff(first, append=len(pairs)) * longest + sizes[doc], return_inverse=True)
    pair_counts, pair_lengths = np.divmod(keys, longest)
    return Postings(
        dict(numbers),
        starts,
        doc.astype(np.int32),
        codes.astype(np.uint16 if len(keys) <= _SHORT else np.uint32),
        pair_counts.astype(np.int32),
        pair_lengths.astype(np.int64),
        len(sizes),
        int(sizes.sum()),
    )


def largest(found: Postings, values: Floats) -> Floats:
    """Per term, the largest of the values of its codes; values are above 0."""
    native = kernel()
    if native is not None:
        most: Floats = native.bm25_largest(found.starts, found.codes, values)
        return most
    most = np.zeros(len(found.starts) - 1)
    for first in range(0, len(found.codes), _STEP):
        step = slice(first, first + _STEP)
        terms = np.searchsorted(found.starts, np.arange(first, first + len(found.codes[step])), "right") - 1
        np.maximum.at(most, terms, values[found.codes[step]])
    return most


def search(
    index: SparseIndex, ids: Sequence[str], queries: Sequence[Sequence[str]], k: int, matching: bool
) -> list[Ranked]:
    """Per query, the best k (id, score) pairs: by score, then in document order.

    A document's score is the sum of its weights over the query's terms, in order and with repeats. With
    `matching`, documents without any of the terms are left out.
    """
    postings = index.postings
    find = postings.vocabulary.get
    terms = [[term for token in query if (term := find(token)) is not None] for query in queries]
    k = min(int(k), postings.documents)
    native = kernel()
    if native is None:
        return [ranked(ids, *_portable_search(index, query, k, matching)) for query in terms]
    starts = np.zeros(len(terms) + 1, np.int64)
    np.cumsum([len(query) for query in terms], out=starts[1:])
    flat = np.fromiter(chain.from_iterable(terms), np.int64, starts[-1])
    sizes, docs, scores = native.bm25_search(
        *(postings.starts, postings.docs, postings.codes, index.factors.ravel(), index.factors.shape[1] > 1),
        *(index.idf, index.bases, index.most, postings.documents),
        *(starts, flat, k, matching, os.cpu_count() or 1),
    )
    found_lists = (np.frombuffer(sizes, np.int64), np.frombuffer(docs, np.int32), np.frombuffer(scores, np.float64))
    lists: list[Ranked]
    if isinstance(ids, PackedTexts):
        lists = native.bm25_packed_lists(*ids.packed, *found_lists)
    else:
        lists = native.bm25_lists(ids, *found_lists)
    return lists


def _portable_search(index: SparseIndex, terms: list[int], k: int, matching: bool) -> tuple[Positions, Floats]:
    postings = index.postings
    holders = [postings.docs[postings.starts[term] : postings.starts[term + 1]] for term in terms]
    matched = np.concatenate(holders, dtype=np.intp) if holders else np.empty(0, np.intp)
    if index.bases.any():
        scores = np.zeros(postings.documents)
        for term, docs in zip(terms, holders, strict=True):
            with_term = scores[docs] + index.weights(term)
            scores += index.bases[term]
            scores[docs] = with_term
    else:
        # bincount adds the weights one by one, in order.
        weights = np.concatenate([index.weights(term) for term in terms]) if terms else np.empty(0)
        scores = np.bincount(matched, weights, minlength=postings.documents).astype(np.float64, copy=False)
    if matching:
        positions = np.flatnonzero(np.bincount(matched, minlength=postings.documents))
        best = positions[top_k(scores[positions], k)]
    else:
        best = top_k(scores, k)
    return best, scores[best]
