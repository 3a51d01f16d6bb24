"""BM25: the formulas of its variants, the index, the search, and the retriever.

Notation: N documents, df of them with the term; tf is the count of the term in the document; `length` is the
document's length divided by the mean length. `okapi`, `plus` and `l` are those of rank_bm25 0.2.2, with the same
order of operations, so that the float64 scores are equal to the last bit; `lucene`, `robertson` and `atire` are
those of Kamphuis et al. (2020), as in bm25s.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from steelyard.native import kernel
from steelyard.retrievers.base import (
    Documents,
    Ranked,
    RetrieverError,
    checked_corpus,
    checked_index,
    checked_queries,
    number,
    ranked,
    top_k,
    unknown,
)
from steelyard.retrievers.tokenizers import describe_tokenizer, tokenizer_of

if TYPE_CHECKING:
    from typing_extensions import Self


Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]
Positions = npt.NDArray[np.intp]
Found = tuple[npt.NDArray[np.int32], Floats]
"""The documents found for a query, best first, and their scores."""
_LARGEST = 1e6  # of a constant: scores stay far from what a float can hold
VariantName: TypeAlias = Literal["okapi", "plus", "l", "lucene", "robertson", "atire"]


@dataclass(frozen=True)
class Constants:
    """k1: term frequency saturation; b: length normalisation; delta and epsilon: of some variants."""

    k1: float
    b: float
    delta: float
    epsilon: float

    def norm(self, length: Floats) -> Floats:
        """1 - b + b x length."""
        return 1 - self.b + length


@dataclass(frozen=True)
class Variant:
    """A formula: a term's IDF from (df, N), and its weight from (tf, b x length, IDF).

    delta: the default of delta. floored: a negative IDF becomes epsilon x the mean IDF. everywhere: a document
    without the term also gets delta x IDF.
    """

    idf: Callable[[int, int], float]
    weight: Callable[[Integers, Floats, Floats, Constants], Floats]
    delta: float = 0.0
    floored: bool = False
    everywhere: bool = False


def _okapi_idf(df: int, n: int) -> float:
    return math.log(n - df + 0.5) - math.log(df + 0.5)


def _saturated(tf: Integers, length: Floats, idf: Floats, c: Constants) -> Floats:
    return idf * (tf * (c.k1 + 1) / (tf + c.k1 * c.norm(length)))


def _unscaled(tf: Integers, length: Floats, idf: Floats, c: Constants) -> Floats:
    return idf * (tf / (c.k1 * c.norm(length) + tf))


def _plus(tf: Integers, length: Floats, idf: Floats, c: Constants) -> Floats:
    return idf * (c.delta + (tf * (c.k1 + 1)) / (c.k1 * c.norm(length) + tf))


def _l(tf: Integers, length: Floats, idf: Floats, c: Constants) -> Floats:
    normed = tf / c.norm(length)
    return idf * tf * (c.k1 + 1) * (normed + c.delta) / (c.k1 + normed + c.delta)


VARIANTS: dict[str, Variant] = {
    "okapi": Variant(_okapi_idf, _saturated, floored=True),
    "plus": Variant(lambda df, n: math.log((n + 1) / df), _plus, delta=1.0, everywhere=True),
    "l": Variant(lambda df, n: math.log(n + 1) - math.log(df + 0.5), _l, delta=0.5),
    "lucene": Variant(lambda df, n: math.log(1 + (n - df + 0.5) / (df + 0.5)), _unscaled),
    "robertson": Variant(lambda df, n: math.log(max(1.0, (n - df + 0.5) / (df + 0.5))), _unscaled),
    "atire": Variant(lambda df, n: math.log(n / df), _saturated),
}


def idfs(variant: Variant, frequencies: npt.NDArray[np.int64], documents: int, epsilon: float) -> Floats:
    """The IDF of every term, in the order of the vocabulary.

    Okapi's IDF is negative for a term in more than half of the documents; it is then epsilon times the mean
    IDF of all terms, including the negative ones.
    """
    distinct, position = np.unique(frequencies, return_inverse=True)
    by_frequency = np.array([variant.idf(int(df), documents) for df in distinct], dtype=np.float64)
    values: Floats = by_frequency[position]
    if variant.floored and len(values):
        # accumulate adds one by one, as rank_bm25 does; sum adds in pairs and rounds differently.
        mean = float(np.add.accumulate(values)[-1]) / len(values)
        values[values < 0] = epsilon * mean
    return values


@dataclass(frozen=True)
class Postings:
    """The documents of each term and its counts. Term t has docs[starts[t] : starts[t + 1]], in document order."""

    vocabulary: dict[str, int]
    starts: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int64]


@dataclass(frozen=True)
class SparseIndex:
    """Postings with weights; `bases` is the score of each term for documents without it."""

    vocabulary: dict[str, int]
    starts: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    weights: Floats
    bases: Floats
    documents: int


def postings(documents: Iterable[Sequence[str]]) -> Postings:
    """The postings of tokenized documents; terms are numbered in order of first occurrence.

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
            raise TypeError("a tokenizer must return a list of tokens")
        lengths.append(len(tokens))
        try:
            return [numbers[token] for token in tokens]
        except TypeError:
            raise TypeError("a token must be text") from None

    terms = np.fromiter(chain.from_iterable(map(terms_of, documents)), np.int64)
    if not set(map(type, numbers)) <= {str}:
        raise TypeError("a token must be text")
    sizes = np.array(lengths, np.int64)
    # One sort groups equal (term, document) pairs, by term first.
    pairs = np.sort(terms * len(sizes) + np.repeat(np.arange(len(sizes)), sizes))
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    term, doc = np.divmod(pairs[first], len(sizes))
    starts = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(np.bincount(term, minlength=len(numbers)), out=starts[1:])
    counts = np.diff(first, append=len(pairs)).astype(np.int32)
    return Postings(dict(numbers), starts, doc.astype(np.int32), counts, sizes)


def search(index: SparseIndex, queries: Sequence[Sequence[str]], k: int, matching: bool) -> list[Found]:
    """Per query, the best k documents and their scores: by score, then in document order.

    A document's score is the sum of its weights over the query's terms, in order and with repeats. With
    `matching`, documents without any of the terms are left out.
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


def _portable_search(index: SparseIndex, terms: list[int], k: int, matching: bool) -> Found:
    spans = [slice(index.starts[term], index.starts[term + 1]) for term in terms]
    holders = [index.docs[span] for span in spans]
    matched = np.concatenate(holders, dtype=np.intp) if holders else np.empty(0, np.intp)
    scores = _portable_scores(index, terms, spans, matched)
    if matching:
        positions = np.flatnonzero(np.bincount(matched, minlength=index.documents))
        best = positions[top_k(scores[positions], k)]
    else:
        best = top_k(scores, k)
    return best.astype(np.int32), scores[best]


def _portable_scores(index: SparseIndex, terms: list[int], spans: list[slice], matched: Positions) -> Floats:
    if not index.bases.any():
        # bincount adds the weights one by one, in order.
        weights = np.concatenate([index.weights[span] for span in spans]) if spans else np.empty(0)
        return np.bincount(matched, weights, minlength=index.documents).astype(np.float64, copy=False)
    scores = np.zeros(index.documents)
    for term, span in zip(terms, spans, strict=True):
        holders = index.docs[span]
        with_term = scores[holders] + index.weights[span]
        scores += index.bases[term]
        scores[holders] = with_term
    return scores


class BM25:
    """BM25: the terms that a document shares with the query, weighted by rarity.

    The score is the sum over the query's terms of IDF(term) x the term's weight in the document.

    variant: `okapi`, `plus` and `l` give the scores of rank_bm25 0.2.2; `lucene`, `robertson` and `atire`
        those of bm25s.
    k1: term frequency saturation, up to 1,000,000; 0 uses only the presence of a term.
    b: length normalisation, from 0 (none) to 1.
    delta: what plus and l add to a term's weight (1 and 0.5 by default); not for the other variants.
    epsilon: in okapi, the IDF of a term in more than half of the documents is epsilon x the mean IDF.
    tokenizer: `default`, `words`, `whitespace`, `ngrams`, `ngrams:3`, or a callable str -> list of tokens.
    fill: if fewer than k documents share a term with the query, documents without a shared term follow in
        document order, as in a sort of all scores; False leaves them out.
    name: its label in tables.

    Equal scores are in document order. For an empty query, or one of unknown terms, all documents have equal scores.

    >>> bm25 = BM25(variant="okapi", k1=1.5, b=0.75, tokenizer="whitespace")
    >>> corpus = {"d1": "a red fox", "d2": "a grey wolf", "d3": "a red deer", "d4": "an owl"}
    >>> [(doc, round(score, 4)) for doc, score in bm25.index(corpus).retrieve(["grey fox"], k=3)[0]]
    [('d1', 0.814), ('d2', 0.814), ('d3', 0.0)]
    """

    def __init__(
        self,
        variant: VariantName = "okapi",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float | None = None,
        epsilon: float = 0.25,
        tokenizer: str | Callable[[str], Sequence[str]] = "default",
        fill: bool = True,
        name: str | None = None,
    ) -> None:
        if variant not in VARIANTS:
            raise unknown("bm25", "variant", variant, get_args(VariantName))
        self.variant = variant
        self.label = name or f"bm25-{variant}"
        self._formula = VARIANTS[variant]
        if delta is not None and not self._formula.delta:
            raise RetrieverError(f"{self.label}: only the variants plus and l have delta; leave it out.")
        self._constants = Constants(
            number(self.label, "k1", k1, 0.0, _LARGEST),
            number(self.label, "b", b, 0.0, 1.0),
            number(self.label, "delta", self._formula.delta if delta is None else delta, 0.0, _LARGEST),
            number(self.label, "epsilon", epsilon, -_LARGEST, _LARGEST),
        )
        self.fill = fill
        self._tokenizer_given = tokenizer
        self._tokenize = tokenizer_of(tokenizer, self.label)
        self._documents: Documents | None = None
        self._index: SparseIndex | None = None

    def index(self, corpus: Mapping[str, str]) -> Self:
        """Index a corpus; a second call replaces the first index."""
        documents = checked_corpus(corpus, self.label)
        found = self._with_token_errors(lambda: postings(map(self._tokenize, documents.texts)))
        constants = self._constants
        frequencies = np.diff(found.starts)
        idf = idfs(self._formula, frequencies, len(documents), constants.epsilon)
        mean_length = found.lengths.sum() / len(documents) or 1.0
        length = constants.b * found.lengths / mean_length
        weights = self._formula.weight(
            found.counts, length[found.docs], np.repeat(idf, frequencies), constants
        )
        bases = idf * constants.delta if self._formula.everywhere else np.zeros(len(idf))
        self._index = SparseIndex(found.vocabulary, found.starts, found.docs, weights, bases, len(documents))
        self._documents = documents
        return self

    def retrieve(self, queries: Sequence[str], k: int = 10) -> list[Ranked]:
        """Per query, the best k (document id, score) pairs."""
        documents = checked_index(self._documents, self.label)
        assert self._index is not None
        listed = checked_queries(queries, k, self.label)
        index = self._index
        found = self._with_token_errors(
            lambda: search(index, [self._tokenize(query) for query in listed], k, not self.fill)
        )
        return [ranked(documents.ids, positions, scores) for positions, scores in found]

    def settings(self) -> dict[str, Any]:
        """Everything that its results depend on."""
        return {
            "retriever": "bm25",
            "variant": self.variant,
            "k1": self._constants.k1,
            "b": self._constants.b,
            "delta": self._constants.delta,
            "epsilon": self._constants.epsilon,
            "tokenizer": describe_tokenizer(self._tokenizer_given),
            "fill": self.fill,
        }

    def size_in_bytes(self) -> int:
        """The postings with weights, and the vocabulary."""
        if self._index is None:
            return 0
        arrays = (self._index.starts, self._index.docs, self._index.weights, self._index.bases)
        words = sum(map(sys.getsizeof, self._index.vocabulary))
        return sum(array.nbytes for array in arrays) + sys.getsizeof(self._index.vocabulary) + words

    def _with_token_errors(self, work: Callable[[], Any]) -> Any:
        """The result of the work; a TypeError of the user's tokenizer becomes an error about it."""
        try:
            return work()
        except TypeError as error:
            if not callable(self._tokenizer_given):
                raise
            raise RetrieverError(
                f"{self.label}: the tokenizer {describe_tokenizer(self._tokenizer_given)} failed or did not "
                f"return a list of tokens ({error}); expected a callable from a text to a list of texts."
            ) from error
